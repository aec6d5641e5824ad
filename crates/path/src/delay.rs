//! The delay of each packet: a constant, jitter, and packets that skip it.

use crate::chance::Events;
use crate::distribution;
use crate::random::Random;
use thalweg_model::{Distribution, Jitter, PathDirection, Reorder};
use thalweg_units::{Ratio, Seed, Span};

/// netem's unit of one standard deviation. Source: net/sched/sch_netem.c, `NETEM_DIST_SCALE`.
const SCALE: i128 = 8192;
/// Scores beyond so many standard deviations count as that many, as netem's tables end there.
const SCORE_MAX: f64 = 4.0;
/// Entries of the table from scores to deviations.
const SCORES: usize = 8192;

/// Draws each packet's delay.
#[derive(Debug)]
pub(crate) struct Delay {
    pub(crate) base: Span,
    jitter: Option<Variation>,
    random: Random,
    reorder: Option<Skip>,
}

/// How delays deviate from the base.
#[derive(Debug)]
enum Variation {
    Uniform { half_width_nanos: u64 },
    Table { stddev_nanos: u64, entries: Vec<i16> },
    Correlated(Box<Process>),
}

/// A first-order autoregressive process with the normal distribution, whose scores a table turns into deviations of any
/// distribution, as the lab's program of the same purpose does.
#[derive(Debug)]
struct Process {
    correlation: f64,
    score: Option<f64>,
    normal: Vec<i16>,
    deviations_nanos: Vec<i64>,
}

/// Packets that skip the delay. Source: net/sched/sch_netem.c, `netem_enqueue`.
#[derive(Debug)]
struct Skip {
    events: Events,
    gap: u32,
    delayed: u32,
}

impl Delay {
    pub(crate) fn new(direction: &PathDirection, seed: Seed) -> Self {
        Self {
            base: direction.delay,
            jitter: direction.jitter.as_ref().map(Variation::new),
            random: Random::new(seed.derive(1)),
            reorder: direction.reorder.map(|reorder| Skip::new(reorder, seed.derive(2))),
        }
    }

    /// Whether packets may leave in another order than they came in.
    pub(crate) fn may_reorder(direction: &PathDirection) -> bool {
        direction.reorder.is_some() || direction.jitter.as_ref().is_some_and(|jitter| jitter.reorder)
    }

    /// Whether each packet has the same delay.
    pub(crate) const fn is_constant(&self) -> bool {
        self.jitter.is_none() && self.reorder.is_none()
    }

    /// The next packet's delay; `None` if it skips the delay and overtakes those that wait.
    pub(crate) fn next(&mut self) -> Option<Span> {
        if self.reorder.as_mut().is_some_and(Skip::happens) {
            return None;
        }
        let base = i64::try_from(self.base.as_nanos()).unwrap_or(i64::MAX);
        let deviation = self.jitter.as_mut().map_or(0, |variation| variation.next(&mut self.random));
        Some(Span::from_nanos(base.saturating_add(deviation).max(0).unsigned_abs()))
    }
}

impl Variation {
    fn new(jitter: &Jitter) -> Self {
        if jitter.correlation > Ratio::ZERO {
            let scores = (0..SCORES).map(|entry| (entry as f64 + 0.5) * (2.0 * SCORE_MAX / SCORES as f64) - SCORE_MAX);
            return Self::Correlated(Box::new(Process {
                correlation: jitter.correlation.get(),
                score: None,
                normal: distribution::table(&Distribution::Normal),
                deviations_nanos: distribution::deviations(jitter, scores),
            }));
        }
        let entries = distribution::table(&jitter.distribution);
        let nanos = jitter.stddev.as_nanos();
        if entries.is_empty() {
            Self::Uniform { half_width_nanos: nanos }
        } else {
            Self::Table { stddev_nanos: nanos, entries }
        }
    }

