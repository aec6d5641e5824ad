//! Packets in, bins out: how even traffic is within 100 µs, 1 ms and 10 ms, and what a port with a small buffer would do to it.

mod map;

use hdrhistogram::Histogram;
pub use map::MapBuilder;
use std::collections::BTreeMap;
use thalweg_model::{BurstBins, BurstDirection, BurstsReport, PortBursts};
use thalweg_units::{Bytes, Rate, Timestamp, figures};

/// Widths of bins, in nanoseconds. Source: Ghabashneh et al., "A Microscopic View of Bursts, Buffer Contention, and Loss in Data Centers",
/// IMC 2022, §3 (Millisampler).
const WIDTHS_NS: [u64; 3] = [100_000, 1_000_000, 10_000_000];
/// How late a packet may come after younger ones and still be counted in its bin: processors hand packets over in turns.
const LATENESS_NS: u64 = 20_000_000;
/// Digits that a histogram keeps.
const DIGITS: u8 = 3;
/// The most that a bin is told apart up to: 10 ms at 800 Gb/s.
const BIN_MAX_BYTES: u64 = 1_000_000_000;
const NS_PER_S: f64 = 1e9;

/// A port of a switch, or of anything else with one rate and one buffer.
#[derive(Debug, Clone, Copy)]
pub struct Port {
    /// What it sends at.
    pub rate: Rate,
    /// What it holds.
    pub buffer: Bytes,
}

/// What passed in one of the shortest bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BusyBin {
    /// When it began, in nanoseconds since the epoch.
    pub at_ns: u64,
    /// Whether this host sent it.
    pub is_sent: bool,
    /// Packets as the kernel hands them over.
    pub packets: u64,
    /// Their bytes, from the IP header on.
    pub bytes: u64,
    /// The longest of them.
    pub packet_max_bytes: u64,
    /// Whether the port's buffer overflowed.
    pub overflows: bool,
}

/// The traffic of an interface, both directions.
#[derive(Debug)]
pub struct Bursts {
    interface: String,
    /// The interval's beginning, in nanoseconds since the epoch.
    from_ns: u64,
    sent: Direction,
    received: Direction,
}

impl Bursts {
    /// Begins at this moment.
    #[must_use]
    pub fn new(interface: &str, from: Timestamp, port: Option<Port>) -> Self {
        let from_ns = from.as_nanos();
        let direction = || Direction::new(from_ns, port);
        Self { interface: interface.to_owned(), from_ns, sent: direction(), received: direction() }
    }

    /// Keeps the shortest bins for [`Self::busy_bins`].
    pub fn keep_bins(&mut self) {
        for direction in [&mut self.sent, &mut self.received] {
            direction.bins[0].kept = Some(Vec::new());
        }
    }

    /// The shortest bins in which something passed and that are over since the last call, in order.
    pub fn busy_bins(&mut self) -> Vec<BusyBin> {
        let mut bins = Vec::new();
        for (direction, is_sent) in [(&mut self.sent, true), (&mut self.received, false)] {
            let Bins { kept, width_ns, .. } = &mut direction.bins[0];
            let kept = kept.as_mut().map(std::mem::take).unwrap_or_default();
            bins.extend(kept.into_iter().map(|(number, load)| BusyBin {
                at_ns: number * *width_ns,
                is_sent,
                packets: load.packets,
                bytes: load.bytes,
                packet_max_bytes: load.packet_max_bytes,
                overflows: load.overflows,
            }));
        }
        bins.sort_unstable();
        bins
    }

    /// A packet of so many bytes.
    pub fn packet(&mut self, at: Timestamp, bytes: u64, is_sent: bool) {
        self.packets(at.as_nanos(), is_sent, Load { packets: 1, bytes, packet_max_bytes: bytes, overflows: false });
    }

    /// Takes in what was recorded of a bin; to the port it comes at once.
    pub fn recorded(&mut self, bin: &BusyBin) {
        let BusyBin { packets, bytes, packet_max_bytes, .. } = *bin;
        self.packets(bin.at_ns, bin.is_sent, Load { packets, bytes, packet_max_bytes, overflows: false });
    }

    fn packets(&mut self, at_ns: u64, is_sent: bool, load: Load) {
        let direction = if is_sent { &mut self.sent } else { &mut self.received };
        direction.packets(at_ns, load);
    }

    /// Ends the interval at this moment, and begins the next. Packets from before it that come later count in the next one.
    pub fn report(&mut self, until: Timestamp, missed_packets: u64) -> BurstsReport {
        let until_ns = until.as_nanos().max(self.from_ns);
        let report = BurstsReport {
            schema: "thalweg.bursts/1".to_owned(),
            interface: self.interface.clone(),
            at_s: self.from_ns as f64 / NS_PER_S,
            interval_s: (until_ns - self.from_ns) as f64 / NS_PER_S,
            missed_packets,
            sent: self.sent.report(until_ns),
            received: self.received.report(until_ns),
        };
        self.from_ns = until_ns;
        report
    }
}

