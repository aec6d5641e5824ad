//! How a connection ends: its first reset, whether the host with that address sent it, and a side that falls silent.

use crate::event::packet::Packet;
use thalweg_units::SeqNum;
use thalweg_wire::Flags;

/// A host numbers its packets one by one if this many of its steps in a row are no larger than this: segmentation in the network card and packets
/// that the capture lost leave gaps. `a_reset_of_another_host_is_told_by_its_ttl_or_its_count` holds both.
const MIN_STEPS: u8 = 3;
const MAX_STEP: u16 = 64;
/// And a number is another host's if it is farther off than this, either way: a thousand packets that the capture does not hold.
/// `a_reset_with_another_count_of_packets_is_another_hosts` holds it.
const MIN_DISTANCE: u16 = 1_024;

/// Packets sent again without an answer after which a connection is in doubt: R1 (RFC 9293 §3.8.3).
const MIN_UNANSWERED: u32 = 3;
/// And how long the silence lasts at least, in nanoseconds: the first timeout of a host that knows no round trip (RFC 6298 §2.1).
const MIN_SILENCE: u64 = 1_000_000_000;

/// A reset of the server comes too soon if it takes less than half the shortest round trip to it, where that is so long, in nanoseconds: half of
/// it is far more than a tap's clock is off. `a_reset_that_comes_sooner_than_an_answer_can_is_another_hosts` holds both.
const MIN_ROUND_TRIP: u64 = 1_000_000;
/// And if it acknowledges the data, or comes after a silence of this many round trips: one that the server sends by itself falls into half a round
/// trip behind the data with a probability of 1 in 200. `a_reset_that_comes_sooner_than_an_answer_can_is_another_hosts` holds it.
const MIN_SILENT_ROUND_TRIPS: u64 = 100;

/// The first RST of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FirstReset {
    pub(crate) number: u64,
    pub(crate) at: u64,
    pub(crate) side: usize,
    pub(crate) ttl: u8,
    /// Of the packets that came from this side before; `None` if there were none, or with several.
    pub(crate) usual_ttl: Option<u8>,
    /// Its identification and the latest of this side, if this side counts its packets and the two do not fit.
    pub(crate) ip_ids: Option<(u16, u16)>,
    /// Silence before the packet that it answers, or before itself where that was longer.
    pub(crate) idle: u64,
    /// It left an exchange unfinished, or one of the connection's data.
    pub(crate) interrupts: bool,
    /// The same side had sent its FIN before.
    pub(crate) closed: bool,
    /// The same side sent data afterwards: a host that resets a connection does not (RFC 9293 §3.5.2).
    pub(crate) followed_by_data: bool,
    /// Nanoseconds from the client's data that it answers, and the shortest round trip to the server, if no answer can be so soon.
    pub(crate) too_soon: Option<(u64, u64)>,
}

/// A side that fell silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Silent {
    pub(crate) side: usize,
    pub(crate) since: u64,
    /// When the other one first sent something that it left unanswered.
    pub(crate) asked_at: u64,
    pub(crate) unanswered: u32,
    pub(crate) number: u64,
}

/// How one address numbers and sends its packets.
#[derive(Debug, Clone, Copy, Default)]
struct Host {
    ttl: Option<u8>,
    /// Packets came with several: their paths differ.
    ttl_varies: bool,
    ip_id: Option<u16>,
    /// Small steps in a row between its identifications.
    steps: u8,
    heard_at: u64,
    is_heard: bool,
    /// Packets it sent again since the other side was heard, and the first of them.
    unanswered: u32,
    first_unanswered: u64,
    /// When it first sent data, a FIN or a keep-alive since the other side was heard.
    asked_at: Option<u64>,
    closed: bool,
}

impl Host {
    fn note(&mut self, packet: &Packet) {
        self.ttl_varies |= self.ttl.is_some_and(|ttl| ttl != packet.ttl);
        self.ttl = Some(packet.ttl);
        // Linux sends 0 where it needs no identification.
        if let Some(id) = packet.id.filter(|id| *id != 0) {
            let is_step = self.ip_id.is_some_and(|last| (1..=MAX_STEP).contains(&id.wrapping_sub(last)));
            self.steps = if is_step { self.steps.saturating_add(1) } else { 0 };
            self.ip_id = Some(id);
        }
    }

    /// The identification of a packet and the latest one, if they cannot be one host's.
    fn unlike(&self, packet: &Packet) -> Option<(u16, u16)> {
        let (id, last) = packet.id.filter(|id| *id != 0).zip(self.ip_id)?;
        let distance = id.wrapping_sub(last).min(last.wrapping_sub(id));
        (self.steps >= MIN_STEPS && distance > MIN_DISTANCE).then_some((id, last))
    }
}

