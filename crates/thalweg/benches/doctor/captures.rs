//! Two captures made up for measuring, the same bytes every time: one of few bulk flows, one of very many short ones.
//!
//! They are a sender's captures of a small TCP of our own over a path with a rate, a delay and losses: slow start, a window that
//! halves on loss, selective acknowledgements, retransmissions. There is no timer in it, so what is sent again is never lost again.

use crate::frames::{Frame, Pcap, Text};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

/// 1 November 2026, 00:00 UTC, in nanoseconds.
const BEGIN_NS: u64 = 1_793_491_200_000_000_000;
/// The senders' network card, which spaces the packets of a burst: 40 Gb/s.
const CARD_BYTES_PER_US: u64 = 5_000;
/// The servers' ports: of HTTP, and of what is encrypted.
const HTTP: u16 = 80;
const HTTPS: u16 = 443;
/// Packets a receiver acknowledges one by one before it delays: Linux's `TCP_MAX_QUICKACKS`, include/net/tcp.h.
const QUICK_ACKS: u32 = 16;
const ACK: u8 = 0x10;

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    pub(crate) flows: u64,
}

/// 947 MB, 646,000 packets: five bulk transfers, two of them with frames of 9,000 bytes and three with 1,500.
pub(crate) fn bulk(out: impl Write) -> io::Result<Made> {
    let flow = |index: u32, mss, bytes, rate_mbps: u64, rtt_ms: u64, loss_ppm| Flow {
        client: [10, 1, 0, index as u8 + 2],
        port: 40_000 + index as u16,
        mss,
        request: 200,
        response: bytes,
        bytes_per_us: rate_mbps / 8,
        rtt_ns: rtt_ms * 1_000_000,
        loss_ppm,
        ..Flow::at(u64::from(index) * 1_000_000)
    };
    let flows = vec![
        flow(0, 8_948, 172_000_000, 4_000, 5, 20),
        flow(1, 8_948, 172_000_000, 2_000, 20, 0),
        flow(2, 1_448, 182_000_000, 1_000, 30, 100),
        flow(3, 1_448, 182_000_000, 800, 10, 1_000),
        flow(4, 1_448, 185_000_000, 400, 80, 50),
    ];
    write(out, flows, 11)
}

/// 607 MB, 1.19 M packets, 60,000 flows: a thousand HTTP requests a second for a minute, answered with 8 KB on average.
pub(crate) fn many_flows(out: impl Write) -> io::Result<Made> {
    let mut random = Random(7);
    let flows = (0..60_000u32)
        .map(|index| Flow {
            client: [10, 64 + (index / 16_000) as u8, (index / 250 % 64) as u8, (index % 250) as u8 + 2],
            port: 32_768 + (random.below(28_000)) as u16,
            service: HTTP,
            mss: 1_448,
            request: 120 + random.below(700),
            // A heavy tail: most answers fit into the initial window, few are a hundred times the median.
            response: 700 + random.below(13_550) + random.below(256) / 255 * random.below(280_000),
            bytes_per_us: 1 + random.below(12),
            rtt_ns: 2_000_000 + random.below(120_000_000),
            loss_ppm: if index % 4 == 0 { 10_000 } else { 0 },
            ..Flow::at(u64::from(index) * 1_000_000 + random.below(900_000))
        })
        .collect();
    write(out, flows, 23)
}

/// A request, of 120 bytes or more with a cookie of any length.
const REQUEST: Text<'_> = Text {
    head: b"GET /live/1.ts HTTP/1.1\r\nHost: live.example.net\r\nUser-Agent: player/1.0\r\nAccept: */*\r\nCookie: id=",
    tail: b"\r\n\r\n",
};

/// The head of a response that has so many bytes with it.
fn head_of(response: u64) -> String {
    let head = |body: u64| {
        format!(
            "HTTP/1.1 200 OK\r\nServer: origin\r\nContent-Type: application/octet-stream\r\nContent-Length: {body:06}\r\n\r\n"
        )
    };
    let body = response - head(0).len() as u64;
    head(body)
}

