//! Flows of an interface's traffic: rows of their own for a bounded number of them, one for all others, and the segments that TCP sends again.

use super::BusyBin;
use super::bins::{Bins, Load, WIDTHS_NS};
use super::queue::Episode;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use thalweg_model::{
    BurstFlow, BurstFlowEnds, BurstFlowSide, FlowProtocol, FlowResent, FlowResentClasses, ResentKind, ResentSegment,
};
use thalweg_units::{Span, Timestamp};

/// Digits that the histogram of a flow keeps: 1 %, in 24 KB.
const DIGITS: u8 = 2;
/// Of the interface's bytes, a flow with less than one part of so many for each row makes room for others.
const LEAST_SHARE: u64 = 4;
/// Segments that are told apart in an interval.
const SEGMENTS_MAX: usize = 200;
/// How long after the last byte that did not fit a loss of it may be repaired, besides two round trips: reordering waits for a quarter of one,
/// a timeout for 200 ms and a round trip. Source: RFC 8985, §6.2; include/net/tcp.h, `TCP_RTO_MIN`.
const FAST_NS: u64 = 10_000_000;
const TIMEOUT_NS: u64 = 300_000_000;
const NS_PER_S: f64 = 1e9;

/// A flow as this host sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowId {
    /// Its protocol.
    pub protocol: FlowProtocol,
    /// This host's end.
    pub local: SocketAddr,
    /// The other.
    pub peer: SocketAddr,
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.protocol.as_str(), self.local, self.peer)
    }
}

/// What was sent again at one instant.
#[derive(Debug, Clone, Copy)]
pub struct Resent {
    /// When.
    pub at: Timestamp,
    /// This host's end.
    pub local: SocketAddr,
    /// The other.
    pub peer: SocketAddr,
    /// Why.
    pub kind: ResentKind,
    /// Segments: several where segmentation offload sends them as one.
    pub segments: u64,
    /// The connection's round trip.
    pub round_trip: Span,
}

/// The flows of an interval.
#[derive(Debug)]
pub(super) struct Flows {
    most: usize,
    from_ns: u64,
    rows: HashMap<FlowId, Row>,
    other: Row,
    resent: Vec<Resent>,
    /// By sockets' counters: segments of connections, by their ends.
    counted: Option<HashMap<(SocketAddr, SocketAddr), u64>>,
    /// After the last report: the flows that keep their rows.
    kept: HashSet<FlowId>,
    /// The shortest bins that the last report closed, where they are asked for.
    busy: Option<Vec<BusyBin>>,
}

#[derive(Debug)]
struct Row {
    sent: Side,
    received: Side,
}

#[derive(Debug)]
struct Side {
    all: Load,
    overflow_bytes: u64,
    bins: [Bins; WIDTHS_NS.len()],
}

impl Side {
    fn new(from_ns: u64) -> Self {
        let bins = WIDTHS_NS.map(|width_ns| Bins::new(width_ns, from_ns, DIGITS));
        Self { all: Load::default(), overflow_bytes: 0, bins }
    }

    fn add(&mut self, at_ns: u64, load: Load) {
        self.all.add(load);
        self.overflow_bytes += if load.overflows { load.bytes } else { 0 };
        for bins in &mut self.bins {
            bins.add(at_ns, load);
        }
    }

    fn report(&mut self, until_ns: u64) -> BurstFlowSide {
        let Load { packets, bytes, .. } = std::mem::take(&mut self.all);
        let overflow_bytes = std::mem::take(&mut self.overflow_bytes);
        let bins = self.bins.iter_mut().map(|bins| bins.report(until_ns)).collect();
        BurstFlowSide { packets, bytes, overflow_bytes, bins }
    }
}

impl Row {
    fn new(from_ns: u64) -> Self {
        Self { sent: Side::new(from_ns), received: Side::new(from_ns) }
    }

    fn keep_bins(&mut self) {
        for side in [&mut self.sent, &mut self.received] {
            side.bins[0].keep();
        }
    }

    /// Moves the bins that are kept to `busy`.
    fn take_bins(&mut self, flow: Option<FlowId>, busy: &mut Vec<BusyBin>) {
        for (side, is_sent) in [(&mut self.sent, true), (&mut self.received, false)] {
            busy.extend(side.bins[0].take_kept().map(|(at_ns, load)| BusyBin::new(at_ns, is_sent, load, flow)));
        }
    }
}

