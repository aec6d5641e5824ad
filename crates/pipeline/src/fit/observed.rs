//! The figures of a captured connection that a fitted model has to have, too.

use super::RESOLUTION;
use thalweg_model::{Cause, Code, CongestionLosses, Flow, Measured, Point, RoundTrips, Series, Way};

/// Figures of one connection. The lab's captures are measured by the same estimators as the user's, so what an estimator
/// gets wrong it gets wrong in both.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    pub(crate) code: Code,
    pub(crate) goodput_bps: f64,
    /// Payload of whole seconds of the data phase, in bits.
    pub(crate) seconds: Vec<f64>,
    pub(crate) rtt_min_ms: Option<f64>,
    pub(crate) rtt_p50_ms: Option<f64>,
    pub(crate) rtt_p90_ms: Option<f64>,
    pub(crate) full_queue: FullQueue,
    pub(crate) measured: Measured,
    pub(crate) shown_by: Option<ShownBy>,
    pub(crate) data_packets: f64,
    pub(crate) lost_packets: f64,
    pub(crate) loss_episodes: f64,
}

/// How exact quantiles of round trips are, part of them.
pub(crate) const RTT_RESOLUTION: f64 = 0.023;

/// Which estimate shows the path's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShownBy {
    /// The doctor's estimate of the capacity.
    Capacity,
    /// The fastest trains.
    FastestTrains,
    /// Short trains of the first segments.
    FirstTrains,
}

/// Trains tell the rate if they take this long at least: clocks, and cards that gather packets for 50 to 125 µs before they
/// interrupt, make shorter ones seem faster. At 3 Gb/s a train of 16 segments takes 62 µs, and the fastest are up to 15 % too fast.
const TRAIN_LEAST_S: f64 = 250e-6;
/// Segments of a train, and of a short one among the first segments.
const TRAIN_SEGMENTS: u64 = 16;
const FIRST_SEGMENTS: u64 = 4;
/// A limit is one where the path carries this much more. Closer together the two cannot be distinguished: the labelled set of the verdicts has no
/// cases nearer either (`CLEAR`, `tests/labelled/causes.rs`).
pub(crate) const LIMIT_BELOW_PATH: f64 = 1.15;

impl ShownBy {
    /// The estimate for a connection; `None` where none is more than what a host lets out.
    pub(crate) fn of(flow: &Flow) -> Option<Self> {
        let (code, measured) = (flow.verdict.code(), &flow.measured);
        let long = Self::FastestTrains.train_s(measured).is_some_and(|train| train >= TRAIN_LEAST_S);
        let later: &[Self] = match code {
            // What a program paces comes at its rate, in trains of any length.
            Code::PacingRate => &[],
            _ if !code.is_host_limit() => &[Self::Capacity],
            _ if long => &[Self::FastestTrains, Self::Capacity],
            _ => &[Self::Capacity, Self::FastestTrains],
        };
        let least = if code.is_host_limit() { flow.goodput_bps * LIMIT_BELOW_PATH } else { 0.0 };
        let shown = |by: Self| by.rate(measured).filter(|rate| *rate >= least);
        let later = later.iter().copied().find(|by| shown(*by).is_some());
        // Small windows hold no long train, and what does not leave at once is slower than the path.
        let may_hide = code.is_host_limit() || matches!(code, Code::RandomLoss | Code::CongestionLoss);
        let first = shown(Self::FirstTrains).filter(|_| may_hide && Self::first_tells(flow));
        let slower = later.and_then(shown).map_or(0.0, |rate| rate * (1.0 + RESOLUTION));
        if first.is_some_and(|first| first > slower) { Some(Self::FirstTrains) } else { later }
    }

    /// Whether short trains take long enough: delays that vary by as much as a train takes push it together.
    fn first_tells(flow: &Flow) -> bool {
        let varies_ms = |rtt: &RoundTrips| rtt.p50_ms - flow.rtt_min_ms.unwrap_or(rtt.p50_ms) * (1.0 + RTT_RESOLUTION);
        let least = TRAIN_LEAST_S.max(flow.facts.rtt.as_deref().map_or(0.0, varies_ms) / 1e3);
        Self::FirstTrains.train_s(&flow.measured).is_some_and(|train| train >= least)
    }

    pub(crate) const fn rate(self, measured: &Measured) -> Option<f64> {
        match self {
            Self::Capacity => measured.capacity_bps,
            Self::FastestTrains => measured.fastest_bps,
            Self::FirstTrains => measured.first_bps,
        }
    }

    /// How long a train takes at that rate, in seconds.
    fn train_s(self, measured: &Measured) -> Option<f64> {
        let segments = if self == Self::FirstTrains { FIRST_SEGMENTS } else { TRAIN_SEGMENTS };
        self.rate(measured).map(|rate| (segments * measured.segment_bytes * 8) as f64 / rate)
    }
}

/// Round trips through a full queue.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FullQueue {
    longest_ms: Option<f64>,
    before_losses_ms: Option<f64>,
}

impl FullQueue {
    pub(crate) fn of(flow: &Flow) -> Self {
        let min_ms = flow.rtt_min_ms.unwrap_or_default();
        let causes =
            std::iter::once(&flow.verdict.cause).chain(flow.findings.iter().map(|finding| &finding.verdict.cause));
        let before_losses_s = causes.filter_map(|cause| match cause {
            Cause::RandomLoss(losses) | Cause::CongestionLoss(CongestionLosses::Dropped(losses)) => losses.rtt_before_s,
            _ => None,
        });
        Self {
            longest_ms: flow.facts.rtt.as_deref().map(|rtt| longest_ms(rtt, min_ms)),
            before_losses_ms: before_losses_s.map(|seconds| seconds * 1e3).next(),
        }
    }

