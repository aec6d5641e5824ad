//! One TCP connection: both directions, fed packet by packet.

use crate::event::packet::{Endpoint, NameLookup, Packet};
use crate::observe::{ConnectionObservers, Recording};
use crate::reset::Reset;
use crate::tcp::answer_delay::AnswerDelay;
use crate::tcp::handshake::Handshake;
use crate::tcp::packet::{Ack, Data};
use crate::tcp::packet_too_big::PacketTooBig;
use crate::tcp::receiver_view::timestamp_rtt::TimestampRtt;
use crate::tcp::receiver_view::window_edges::WindowEdges;
use crate::tcp::sender::Sender;
use crate::tcp::set_back_clock::SetBackClock;
use crate::tcp::signals::Signals;
use crate::tcp::tap_duplicates::TapDuplicates;
use std::collections::VecDeque;
use std::sync::Arc;
use thalweg_units::{SeqNum, Timestamp};
use thalweg_wire::Flags;

/// Acknowledgements on their way to a far sender; past it they are handed on early. Bounds memory.
const MAX_ON_THE_WAY: usize = 1 << 16;

/// What Linux sets (RFC 1700: 64). Packets with more, mainly of Windows, are numbered by the host and not by the connection.
const LINUX_TTL: u8 = 64;

/// Longest a connection lasts here, in nanoseconds: 36 years. Damaged clocks say more; sums of such times stay within 64 bits.
/// `a_pause_of_decades_as_damaged_clocks_tell_is_summed_up` holds it.
const MAX_DURATION_NS: u64 = 1 << 60;

/// One side of a connection and what it sent.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) at: Endpoint,
    pub(crate) sender: Sender,
    pub(crate) packets: u64,
    /// Of its last packet.
    pub(super) ttl: u8,
    fin: bool,
    pub(super) prints: TapDuplicates,
    /// Acknowledgements for this side's data that passed the tap but have not reached this side.
    pub(super) on_the_way: VecDeque<Ack>,
    /// What its last packet acknowledged: it takes no note of a TSval beyond that before it has acknowledged what came with it (RFC 7323 §4.3).
    answered: Option<SeqNum>,
    /// Round trip between the tap and this side, in nanoseconds; 0 at this side.
    pub(crate) beyond: u64,
    pub(crate) echo: TimestampRtt,
    /// Where the window for this side's data ended.
    pub(crate) edges: WindowEdges,
    /// How soon the other side acknowledges this side's data.
    pub(super) answers: AnswerDelay,
}

impl Side {
    #[inline]
    fn new(at: Endpoint, recording: Recording) -> Self {
        Self {
            at,
            sender: Sender::new(recording),
            packets: 0,
            ttl: 0,
            fin: false,
            prints: TapDuplicates::default(),
            on_the_way: VecDeque::new(),
            answered: None,
            beyond: 0,
            echo: TimestampRtt::default(),
            edges: WindowEdges::default(),
            answers: AnswerDelay::default(),
        }
    }

    /// Begins a new side in the memory of one that is over.
    fn renew(&mut self, new_at: Endpoint, recording: Recording) {
        let Self { at, sender, packets, ttl, fin, prints, on_the_way, answered, beyond, echo, edges, answers } = self;
        (*at, *packets, *ttl, *fin, *answered, *beyond) = (new_at, 0, 0, false, None, 0);
        sender.begin_flow(recording);
        prints.renew();
        on_the_way.reset();
        echo.reset();
        edges.clear();
        *answers = AnswerDelay::default();
    }

    /// The round trip between the tap and this side is `round_trip`: what is on its way arrives as much sooner as that is shorter than was thought.
    pub(super) fn is_beyond(&mut self, round_trip: u64) {
        let sooner = self.beyond.saturating_sub(round_trip);
        if sooner > 0 {
            for ack in &mut self.on_the_way {
                ack.now = ack.now.saturating_sub(sooner);
            }
        }
        self.beyond = round_trip;
    }