impl Flows {
    pub(super) fn new(most: usize, from_ns: u64) -> Self {
        Self {
            most,
            from_ns,
            rows: HashMap::new(),
            other: Row::new(from_ns),
            resent: Vec::new(),
            counted: None,
            kept: HashSet::new(),
            busy: None,
        }
    }

    /// Keeps the shortest bins for [`Self::busy_bins`].
    pub(super) fn keep_bins(&mut self) {
        self.busy = Some(Vec::new());
        self.rows.values_mut().chain([&mut self.other]).for_each(Row::keep_bins);
    }

    /// What the last report closed, by flow.
    pub(super) fn busy_bins(&mut self) -> Vec<BusyBin> {
        self.busy.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes in what passed of a flow, or of none that has a row.
    pub(super) fn add(&mut self, flow: Option<FlowId>, at_ns: u64, is_sent: bool, load: Load) {
        let has_room = self.rows.len() < self.most;
        let row = match flow {
            Some(flow) if has_room || self.rows.contains_key(&flow) => self.rows.entry(flow).or_insert_with(|| {
                let mut row = Row::new(self.from_ns);
                if self.busy.is_some() {
                    row.keep_bins();
                }
                row
            }),
            _ => &mut self.other,
        };
        let side = if is_sent { &mut row.sent } else { &mut row.received };
        side.add(at_ns, load);
    }

    pub(super) fn resent(&mut self, one: Resent) {
        self.resent.push(one);
    }

    /// What sockets' counters tell of the interval.
    pub(super) fn counted(&mut self, segments: HashMap<(SocketAddr, SocketAddr), u64>) {
        self.counted = Some(segments);
    }

    /// Whether a flow kept its row at the last report; the others have to get one again.
    pub(super) fn is_kept(&self, flow: &FlowId) -> bool {
        self.kept.contains(flow)
    }

    /// Ends the interval: the flows with a row, those with most bytes first, then all others together; and what was sent again, each with the
    /// overflow that it follows. `overflows` is `None` where nothing tells of segments that are sent again.
    pub(super) fn report(
        &mut self,
        until_ns: u64,
        overflows: Option<&[Episode]>,
    ) -> (Vec<BurstFlow>, Vec<ResentSegment>) {
        let mut flows: Vec<BurstFlow> = Vec::with_capacity(self.rows.len() + 1);
        for (id, row) in &mut self.rows {
            let ends = BurstFlowEnds { protocol: id.protocol, local: id.local, peer: id.peer };
            flows.push(row_report(row, Some(ends), until_ns));
        }
        flows.retain(|flow| bytes(flow) > 0);
        flows.sort_by_key(|flow| (Reverse(bytes(flow)), flow.ends.map(|ends| (ends.local, ends.peer))));
        let segments = overflows.map(|overflows| self.join(&mut flows, overflows)).unwrap_or_default();
        let other = row_report(&mut self.other, None, until_ns);
        let total: u64 = flows.iter().map(bytes).sum::<u64>() + bytes(&other);
        let least = total / (LEAST_SHARE * self.most as u64);
        let is_full = self.rows.len() >= self.most;
        self.kept = flows
            .iter()
            .filter(|flow| !is_full || bytes(flow) >= least)
            .filter_map(|flow| flow.ends)
            .map(|ends| FlowId { protocol: ends.protocol, local: ends.local, peer: ends.peer })
            .collect();
        if let Some(busy) = &mut self.busy {
            for (id, row) in &mut self.rows {
                row.take_bins(Some(*id), busy);
            }
            self.other.take_bins(None, busy);
        }
        let kept = &self.kept;
        self.rows.retain(|id, _| kept.contains(id));
        if bytes(&other) > 0 {
            flows.push(other);
        }
        self.from_ns = until_ns;
        (flows, segments)
    }

    /// Gives what was sent again to its flows.
    fn join(&mut self, flows: &mut [BurstFlow], overflows: &[Episode]) -> Vec<ResentSegment> {
        let places: HashMap<(SocketAddr, SocketAddr), usize> = flows
            .iter()
            .enumerate()
            .filter_map(|(place, flow)| flow.ends.map(|ends| (ends, place)))
            .filter(|(ends, _)| ends.protocol == FlowProtocol::Tcp)
            .map(|(ends, place)| ((ends.local, ends.peer), place))
            .collect();
        if let Some(counted) = self.counted.take() {
            for (ends, &place) in &places {
                let segments = counted.get(ends).copied().unwrap_or(0);
                flows[place].resent = Some(FlowResent { segments, classes: None });
            }
            return Vec::new();
        }
        for place in places.values() {
            flows[*place].resent = Some(FlowResent { segments: 0, classes: Some(FlowResentClasses::default()) });
        }
        let mut segments = Vec::new();
        for one in std::mem::take(&mut self.resent) {
            let Some(&place) = places.get(&(one.local, one.peer)) else { continue };
            let overflow = followed(&one, overflows);
            let Some(resent) = &mut flows[place].resent else { continue };
            resent.segments += one.segments;
            if let Some(classes) = &mut resent.classes {
                *(match one.kind {
                    ResentKind::Syn => &mut classes.syn,
                    ResentKind::Fast => &mut classes.fast,
                    ResentKind::Timeout => &mut classes.timeout,
                    ResentKind::Probe => &mut classes.probe,
                }) += one.segments;
                classes.after_overflow += if overflow.is_some() { one.segments } else { 0 };
            }
            if segments.len() < SEGMENTS_MAX {
                let seconds = |ns: u64| ns as f64 / NS_PER_S;
                segments.push(ResentSegment {
                    at_s: seconds(one.at.as_nanos()),
                    flow: place,
                    kind: one.kind,
                    segments: one.segments,
                    overflow_at_s: overflow.map(|overflow| seconds(overflow.from_ns)),
                });
            }
        }
        segments
    }
}

/// The latest overflow that may have lost what is sent again.
fn followed<'a>(one: &Resent, overflows: &'a [Episode]) -> Option<&'a Episode> {
    let besides = if one.kind == ResentKind::Timeout { TIMEOUT_NS } else { FAST_NS };
    let patience = 2 * one.round_trip.as_nanos() + besides;
    let at_ns = one.at.as_nanos();
    overflows
        .iter()
        .rev()
        .find(|overflow| overflow.from_ns <= at_ns && at_ns.saturating_sub(overflow.until_ns) <= patience)
}

