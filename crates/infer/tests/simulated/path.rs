//! The simulator: events in virtual time, packets into a capture with both ends.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use thalweg_units::Timestamp;
use thalweg_wire::{LinkType, pcapng};

const MSS: u64 = 1448;
const START_NS: u64 = 1_700_000_000_000_000_000;

/// What is simulated: a download.
pub(crate) struct Scenario {
    pub(crate) bytes: u64,
    /// Seconds.
    pub(crate) rtt: f64,
    /// Bits per second.
    pub(crate) rate: f64,
    /// Bytes the bottleneck holds.
    pub(crate) queue: u64,
    /// The receiver's buffer, in bytes.
    pub(crate) window: u64,
    pub(crate) scaling: bool,
    /// Bits per second the receiving program reads at most.
    pub(crate) read_rate: f64,
    /// Most bytes in flight for the sender's buffer's sake.
    pub(crate) send_buffer: u64,
    /// Part of the data packets lost at random.
    pub(crate) loss: f64,
    /// Everything sent between these times, in seconds, is lost.
    pub(crate) blackout: Option<(f64, f64)>,
    /// Bytes ready at once; those after it become ready at `stream_rate` bits per second.
    pub(crate) burst: u64,
    pub(crate) stream_rate: f64,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            bytes: 10_000_000,
            rtt: 0.035,
            rate: 1e9,
            queue: 20_000_000,
            window: 16_000_000,
            scaling: true,
            read_rate: f64::INFINITY,
            send_buffer: u64::MAX,
            loss: 0.0,
            blackout: None,
            burst: u64::MAX,
            stream_rate: 1e12,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Data { start: u64, len: u64, tsval: u32 },
    Ack { ack: u64, window: u64, sack: Vec<(u64, u64)>, tsval: u32, tsecr: u32 },
    Read,
    Wake,
    Timer { serial: u64 },
}

struct World<'a> {
    s: &'a Scenario,
    now: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    out: pcapng::Writer<Vec<u8>>,
    random: u64,
    ids: [u16; 2],
    line_free: u64,
    // Sender.
    una: u64,
    nxt: u64,
    edge: u64,
    cwnd: f64,
    ssthresh: f64,
    sacked: BTreeMap<u64, u64>,
    repaired: u64,
    recovery: Option<u64>,
    after_timer: bool,
    srtt: f64,
    backoff: u32,
    serial: u64,
    // Receiver.
    next: u64,
    held: BTreeMap<u64, u64>,
    read: u64,
    last_tsval: u32,
    echo: u32,
    was_zero: bool,
}

/// Simulates and gives the capture: interface `client`, then `server`.
pub(crate) fn run(s: &Scenario) -> Vec<u8> {
    let mut out = pcapng::Writer::new(Vec::new(), "simulated").expect("vec");
    out.add_interface("client", LinkType::RAW, 0).expect("vec");
    out.add_interface("server", LinkType::RAW, 0).expect("vec");
    let mut w = World {
        s,
        now: 0,
        queue: BinaryHeap::new(),
        order: 0,
        out,
        random: 7,
        ids: [1, 1],
        line_free: 0,
        una: 0,
        nxt: 0,
        edge: s.window.min(65_535),
        cwnd: 10.0 * MSS as f64,
        ssthresh: f64::INFINITY,
        sacked: BTreeMap::new(),
        repaired: 0,
        recovery: None,
        after_timer: false,
        srtt: s.rtt,
        backoff: 0,
        serial: 0,
        next: 0,
        held: BTreeMap::new(),
        read: 0,
        last_tsval: 0,
        echo: 1000,
        was_zero: false,
    };
    w.shake_hands();
    w.send();
    while w.una < s.bytes {
        let Some(Reverse((at, _, event))) = w.queue.pop() else { panic!("stuck at {} of {}", w.una, s.bytes) };
        w.now = at;
        match event {
            Event::Data { start, len, tsval } => w.receive(start, len, tsval),
            Event::Ack { ack, window, sack, tsval, tsecr } => {
                w.echo = tsval;
                w.acknowledged(ack, window, &sack, tsecr);
            }
            Event::Read => w.reader(),
            Event::Wake => w.send(),
            Event::Timer { serial } => w.timer(serial),
        }
    }
    // Events of the same time were written as they were made: put the capture in order of time.
    sort(w.out.finish().expect("vec"))
}

