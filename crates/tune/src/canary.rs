//! Whether a share of connections with other settings fares better or worse than the rest, judged again and again while they come.
//!
//! An ordinary confidence interval that is looked at many times is wrong more often than it says. These intervals hold at all times at
//! once: they come from a mixture of sequential probability ratio tests. Source: Johari, Koomen, Pekelis and Walsh, "Peeking at A/B
//! Tests" (KDD 2017), eq. 6 and 7. Steps with other shares are compared each within itself, since the time of day changes both arms.

/// A number of connections, and a figure of each: how many, the sum, the sum of squares.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sample {
    /// Connections.
    pub count: f64,
    /// Sum of the figure.
    pub sum: f64,
    /// Sum of its squares.
    pub squares: f64,
}

impl Sample {
    /// Of `count` connections, the ones that have a property.
    #[must_use]
    pub fn of_share(count: u64, with: u64) -> Self {
        Self { count: count as f64, sum: with as f64, squares: with as f64 }
    }

    /// The mean; 0 of nothing.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count > 0.0 { self.sum / self.count } else { 0.0 }
    }

    /// The variance of the mean.
    fn variance_of_mean(&self) -> f64 {
        let (mean, one_less) = (self.mean(), (self.count - 1.0).max(1.0));
        ((self.squares - self.count * mean * mean) / one_less).max(0.0) / self.count.max(1.0)
    }

    fn plus(self, other: &Self) -> Self {
        Self { count: self.count + other.count, sum: self.sum + other.sum, squares: self.squares + other.squares }
    }
}

/// A figure in one step of the trial: of the connections without the settings, then of those with them.
pub type Step = [Sample; 2];

/// By how much the settings change a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// The figure without the settings, over all steps.
    pub without: f64,
    /// By how much it is larger with them.
    pub difference: f64,
    /// Where that lies at all times at once, with the probability that was asked for.
    pub interval: (f64, f64),
    /// Connections without and with them.
    pub connections: [u64; 2],
}

impl Effect {
    /// Whether the figure is certainly larger with the settings.
    #[must_use]
    pub fn is_larger(&self) -> bool {
        self.interval.0 > 0.0
    }

    /// Whether it is certainly smaller.
    #[must_use]
    pub fn is_smaller(&self) -> bool {
        self.interval.1 < 0.0
    }
}

/// Connections of an arm from which on the mean is taken for normally distributed: the usual rule of thumb for the central limit theorem.
const ENOUGH: f64 = 30.0;
/// Stands for a variance of nothing, so that nothing is divided by zero.
const LEAST: f64 = 1e-30;

/// The effect over all steps; `None` until a step has enough connections in both arms. `scale` is the size of an effect that matters: around
/// it the intervals are narrowest. `error` is the probability of an interval that is wrong at any time.
#[must_use]
pub fn effect(steps: &[Step], scale: impl Fn(f64) -> f64, error: f64) -> Option<Effect> {
    let all = steps.iter().fold([Sample::default(); 2], |all, step| [all[0].plus(&step[0]), all[1].plus(&step[1])]);
    let without = all[0].mean();
    let (mut weights, mut weighted) = (0.0, 0.0);
    for [control, set] in steps.iter().filter(|step| step.iter().all(|arm| arm.count >= ENOUGH)) {
        // One figure for all connections has no variance; then the least difference that could be detected is taken.
        let least = (scale(without) * 1e-3).powi(2).max(LEAST);
        let weight = 1.0 / (control.variance_of_mean() + set.variance_of_mean()).max(least);
        weights += weight;
        weighted += weight * (set.mean() - control.mean());
    }
    if weights == 0.0 {
        return None;
    }
    let (difference, variance) = (weighted / weights, 1.0 / weights);
    let mixing = scale(without).powi(2).max(LEAST);
    let sum = variance + mixing;
    let half = (2.0 * variance * sum / mixing * ((1.0 / error).ln() + 0.5 * (sum / variance).ln())).sqrt();
    let connections = all.map(|arm| arm.count as u64);
    Some(Effect { without, difference, interval: (difference - half, difference + half), connections })
}

/// What a trial says so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Neither is certain.
    Undecided,
    /// The first bytes come sooner, and that is certain.
    Gain,
    /// They come later; or more connections resend and the first bytes do not come sooner.
    Harm,
}