    /// The round trip through a full queue. Where that is what drops packets, it is seen just before they are dropped as well as among the longest; either
    /// may be a delayed acknowledgement's.
    pub(crate) fn rtt_ms(self, code: Code) -> Option<f64> {
        let before_losses_ms = self.before_losses_ms.filter(|_| code == Code::CongestionLoss);
        [before_losses_ms, self.longest_ms].into_iter().flatten().min_by(f64::total_cmp)
    }
}

/// The longest round trip that is a queue's. A single one that is longer by the time for which an acknowledgement is delayed is none, nor is one
/// beyond a tenth of all that are as long as each other, and longer than the shortest, `min_ms`: a full queue holds no more.
///
/// Source: Linux `TCP_DELACK_MIN`, HZ / 25, include/net/tcp.h.
fn longest_ms(rtt: &RoundTrips, min_ms: f64) -> f64 {
    const DELAYED_ACK_MS: f64 = 40.0;
    let longer = |a: f64, b: f64| a > b * (1.0 + RESOLUTION);
    let is_level = longer(rtt.p90_ms, min_ms) && !longer(rtt.p99_ms, rtt.p90_ms);
    if is_level || rtt.max_ms - rtt.p99_ms >= DELAYED_ACK_MS { rtt.p99_ms } else { rtt.max_ms }
}

/// What a connection delivered while it had data, bits per second.
pub(crate) fn delivered(flow: &Flow) -> f64 {
    flow.facts.delivery.and_then(|delivery| delivery.rate_bps).unwrap_or_default().max(flow.goodput_bps)
}

impl Observed {
    pub(crate) fn of(flow: &Flow, series: &Series) -> Self {
        let rtt = flow.facts.rtt.as_deref();
        let losses = flow.facts.losses.as_deref();
        let data_packets = if flow.direction == Way::Down { flow.packets_down } else { flow.packets_up };
        Self {
            code: flow.verdict.code(),
            goodput_bps: flow.goodput_bps,
            seconds: seconds(&series.acked_bytes),
            rtt_min_ms: flow.rtt_min_ms,
            rtt_p50_ms: rtt.map(|rtt| rtt.p50_ms),
            rtt_p90_ms: rtt.map(|rtt| rtt.p90_ms),
            full_queue: FullQueue::of(flow),
            measured: flow.measured,
            shown_by: ShownBy::of(flow),
            data_packets: data_packets as f64,
            lost_packets: losses.map_or(0.0, |losses| losses.packets as f64),
            loss_episodes: losses.map_or(0.0, |losses| losses.episodes as f64),
        }
    }

    /// The figure that the path's rate is fitted to, for a capture that shows it by this estimate.
    pub(crate) fn shown_rate(&self, by: Option<ShownBy>) -> Option<f64> {
        by?.rate(&self.measured)
    }

    /// The part of data packets that was lost.
    pub(crate) fn loss(&self) -> f64 {
        self.lost_packets / self.data_packets.max(1.0)
    }

    /// Lost packets of a mean episode; `None` without an episode.
    pub(crate) fn episode_packets(&self) -> Option<f64> {
        (self.loss_episodes > 0.0).then(|| self.lost_packets / self.loss_episodes)
    }

    /// How long packets waited in a full queue, by the figure that shows it for a capture with this verdict.
    pub(crate) fn waits_ms(&self, code: Code) -> Option<f64> {
        Some((self.full_queue.rtt_ms(code)? - self.rtt_min_ms?).max(0.0))
    }

    /// A quantile of the goodput of whole seconds; `None` of fewer than four.
    pub(crate) fn second(&self, part: f64) -> Option<f64> {
        (self.seconds.len() >= 4).then(|| quantile(&self.seconds, part))
    }
}

/// Bits acknowledged in each whole second of a cumulative series of bytes.
fn seconds(acked: &[Point]) -> Vec<f64> {
    let (Some(first), Some(last)) = (acked.first(), acked.last()) else { return Vec::new() };
    let at = |t: f64| {
        let after = acked.partition_point(|point| point.t <= t);
        let (a, b) = (&acked[after.saturating_sub(1)], &acked[after.min(acked.len() - 1)]);
        if b.t <= a.t { a.v } else { a.v + (b.v - a.v) * ((t - a.t) / (b.t - a.t)).clamp(0.0, 1.0) }
    };
    let whole = (last.t - first.t).floor().clamp(0.0, 1e5) as usize;
    (0..whole)
        .map(|second| {
            let from = first.t + second as f64;
            ((at(from + 1.0) - at(from)) * 8.0).max(0.0)
        })
        .collect()
}

/// The value that `part` of all are not above, between neighbours in proportion; 0 of none.
pub(crate) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = part.clamp(0.0, 1.0) * (sorted.len().max(1) - 1) as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    let get = |at: usize| sorted.get(at).copied().unwrap_or_default();
    get(low) + (get(high) - get(low)) * (place - low as f64)
}

/// The median of what `figure` has of each; `None` where none has it.
pub(crate) fn median(all: &[Observed], figure: impl Fn(&Observed) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = all.iter().filter_map(figure).collect();
    (!values.is_empty()).then(|| quantile(&values, 0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_taken_between_points() {
        let points = [Point { t: 0.5, v: 0.0 }, Point { t: 1.5, v: 1000.0 }, Point { t: 3.5, v: 2000.0 }];
        assert_eq!(seconds(&points), [8000.0, 4000.0, 4000.0]);
        assert!(seconds(&points[..1]).is_empty());
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        assert_eq!(quantile(&[4.0, 1.0, 2.0, 3.0], 0.5), 2.5);
        assert_eq!((quantile(&[], 0.5), quantile(&[7.0], 0.9)), (0.0, 7.0));
    }
}