/// One connection: what it does, and where it stands.
#[derive(Debug, Default)]
struct Flow {
    starts_ns: u64,
    client: [u8; 4],
    port: u16,
    /// The server's port.
    service: u16,
    mss: u64,
    request: u64,
    response: u64,
    bytes_per_us: u64,
    rtt_ns: u64,
    loss_ppm: u64,

    // The sender, in packets.
    una: u32,
    next: u32,
    sacked: Vec<(u32, u32)>,
    sent_again: u32,
    recover: u32,
    again: Vec<u32>,
    window: f64,
    threshold: f64,
    sending: bool,
    echo: u32,
    // The path and the receiver.
    link_free_ns: u64,
    got: u32,
    beyond: Vec<(u32, u32)>,
    unacknowledged: u32,
    ids: [u16; 2],
    closed: bool,
}

impl Flow {
    fn at(starts_ns: u64) -> Self {
        Self { starts_ns, service: HTTPS, window: 10.0, threshold: f64::MAX, ..Self::default() }
    }

    /// Packets the response has.
    fn packets(&self) -> u32 {
        self.response.div_ceil(self.mss) as u32
    }

    fn payload(&self, packet: u32) -> u64 {
        (self.response - u64::from(packet) * self.mss).min(self.mss)
    }

    fn frame(&mut self, from_server: bool, flags: u8, seq: u64, ack: u64) -> Frame {
        let id = &mut self.ids[usize::from(from_server)];
        *id = id.wrapping_add(1).max(1);
        let server = ([10, 0, 0, 1], self.service);
        let client = (self.client, self.port);
        let (source, destination) = if from_server { (server, client) } else { (client, server) };
        // Initial sequence numbers differ from flow to flow, and some wrap.
        let isn = u32::from(self.port).wrapping_mul(0x9e37_79b1);
        let (seq_base, ack_base) = if from_server { (isn, !isn) } else { (!isn, isn) };
        Frame {
            source,
            destination,
            id: *id,
            flags,
            seq: seq_base.wrapping_add(seq as u32),
            ack: if flags & ACK == 0 { 0 } else { ack_base.wrapping_add(ack as u32) },
            mss: self.mss as u16,
            ..Frame::default()
        }
    }

    /// Sequence number behind `packets` of the response, from the server's initial one.
    fn behind(&self, packets: u32) -> u64 {
        1 + (u64::from(packets) * self.mss).min(self.response)
    }

    /// Packets that are neither acknowledged nor taken for lost.
    fn in_flight(&self) -> u32 {
        let sacked: u32 = self.sacked.iter().map(|(from, to)| to - from).sum();
        (self.next - self.una).saturating_sub(sacked + self.again.len() as u32)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The SYN arrives.
    Start,
    /// The handshake's end and the request arrive.
    Request,
    /// The card takes the next packet.
    Send,
    /// An acknowledgement arrives: of so many packets, with up to three blocks, echoing a time.
    Acknowledged { packets: u32, blocks: [(u32, u32); 3], echoed: u32 },
    /// The client's FIN arrives.
    Close,
}

#[derive(Debug)]
struct Random(u64);

impl Random {
    /// A number below `limit`. Source: Marsaglia's xorshift64 with a multiplier (xorshift64*).
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

struct Writing<W> {
    pcap: Pcap<W>,
    due: BinaryHeap<Reverse<(u64, u64, u32, Event)>>,
    order: u64,
    random: Random,
}

impl<W: Write> Writing<W> {
    fn at(&mut self, when_ns: u64, flow: u32, event: Event) {
        self.order += 1;
        self.due.push(Reverse((when_ns, self.order, flow, event)));
    }

    fn record(&mut self, now: u64, frame: Frame) -> io::Result<()> {
        self.record_text(now, frame, Text::default())
    }

    fn record_text(&mut self, now: u64, frame: Frame, text: Text<'_>) -> io::Result<()> {
        self.pcap.packet(BEGIN_NS + now, &Frame { tsval: (now / 1_000_000) as u32 + 1, ..frame }, text)
    }