    /// Delivers the acknowledgements that reach this side by `now`, or just after: the round trip beyond the tap varies a little, and data
    /// must not seem to leave before what triggered it. While losses are repaired and queues grow and drain, the round trip is not known well
    /// enough: then `echo` decides, the newest TSval that this side had heard (RFC 7323 §4.3).
    fn deliver_until(&mut self, now: u64, echo: Option<u32>) {
        let due = now.saturating_add((self.beyond / 64).min(1_000_000));
        // ACKs of one tick have the same TSval: the first of them was heard at least.
        let mut same_tick = false;
        while let Some(mut ack) = self.on_the_way.front().copied() {
            let mut is_due = ack.now <= due;
            if self.sender.is_repairing()
                && let Some((echo, tsval)) = echo.zip(ack.tsval)
            {
                let since = echo.wrapping_sub(tsval) as i32;
                if !is_due && (since > 0 || since == 0 && !same_tick) {
                    same_tick |= since == 0;
                    is_due = true;
                    ack.now = now;
                } else if since < 0 && self.answered.is_some_and(|to| ack.seq.since(to) <= 0) {
                    is_due = false;
                }
            }
            if !is_due && self.on_the_way.len() <= MAX_ON_THE_WAY {
                break;
            }
            self.on_the_way.pop_front();
            // The scale may have been found since it passed the tap.
            if let Some(scale) = self.sender.window.found_scale().filter(|_| !ack.is_syn) {
                ack.window = u64::from(ack.window_field) << scale;
            }
            // An acknowledgement that was overdue arrived after the packet sent last.
            ack.now = ack.now.max(self.sender.clocks.last_send);
            self.sender.ack(&ack);
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Index of the interface among the capture's.
    pub(crate) interface: u32,
    /// Number of its first packet in the file.
    pub(crate) first_packet: u64,
    /// The client, then the server.
    pub(crate) sides: [Side; 2],
    pub(crate) opening: Handshake,
    pub(crate) signals: Signals,
    pub(crate) started: Timestamp,
    pub(crate) ended: Timestamp,
    clock: SetBackClock,
    pub(crate) tap_duplicates: u64,
    pub(crate) reset: bool,
    /// The name lookup before it.
    pub(crate) lookup: Option<Arc<NameLookup>>,
    pub(crate) observers: ConnectionObservers,
    /// ICMP errors about its segments.
    pub(crate) too_big: Option<Box<PacketTooBig>>,
}

impl Connection {
    /// A connection between these ends that begins (for this capture) with the packet, in the memory of one that is over.
    pub(crate) fn renew(&mut self, interface: u32, ends: [Endpoint; 2], first: &Packet, recording: Recording) {
        let [client_at, server_at] = ends;
        // Field by field: to make one elsewhere and move it here is to copy thousands of bytes.
        let Self {
            interface: on,
            first_packet,
            sides: [client, server],
            opening,
            signals,
            started,
            ended,
            clock,
            tap_duplicates,
            reset,
            lookup,
            observers,
            too_big,
        } = self;
        (*on, *first_packet, *started, *ended) = (interface, first.number, first.at, first.at);
        client.renew(client_at, recording);
        server.renew(server_at, recording);
        *opening = Handshake::default();
        *signals = Signals::default();
        (*clock, *tap_duplicates, *reset, *too_big, *lookup) = (SetBackClock::default(), 0, false, None, None);
        observers.reset();
    }

    /// A connection between these ends that begins (for this capture) with the packet.
    #[inline]
    pub(crate) fn new(interface: u32, [client, server]: [Endpoint; 2], first: &Packet, recording: Recording) -> Self {
        Self {
            interface,
            first_packet: first.number,
            sides: [Side::new(client, recording), Side::new(server, recording)],
            opening: Handshake::default(),
            signals: Signals::default(),
            started: first.at,
            ended: first.at,
            clock: SetBackClock::default(),
            tap_duplicates: 0,
            reset: false,
            lookup: None,
            observers: ConnectionObservers::default(),
            too_big: None,
        }
    }

    /// Takes a packet in.
    pub(crate) fn packet(&mut self, packet: &Packet) {
        // Time must not run backwards here.
        let at = self.clock.moved(packet.at.as_nanos(), self.ended.as_nanos());
        self.ended = self.ended.max(Timestamp::from_nanos(at));
        let now = self.ended.since(self.started).as_nanos().min(MAX_DURATION_NS);
        let side = packet.side();
        self.sides[side].packets += 1;
        self.sides[side].ttl = packet.ttl;
        let (answers, copies) = (self.sides[1 - side].packets, self.tap_duplicates > 0);
        if self.sides[side].prints.is_copy(now, packet, answers, copies) {
            self.tap_duplicates += 1;
            if packet.flags.has(Flags::SYN) {
                self.opening.copied(side, now);
            }
            return;
        }
        self.observers.packet(now, packet);
        if packet.payload_len > 0 && packet.timestamps.is_none() {
            self.window_round_trip(side, now, packet);
        }
        self.answer(side, now, packet);
        for (at, one) in self.sides.iter_mut().enumerate().filter(|(_, side)| !side.on_the_way.is_empty()) {
            let echo = packet.timestamps.filter(|_| at == side && !packet.flags.has(Flags::SYN)).map(|(_, echo)| echo);
            one.deliver_until(now, echo);
        }
        if packet.flags.has(Flags::ACK) {
            self.sides[side].answered = Some(packet.ack);
        }
        self.signals.packet(packet, &self.sides[side].sender);
        if packet.payload_len <= 1 && packet.flags.0 & (Flags::SYN | Flags::FIN | Flags::RST) == 0 {
            self.sides[side].sender.note_window_probe(packet.seq, packet.payload_len);
        }
        let flags = packet.flags;
        if flags.has(Flags::RST) {
            self.reset = true;
            return;
        }
        let mut seq = packet.seq;
        if flags.has(Flags::SYN) {
            self.opening.syn(side, now, packet);
            self.lookup = self.lookup.take().or_else(|| packet.lookup().cloned());
            seq = seq.add(1);
            let is_answered = self.sides[1 - side].packets > 0;
            self.sides[side].sender.space.begin_with_syn(seq, is_answered);
        }
        if flags.has(Flags::ACK) {
            if self.sides[1 - side].packets == 0 {
                // Of a SYN that was sent again the round trip is not known (Karn).
                let syn = &self.opening.syn[0];
                self.observers.lone_ack(now, packet, (syn.count == 1).then_some(syn.first_at));
            }
            if side == 0
                && !flags.has(Flags::SYN)
                && self.opening.to_client.is_none()
                && self.opening.syn[1].isn.is_some_and(|isn| packet.ack.since(isn) > 0)
            {
                self.opening.acknowledged(now);
                self.place();
            }
            self.acknowledge(side, now, packet);
        }
        self.timestamps(side, now, packet);
        self.data(side, now, seq, packet);
    }

    /// Feeds what `side` sends to its sender; `seq` is the number of its first byte.
    fn data(&mut self, side: usize, now: u64, seq: SeqNum, packet: &Packet) {
        let flags = packet.flags;
        let (has_data, fin) = (packet.payload_len > 0, flags.has(Flags::FIN));
        let sender = &mut self.sides[side].sender;
        let segments = sender.space.segments(packet.payload_len);
        sender.remote.ip_ids.came(packet.id.filter(|_| packet.ttl <= LINUX_TTL), segments);
        if has_data || fin {
            let stamps = packet.timestamps;
            sender.data(&Data {
                now,
                number: packet.number,
                seq,
                len: packet.payload_len,
                is_alert: packet.is_alert(),
                ends_write: flags.has(Flags::PSH) || fin,
                fin,
                tsval: stamps.map(|stamps| stamps.0),
                tsecr: stamps.map(|stamps| stamps.1),
                ip_id: packet.id,
            });
        } else {
            sender.came_without_data(now, seq);
        }
        self.sides[side].fin |= fin;
    }

    /// Feeds what `side` acknowledges and advertises to the other side's sender, when it gets there.
    fn acknowledge(&mut self, side: usize, now: u64, packet: &Packet) {
        let is_syn = packet.flags.has(Flags::SYN);
        let other = 1 - side;
        let scale = || self.opening.shift(side).or_else(|| self.sides[other].sender.window.found_scale());
        let shift = if is_syn { Some(0) } else { scale() };
        let (sack, sacked) = (self.opening.sack(), packet.sack());
        let mss = self.opening.segment(other);
        let handshake = self.opening.to(other);
        let own_next = self.sides[side].sender.space.next_seq();
        let far = &mut self.sides[other];
        far.sender.window.known = shift.is_some();
        let board = &mut far.sender.scoreboard;
        board.blocks_cut |=
            !is_syn && packet.options().is_some_and(|options| options.cut) && sacked.as_slice().is_empty();
        board.sack_permitted =
            !board.blocks_cut && (sack == Some(true) || !sacked.as_slice().is_empty() || board.sack_permitted);
        if let Some(mss) = mss {
            far.sender.space.agree(mss);
        }
        if far.beyond > 0
            && let Some(current) = far.echo.current(handshake)
        {
            far.is_beyond(current.max(1));
        }
        if let Some((tsval, _)) = packet.timestamps
            && !far.sender.is_exact()
        {
            far.sender.remote.clock.receiver_sent(now, tsval);
        }
        let mut due = now + far.beyond;
        if let Some(last) = far.on_the_way.back() {
            due = due.max(last.now);
        }
        let asks = own_next.is_some_and(|next| packet.seq.since(next) < 0);
        let ack = Ack {
            now: due,
            number: packet.number,
            ack: packet.ack,
            window: u64::from(packet.window) << shift.unwrap_or(0),
            window_field: packet.window,
            sack: sacked,
            tsecr: packet.timestamps.map(|t| t.1),
            tsval: packet.timestamps.map(|t| t.0),
            seq: packet.seq,
            payload: packet.payload_len,
            pure: packet.payload_len == 0 && packet.flags.0 & (Flags::SYN | Flags::FIN | Flags::RST) == 0,
            asks,
            is_syn,
            ecn_echo: packet.flags.has(Flags::ECE) && !is_syn,
        };
        if ack.pure {
            far.sender.remote.ip_ids.show_losses();
        }
        if packet.timestamps.is_none() && shift.is_some() {
            far.edges.advertised(now, packet.ack.add(ack.window as u32));
        }
        if far.beyond == 0 && far.on_the_way.is_empty() {
            far.sender.ack(&ack);
        } else {
            far.sender.arrived(packet.ack);
            far.on_the_way.push_back(ack);
        }
    }

    /// Hands on what is on its way and ends the data phases.
    pub(crate) fn finish(&mut self) {
        let ended = self.ended.since(self.started).as_nanos().min(MAX_DURATION_NS);
        for side in &mut self.sides {
            side.deliver_until(u64::MAX, None);
            side.sender.finish(ended);
        }
        self.observers.finish();
    }

    /// It lasts for `waited` nanoseconds more than to its last packet.
    pub(crate) fn lasts_on(&mut self, waited: u64) {
        self.ended = Timestamp::from_nanos(self.ended.as_nanos().saturating_add(waited));
    }
}