/// What passed.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    packets: u64,
    bytes: u64,
    packet_max_bytes: u64,
    overflows: bool,
}

impl Load {
    fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.packet_max_bytes = self.packet_max_bytes.max(other.packet_max_bytes);
        self.overflows |= other.overflows;
    }
}

#[derive(Debug)]
struct Direction {
    all: Load,
    bins: [Bins; WIDTHS_NS.len()],
    queue: Option<Queue>,
}

impl Direction {
    fn new(from_ns: u64, port: Option<Port>) -> Self {
        Self {
            all: Load::default(),
            bins: WIDTHS_NS.map(|width_ns| Bins::new(width_ns, from_ns)),
            queue: port.map(Queue::new),
        }
    }

    fn packets(&mut self, at_ns: u64, mut load: Load) {
        load.overflows = self.queue.as_mut().is_some_and(|queue| queue.arrive(at_ns, load.bytes));
        self.all.add(load);
        for bins in &mut self.bins {
            bins.add(at_ns, load);
        }
    }

    fn report(&mut self, until_ns: u64) -> BurstDirection {
        let Load { packets, bytes, packet_max_bytes, .. } = std::mem::take(&mut self.all);
        BurstDirection {
            packets,
            bytes,
            packet_max_bytes,
            bins: self.bins.iter_mut().map(|bins| bins.report(until_ns)).collect(),
            port: self.queue.as_mut().map(Queue::report),
        }
    }
}

/// Bins of one width.
#[derive(Debug)]
struct Bins {
    width_ns: u64,
    /// Bins that may still get packets, by number.
    open: BTreeMap<u64, Load>,
    /// The first bin that is not closed.
    first: u64,
    /// Bytes of closed bins.
    closed: Histogram<u64>,
    busy: u64,
    /// The fullest closed bin: bytes, number.
    fullest: (u64, u64),
    /// Closed bins in which something passed, by number, where they are asked for.
    kept: Option<Vec<(u64, Load)>>,
}

impl Bins {
    fn new(width_ns: u64, from_ns: u64) -> Self {
        let closed = Histogram::new_with_bounds(1, BIN_MAX_BYTES, DIGITS).expect("invariant: bounds are in order");
        Self {
            width_ns,
            open: BTreeMap::new(),
            first: from_ns / width_ns,
            closed,
            busy: 0,
            fullest: (0, 0),
            kept: None,
        }
    }

    fn add(&mut self, at_ns: u64, load: Load) {
        // What comes for a bin that is closed counts in the oldest that is open: nothing is lost.
        let number = (at_ns / self.width_ns).max(self.first);
        self.open.entry(number).or_default().add(load);
        let settled = at_ns.saturating_sub(LATENESS_NS) / self.width_ns;
        while let Some(entry) = self.open.first_entry().filter(|entry| *entry.key() < settled) {
            let (number, load) = entry.remove_entry();
            self.close(number, load);
        }
    }

    /// Closes a bin, and the empty ones before it.
    fn close(&mut self, number: u64, load: Load) {
        let bytes = load.bytes;
        if let Some(kept) = &mut self.kept {
            kept.push((number, load));
        }
        self.closed.saturating_record_n(0, number.saturating_sub(self.first));
        self.closed.saturating_record(bytes);
        self.busy += u64::from(bytes > 0);
        self.first = number + 1;
        if bytes > self.fullest.0 {
            self.fullest = (bytes, number);
        }
    }

    fn report(&mut self, until_ns: u64) -> BurstBins {
        let end = until_ns / self.width_ns;
        while let Some(entry) = self.open.first_entry().filter(|entry| *entry.key() < end) {
            let (number, load) = entry.remove_entry();
            self.close(number, load);
        }
        self.closed.saturating_record_n(0, end.saturating_sub(self.first));
        self.first = self.first.max(end);
        let rate = |bytes: u64| bytes as f64 * 8.0 * NS_PER_S / self.width_ns as f64;
        let at = |part: f64| rate(self.closed.value_at_quantile(part));
        let report = BurstBins {
            width_us: self.width_ns / 1_000,
            count: self.closed.len(),
            busy: self.busy,
            p50_bps: at(0.5),
            p90_bps: at(0.9),
            p99_bps: at(0.99),
            p999_bps: at(0.999),
            max_bps: rate(self.fullest.0),
            max_at_s: (self.fullest.1 * self.width_ns) as f64 / NS_PER_S,
        };
        self.closed.reset();
        (self.busy, self.fullest) = (0, (0, 0));
        report
    }
}

