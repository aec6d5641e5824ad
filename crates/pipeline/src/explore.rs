//! Searches the settings of both hosts on a scenario's own path: every option alone, pairs, then whatever adds to the best.
//!
//! Nothing is taken over from one option to the next but the order of trying: each set is run as a whole. What adds less than three
//! percent is taken away again, and of several sizes the smallest that is as good is kept.

use crate::chance::meets_chance;
use crate::failure::Failure;
use crate::lab_runs::LabRuns;
use crate::observer::Observer;
use crate::remedy::{apply, merge};
use crate::score::{score, score_of_first_part, worse};
use std::collections::BTreeMap;
use thalweg_model::{Amount, Arm, ArmReport, Change, Experiment, Remedy, Stream, Transactions, Workload};
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
/// Sets that are run at greater length, besides those without a family of the best.
const FINALISTS: usize = 4;
/// Sets with one option more than the best that are run at greater length.
const SUPERSETS: usize = 3;
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
    families: Vec<Family>,
    base: Experiment,
    /// Whether `base` is the first part of a long stream.
    is_first_part: bool,
    seeds: u32,
    scores: BTreeMap<Set, f64>,
    /// The run with nothing changed, once there is one.
    as_found: Option<ArmReport>,
}

/// What else can matter on an experiment, by a run of it.
pub(crate) type Further<'a> = dyn FnMut(&Experiment, &mut dyn Observer) -> Result<Vec<Family>, Failure> + 'a;

/// Searches for the options that make `base` fastest. What the first best set uncovers, `further` proposes.
pub(crate) fn explore(
    lab: &LabRuns<'_>,
    base: &Experiment,
    families: &[Family],
    further: &mut Further<'_>,
    observer: &mut dyn Observer,
) -> Result<Explored, Failure> {
    let [few, more] = if meets_chance(base) { SEEDS } else { [1, 1] };
    let mut short = Search::new(lab, families.to_vec(), base, PACKETS[0], few);
    short.singles(observer)?;
    short.pairs(observer)?;
    short.additions(observer)?;
    short.widened(further, observer)?;
    let mut whole = Search::new(lab, short.families.clone(), base, PACKETS[1], more);
    if short.base == whole.base && few == more {
        whole.scores.clone_from(&short.scores);
        whole.as_found.clone_from(&short.as_found);
    }
    whole.run("search: longer runs", short.finalists(), observer)?;
    let best = whole.best();
    whole.run("search: added to the best", short.supersets(&best), observer)?;
    let best = whole.best();
    let best = whole.pruned(best, observer)?;
    let best = whole.shrunk(best, observer)?;
    let best = whole.pruned(best, observer)?;
    let best = whole.trimmed(best, observer)?;
    let worth = whole.score(&best) >= whole.score(&Vec::new()) * crate::remedy::WORTH;
    let mut parts = if worth { best } else { Vec::new() };
    // All ratios that are listed are of runs of one length.
    short.families.clone_from(&whole.families);
    short.run("search: the best set", vec![parts.clone()], observer)?;
    let sets = short.scores.len() + whole.scores.len();
    let chosen = short.remedy(&parts).map(|best| (best, short.gain(&parts)));
    parts.sort_by(|a, b| short.score(&vec![*b]).total_cmp(&short.score(&vec![*a])));
    let mut alone: Vec<Set> = (0..families.len()).map(|family| vec![short.best_of(family)]).collect();
    alone.sort_by(|a, b| short.score(b).total_cmp(&short.score(a)));
    // What a set of one setting gives is its first line.
    alone.retain(|one| parts.len() != 1 || one[0].0 != parts[0].0);
    let alone = alone.iter().filter_map(|one| Some((short.remedy(one)?, short.gain(one))));
    Ok(Explored {
        best: parts.iter().map(|one| whole.families[one.0].options[one.1].clone()).collect(),
        tried: chosen.into_iter().chain(alone).collect(),
        sets,
    })
}

impl<'a> Search<'a> {
    fn new(lab: &'a LabRuns<'a>, families: Vec<Family>, whole: &Experiment, packets: f64, seeds: u32) -> Self {
        let base = shortened(whole, packets);
        let is_first_part = is_first_part(&base, whole);
        Self { lab, families, is_first_part, base, seeds, scores: BTreeMap::new(), as_found: None }
    }