fn row_report(row: &mut Row, ends: Option<BurstFlowEnds>, until_ns: u64) -> BurstFlow {
    BurstFlow { ends, sent: row.sent.report(until_ns), received: row.received.report(until_ns), resent: None }
}

const fn bytes(flow: &BurstFlow) -> u64 {
    flow.sent.bytes + flow.received.bytes
}

/// The flow of a packet, by its first bytes from the IP header on; 64 are enough. Later fragments and other protocols have none.
#[must_use]
pub fn flow_of(bytes: &[u8], is_sent: bool) -> Option<FlowId> {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    let (protocol, source, destination, ports): (u8, IpAddr, IpAddr, usize) = match bytes.first()? >> 4 {
        4 => {
            let address = |at: usize| Some(IpAddr::V4(Ipv4Addr::from(*bytes.get(at..)?.first_chunk::<4>()?)));
            if u16::from_be_bytes([*bytes.get(6)?, *bytes.get(7)?]) & 0x1fff != 0 {
                return None;
            }
            (*bytes.get(9)?, address(12)?, address(16)?, usize::from(bytes[0] & 15) * 4)
        }
        6 => {
            let address = |at: usize| Some(IpAddr::V6(Ipv6Addr::from(*bytes.get(at..)?.first_chunk::<16>()?)));
            (*bytes.get(6)?, address(8)?, address(24)?, 40)
        }
        _ => return None,
    };
    let protocol = match protocol {
        6 => FlowProtocol::Tcp,
        17 => FlowProtocol::Udp,
        _ => return None,
    };
    let port = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let (source, destination) = (SocketAddr::new(source, port(ports)?), SocketAddr::new(destination, port(ports + 2)?));
    let (local, peer) = if is_sent { (source, destination) } else { (destination, source) };
    Some(FlowId { protocol, local, peer })
}

#[cfg(test)]
mod tests;
