//! Whether the captured connection is one that a fitted model could have had.

use super::observed::{Observed, quantile};
use thalweg_model::FitCheck;

/// The part of the runs' range that is accepted beyond either end.
const SPREAD: f64 = 0.25;

/// A figure, and the resolution it is compared with.
struct Figure {
    name: &'static str,
    of: fn(&Observed) -> Option<f64>,
    /// Part of the median, and in the figure's unit.
    resolution: (f64, f64),
}

/// The name of what was delivered.
pub(crate) const GOODPUT: &str = "goodput_bps";

/// Figures of every connection. The resolution of round trips is that of the doctor's histogram (2.2 %) and of a host's wake-up;
/// a count of episodes may be one off.
const FIGURES: [Figure; 7] = [
    Figure { name: GOODPUT, of: |seen| Some(seen.goodput_bps), resolution: (0.02, 0.0) },
    Figure { name: "second_p10_bps", of: |seen| seen.second(0.1), resolution: (0.03, 0.0) },
    Figure { name: "second_p50_bps", of: |seen| seen.second(0.5), resolution: (0.03, 0.0) },
    Figure { name: "rtt_p50_ms", of: |seen| seen.rtt_p50_ms, resolution: (0.025, 0.2) },
    Figure { name: "rtt_p90_ms", of: |seen| seen.rtt_p90_ms, resolution: (0.025, 0.2) },
    Figure { name: "loss_episodes", of: |seen| Some(seen.loss_episodes), resolution: (0.0, 1.0) },
    Figure { name: "episode_packets", of: Observed::episode_packets, resolution: (0.0, 1.0) },
];

/// Holds the capture's figures against those of the runs.
pub(crate) fn checks(capture: &Observed, runs: &[Observed]) -> Vec<FitCheck> {
    FIGURES.iter().filter_map(|figure| check(figure, capture, runs)).collect()
}

fn check(figure: &Figure, capture: &Observed, runs: &[Observed]) -> Option<FitCheck> {
    let value = (figure.of)(capture)?;
    let values: Vec<f64> = runs.iter().filter_map(figure.of).collect();
    if values.is_empty() {
        return None;
    }
    let (low, high) = (quantile(&values, 0.0), quantile(&values, 1.0));
    let median = quantile(&values, 0.5);
    // Of 16 runs one more lies outside of their range in 2 of 17 cases, in one figure alone: with a quarter of the range to either side,
    // seldom. Rates and counts spread by factors, so the range is one of logarithms.
    let (part, unit) = figure.resolution;
    let one = unit.max(f64::MIN_POSITIVE);
    let room = ((high + one) / (low + one)).ln() * SPREAD;
    let least = ((low + one) * (-room).exp() - one) * (1.0 - part) - unit;
    let most = ((high + one) * room.exp() - one) * (1.0 + part) + unit;
    let least = least.max(0.0);
    let inside = (least..=most).contains(&value);
    Some(FitCheck { figure: figure.name.to_owned(), capture: value, median, least, most, inside })
}

/// The part of runs with the capture's verdict.
pub(crate) fn same_verdict(capture: &Observed, runs: &[Observed]) -> f64 {
    let same = runs.iter().filter(|run| run.code == capture.code).count();
    same as f64 / runs.len().max(1) as f64
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::observed::FullQueue;
    use super::*;

    pub(crate) fn seen(goodput_bps: f64, loss_episodes: f64) -> Observed {
        Observed {
            code: thalweg_model::Code::RandomLoss,
            goodput_bps,
            seconds: Vec::new(),
            rtt_min_ms: None,
            rtt_p50_ms: None,
            rtt_p90_ms: None,
            full_queue: FullQueue::default(),
            measured: thalweg_model::Measured::default(),
            shown_by: None,
            data_packets: 1000.0,
            lost_packets: loss_episodes,
            loss_episodes,
        }
    }

    #[test]
    fn a_figure_far_from_every_run_is_outside_and_alone() {
        let runs: Vec<Observed> = (0..16).map(|at| seen(10e6 + f64::from(at) * 1e5, f64::from(at % 4))).collect();
        let inside =
            |capture| checks(&capture, &runs).into_iter().map(|check| (check.figure, check.inside)).collect::<Vec<_>>();
        assert!(inside(seen(10.7e6, 2.0)).iter().all(|(_, inside)| *inside));
        assert!(inside(seen(9.75e6, 0.0)).iter().all(|(_, inside)| *inside), "a little below all of them");
        let far = inside(seen(6e6, 2.0));
        assert_eq!(
            far.iter().filter(|(_, inside)| !inside).map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["goodput_bps"]
        );
        let many = inside(seen(10.7e6, 9.0));
        assert!(many.iter().any(|(name, inside)| name == "loss_episodes" && !inside), "{many:?}");
    }
}