    /// How good a run was. One that makes a figure worse than as found by more than is tolerable is no better than nothing changed, however much
    /// the other figures gain.
    fn score_of(&self, arm: &ArmReport) -> Option<f64> {
        if self.is_first_part {
            return score_of_first_part(arm);
        }
        let own = score(&self.base.workload, arm)?;
        let Some(worse) = self.as_found.as_ref().and_then(|found| worse(&self.base.workload, found, arm)) else {
            return Some(own);
        };
        Some(own.min(self.score(&Vec::new())) / worse)
    }

    /// How many times better a set is than nothing changed; not finite where that moves nothing.
    fn gain(&self, set: &Set) -> f64 {
        self.score(set) / self.score(&Vec::new())
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

    /// The experiment with a set laid over it.
    fn with(&self, set: &Set) -> Experiment {
        let mut experiment = self.base.clone();
        let changes = self.remedy(set).map(|remedy| remedy.changes).unwrap_or_default();
        changes.iter().for_each(|change| apply(&mut experiment, change));
        experiment
    }

    /// Runs those of the sets that were not run yet.
    fn run(&mut self, title: &str, sets: Vec<Set>, observer: &mut dyn Observer) -> Result<(), Failure> {
        let mut new: Vec<Set> = sets.into_iter().filter(|set| !self.scores.contains_key(set)).collect();
        new.sort();
        new.dedup();
        if new.is_empty() {
            return Ok(());
        }
        let arms: Vec<Arm> = new.iter().enumerate().map(|(at, set)| Arm::new(at.to_string(), self.with(set))).collect();
        let report = self.lab.report(title, &arms, self.seeds, observer)?;
        if let Some(at) = new.iter().position(Vec::is_empty) {
            self.as_found = report.arm(&at.to_string()).cloned();
        }
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

    /// Looks at a run of the best set for what it uncovers: causes that another limit hid. Settings that no family has yet are tried, too.
    fn widened(&mut self, further: &mut Further<'_>, observer: &mut dyn Observer) -> Result<(), Failure> {
        let best = self.best();
        if best.is_empty() {
            return Ok(());
        }
        let known = |change: &Change| {
            let mut options = self.families.iter().flat_map(|family| &family.options);
            options.any(|option| option.changes.iter().any(|one| one.is_of_same(change)))
        };
        let mut new = further(&self.with(&best), observer)?;
        new.iter_mut().for_each(|family| family.options.retain(|option| !option.changes.iter().any(known)));
        new.retain(|family| !family.options.is_empty());
        if new.is_empty() {
            return Ok(());
        }
        self.families.extend(new);
        self.singles(observer)?;
        self.additions(observer)
    }

    /// What is run at greater length: the best sets, for each family of the best one the best set without it, and nothing.
    fn finalists(&self) -> Vec<Set> {
        let ranked = self.ranked();
        let mut finalists: Vec<Set> = ranked.iter().take(FINALISTS).map(|(set, _)| set.clone()).collect();
        for (family, _) in ranked.first().map(|(set, _)| set.clone()).unwrap_or_default() {
            let mut without = ranked.iter().filter(|(set, _)| set.iter().all(|one| one.0 != family));
            finalists.extend(without.next().map(|(set, _)| set.clone()));
        }
        finalists.push(Vec::new());
        finalists
    }

    /// The best sets that hold all of `set` and one option more.
    fn supersets(&self, set: &Set) -> Vec<Set> {
        let one_more = |other: &Set| other.len() == set.len() + 1 && set.iter().all(|one| other.contains(one));
        let as_good = self.score(set) / ADDS;
        let larger = self.ranked().into_iter().filter(|(other, score)| one_more(other) && *score >= as_good);
        larger.map(|(other, _)| other).take(SUPERSETS).collect()
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

    /// Takes single changes away from options that have several, such as one of both hosts, where that costs nothing.
    fn trimmed(&mut self, mut best: Set, observer: &mut dyn Observer) -> Result<Set, Failure> {
        for at in 0..best.len() {
            loop {
                let (family, option) = best[at];
                let whole = self.families[family].options[option].clone();
                if whole.changes.len() < 2 {
                    break;
                }
                let mut sets = Vec::new();
                for leave in 0..whole.changes.len() {
                    let mut fewer = whole.clone();
                    fewer.changes.remove(leave);
                    let mut set = best.clone();
                    set[at] = (family, self.families[family].options.len());
                    self.families[family].options.push(fewer);
                    sets.push(set);
                }
                self.run("search: what adds nothing", sets.clone(), observer)?;
                let next = sets.into_iter().max_by(|a, b| self.score(a).total_cmp(&self.score(b)));
                match next.filter(|next| self.score(next) >= self.score(&best) * AS_GOOD) {
                    Some(next) => best = next,
                    None => break,
                }
            }
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
