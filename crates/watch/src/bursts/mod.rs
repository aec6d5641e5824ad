//! Packets in, bins out: how even traffic is within 100 µs, 1 ms and 10 ms, and what a port with a small buffer would do to it.

mod bins;
mod flows;
mod map;
mod queue;
mod text;

use bins::{Bins, DIGITS, Load, WIDTHS_NS};
use flows::Flows;
pub use flows::{FlowId, Resent, flow_of};
pub use map::MapBuilder;
pub use queue::Port;
use queue::Queue;
use std::collections::HashMap;
use std::net::SocketAddr;
pub use text::bursts_text;
use thalweg_model::{BurstDirection, BurstResent, BurstSource, BurstsReport};
use thalweg_units::Timestamp;

const NS_PER_S: f64 = 1e9;

/// What passed in one of the shortest bins; where flows are told apart, one flow's part of it, or that of all flows without a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyBin {
    /// When it began, in nanoseconds since the epoch.
    pub at_ns: u64,
    /// Whether this host sent it.
    pub is_sent: bool,
    /// Packets as the kernel hands them over.
    pub packets: u64,
    /// Their bytes, from the IP header on.
    pub bytes: u64,
    /// The longest packet of the bin.
    pub packet_max_bytes: u64,
    /// Whether the port's buffer overflowed.
    pub overflows: bool,
    /// The flow; `None` for all packets, or those without a row of their own.
    pub flow: Option<FlowId>,
}

impl BusyBin {
    fn new(at_ns: u64, is_sent: bool, load: Load, flow: Option<FlowId>) -> Self {
        let Load { packets, bytes, packet_max_bytes, overflows } = load;
        Self { at_ns, is_sent, packets, bytes, packet_max_bytes, overflows, flow }
    }
}

/// The traffic of an interface, both directions.
#[derive(Debug)]
pub struct Bursts {
    interface: String,
    source: BurstSource,
    /// The interval's beginning, in nanoseconds since the epoch.
    from_ns: u64,
    sent: Direction,
    received: Direction,
    /// Where flows are told apart: they, and what tells of segments that are sent again, if anything does.
    flows: Option<(Flows, Option<BurstResent>)>,
}

impl Bursts {
    /// Begins at this moment.
    #[must_use]
    pub fn new(interface: &str, source: BurstSource, from: Timestamp, port: Option<Port>) -> Self {
        let from_ns = from.as_nanos();
        let direction = || Direction::new(from_ns, port);
        Self { interface: interface.to_owned(), source, from_ns, sent: direction(), received: direction(), flows: None }
    }

    /// Tells so many flows apart; `resent` says what will tell of segments that are sent again, if anything does.
    pub fn tell_flows(&mut self, most: usize, resent: Option<BurstResent>) {
        self.flows = Some((Flows::new(most, self.from_ns), resent));
    }

    /// A segment that TCP sent again.
    pub fn resent(&mut self, one: Resent) {
        if let Some((flows, _)) = &mut self.flows {
            flows.resent(one);
        }
    }

    /// Segments that could not be told apart.
    pub const fn resent_missed(&mut self, segments: u64) {
        if let Some((_, Some(resent))) = &mut self.flows {
            resent.missed += segments;
        }
    }

    /// What connections sent again in this interval by their sockets' counters, by their ends.
    pub fn resent_counted(&mut self, segments: HashMap<(SocketAddr, SocketAddr), u64>) {
        if let Some((flows, _)) = &mut self.flows {
            flows.counted(segments);
        }
    }

    /// Whether a flow kept its row at the last report.
    #[must_use]
    pub fn is_kept(&self, flow: &FlowId) -> bool {
        self.flows.as_ref().is_some_and(|(flows, _)| flows.is_kept(flow))
    }

    /// Keeps the shortest bins for [`Self::busy_bins`], from the next packet on. Flows must be told apart before, if at all.
    pub fn keep_bins(&mut self) {
        for direction in [&mut self.sent, &mut self.received] {
            direction.bins[0].keep();
        }
        if let Some((flows, _)) = &mut self.flows {
            flows.keep_bins();
        }
    }

    /// The shortest bins in which something passed and that the last report closed, in order. Where flows are told apart, the parts of a bin follow
    /// each other and add up to it.
    pub fn busy_bins(&mut self) -> Vec<BusyBin> {
        let mut bins = Vec::new();
        for (direction, is_sent) in [(&mut self.sent, true), (&mut self.received, false)] {
            bins.extend(direction.bins[0].take_kept().map(|(at_ns, load)| BusyBin::new(at_ns, is_sent, load, None)));
        }
        if let Some((flows, _)) = &mut self.flows {
            let longest: HashMap<(u64, bool), u64> =
                bins.iter().map(|bin| ((bin.at_ns, bin.is_sent), bin.packet_max_bytes)).collect();
            bins = flows.busy_bins();
            for bin in &mut bins {
                let longest = longest.get(&(bin.at_ns, bin.is_sent)).copied().unwrap_or(0);
                bin.packet_max_bytes = bin.packet_max_bytes.max(longest);
            }
        }
        bins.sort_unstable_by_key(|bin| (bin.at_ns, bin.is_sent, bin.flow.map(|flow| (flow.local, flow.peer))));
        bins
    }

