//! Events with a probability, each correlated with the one before.

use crate::random::Random;
use thalweg_model::Chance;
use thalweg_units::Seed;

/// A sequence of random events.
///
/// Correlation is netem's: a uniform number is mixed with the one before, which makes the events rarer than the probability.
/// Source: net/sched/sch_netem.c, `get_crandom`.
#[derive(Debug)]
pub(crate) struct Events {
    chance: Chance,
    random: Random,
    last: f64,
}

impl Events {
    pub(crate) const fn new(chance: Chance, seed: Seed) -> Self {
        Self { chance, random: Random::new(seed), last: 0.0 }
    }

    /// Whether the next event happens.
    pub(crate) fn happens(&mut self) -> bool {
        let (probability, correlation) = (self.chance.probability.get(), self.chance.correlation.get());
        if correlation == 0.0 {
            return self.random.unit() < probability;
        }
        self.last = self.random.unit() * (1.0 - correlation) + self.last * correlation;
        self.last < probability
    }
}