/// Follows both sides until the end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ConnectionEnd {
    hosts: [Host; 2],
    pub(crate) reset: Option<FirstReset>,
    /// The client's reset of something else that the server remembered (RFC 5961 §4): no end of this connection.
    pub(crate) challenged: u32,
    /// The latest packet that had data: its side, its time, what comes after it, and the silence before it.
    data: Option<(usize, u64, SeqNum)>,
    idle: u64,
    now: u64,
}

impl ConnectionEnd {
    /// Takes in a packet that is no reset, after a silence of `gap`; `is_again` if it was sent before or asks whether the other side is there.
    pub(crate) fn packet(&mut self, now: u64, packet: &Packet, gap: u64, is_again: bool) {
        self.heard(now, packet);
        let asks = packet.payload_len > 0 || is_again || packet.flags.has(Flags::FIN);
        if packet.payload_len > 0 {
            self.data = Some((packet.side(), now, packet.seq.add(packet.payload_len)));
        }
        let own = &mut self.hosts[packet.side()];
        if asks && own.asked_at.is_none() {
            own.asked_at = Some(now);
            self.idle = gap;
        }
        // It closed before it heard of the reset: a host that hears one sends no FIN (RFC 9293 §3.10.7.4).
        if let Some(reset) = self.reset.as_mut().filter(|reset| reset.side != packet.side()) {
            reset.interrupts &= !packet.flags.has(Flags::FIN);
        }
        let own = &mut self.hosts[packet.side()];
        own.closed |= packet.flags.has(Flags::FIN);
        own.note(packet);
        if is_again {
            if own.unanswered == 0 {
                own.first_unanswered = packet.number;
            }
            own.unanswered += 1;
        }
    }

    /// Takes in a reset; the first one is kept. `to_server` is the shortest round trip to the server.
    pub(crate) fn reset(&mut self, now: u64, packet: &Packet, interrupts: bool, to_server: Option<u64>) {
        let own = self.hosts[packet.side()];
        let too_soon = to_server.and_then(|to_server| self.too_soon(now, packet, to_server));
        self.reset.get_or_insert(FirstReset {
            number: packet.number,
            at: now,
            side: packet.side(),
            ttl: packet.ttl,
            usual_ttl: own.ttl.filter(|_| !own.ttl_varies),
            ip_ids: own.unlike(packet),
            idle: self.idle.max(now.saturating_sub(self.now)),
            interrupts,
            closed: own.closed,
            followed_by_data: false,
            too_soon,
        });
        self.heard(now, packet);
    }

    /// How soon a reset of the server answers the client's data, and the round trip, if the server cannot have received that yet.
    fn too_soon(&self, now: u64, packet: &Packet, to_server: u64) -> Option<(u64, u64)> {
        let (_, sent_at, end) = self.data.filter(|(side, ..)| *side == 0 && packet.side() == 1)?;
        let after = now.saturating_sub(sent_at);
        let answers = packet.flags.has(Flags::ACK) && packet.ack == end;
        let is_new = answers || self.idle >= MIN_SILENT_ROUND_TRIPS * to_server;
        (to_server >= MIN_ROUND_TRIP && after < to_server / 2 && is_new).then_some((after, to_server))
    }

    /// New data came from `side`: it did not reset the connection.
    pub(crate) fn sent_data(&mut self, side: usize) {
        if let Some(reset) = self.reset.as_mut().filter(|reset| reset.side == side) {
            reset.followed_by_data = true;
        }
    }

    /// The side that fell silent, to the end of what was seen.
    pub(crate) fn silent(&self) -> Option<Silent> {
        let silent = |side: usize| {
            let (one, other) = (&self.hosts[side], &self.hosts[1 - side]);
            let lasts = self.now.saturating_sub(one.heard_at) >= MIN_SILENCE;
            (one.is_heard && other.unanswered >= MIN_UNANSWERED && lasts).then_some(Silent {
                side,
                since: one.heard_at,
                asked_at: other.asked_at.unwrap_or(one.heard_at),
                unanswered: other.unanswered,
                number: other.first_unanswered,
            })
        };
        silent(0).or_else(|| silent(1))
    }

    fn heard(&mut self, now: u64, packet: &Packet) {
        self.now = now;
        let [own, other] = [packet.side(), 1 - packet.side()];
        (self.hosts[other].unanswered, self.hosts[other].asked_at) = (0, None);
        let own = &mut self.hosts[own];
        (own.heard_at, own.is_heard) = (now, true);
    }
}
