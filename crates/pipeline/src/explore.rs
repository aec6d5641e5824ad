//! Searches the settings of both hosts on a scenario's own path: every option alone, pairs, then whatever adds to the best.
//!
//! Nothing is taken over from one option to the next but the order of trying: each set is run as a whole. What adds less than three
//! percent is taken away again, and of several sizes the smallest that is as good is kept.

use crate::chance::meets_chance;
use crate::failure::Failure;
use crate::lab_runs::LabRuns;
use crate::observer::Observer;
use crate::remedy::{apply, merge};
use crate::score::{score, score_of_first_part};
use std::collections::BTreeMap;
use thalweg_model::{Amount, Arm, ArmReport, Experiment, Remedy, Stream, Transactions, Workload};
use thalweg_tune::options::Family;
use thalweg_units::{Bytes, Span};

/// What adds less is not worth a setting.
const ADDS: f64 = 1.03;
/// A smaller size this close to the best one is as good.
const AS_GOOD: f64 = 0.99;
/// Full-sized packets that a run may take in the first rounds, and later; a longer workload is shortened.
const PACKETS: [f64; 2] = [60_000.0, 250_000.0];
/// What a workload is shortened to at least, and in round trips.
const LEAST: Span = Span::from_millis(3_000);
const LEAST_ROUND_TRIPS: f64 = 40.0;
/// Sets that are run at greater length.
const FINALISTS: usize = 5;
/// Settings that are added to the best pair.
const ADDITIONS: usize = 4;
/// Seeds of a path whose packets meet chance: in the first rounds, and later.
const SEEDS: [u32; 2] = [2, 3];

/// Options by family and place, in order; empty is nothing changed.
type Set = Vec<(usize, usize)>;

/// What a search found.
#[derive(Debug, Default)]
pub(crate) struct Explored {
    /// The remedies of the best set, the most effective one first; empty where nothing is worth setting.
    pub(crate) best: Vec<Remedy>,
    /// The best set, then the best option of each family alone, with how many times better each is than nothing changed.
    pub(crate) tried: Vec<(Remedy, f64)>,
    /// How many sets were run.
    pub(crate) sets: usize,
}

/// A search under way.
struct Search<'a> {
    lab: &'a LabRuns<'a>,
    families: &'a [Family],
    base: Experiment,
    /// Whether `base` is the first part of a long stream.
    is_first_part: bool,
    seeds: u32,
    scores: BTreeMap<Set, f64>,
}

/// Searches for the options that make `base` fastest.
pub(crate) fn explore(
    lab: &LabRuns<'_>,
    base: &Experiment,
    families: &[Family],
    observer: &mut dyn Observer,
) -> Result<Explored, Failure> {
    let [few, more] = if meets_chance(base) { SEEDS } else { [1, 1] };
    let mut short = Search::new(lab, families, base, PACKETS[0], few);
    short.singles(observer)?;
    short.pairs(observer)?;
    short.additions(observer)?;
    let mut whole = Search::new(lab, families, base, PACKETS[1], more);
    if short.base == whole.base && few == more {
        whole.scores.clone_from(&short.scores);
    }
    let mut finalists: Vec<Set> = short.ranked().into_iter().take(FINALISTS).map(|(set, _)| set).collect();
    finalists.push(Vec::new());
    whole.run("search: longer runs", finalists, observer)?;
    let best = whole.best();
    let best = whole.pruned(best, observer)?;
    let best = whole.shrunk(best, observer)?;
    let best = whole.pruned(best, observer)?;
    let nothing = whole.score(&Vec::new());
    let worth = whole.score(&best) >= nothing * crate::remedy::WORTH;
    let mut parts = if worth { best } else { Vec::new() };
    parts.sort_by(|a, b| short.score(&vec![*b]).total_cmp(&short.score(&vec![*a])));
    let sets = short.scores.len() + whole.scores.len();
    let mut alone: Vec<Set> = (0..families.len()).map(|family| vec![short.best_of(family)]).collect();
    alone.sort_by(|a, b| short.score(b).total_cmp(&short.score(a)));
    // What a set of one setting gives is its first line.
    alone.retain(|one| parts.len() != 1 || one[0].0 != parts[0].0);
    let without = short.score(&Vec::new());
    let alone = alone.iter().filter_map(|one| Some((short.remedy(one)?, short.score(one) / without)));
    let tried =
        whole.remedy(&parts).map(|best| (best, whole.score(&sorted(&parts)) / nothing)).into_iter().chain(alone);
    Ok(Explored {
        best: parts.iter().map(|one| families[one.0].options[one.1].clone()).collect(),
        tried: tried.collect(),
        sets,
    })
}

