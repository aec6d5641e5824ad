//! The figures of a captured connection that a fitted model has to have, too.

use thalweg_model::{Code, Flow, Point, RoundTrips, Series, Way};

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
    pub(crate) rtt_max_ms: Option<f64>,
    pub(crate) capacity_bps: Option<f64>,
    pub(crate) fastest_bps: Option<f64>,
    pub(crate) shown_by: Option<ShownBy>,
    pub(crate) window_max_bytes: f64,
    pub(crate) data_packets: f64,
    pub(crate) lost_packets: f64,
    pub(crate) loss_episodes: f64,
}

/// Which estimate shows the path's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShownBy {
    /// The doctor's estimate of the capacity.
    Capacity,
    /// The fastest trains.
    FastestTrains,
}

/// The fastest trains are right if a train takes this long at least: clocks, and cards that gather packets for 50 to 125 µs before they
/// interrupt, make shorter ones seem faster. At 3 Gb/s a train of 16 segments takes 62 µs, and the fastest are up to 15 % too fast.
const TRAIN_LEAST_S: f64 = 250e-6;
const TRAIN_SEGMENTS: u64 = 16;
/// A limit is one where the path carries this much more. Closer together the two cannot be told apart: the labelled set of the verdicts has no
/// cases nearer either (`CLEAR`, `tests/labelled/causes.rs`).
pub(crate) const LIMIT_BELOW_PATH: f64 = 1.15;

impl ShownBy {
    /// The estimate for a connection; `None` where none is more than what a host lets out.
    pub(crate) fn of(flow: &Flow) -> Option<Self> {
        let code = flow.verdict.code();
        if !code.is_host_limit() {
            return Some(Self::Capacity);
        }
        let train_bits = (TRAIN_SEGMENTS * flow.measured.segment_bytes * 8) as f64;
        let long = flow.measured.fastest_bps.is_some_and(|fastest| train_bits >= fastest * TRAIN_LEAST_S);
        let order = if long { [Self::FastestTrains, Self::Capacity] } else { [Self::Capacity, Self::FastestTrains] };
        // What a program paces comes at its rate, in trains of any length.
        let least = flow.goodput_bps * LIMIT_BELOW_PATH;
        let shows = |by: &Self| {
            by.rate(flow.measured.capacity_bps, flow.measured.fastest_bps).is_some_and(|rate| rate >= least)
        };
        order.into_iter().find(|by| code != Code::PacingRate && shows(by))
    }

    pub(crate) fn rate(self, capacity_bps: Option<f64>, fastest_bps: Option<f64>) -> Option<f64> {
        match self {
            Self::Capacity => capacity_bps,
            Self::FastestTrains => fastest_bps,
        }
    }
}

/// The longest round trip that is a queue's: a single one that is longer by the time for which an acknowledgement is delayed is none.
///
/// Source: Linux `TCP_DELACK_MIN`, HZ / 25, include/net/tcp.h.
pub(crate) fn longest_ms(rtt: &RoundTrips) -> f64 {
    const DELAYED_ACK_MS: f64 = 40.0;
    if rtt.max_ms - rtt.p99_ms >= DELAYED_ACK_MS { rtt.p99_ms } else { rtt.max_ms }
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
            rtt_max_ms: rtt.map(longest_ms),
            capacity_bps: flow.measured.capacity_bps,
            fastest_bps: flow.measured.fastest_bps,
            shown_by: ShownBy::of(flow),
            window_max_bytes: flow.measured.window_max_bytes as f64,
            data_packets: data_packets as f64,
            lost_packets: losses.map_or(0.0, |losses| losses.packets as f64),
            loss_episodes: losses.map_or(0.0, |losses| losses.episodes as f64),
        }
    }

    /// The figure that the path's rate is fitted to, for a capture that shows it by this estimate.
    pub(crate) fn shown_rate(&self, by: Option<ShownBy>) -> Option<f64> {
        by?.rate(self.capacity_bps, self.fastest_bps)
    }

    /// The part of data packets that was lost.
    pub(crate) fn loss(&self) -> f64 {
        self.lost_packets / self.data_packets.max(1.0)
    }

    /// Lost packets of a mean episode; `None` without an episode.
    pub(crate) fn episode_packets(&self) -> Option<f64> {
        (self.loss_episodes > 0.0).then(|| self.lost_packets / self.loss_episodes)
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