    fn handle(&mut self, now: u64, index: u32, flow: &mut Flow, event: Event) -> io::Result<()> {
        const SYN: u8 = 0x02;
        const FIN: u8 = 0x01;
        const PSH: u8 = 0x08;
        let request_end = 1 + flow.request;
        match event {
            Event::Start => {
                let syn = flow.frame(false, SYN, 0, 0);
                self.record(now, syn)?;
                let answer = flow.frame(true, SYN | ACK, 0, 1);
                self.record(now + 20_000, answer)?;
                self.at(now + 20_000 + flow.rtt_ns, index, Event::Request);
            }
            Event::Request => {
                let ack = flow.frame(false, ACK, 1, 1);
                self.record(now, ack)?;
                let request = Frame { payload: flow.request as u32, ..flow.frame(false, PSH | ACK, 1, 1) };
                let text = if flow.service == HTTP { REQUEST } else { Text::default() };
                self.record_text(now, request, text)?;
                let ack = flow.frame(true, ACK, 1, request_end);
                self.record(now, ack)?;
                flow.echo = (now / 1_000_000) as u32;
                flow.sending = true;
                self.at(now + 300_000, index, Event::Send);
            }
            Event::Send => self.send(now, index, flow)?,
            Event::Acknowledged { packets, blocks, echoed } => {
                let seen = flow.frame(false, ACK, request_end, flow.behind(packets));
                let blocks_seen =
                    blocks.map(|(from, to)| (flow.behind(from) as u32, flow.behind(to) as u32)).map(|(from, to)| {
                        (seen.ack.wrapping_add(from.wrapping_sub(flow.behind(packets) as u32)), to - from)
                    });
                self.record(now, Frame { sack: blocks_seen, tsecr: echoed, ..seen })?;
                flow.echo = (now / 1_000_000) as u32;
                self.acknowledged(flow, packets, blocks);
                if !flow.sending && (!flow.again.is_empty() || flow.next < flow.packets()) {
                    flow.sending = true;
                    self.at(now, index, Event::Send);
                }
                if flow.una == flow.packets() && !flow.closed {
                    flow.closed = true;
                    let fin = flow.frame(true, FIN | ACK, flow.behind(flow.una), request_end);
                    self.record(now, Frame { tsecr: flow.echo, ..fin })?;
                    self.at(now + flow.rtt_ns, index, Event::Close);
                }
            }
            Event::Close => {
                let end = flow.behind(flow.una) + 1;
                let fin = flow.frame(false, FIN | ACK, request_end, end);
                self.record(now, fin)?;
                let last = flow.frame(true, ACK, end, request_end + 1);
                self.record(now, last)?;
            }
        }
        Ok(())
    }

    /// Sends one packet, if one may be sent: what was lost first.
    fn send(&mut self, now: u64, index: u32, flow: &mut Flow) -> io::Result<()> {
        let is_again = !flow.again.is_empty();
        if !is_again && (flow.next == flow.packets() || f64::from(flow.in_flight()) >= flow.window) {
            flow.sending = false;
            return Ok(());
        }
        let packet = if is_again { flow.again.remove(0) } else { flow.next };
        flow.next = flow.next.max(packet + 1);
        let payload = flow.payload(packet);
        let push = if packet + 1 == flow.packets() { 0x08 } else { 0 };
        let frame = flow.frame(true, ACK | push, flow.behind(packet), 1 + flow.request);
        let begins = packet == 0 && flow.service == HTTP;
        let head = if begins { head_of(flow.response) } else { String::new() };
        let text = Text { head: head.as_bytes(), ..Text::default() };
        self.record_text(now, Frame { payload: payload as u32, tsecr: flow.echo, ..frame }, text)?;
        self.at(now + (payload + 90) * 1_000 / CARD_BYTES_PER_US, index, Event::Send);

        // The path is first come, first served, so the receiver can act at once; its answer comes when it is due.
        flow.link_free_ns = flow.link_free_ns.max(now) + (payload + 90) * 1_000 / flow.bytes_per_us;
        let is_tail = packet + 8 > flow.packets();
        if !is_again && !is_tail && self.random.below(1_000_000) < flow.loss_ppm {
            return Ok(());
        }
        let in_order = packet == flow.got;
        if in_order {
            flow.got += 1;
            if flow.beyond.first().is_some_and(|(from, _)| *from == flow.got) {
                flow.got = flow.beyond.remove(0).1;
            }
        } else {
            insert(&mut flow.beyond, packet);
        }
        flow.unacknowledged += 1;
        let is_last = packet + 1 == flow.packets();
        let may_delay = in_order && flow.beyond.is_empty() && flow.got > QUICK_ACKS && !is_last;
        let is_delayed = may_delay && flow.unacknowledged < 2;
        if !is_delayed {
            flow.unacknowledged = 0;
            let mut blocks = [(0, 0); 3];
            for (block, range) in blocks.iter_mut().zip(flow.beyond.iter().rev()) {
                *block = *range;
            }
            let echoed = (now / 1_000_000) as u32 + 1;
            let event = Event::Acknowledged { packets: flow.got, blocks, echoed };
            self.at(flow.link_free_ns + flow.rtt_ns, index, event);
        }
        Ok(())
    }