fn sorted(set: &Set) -> Set {
    let mut set = set.clone();
    set.sort_unstable();
    set
}

impl<'a> Search<'a> {
    fn new(lab: &'a LabRuns<'a>, families: &'a [Family], whole: &Experiment, packets: f64, seeds: u32) -> Self {
        let base = shortened(whole, packets);
        Self { lab, families, is_first_part: is_first_part(&base, whole), base, seeds, scores: BTreeMap::new() }
    }

    fn score_of(&self, arm: &ArmReport) -> Option<f64> {
        if self.is_first_part { score_of_first_part(arm) } else { score(&self.base.workload, arm) }
    }

    /// The best option of a family alone, of equal ones the smallest.
    fn best_of(&self, family: usize) -> (usize, usize) {
        let scores = (0..self.families[family].options.len()).map(|option| self.score(&vec![(family, option)]));
        let best =
            scores.enumerate().fold((0, 0.0), |best, (at, score)| if score > best.1 { (at, score) } else { best });
        (family, best.0)
    }

    /// The score of a set that was run; 0 for one that has none.
    fn score(&self, set: &Set) -> f64 {
        self.scores.get(set).copied().unwrap_or_default()
    }

    fn remedy(&self, set: &Set) -> Option<Remedy> {
        merge(set.iter().map(|&(family, option)| self.families[family].options[option].clone()).collect())
    }

    /// Runs those of the sets that were not run yet.
    fn run(&mut self, title: &str, sets: Vec<Set>, observer: &mut dyn Observer) -> Result<(), Failure> {
        let mut new: Vec<Set> = sets.into_iter().filter(|set| !self.scores.contains_key(set)).collect();
        new.sort();
        new.dedup();
        if new.is_empty() {
            return Ok(());
        }
        let arms: Vec<Arm> = new
            .iter()
            .enumerate()
            .map(|(at, set)| {
                let mut experiment = self.base.clone();
                if let Some(remedy) = self.remedy(set) {
                    remedy.changes.iter().for_each(|change| apply(&mut experiment, change));
                }
                Arm::new(at.to_string(), experiment)
            })
            .collect();
        let report = self.lab.report(title, &arms, self.seeds, observer)?;
        for (at, set) in new.into_iter().enumerate() {
            // An arm that the kernel refuses, or that never ends, is worth nothing.
            let found = report.arm(&at.to_string()).and_then(|arm| self.score_of(arm));
            self.scores.insert(set, found.unwrap_or_default());
        }
        Ok(())
    }

    /// Nothing, and every option alone.
    fn singles(&mut self, observer: &mut dyn Observer) -> Result<(), Failure> {
        let mut sets = vec![Vec::new()];
        for (family, options) in self.families.iter().enumerate() {
            sets.extend((0..options.options.len()).map(|option| vec![(family, option)]));
        }
        self.run("search: one by one", sets, observer)
    }

    /// The option of a family to combine with others: the best one, of equal ones the largest, which leaves the other most room.
    fn representative(&self, family: usize) -> (usize, usize) {
        let options = 0..self.families[family].options.len();
        let most = options.clone().map(|option| self.score(&vec![(family, option)])).fold(0.0, f64::max);
        let equal = options.rev().find(|option| self.score(&vec![(family, *option)]) >= most / ADDS);
        (family, equal.unwrap_or_default())
    }

    fn pairs(&mut self, observer: &mut dyn Observer) -> Result<(), Failure> {
        let ones: Vec<(usize, usize)> = (0..self.families.len()).map(|family| self.representative(family)).collect();
        let mut sets = Vec::new();
        for (at, a) in ones.iter().enumerate() {
            sets.extend(ones[at + 1..].iter().map(|b| vec![*a, *b]));
        }
        self.run("search: two by two", sets, observer)
    }

    /// Adds to the best set, or changes one of its options, as long as that makes it better.
    fn additions(&mut self, observer: &mut dyn Observer) -> Result<(), Failure> {
        for _ in 0..ADDITIONS {
            let best = self.best();
            let before = self.score(&best);
            let mut sets = Vec::new();
            for (family, options) in self.families.iter().enumerate() {
                for option in 0..options.options.len() {
                    let mut set: Set = best.iter().copied().filter(|one| one.0 != family).collect();
                    set.push((family, option));
                    set.sort_unstable();
                    sets.push(set);
                }
            }
            self.run("search: added to the best", sets, observer)?;
            if self.score(&self.best()) < before * ADDS {
                break;
            }
        }
        Ok(())
    }

