//! Random and listed losses.

use crate::chance::Events;
use crate::random::Random;
use thalweg_model::{Counted, Loss};
use thalweg_units::{Ratio, Seed};

/// Random loss.
#[derive(Debug)]
pub(crate) enum LossModel {
    None,
    Random(Events),
    GilbertElliott(GilbertElliott),
}

/// The two-state Markov chain. Source: net/sched/sch_netem.c, `loss_gilb_ell`.
#[derive(Debug)]
pub(crate) struct GilbertElliott {
    bad_from_good: Ratio,
    good_from_bad: Ratio,
    passes_in_bad: Ratio,
    passes_in_good: Ratio,
    is_bad: bool,
    random: Random,
}

impl LossModel {
    /// The model; a list of losses is [`ListedLosses`].
    pub(crate) fn new(loss: &Loss, seed: Seed) -> Self {
        match *loss {
            Loss::None | Loss::List { .. } => Self::None,
            Loss::Random(chance) => Self::Random(Events::new(chance, seed)),
            Loss::GilbertElliott { p, r, h, k } => Self::GilbertElliott(GilbertElliott {
                bad_from_good: p,
                good_from_bad: r,
                passes_in_bad: h,
                passes_in_good: k,
                is_bad: false,
                random: Random::new(seed),
            }),
        }
    }

    /// Whether the next packet is lost.
    pub(crate) fn loses(&mut self) -> bool {
        match self {
            Self::None => false,
            Self::Random(events) => events.happens(),
            Self::GilbertElliott(chain) => chain.loses(),
        }
    }
}

impl GilbertElliott {
    fn loses(&mut self) -> bool {
        let (leaves, passes) = if self.is_bad {
            (self.good_from_bad, self.passes_in_bad)
        } else {
            (self.bad_from_good, self.passes_in_good)
        };
        // netem too decides by the state before the step.
        if self.random.unit() < leaves.get() {
            self.is_bad = !self.is_bad;
        }
        self.random.unit() >= passes.get()
    }
}

/// Losses by number.
#[derive(Debug)]
pub(crate) struct ListedLosses {
    of: Counted,
    numbers: Vec<u64>,
    counted: u64,
    /// How many of `numbers` are over.
    passed: usize,
}

impl ListedLosses {
    /// The list, if the loss is one.
    pub(crate) fn new(loss: &Loss) -> Option<Self> {
        let Loss::List { of, numbers } = loss else { return None };
        Some(Self { of: *of, numbers: numbers.clone(), counted: 0, passed: 0 })
    }

    /// Counts a packet and returns whether its number is listed; `has_tcp_payload` is whether it is a TCP segment with data.
    pub(crate) fn loses(&mut self, has_tcp_payload: bool) -> bool {
        if self.of == Counted::Segments && !has_tcp_payload {
            return false;
        }
        self.counted += 1;
        while self.numbers.get(self.passed).is_some_and(|number| *number < self.counted) {
            self.passed += 1;
        }
        self.numbers.get(self.passed) == Some(&self.counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_model::Chance;

    fn ratio(ratio: f64) -> Ratio {
        Ratio::new(ratio).expect("a ratio")
    }

    /// Part of packets lost, and the mean number lost in a row.
    fn measure(loss: &Loss) -> (f64, f64) {
        let mut model = LossModel::new(loss, Seed::new(3));
        let (mut lost, mut bursts, mut before) = (0u32, 0u32, false);
        for _ in 0..400_000 {
            let now = model.loses();
            lost += u32::from(now);
            bursts += u32::from(now && !before);
            before = now;
        }
        (f64::from(lost) / 400_000.0, f64::from(lost) / f64::from(bursts.max(1)))
    }

    #[test]
    fn independent_loss_has_its_probability_and_no_bursts() {
        let (part, burst) = measure(&Loss::random(ratio(0.05)));
        assert!((part - 0.05).abs() < 0.002, "{part}");
        assert!((burst - 1.0 / 0.95).abs() < 0.02, "{burst}");
        assert_eq!(measure(&Loss::None).0, 0.0);
        assert_eq!(measure(&Loss::random(ratio(1.0))).0, 1.0);
    }

    #[test]
    fn gilbert_elliott_loses_in_bursts() {
        // In the bad state p/(p+r) = 1/11 of the time, for 1/r = 10 packets at a time.
        let (part, burst) =
            measure(&Loss::GilbertElliott { p: ratio(0.01), r: ratio(0.1), h: ratio(0.0), k: ratio(1.0) });
        assert!((part - 1.0 / 11.0).abs() < 0.005, "{part}");
        assert!((burst - 10.0).abs() < 0.5, "{burst}");
    }

    #[test]
    fn correlated_loss_comes_in_bursts_and_is_rarer() {
        let chance = Chance { probability: ratio(0.3), correlation: ratio(0.5) };
        let (part, burst) = measure(&Loss::Random(chance));
        assert!(part < 0.3, "{part}");
        assert!(burst > 1.0 / (1.0 - part) * 1.3, "{burst}");
    }

    #[test]
    fn a_list_counts_what_it_is_of() {
        let list = |of| ListedLosses::new(&Loss::List { of, numbers: vec![2, 3, 5] }).expect("a list");
        let mut packets = list(Counted::Packets);
        let lost: Vec<bool> = (0..6).map(|_| packets.loses(false)).collect();
        assert_eq!(lost, [false, true, true, false, true, false]);
        let mut segments = list(Counted::Segments);
        let lost: Vec<bool> = [true, false, true, false, true].map(|data| segments.loses(data)).to_vec();
        assert_eq!(lost, [false, false, true, false, true]);
    }
}