fn sort(file: Vec<u8>) -> Vec<u8> {
    let mut capture = thalweg_wire::Capture::new(file.as_slice()).expect("capture");
    let mut packets = Vec::new();
    while let Some(p) = capture.next().expect("read") {
        packets.push((p.at, p.number, p.interface, p.original_len, p.bytes.to_vec()));
    }
    packets.sort();
    let mut out = pcapng::Writer::new(Vec::new(), "simulated").expect("vec");
    out.add_interface("client", LinkType::RAW, 0).expect("vec");
    out.add_interface("server", LinkType::RAW, 0).expect("vec");
    for (at, _, interface, length, bytes) in packets {
        out.packet(interface, at, length, &bytes, None).expect("vec");
    }
    out.finish().expect("vec")
}

impl World<'_> {
    fn at(&mut self, when: u64, event: Event) {
        self.order += 1;
        self.queue.push(Reverse((when, self.order, event)));
    }

    fn ns(seconds: f64) -> u64 {
        (seconds * 1e9) as u64
    }

    fn half(&self) -> u64 {
        Self::ns(self.s.rtt / 2.0)
    }

    fn tsval(&self) -> u32 {
        1000 + (self.now / 1_000_000) as u32
    }

    fn shake_hands(&mut self) {
        let half = self.half();
        let mut options = vec![2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 3, 0xe8, 0, 0, 0, 0];
        if self.s.scaling {
            options.extend([1, 3, 3, 10]);
        }
        let window = self.s.window.min(65_535) as u16;
        self.packet(0, 0, half, 0, 0, 0x02, window, &options, 0);
        self.packet(half, 1, half, 0, 1, 0x12, 65_535, &options, 0);
        self.packet(2 * half, 0, half, 1, 1, 0x10, self.field(self.s.window), &self.times(1000, 1000), 0);
        self.packet(2 * half + 10_000, 0, half, 1, 1, 0x18, self.field(self.s.window), &self.times(1000, 1000), 100);
        self.now = 3 * half + 50_000;
        self.edge = self.scaled(self.field(self.s.window));
    }

    fn times(&self, tsval: u32, tsecr: u32) -> Vec<u8> {
        let mut options = vec![1, 1, 8, 10];
        options.extend(tsval.to_be_bytes());
        options.extend(tsecr.to_be_bytes());
        options
    }

    fn field(&self, window: u64) -> u16 {
        let shift = if self.s.scaling { 10 } else { 0 };
        (window >> shift).min(65_535) as u16
    }

    fn scaled(&self, field: u16) -> u64 {
        u64::from(field) << if self.s.scaling { 10 } else { 0 }
    }

    /// Writes a packet at both ends: where it leaves at `at`, and where it arrives `after` later unless that is `u64::MAX`.
    #[expect(clippy::too_many_arguments, reason = "a packet's fields")]
    fn packet(
        &mut self,
        at: u64,
        from: usize,
        after: u64,
        seq: u32,
        ack: u32,
        flags: u8,
        window: u16,
        options: &[u8],
        len: u64,
    ) {
        let header = 20 + options.len();
        let total = 20 + header + len as usize;
        self.ids[from] = self.ids[from].wrapping_add(1).max(1);
        let mut bytes = vec![0x45, 0];
        bytes.extend((total as u16).to_be_bytes());
        bytes.extend(self.ids[from].to_be_bytes());
        bytes.extend([0x40, 0, 64, 6, 0, 0]);
        let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
        bytes.extend(ends[from]);
        bytes.extend(ends[1 - from]);
        let ports: [u16; 2] = [40_000, 8080];
        bytes.extend(ports[from].to_be_bytes());
        bytes.extend(ports[1 - from].to_be_bytes());
        bytes.extend(seq.to_be_bytes());
        bytes.extend(ack.to_be_bytes());
        bytes.extend([(header as u8 / 4) << 4, flags]);
        bytes.extend(window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(options);
        let write = |out: &mut pcapng::Writer<Vec<u8>>, interface: usize, at: u64| {
            out.packet(interface as u32, Timestamp::from_nanos(START_NS + at), total as u32, &bytes, None)
                .expect("vec");
        };
        write(&mut self.out, from, at);
        if after != u64::MAX {
            write(&mut self.out, 1 - from, at + after);
        }
    }

    fn ready(&self) -> u64 {
        let later = (self.now as f64 / 1e9 * self.s.stream_rate / 8.0) as u64;
        // Streamed in chunks of 10 ms.
        let chunk = (self.s.stream_rate / 8.0 * 0.01).max(1.0) as u64;
        self.s.burst.saturating_add(later / chunk * chunk).min(self.s.bytes)
    }

    fn flight(&self) -> u64 {
        let sacked: u64 = self.sacked.iter().map(|(s, e)| e - s).sum();
        let top = self.sacked.values().next_back().copied().unwrap_or(self.una);
        let holes = (top - self.una.min(top)).saturating_sub(sacked);
        let repaired = self.repaired.saturating_sub(self.una).min(holes);
        if self.after_timer {
            self.repaired.saturating_sub(self.una)
        } else {
            self.nxt - self.una - sacked - holes + repaired
        }
    }

    /// What the send buffer takes: it counts memory, of which a segment's is now more and now less.
    const fn room(&self) -> u64 {
        let less = if self.s.send_buffer == u64::MAX { 0 } else { self.nxt / (80 * MSS) % 3 * MSS };
        self.s.send_buffer - less
    }

    fn send(&mut self) {
        // Repair first.
        if let Some(point) = self.recovery {
            while (self.flight() + MSS) as f64 <= self.cwnd.max(MSS as f64) {
                let from = self.repaired.max(self.una);
                let Some((start, end)) = self.hole(from, point) else { break };
                let len = (end - start).min(MSS);
                self.transmit(start, len);
                self.repaired = start + len;
            }
        }
        let limit = self.ready();
        while self.nxt < limit
            && !self.after_timer
            && (self.flight() + MSS) as f64 <= self.cwnd
            && self.nxt - self.una + MSS <= self.room()
        {
            let len = (limit - self.nxt).min(MSS);
            if self.nxt + len > self.edge {
                break;
            }
            let start = self.nxt;
            self.nxt += len;
            self.transmit(start, len);
        }
        if self.nxt < self.s.bytes && self.nxt >= limit {
            let when = (self.now / 10_000_000 + 1) * 10_000_000;
            self.at(when, Event::Wake);
        }
    }

    /// The first range from `from` on that is neither acknowledged nor below what SACK shows, up to `point`.
    fn hole(&self, from: u64, point: u64) -> Option<(u64, u64)> {
        let top = if self.after_timer { point } else { self.sacked.values().next_back().copied()? };
        let mut at = from;
        for (&start, &end) in &self.sacked {
            if at < start {
                return (at < top).then_some((at, start));
            }
            at = at.max(end);
        }
        (at < top && self.after_timer).then_some((at, top))
    }

    fn transmit(&mut self, start: u64, len: u64) {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let lost = ((self.random >> 11) as f64 / (1u64 << 53) as f64) < self.s.loss;
        let seconds = self.now as f64 / 1e9;
        let dark = self.s.blackout.is_some_and(|(from, to)| (from..to).contains(&seconds));
        let wire = len + 66;
        let free = self.line_free.max(self.now);
        let waiting = ((free - self.now) as f64 / 1e9 * self.s.rate / 8.0) as u64;
        let dropped = waiting + wire > self.s.queue;
        let tsval = self.tsval();
        let options = self.times(tsval, self.echo);
        let after = if dropped || dark {
            u64::MAX
        } else {
            self.line_free = free + Self::ns(wire as f64 * 8.0 / self.s.rate);
            if lost { u64::MAX } else { self.line_free - self.now + self.half() }
        };
        self.packet(self.now, 1, after, 1 + start as u32, 101, 0x10, 500, &options, len);
        if after != u64::MAX {
            self.at(self.now + after, Event::Data { start, len, tsval });
        }
        self.arm();
    }

    fn arm(&mut self) {
        self.serial += 1;
        let rto = (self.srtt + 0.2) * f64::from(1 << self.backoff);
        let serial = self.serial;
        self.at(self.now + Self::ns(rto), Event::Timer { serial });
    }

    fn timer(&mut self, serial: u64) {
        if serial != self.serial || self.una == self.nxt {
            return;
        }
        self.backoff += 1;
        self.ssthresh = (self.flight() as f64 / 2.0).max(2.0 * MSS as f64);
        self.cwnd = MSS as f64;
        self.recovery = Some(self.nxt);
        self.after_timer = true;
        self.repaired = self.una;
        self.sacked.clear();
        self.send();
        self.arm();
    }

    fn receive(&mut self, start: u64, len: u64, tsval: u32) {
        let end = start + len;
        if start <= self.next {
            self.last_tsval = tsval;
            self.next = self.next.max(end);
            while let Some((&s, &e)) = self.held.first_key_value()
                && s <= self.next
            {
                self.next = self.next.max(e);
                self.held.pop_first();
            }
        } else {
            self.held.insert(start, end);
        }
        if self.s.read_rate.is_infinite() {
            self.read = self.next;
        } else {
            let when = self.now + 1_000_000;
            self.at(when, Event::Read);
        }
        self.answer(Some((start, end)));
    }

    fn reader(&mut self) {
        // Programs read a buffer's worth at a time.
        let allowed = (self.now as f64 / 1e9 * self.s.read_rate / 8.0) as u64 / 250_000 * 250_000;
        self.read = self.read.max(allowed.min(self.next));
        if self.was_zero && self.window() >= self.s.window / 4 {
            self.answer(None);
        } else if self.was_zero {
            let when = self.now + 1_000_000;
            self.at(when, Event::Read);
        }
    }

    fn window(&self) -> u64 {
        let free = self.s.window.saturating_sub(self.next - self.read);
        if free < 2 * MSS { 0 } else { free }
    }

    fn answer(&mut self, newest: Option<(u64, u64)>) {
        let mut blocks: Vec<(u64, u64)> = Vec::new();
        for (&s, &e) in &self.held {
            match blocks.last_mut() {
                Some(last) if last.1 == s => last.1 = e,
                _ => blocks.push((s, e)),
            }
        }
        if let Some((start, _)) = newest
            && let Some(at) = blocks.iter().position(|b| b.0 <= start && start < b.1)
        {
            blocks.swap(0, at);
        }
        blocks.truncate(3);
        let window = self.field(self.window());
        self.was_zero = window == 0;
        let mut options = self.times(self.tsval(), self.last_tsval);
        if !blocks.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
            for (start, end) in &blocks {
                options.extend((1 + *start as u32).to_be_bytes());
                options.extend((1 + *end as u32).to_be_bytes());
            }
        }
        let half = self.half();
        self.packet(self.now, 0, half, 101, 1 + self.next as u32, 0x10, window, &options, 0);
        let ack = Event::Ack {
            ack: self.next,
            window: self.scaled(window),
            sack: blocks,
            tsval: self.tsval(),
            tsecr: self.last_tsval,
        };
        self.at(self.now + half, ack);
    }

    fn acknowledged(&mut self, ack: u64, window: u64, sack: &[(u64, u64)], tsecr: u32) {
        let before = self.una;
        self.una = self.una.max(ack);
        self.edge = ack + window;
        for &(start, end) in sack {
            let (mut start, mut end) = (start, end);
            let touching: Vec<u64> =
                self.sacked.iter().filter(|(s, e)| **s <= end && **e >= start).map(|(s, _)| *s).collect();
            for key in touching {
                let e = self.sacked.remove(&key).expect("present");
                (start, end) = (start.min(key), end.max(e));
            }
            self.sacked.insert(start, end);
        }
        self.sacked.retain(|_, e| *e > ack);
        if let Some((&s, &e)) = self.sacked.first_key_value()
            && s < ack
        {
            self.sacked.remove(&s);
            self.sacked.insert(ack, e);
        }
        if self.una > before {
            self.backoff = 0;
            self.srtt = 0.875 * self.srtt + 0.125 * f64::from(self.tsval().wrapping_sub(tsecr)) / 1e3;
            match self.recovery {
                Some(point) if self.una < point && !self.after_timer => {}
                Some(point) if self.una >= point => {
                    self.recovery = None;
                    self.after_timer = false;
                }
                _ => {
                    let acked = (self.una - before) as f64;
                    self.cwnd += if self.cwnd < self.ssthresh { acked } else { acked * MSS as f64 / self.cwnd };
                }
            }
            self.arm();
        }
        let above: u64 = self.sacked.iter().map(|(s, e)| e - s).sum();
        if self.recovery.is_none() && above >= 3 * MSS {
            self.ssthresh = (self.flight() as f64 * 0.7).max(2.0 * MSS as f64);
            self.cwnd = self.ssthresh;
            self.recovery = Some(self.nxt);
            self.repaired = self.una;
        }
        self.send();
    }
}