    /// The next packet's deviation in nanoseconds.
    fn next(&mut self, random: &mut Random) -> i64 {
        match self {
            Self::Uniform { half_width_nanos } => {
                random.below(half_width_nanos.saturating_mul(2)).wrapping_sub(*half_width_nanos).cast_signed()
            }
            Self::Table { stddev_nanos, entries } => {
                let entry = entries[random.below(entries.len() as u64) as usize];
                (i128::from(*stddev_nanos) * i128::from(entry) / SCALE) as i64
            }
            Self::Correlated(process) => process.next(random),
        }
    }
}

impl Process {
    fn next(&mut self, random: &mut Random) -> i64 {
        let noise = f64::from(self.normal[random.below(self.normal.len() as u64) as usize]) / SCALE as f64;
        // The first score is drawn as every other is, so the process has no beginning to see.
        let score = match self.score {
            None => noise,
            Some(last) => self.correlation * last + (1.0 - self.correlation * self.correlation).sqrt() * noise,
        };
        self.score = Some(score);
        let entry = (score + SCORE_MAX) * (SCORES as f64 / (2.0 * SCORE_MAX));
        self.deviations_nanos[(entry.max(0.0) as usize).min(SCORES - 1)]
    }
}

impl Skip {
    fn new(reorder: Reorder, seed: Seed) -> Self {
        Self { events: Events::new(reorder.chance, seed), gap: reorder.gap.max(1), delayed: 0 }
    }

    fn happens(&mut self) -> bool {
        let skips = self.delayed >= self.gap - 1 && self.events.happens();
        self.delayed = if skips { 0 } else { self.delayed.saturating_add(1) };
        skips
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_model::Chance;

    fn draw(distribution: Distribution, correlation: f64) -> Vec<f64> {
        let correlation = Ratio::new(correlation).expect("a ratio");
        let jitter = Jitter { stddev: Span::from_millis(2), distribution, reorder: true, correlation };
        let direction =
            PathDirection { delay: Span::from_millis(50), jitter: Some(jitter), ..PathDirection::default() };
        let mut delay = Delay::new(&direction, Seed::new(1));
        (0..200_000).map(|_| delay.next().expect("delayed").as_millis_f64()).collect()
    }

    /// Mean, standard deviation, and correlation of each with the next.
    fn moments(values: &[f64]) -> [f64; 3] {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        let pairs = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / count;
        [mean, variance.sqrt(), pairs / variance]
    }

    #[test]
    fn delays_have_the_mean_deviation_and_correlation_asked_for() {
        for distribution in [Distribution::Normal, Distribution::Pareto, Distribution::ParetoNormal] {
            let [mean, deviation, correlation] = moments(&draw(distribution.clone(), 0.0));
            assert!((mean - 50.0).abs() < 0.03, "{distribution:?}: {mean}");
            assert!((deviation - 2.0).abs() < 0.03, "{distribution:?}: {deviation}");
            assert!(correlation.abs() < 0.01, "{distribution:?}: {correlation}");
        }
        let uniform = draw(Distribution::Uniform, 0.0);
        assert!(uniform.iter().all(|delay| (48.0..=52.0).contains(delay)));
        assert!((moments(&uniform)[1] - 4.0 / 12f64.sqrt()).abs() < 0.02);
        let [mean, deviation, correlation] = moments(&draw(Distribution::Normal, 0.9));
        assert!((mean - 50.0).abs() < 0.1 && (deviation - 2.0).abs() < 0.05, "{mean} {deviation}");
        assert!((correlation - 0.9).abs() < 0.01, "{correlation}");
    }

    #[test]
    fn one_packet_of_the_gap_may_skip_the_delay() {
        let chance = Chance::of(Ratio::new(1.0).expect("a ratio"));
        let direction = PathDirection {
            delay: Span::from_millis(10),
            reorder: Some(Reorder { chance, gap: 3 }),
            ..PathDirection::default()
        };
        let mut delay = Delay::new(&direction, Seed::new(1));
        let skips: Vec<bool> = (0..6).map(|_| delay.next().is_none()).collect();
        assert_eq!(skips, [false, false, true, false, false, true]);
    }
}