    fn acknowledged(&mut self, flow: &mut Flow, packets: u32, blocks: [(u32, u32); 3]) {
        let newly = packets.saturating_sub(flow.una);
        flow.una = flow.una.max(packets);
        flow.sacked.retain(|(_, to)| *to > flow.una);
        for (from, to) in blocks.into_iter().filter(|(from, to)| from < to) {
            for packet in from.max(flow.una)..to {
                if !flow.sacked.iter().any(|(from, to)| (*from..*to).contains(&packet)) {
                    insert(&mut flow.sacked, packet);
                }
            }
        }
        // What has three packets delivered behind it is lost (RFC 6675).
        let highest = flow.sacked.last().map_or(0, |(_, to)| *to);
        flow.sent_again = flow.sent_again.max(flow.una);
        while flow.sent_again + 3 < highest {
            let packet = flow.sent_again;
            flow.sent_again += 1;
            if flow.sacked.iter().any(|(from, to)| (*from..*to).contains(&packet)) {
                continue;
            }
            flow.again.push(packet);
            if packet >= flow.recover {
                flow.recover = flow.next;
                flow.window = (flow.window * 0.7).max(2.0);
                flow.threshold = flow.window;
            }
        }
        if flow.una >= flow.recover {
            let most = flow.bytes_per_us as f64 * flow.rtt_ns as f64 / 1e3 / flow.mss as f64 * 1.5 + 20.0;
            let more =
                if flow.window < flow.threshold { f64::from(newly) } else { f64::from(newly) / flow.window * 4.0 };
            flow.window = (flow.window + more).min(most);
        }
    }
}

/// Adds a packet to sorted ranges that do not touch.
fn insert(ranges: &mut Vec<(u32, u32)>, packet: u32) {
    let at = ranges.partition_point(|(from, _)| *from <= packet);
    let joins_left = at > 0 && ranges[at - 1].1 == packet;
    let joins_right = at < ranges.len() && ranges[at].0 == packet + 1;
    match (joins_left, joins_right) {
        (true, true) => ranges[at - 1].1 = ranges.remove(at).1,
        (true, false) => ranges[at - 1].1 += 1,
        (false, true) => ranges[at].0 = packet,
        (false, false) => ranges.insert(at, (packet, packet + 1)),
    }
}

fn write(out: impl Write, mut flows: Vec<Flow>, seed: u64) -> io::Result<Made> {
    let mut writing = Writing { pcap: Pcap::begin(out)?, due: BinaryHeap::new(), order: 0, random: Random(seed) };
    for (index, flow) in flows.iter().enumerate() {
        writing.at(flow.starts_ns, index as u32, Event::Start);
    }
    while let Some(Reverse((now, _, index, event))) = writing.due.pop() {
        writing.handle(now, index, &mut flows[index as usize], event)?;
    }
    let (bytes, packets) = writing.pcap.finish()?;
    Ok(Made { bytes, packets, flows: flows.len() as u64 })
}