impl Outcome {
    /// Judges the time to the first bytes, and the share of connections that had resent something by then.
    #[must_use]
    pub fn of(time: Option<&Effect>, resent: Option<&Effect>) -> Self {
        let Some(time) = time else { return Self::Undecided };
        if time.is_larger() || resent.is_some_and(Effect::is_larger) && !time.is_smaller() {
            Self::Harm
        } else if time.is_smaller() {
            Self::Gain
        } else {
            Self::Undecided
        }
    }

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Undecided => "undecided",
            Self::Gain => "gain",
            Self::Harm => "harm",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers between 0 and 1, the same in every run (SplitMix64).
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }

        /// A time whose logarithm is about normal, as times to the first bytes are: 1 in the middle, most within 0.5 and 2.
        fn time(&mut self) -> f64 {
            let normal = (0..12).map(|_| self.next()).sum::<f64>() - 6.0;
            (0.35 * normal).exp()
        }
    }

    fn add(sample: &mut Sample, figure: f64) {
        *sample = sample.plus(&Sample { count: 1.0, sum: figure, squares: figure * figure });
    }

    /// A trial in three steps of 20, 30 and 40 % with `each` connections, looked at after every hundred; `factor` is what the settings do.
    /// In the second step everything takes twice as long. The outcome where it first is certain.
    fn trial(seed: u64, each: usize, factor: f64) -> Outcome {
        let mut numbers = Numbers(seed);
        let mut steps: Vec<Step> = Vec::new();
        for (share, pace) in [(0.2, 1.0), (0.3, 2.0), (0.4, 1.0)] {
            steps.push(Step::default());
            for count in 1..=each {
                let is_set = numbers.next() < share;
                let time = numbers.time() * pace * if is_set { factor } else { 1.0 };
                let last = steps.len() - 1;
                add(&mut steps[last][usize::from(is_set)], time);
                let found = effect(&steps, |mean| mean * 0.1, 0.05).filter(|_| count % 100 == 0);
                match Outcome::of(found.as_ref(), None) {
                    Outcome::Undecided => {}
                    certain => return certain,
                }
            }
        }
        Outcome::Undecided
    }

    fn trials(each: usize, factor: f64) -> [usize; 3] {
        let mut found = [0; 3];
        for seed in 0..200 {
            found[trial(seed * 7_919, each, factor) as usize] += 1;
        }
        found
    }

    #[test]
    fn settings_that_do_nothing_are_rarely_taken_for_gain_or_harm() {
        let [undecided, gain, harm] = trials(2_000, 1.0);
        assert!(gain + harm <= 10, "{undecided} {gain} {harm}");
    }

    #[test]
    fn a_tenth_is_found_either_way() {
        let [_, gain, harm] = trials(2_000, 0.9);
        assert!(gain >= 190 && harm == 0, "{gain} {harm}");
        let [_, gain, harm] = trials(2_000, 1.1);
        assert!(harm >= 190 && gain == 0, "{gain} {harm}");
    }

    #[test]
    fn more_resending_without_gain_is_harm() {
        let share = |without: u64, with: u64| {
            effect(&[[Sample::of_share(1_000, without), Sample::of_share(1_000, with)]], |_| 0.01, 0.05)
        };
        let even = effect(&[[Sample::of_share(1_000, 500), Sample::of_share(1_000, 500)]], |mean| mean * 0.1, 0.05);
        assert_eq!(Outcome::of(even.as_ref(), share(20, 25).as_ref()), Outcome::Undecided);
        assert_eq!(Outcome::of(even.as_ref(), share(20, 120).as_ref()), Outcome::Harm);
        assert_eq!(Outcome::of(None, share(20, 120).as_ref()), Outcome::Undecided);
    }

    #[test]
    fn few_connections_and_equal_figures_are_no_panic() {
        assert_eq!(effect(&[], |mean| mean, 0.05), None);
        let few = Sample { count: 3.0, sum: 3.0, squares: 3.0 };
        assert_eq!(effect(&[[few; 2]], |mean| mean, 0.05), None);
        let equal = Sample { count: 100.0, sum: 100.0, squares: 100.0 };
        let found = effect(&[[equal; 2]], |mean| mean * 0.1, 0.05).expect("an effect");
        assert!(found.difference == 0.0 && !found.is_larger() && !found.is_smaller(), "{found:?}");
        let none = effect(&[[Sample { count: 100.0, sum: 0.0, squares: 0.0 }; 2]], |mean| mean * 0.1, 0.05);
        assert!(none.is_some_and(|none| none.interval.0.is_finite()), "{none:?}");
    }
}