/// What waits at a port.
#[derive(Debug)]
struct Queue {
    port: Port,
    at_ns: u64,
    bytes: f64,
    most: f64,
    is_over: bool,
    overflows: u64,
    excess: f64,
}

impl Queue {
    const fn new(port: Port) -> Self {
        Self { port, at_ns: 0, bytes: 0.0, most: 0.0, is_over: false, overflows: 0, excess: 0.0 }
    }

    /// Takes in what arrives; whether it does not fit.
    fn arrive(&mut self, at_ns: u64, bytes: u64) -> bool {
        let passed_s = at_ns.saturating_sub(self.at_ns) as f64 / NS_PER_S;
        self.at_ns = self.at_ns.max(at_ns);
        self.bytes = (self.bytes - passed_s * self.port.rate.bits_per_second() as f64 / 8.0).max(0.0);
        if self.bytes == 0.0 {
            self.is_over = false;
        }
        self.bytes += bytes as f64;
        let buffer = self.port.buffer.get() as f64;
        let is_too_much = self.bytes > buffer;
        if is_too_much {
            self.overflows += u64::from(!self.is_over);
            self.is_over = true;
            self.excess += self.bytes - buffer;
            self.bytes = buffer;
        }
        self.most = self.most.max(self.bytes);
        is_too_much
    }

    fn report(&mut self) -> PortBursts {
        let report = PortBursts {
            rate_bps: self.port.rate.bits_per_second() as f64,
            buffer_bytes: self.port.buffer.get(),
            queue_max_bytes: self.most as u64,
            overflows: self.overflows,
            excess_bytes: self.excess as u64,
        };
        (self.most, self.overflows, self.excess) = (0.0, 0, 0.0);
        report
    }
}

/// An interval as text.
#[must_use]
pub fn bursts_text(report: &BurstsReport) -> String {
    let mut text = format!("{}, {}\n", report.interface, figures::elapsed(report.interval_s));
    text += &format!(
        "{:<9}{:>8}{:>8}{:>11}{:>11}{:>11}{:>11}{:>11}\n",
        "", "BIN", "BUSY", "P50", "P90", "P99", "P99.9", "MOST"
    );
    for (name, direction) in [("sent", &report.sent), ("received", &report.received)] {
        for (place, bins) in direction.bins.iter().enumerate() {
            let rates = [bins.p50_bps, bins.p90_bps, bins.p99_bps, bins.p999_bps, bins.max_bps];
            let rates: Vec<String> = rates.iter().map(|rate| format!("{:>11}", figures::rate(*rate))).collect();
            let busy = figures::percent(bins.busy as f64 / bins.count.max(1) as f64);
            let name = if place == 0 { name } else { "" };
            let width = figures::milliseconds(bins.width_us as f64 / 1e3);
            text += &format!("{name:<9}{width:>8}{busy:>8}{}\n", rates.concat());
        }
        let rate = direction.bytes as f64 * 8.0 / report.interval_s.max(1e-9);
        let (packets, bytes) = (figures::counted(direction.packets, "packet"), figures::data(direction.bytes as f64));
        text += &format!("         {packets}, {bytes}, {} on average", figures::rate(rate));
        if let Some(port) = direction.port {
            text += &format!(
                "; a port of {} and {}: ",
                figures::rate(port.rate_bps),
                figures::bytes(port.buffer_bytes as f64)
            );
            text += &if port.overflows > 0 {
                let times = figures::counted(port.overflows, "burst");
                format!("{times} overflow it, {} too many", figures::bytes(port.excess_bytes as f64))
            } else {
                format!("holds all, {} at most", figures::bytes(port.queue_max_bytes as f64))
            };
        }
        text.push('\n');
        // One that is longer than a wire's packets took its time there, and is counted at one instant.
        if direction.packet_max_bytes > JUMBO_BYTES {
            let size = figures::bytes(direction.packet_max_bytes as f64);
            let took = figures::milliseconds(direction.packet_max_bytes as f64 * 8.0 / 1e9 * 1e3);
            text += &format!(
                "         packets of up to {size} are joined by offloads and count at one instant: on a wire of 1 Gb/s they take {took}\n"
            );
        }
    }
    if report.missed_packets > 0 {
        text += &format!("{} were not counted: the ring was full\n", figures::counted(report.missed_packets, "packet"));
    }
    text
}

/// The longest packets of common Ethernet, from the IP header on.
const JUMBO_BYTES: u64 = 9_000;

#[cfg(test)]
mod tests;