    /// Every set that was run, the best first; of equal ones the smaller.
    fn ranked(&self) -> Vec<(Set, f64)> {
        let mut ranked: Vec<(Set, f64)> = self.scores.iter().map(|(set, score)| (set.clone(), *score)).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.len().cmp(&b.0.len())));
        ranked
    }

    /// The best set; a smaller one that is within three percent of it goes before.
    fn best(&self) -> Set {
        let ranked = self.ranked();
        let most = ranked.first().map_or(0.0, |(_, score)| *score);
        let close = ranked.into_iter().take_while(|(_, score)| *score >= most / ADDS);
        close.min_by_key(|(set, _)| set.len()).map(|(set, _)| set).unwrap_or_default()
    }

    /// Takes away what adds nothing, beginning with what adds least.
    fn pruned(&mut self, mut best: Set, observer: &mut dyn Observer) -> Result<Set, Failure> {
        while !best.is_empty() {
            let without = |at: &(usize, usize)| best.iter().copied().filter(|one| one != at).collect();
            let fewer: Vec<Set> = best.iter().map(without).collect();
            self.run("search: what adds nothing", fewer.clone(), observer)?;
            let Some(next) = fewer.into_iter().max_by(|a, b| self.score(a).total_cmp(&self.score(b))) else { break };
            if self.score(&next) * ADDS < self.score(&best) {
                break;
            }
            best = next;
        }
        Ok(best)
    }

    /// Takes of each family the smallest option that is as good.
    fn shrunk(&mut self, mut best: Set, observer: &mut dyn Observer) -> Result<Set, Failure> {
        for at in 0..best.len() {
            let (family, option) = best[at];
            let with = |other: usize| {
                let mut set = best.clone();
                set[at] = (family, other);
                set
            };
            let sets: Vec<Set> = (0..self.families[family].options.len()).map(with).collect();
            self.run("search: which size", sets.clone(), observer)?;
            let most = sets.iter().map(|set| self.score(set)).fold(0.0, f64::max);
            let small = sets.iter().position(|set| self.score(set) >= most * AS_GOOD);
            best = sets[small.unwrap_or(option)].clone();
        }
        Ok(best)
    }
}

/// Whether `short` is the first part of a stream with a size in bytes, over a path whose rate is known: it takes [`LEAST`] or more then, so every
/// run of it has a steady rate.
fn is_first_part(short: &Experiment, whole: &Experiment) -> bool {
    let paths = [&short.path.down, &short.path.up];
    let is_in_bytes = matches!(&short.workload, Workload::Stream(Stream { amount: Amount::Bytes(_), .. }));
    is_in_bytes && short.workload != whole.workload && paths.iter().any(|path| path.rate.is_some())
}

/// Whether a run of the whole experiment takes no more packets than one of the search's longer runs.
pub(crate) fn is_short(experiment: &Experiment) -> bool {
    brief(experiment) == *experiment
}

/// The experiment as the search's longer runs have it.
pub(crate) fn brief(experiment: &Experiment) -> Experiment {
    shortened(experiment, PACKETS[1])
}

/// The experiment with no more packets than that, as far as its path's rate and its sizes tell.
fn shortened(experiment: &Experiment, packets: f64) -> Experiment {
    let mut short = experiment.clone();
    let rtt = experiment.path.rtt().as_secs_f64();
    let least = LEAST.as_secs_f64().max(rtt * LEAST_ROUND_TRIPS);
    let rates = [&experiment.path.down, &experiment.path.up].map(|path| path.rate);
    let rate = rates.into_iter().flatten().map(|rate| rate.bits_per_second() as f64).fold(1e6, f64::max);
    let payload = packets * 1448.0;
    let seconds = (payload * 8.0 / rate).max(least);
    let shorter = |span: &mut Span| *span = Span::from_secs_f64(span.as_secs_f64().min(seconds));
    match &mut short.workload {
        Workload::Stream(stream) => match &mut stream.amount {
            Amount::Bytes(bytes) => *bytes = Bytes::new(bytes.get().min((seconds * rate / 8.0) as u64)),
            Amount::Seconds(span) => shorter(span),
        },
        Workload::Rr(exchange) | Workload::Crr(exchange) => match &mut exchange.amount {
            Transactions::Count(count) => {
                let each = (exchange.request.get() + exchange.response.get()).max(1) as f64;
                *count = (*count).min((payload / each) as u32).max(1);
            }
            Transactions::Seconds(span) => shorter(span),
        },
        Workload::Topics(topics) => {
            let slowest = topics.topics.iter().map(|topic| topic.period.as_secs_f64()).fold(0.0, f64::max);
            topics.seconds = Span::from_secs_f64(topics.seconds.as_secs_f64().min(seconds.max(slowest * 30.0)));
        }
        Workload::Burst(_) | Workload::UdpTrain(_) | Workload::Mixed { .. } | Workload::Command(_) => {}
    }
    short
}
