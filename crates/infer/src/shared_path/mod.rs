//! Connections between the same two hosts that share one path: what each could gain is the others' as well.

pub(crate) mod aggregate_rate;
mod verdict;

use aggregate_rate::{AggregateRate, CarriedBytes};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use thalweg_model::{Code, Finding, Flow, SharedPath, Way};

/// Least part of what all carry that the others must, for a connection to share: less is within what the rates of trains err by.
const MIN_OTHERS_PART: f64 = 0.1;
/// Part of the path's rate from which on it is used up: rates of trains are 9 % apart.
const FULL_RATE_PART: f64 = 0.85;
/// The largest sum is the path's rate where it is no more than what one of them measured alone, to within the same.
const AGREEMENT_PART: f64 = 0.9;
/// Time over which a sum is a rate, in usual round trips, or in least ones where there are few; fewest and most such spans.
const ROUND_TRIPS_PER_SPAN: f64 = 4.0;
const SPANS: std::ops::RangeInclusive<u64> = 4..=64;
/// Sums are as high as the path's rate in one span of ten, and higher by chance.
const HIGHEST_QUANTILE: f64 = 0.9;
/// By how much that is above the middle where something holds the sum. What random loss leaves of each varies by a third and more, so that of
/// a few together by twice as much as this.
const STEADY_SPREAD: f64 = 0.1;
const STEADY_CONNECTIONS_MAX: f64 = 8.0;
/// And of many, by this part of what it would where none took what another gave.
const CORRELATED_PART: f64 = 0.7;

/// A connection's time of carrying, and its place among all.
struct Member {
    start: u64,
    end: u64,
    first_packet: u64,
    index: usize,
}

/// A connection that may share its path.
#[derive(Debug)]
pub(crate) struct Sharer<'a> {
    /// Index of the interface among the capture's.
    pub(crate) interface: u32,
    /// What it carried; `None` where that was little.
    pub(crate) carried: Option<&'a CarriedBytes>,
    pub(crate) flow: &'a mut Flow,
}