    /// A packet of so many bytes.
    pub fn packet(&mut self, at: Timestamp, bytes: u64, is_sent: bool, flow: Option<FlowId>) {
        let load = Load { packets: 1, bytes, packet_max_bytes: bytes, overflows: false };
        let overflows = self.packets(at.as_nanos(), is_sent, load);
        if let Some((flows, _)) = &mut self.flows {
            flows.add(flow, at.as_nanos(), is_sent, Load { overflows, ..load });
        }
    }

    /// Takes in what was counted of a bin, or of a part of one, and of flows in it: packets and bytes; to the port it comes at once.
    pub fn bin(&mut self, bin: &BusyBin, parts: impl IntoIterator<Item = (FlowId, u64, u64)>) {
        let BusyBin { at_ns, is_sent, packets, bytes, packet_max_bytes, .. } = *bin;
        let overflows = self.packets(at_ns, is_sent, Load { packets, bytes, packet_max_bytes, overflows: false });
        let Some((flows, _)) = &mut self.flows else { return };
        let mut others = Load { packets, bytes, packet_max_bytes: 0, overflows };
        for (flow, packets, bytes) in parts {
            others.packets = others.packets.saturating_sub(packets);
            others.bytes = others.bytes.saturating_sub(bytes);
            flows.add(Some(flow), at_ns, is_sent, Load { packets, bytes, packet_max_bytes: 0, overflows });
        }
        if others.packets > 0 {
            flows.add(None, at_ns, is_sent, others);
        }
    }

    /// Whether the port's buffer overflows.
    fn packets(&mut self, at_ns: u64, is_sent: bool, load: Load) -> bool {
        let direction = if is_sent { &mut self.sent } else { &mut self.received };
        direction.packets(at_ns, load)
    }

    /// Ends the interval at this moment, and begins the next. Packets from before it that come later count in the next one.
    pub fn report(&mut self, until: Timestamp, missed_packets: u64) -> BurstsReport {
        let until_ns = until.as_nanos().max(self.from_ns);
        let (flows, resent) = match &mut self.flows {
            Some((flows, resent)) => {
                let episodes = self.sent.queue.as_ref().map(Queue::episodes).unwrap_or_default();
                let (flows, segments) = flows.report(until_ns, resent.is_some().then_some(episodes));
                let resent = resent.as_mut().map(|resent| {
                    let missed = std::mem::take(&mut resent.missed);
                    BurstResent { segments, missed, ..resent.clone() }
                });
                (flows, resent)
            }
            None => (Vec::new(), None),
        };
        let report = BurstsReport {
            schema: "thalweg.bursts/1".to_owned(),
            interface: self.interface.clone(),
            at_s: self.from_ns as f64 / NS_PER_S,
            interval_s: (until_ns - self.from_ns) as f64 / NS_PER_S,
            source: self.source.clone(),
            missed_packets,
            sent: self.sent.report(until_ns),
            received: self.received.report(until_ns),
            flows,
            resent,
        };
        self.from_ns = until_ns;
        report
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
            bins: WIDTHS_NS.map(|width_ns| Bins::new(width_ns, from_ns, DIGITS)),
            queue: port.map(Queue::new),
        }
    }

    /// Whether the port's buffer overflows.
    fn packets(&mut self, at_ns: u64, mut load: Load) -> bool {
        load.overflows = self.queue.as_mut().is_some_and(|queue| queue.arrive(at_ns, load.bytes));
        self.all.add(load);
        for bins in &mut self.bins {
            bins.add(at_ns, load);
        }
        load.overflows
    }

    fn report(&mut self, until_ns: u64) -> BurstDirection {
        let overflows = self.queue.as_mut().map(Queue::overflows).unwrap_or_default();
        let Load { packets, bytes, packet_max_bytes, .. } = std::mem::take(&mut self.all);
        BurstDirection {
            packets,
            bytes,
            packet_max_bytes,
            bins: self.bins.iter_mut().map(|bins| bins.report(until_ns)).collect(),
            port: self.queue.as_mut().map(Queue::report),
            overflows,
        }
    }
}

#[cfg(test)]
mod tests;