/// Tells each of a capture's connections what it shared, and judges it by that.
pub(crate) fn judge(found: &mut [Sharer<'_>]) {
    let mut groups: BTreeMap<(u32, IpAddr, IpAddr), Vec<Member>> = BTreeMap::new();
    for (index, one) in found.iter().enumerate() {
        if let (Some(carried), Some((from, to))) = (one.carried, hosts(one.flow)) {
            let (start, end, first_packet) = (carried.start, carried.end(), one.flow.first_packet);
            let member = Member { start, end, first_packet, index };
            groups.entry((one.interface, from, to)).or_default().push(member);
        }
    }
    for mut group in groups.into_values() {
        group.sort_unstable_by_key(|member| (member.start, member.first_packet));
        // One without a pause at a time: what was before it or comes after it shares nothing with it.
        let mut rest = &group[..];
        while let Some(first) = rest.first() {
            let mut until = first.end;
            let overlaps = |member: &&Member| {
                let overlaps = member.start < until;
                until = until.max(member.end);
                overlaps
            };
            let (together, after) = rest.split_at(rest.iter().take_while(overlaps).count().max(1));
            judge_together(found, together);
            rest = after;
        }
    }
}

fn judge_together(found: &mut [Sharer<'_>], all: &[Member]) {
    if all.len() < 2 {
        return;
    }
    let together = AggregateRate::of(all.iter().filter_map(|member| found[member.index].carried));
    let measured = measured(all.iter().filter_map(|member| found[member.index].flow.measured.capacity_bps)) / 8.0;
    let least_ms = all.iter().filter_map(|member| found[member.index].flow.rtt_min_ms).fold(f64::INFINITY, f64::min);
    for member in all {
        let one = &mut found[member.index];
        let Some(carried) = one.carried else { continue };
        one.flow.facts.shared_path = shared(carried, one.flow, &together, measured).map(Box::new);
        verdict::share(one.flow, least_ms);
    }
}

/// The most that two of them measured alone, or one of two: a single one may have met packets that some box kept and let go at once.
fn measured(capacities: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = capacities.collect();
    all.sort_unstable_by(f64::total_cmp);
    let known = if all.len() > 2 { all.len() - 1 } else { all.len() };
    known.checked_sub(1).map_or(0.0, |last| all[last])
}

/// The data's sender and its receiver.
fn hosts(flow: &Flow) -> Option<(IpAddr, IpAddr)> {
    let [client, server] = [&flow.client, &flow.server].map(|end| end.parse::<SocketAddr>().ok());
    let (client, server) = (client?.ip(), server?.ip());
    Some(if flow.direction == Way::Up { (client, server) } else { (server, client) })
}

/// What `carried` shared, where the path's rate is known: two of the connections `measured` it alone, or the sum of those that lose packets, or
/// fill a queue, stays the same while each has now more and now less of it.
fn shared(carried: &CarriedBytes, flow: &Flow, together: &AggregateRate, measured: f64) -> Option<SharedPath> {
    let (from, to) = (carried.start, carried.end());
    let nanos = to.checked_sub(from).filter(|&nanos| nanos > 0)?;
    let seconds = nanos as f64 / 1e9;
    let (own, sum) = (carried.bytes() / seconds, together.rate(from, to));
    let least_s = flow.rtt_min_ms.unwrap_or(0.0) / 1e3;
    let usual_s = flow.facts.rtt.as_deref().map_or(least_s, |rtt| rtt.p50_ms / 1e3);
    let [most, spans] = [least_s, usual_s].map(|rtt_s| (seconds / (ROUND_TRIPS_PER_SPAN * rtt_s)) as u64);
    if sum - own < MIN_OTHERS_PART * sum || most < *SPANS.start() {
        return None;
    }
    let spans = spans.clamp(*SPANS.start(), *SPANS.end()).min(carried.bins.len() as u64);
    let edges: Vec<u64> = (0..=spans).map(|n| from + (nanos as f64 * n as f64 / spans as f64) as u64).collect();
    let rates = |of: &AggregateRate| edges.windows(2).map(|span| of.rate(span[0], span[1])).collect::<Vec<f64>>();
    let (sums, owns) = (rates(together), rates(&AggregateRate::of(std::iter::once(carried))));
    let (middle, highest) = spread(sums.clone());
    let count = together.count(from, to) as f64;
    let apart = highest / middle - 1.0;
    let alike = || {
        let (middle, highest) = spread(owns);
        apart * count.sqrt() <= CORRELATED_PART * (highest / middle - 1.0)
    };
    let steady = apart <= STEADY_SPREAD && (count <= STEADY_CONNECTIONS_MAX || alike());
    if measured < AGREEMENT_PART * highest && !(steady && fills(flow)) {
        return None;
    }
    let path = highest.max(measured);
    let full = sums.iter().filter(|&&rate| rate >= FULL_RATE_PART * path).count() as f64 / spans as f64;
    Some(SharedPath {
        others: together.count(from, to).saturating_sub(1) as u64,
        together_bps: sum * 8.0,
        path_rate_bps: path * 8.0,
        full_share: full,
    })
}

/// The rate in the middle, and the highest but for one in ten.
fn spread(mut rates: Vec<f64>) -> (f64, f64) {
    rates.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| rates[((rates.len() - 1) as f64 * part).round() as usize];
    (at(0.5), at(HIGHEST_QUANTILE))
}

/// Whether the connection sends as much as something takes: it loses packets or has a queue. One that a host holds, and that loses a packet now
/// and then, carries the same all the time by itself.
fn fills(flow: &Flow) -> bool {
    let verdict = flow.verdict.code();
    let mut codes = std::iter::once(verdict).chain(flow.findings.iter().map(Finding::code));
    !verdict.is_host_limit() && codes.any(Code::is_path_limit)
}
