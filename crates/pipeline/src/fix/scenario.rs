//! A scenario's first arm: run as found, diagnose, search the settings of both hosts, prove the best set.

use super::hung::hung;
use super::known_path::as_the_path_is;
use super::proof::{Fixed, prove};
use super::work;
use crate::arm_findings::ArmFindings;
use crate::bench::{Bench, Ran};
use crate::chance::meets_chance;
use crate::explore::{Explored, brief, explore, is_short};
use crate::failure::Failure;
use crate::lab_runs::LabRuns;
use crate::observer::Observer;
use crate::remedy::{AS_FOUND, WORTH, apply, congestion_control, figure, merge, name, names, value};
use crate::rival::rival;
use crate::score::{figures, has_tcp, score, worse};
use thalweg_lab::LabArm;
use thalweg_model::{
    Arm, ArmReport, Between, Candidate, Change, Code, DiagnosisLine, Discipline, Experiment, FixFigure, FixReport,
    LabReport, PathDirection, Rejected, Remedy, Rival, Setting, Way, Workload,
};
use thalweg_tune::options::Family;
use thalweg_units::Span;

/// Seeds of the proof, where chance decides: as many pairs as tell a difference from noise. An experiment with very many packets has fewer.
const PROOF_SEEDS: [u32; 2] = [6, 2];
/// Sets that are proved one after the other while each makes a figure worse; then nothing is proposed.
const PROOFS_MAX: usize = 3;
/// What the lab says of a connection that its kernel gave up. Source: `ETIMEDOUT`, tcp(7).
const TIMED_OUT: &str = "Connection timed out";
/// Sets of settings that the report lists.
const LISTED: usize = 12;
/// The share of time from which on a cause besides the first is named.
const NAMED_SHARE: f64 = 0.05;

/// Finds what slows the first arm of `bench`'s scenario, and proves what mends it. With `own_path` what a remedy takes from a CUBIC flow is not
/// weighed.
///
/// # Errors
/// Several kernels; a workload without TCP; what the lab refuses.
pub fn scenario(bench: &Bench, own_path: bool, observer: &mut dyn Observer) -> Result<Fixed, Failure> {
    let [(_, engine)] = bench.engines.as_slice() else {
        return Err(Failure::user(format!("fix takes one kernel, not {}", bench.engines.len()))
            .hint("choose one by --kernel; lab run compares several"));
    };
    let base = &bench.scenario.arms[0].experiment;
    if !has_tcp(&base.workload) {
        return Err(Failure::user(format!(
            "'{}' has no TCP connection that could be fixed: its workload is UDP",
            bench.scenario.name
        ))
        .hint("thalweg lab run measures it; fix searches settings of TCP"));
    }
    observer.note(&format!("running '{}' as found on Linux {}", bench.scenario.name, engine.release()));
    bench.note_vain_settings(observer);
    let as_found = LabArm { arm: Arm::new(AS_FOUND, base.clone()), engine: engine.clone() };
    let first = match prove(bench, &[as_found], 1, observer) {
        Err(failure) if failure.cause().contains(TIMED_OUT) => {
            return hung(bench, &bench.lab_runs(engine), TIMED_OUT, observer)?.ok_or(failure);
        }
        first => first?,
    };
    let mut found = first.findings.into_iter().next().flatten();
    let arm = &first.report.arms[0];
    if let Some(found) = &mut found {
        as_the_path_is(&mut found.lines, base, found.flow.direction, arm);
    }
    let mut families = work::families(engine.release(), base, arm, found.as_ref());
    let cause = found.as_ref().and_then(|found| found.lines.first().map(|line| line.code));
    observer.note(&format!(
        "{}searching {} settings and their combinations",
        cause.map(|cause| format!("cause: {cause}; ")).unwrap_or_default(),
        families.iter().map(|family| family.options.len()).sum::<usize>()
    ));
    let lab = bench.lab_runs(engine);
    let direction = found.as_ref().map_or(Way::Down, |found| found.flow.direction);
    let Proven { considered, arms, proof, refuted } =
        proven(bench, &lab, (base, direction), &mut families, own_path, observer)?;
    let Considered { explored, rival, rejected } = considered;
    let mut report = conclude(base, proof.report, found.as_ref(), explored);
    report.rival = rival.filter(|_| report.remedy.is_some());
    report.rejected = rejected;
    report.notes.splice(0..0, refuted);
    say_if_nothing(&mut report);
    if std::iter::once(&report.cause).chain(&report.also).any(|line| line.code == Code::Bufferbloat) {
        let best = arms.last().filter(|_| report.remedy.is_some()).map_or(base, |arm| &arm.arm.experiment);
        report.notes.extend(queue_management(bench, &lab, base, best, observer)?);
    }
    Ok(Fixed { report, findings: proof.findings })
}

/// The best set of a search, and the runs that prove it or do not.
struct Proven {
    considered: Considered,
    arms: Vec<LabArm>,
    proof: Ran,
    /// Why sets are not proposed that searches found.
    refuted: Vec<String>,
}

/// Searches, and proves what that finds; again without what makes a figure worse in the proof, as another set may gain nearly as much.
fn proven(
    bench: &Bench,
    lab: &LabRuns<'_>,
    (base, direction): (&Experiment, Way),
    families: &mut Vec<Family>,
    own_path: bool,
    observer: &mut dyn Observer,
) -> Result<Proven, Failure> {
    let (mut refuted, mut rejected, mut left_out): (Vec<String>, Vec<Rejected>, Vec<Remedy>) = Default::default();
    loop {
        let mut considered = considerate(lab, base, direction, families, (own_path, &left_out), observer)?;
        let lab_arm = |(name, remedies): (String, Vec<Remedy>)| {
            let mut experiment = base.clone();
            let changes = merge(remedies).map(|remedy| remedy.changes).unwrap_or_default();
            changes.iter().for_each(|change| apply(&mut experiment, change));
            LabArm { arm: Arm::new(name, experiment), engine: lab.engine.clone() }
        };
        let arms: Vec<LabArm> = steps(considered.explored.best.clone()).into_iter().map(lab_arm).collect();
        observer.note("proving it");
        let proof = prove(bench, &arms, seeds(base), observer)?;
        let why = self::refuted(base, &proof.report, &considered.explored.best);
        let harmful = harmful(&base.workload, &proof.report.arms, &considered.explored.best);
        refuted.extend(why.iter().cloned());
        rejected.append(&mut considered.rejected);
        if harmful.is_empty() || refuted.len() == PROOFS_MAX {
            if why.is_some() {
                considered.explored.best.clear();
            }
            considered.rejected = rejected;
            return Ok(Proven { considered, arms, proof, refuted });
        }
        families.iter_mut().for_each(|family| family.options.retain(|option| !harmful.contains(option)));
        families.retain(|family| !family.options.is_empty());
        left_out.extend(harmful);
    }
}

/// The remedies of a set that make a figure worse alone, or all of them where only the whole set does; none where nothing is worse.
fn harmful(workload: &Workload, proof: &[ArmReport], best: &[Remedy]) -> Vec<Remedy> {
    let [found, others @ ..] = proof else { return Vec::new() };
    let is_worse = |arm: &ArmReport| worse(workload, found, arm).is_some();
    if !others.last().is_some_and(is_worse) {
        return Vec::new();
    }
    // Before the last arm each remedy has one, where there are several.
    let alone = best.iter().zip(others).filter(|(_, arm)| best.len() > 1 && is_worse(arm));
    let found: Vec<Remedy> = alone.map(|(remedy, _)| remedy.clone()).collect();
    if found.is_empty() { best.to_vec() } else { found }
}

/// Seeds of the proof.
fn seeds(base: &Experiment) -> u32 {
    match (meets_chance(base), is_short(base)) {
        (true, true) => PROOF_SEEDS[0],
        (true, false) => PROOF_SEEDS[1],
        (false, _) => 1,
    }
}

fn say_if_nothing(report: &mut FixReport) {
    if report.remedy.is_none() {
        let why = if report.rejected.is_empty() {
            "Nothing to set: no setting of these hosts makes it five percent better."
        } else {
            "Nothing to set: what makes it five percent better takes too much from others."
        };
        report.notes.insert(0, why.to_owned());
    }
}

/// What a search found that may be proposed.
struct Considered {
    explored: Explored,
    /// What its congestion control does to a CUBIC flow.
    rival: Option<Rival>,
    /// What was not accepted.
    rejected: Vec<Rejected>,
}

/// Searches, without what is left out and each congestion control that takes more from a CUBIC flow than another CUBIC flow does. Where each host has a path of its own
/// there is no such flow.
fn considerate(
    lab: &LabRuns<'_>,
    base: &Experiment,
    direction: Way,
    families: &mut Vec<Family>,
    (own_path, left_out): (bool, &[Remedy]),
    observer: &mut dyn Observer,
) -> Result<Considered, Failure> {
    let mut rejected: Vec<Rejected> = Vec::new();
    let mut earlier = Explored::default();
    let release = lab.engine.release();
    loop {
        let refused: Vec<&str> = rejected.iter().map(|one| one.congestion.as_str()).collect();
        let mut further = |experiment: &Experiment, observer: &mut dyn Observer| {
            let Some((arm, found)) = lab.diagnosed("search: what else", experiment, observer)? else {
                return Ok(Vec::new());
            };
            let mut families = work::families(release, experiment, &arm, found.as_ref());
            let allowed = |one: &Remedy| !congestion_control(&one.changes).is_some_and(|name| refused.contains(&name));
            families.iter_mut().for_each(|family| {
                family.options.retain(|option| allowed(option) && !left_out.contains(option));
            });
            Ok(families)
        };
        let explored = after(&mut earlier, explore(lab, base, families, &mut further, observer)?);
        let chosen = explored.best.iter().find_map(|remedy| other_than_cubic(&remedy.changes)).map(str::to_owned);
        let Some(chosen) = chosen.filter(|_| base.topology.between == Between::Shared) else {
            return Ok(Considered { explored, rival: None, rejected });
        };
        let rival = rival(lab, &brief(base), direction, &chosen, own_path, observer)?;
        if rival.accepted || own_path {
            return Ok(Considered { explored, rival: Some(rival), rejected });
        }
        let ratio = explored.tried.first().map_or(1.0, |(_, ratio)| *ratio);
        let (name, codes) = (name(&explored.best), explored.best.iter().map(|remedy| remedy.code).collect());
        let mut changes = merge(explored.best).map(|remedy| remedy.changes).unwrap_or_default();
        from_defaults(&mut changes, lab.engine.release());
        let apply = thalweg_tune::apply(&changes);
        let set = Candidate { name, codes, changes, ratios: vec![ratio], corners: Vec::new() };
        rejected.push(Rejected { set, congestion: chosen.clone(), rival, apply });
        earlier.sets = explored.sets;
        earlier.tried = explored.tried;
        earlier.tried.retain(|(remedy, _)| other_than_cubic(&remedy.changes).is_some());
        for family in families.iter_mut() {
            family.options.retain(|option| congestion_control(&option.changes) != Some(chosen.as_str()));
        }
        families.retain(|family| !family.options.is_empty());
    }
}

/// The congestion control that changes choose, where it may take more from a CUBIC flow than CUBIC does.
fn other_than_cubic(changes: &[Change]) -> Option<&str> {
    congestion_control(changes).filter(|chosen| !matches!(*chosen, "auto" | "cubic"))
}

/// What a search found, followed by what an earlier one tried that was not accepted, by gain.
fn after(earlier: &mut Explored, mut explored: Explored) -> Explored {
    explored.sets += earlier.sets;
    explored.tried.append(&mut earlier.tried);
    let alone = usize::from(!explored.best.is_empty());
    explored.tried[alone..].sort_by(|a, b| b.1.total_cmp(&a.1));
    explored
}

/// The arms of the proof: nothing changed, each remedy alone where there are several, all of them.
fn steps(best: Vec<Remedy>) -> Vec<(String, Vec<Remedy>)> {
    let mut sets = Vec::new();
    if best.len() > 1 {
        sets.extend(best.iter().map(|one| vec![one.clone()]));
    }
    if !best.is_empty() {
        sets.push(best);
    }
    let names = names(&sets);
    std::iter::once((AS_FOUND.to_owned(), Vec::new())).chain(names.into_iter().zip(sets)).collect()
}

/// Why the proof does not bear out what the search found; `None` where it does. The search chose the set for its runs on fewer seeds.
fn refuted(base: &Experiment, proof: &LabReport, best: &[Remedy]) -> Option<String> {
    let (first, last) = (proof.arms.first()?, proof.arms.last().filter(|_| !best.is_empty())?);
    let own = name(best);
    let gain = score(&base.workload, last)? / score(&base.workload, first)?;
    let is_noise = matches!(base.workload, Workload::Stream(_) | Workload::Rr(_) | Workload::Crr(_))
        && last
            .differences
            .get(&figure(&base.workload).0)
            .is_some_and(|difference| difference.within_noise == Some(true));
    if worse(&base.workload, first, last).is_some() {
        return Some(format!(
            "The best set of the search, {own}, makes a figure worse in the proof: it is not proposed."
        ));
    }
    let noise = if is_noise { ", within noise" } else { "" };
    (gain < WORTH || is_noise).then(|| {
        format!(
            "The best set of the search, {own}, is {gain:.2} times as good in the proof{noise}: it is not proposed."
        )
    })
}

/// What AQM at the bottleneck gives in place of the hosts' settings, and together with them.
fn queue_management(
    bench: &Bench,
    lab: &LabRuns<'_>,
    base: &Experiment,
    best: &Experiment,
    observer: &mut dyn Observer,
) -> Result<Vec<String>, Failure> {
    let managed = |experiment: &Experiment| {
        let mut experiment = experiment.clone();
        [&mut experiment.path.down, &mut experiment.path.up].into_iter().for_each(manage);
        experiment
    };
    if managed(base) == *base {
        return Ok(Vec::new());
    }
    let arms = [Arm::new(AS_FOUND, base.clone()), Arm::new("fq_codel", managed(base)), Arm::new("both", managed(best))];
    let report = lab.report("on the path: fq_codel", &arms, if meets_chance(base) { 2 } else { 1 }, observer)?;
    let of = |name: &str| report.arm(name).and_then(|arm| score(&bench.scenario.arms[0].experiment.workload, arm));
    let (Some(nothing), Some(alone)) = (of(AS_FOUND), of("fq_codel")) else { return Ok(Vec::new()) };
    let both = of("both")
        .filter(|_| managed(best) != managed(base))
        .map(|both| format!(", and {:.2} times with the settings of the hosts", both / nothing));
    Ok(vec![format!(
        "On the path: AQM (fq_codel) at the bottleneck in place of its first-in-first-out queue makes it {:.2} times as good{}.",
        alone / nothing,
        both.unwrap_or_default()
    )])
}

/// Gives a bottleneck fq_codel with the defaults of tc-fq_codel(8).
fn manage(path: &mut PathDirection) {
    if path.rate.is_some() && path.discipline == Discipline::Fifo {
        let (target, interval) = (Span::from_millis(5), Span::from_millis(100));
        path.discipline = Discipline::FqCodel { target, interval, flows: 1024 };
    }
}

fn conclude(base: &Experiment, proof: LabReport, found: Option<&ArmFindings>, explored: Explored) -> FixReport {
    let (first, last) = (&proof.arms[0], &proof.arms[proof.arms.len() - 1]);
    let compared: Vec<FixFigure> = figures(&base.workload, &proof.arms)
        .into_iter()
        .filter_map(|metric| {
            let (before, after) = (value(first, &metric)?, value(last, &metric)?);
            Some(FixFigure { metric, before, after })
        })
        .collect();
    let proven = !explored.best.is_empty();
    let leading = compared
        .iter()
        .enumerate()
        .max_by(|(a, one), (b, other)| better(one).total_cmp(&better(other)).then(b.cmp(a)))
        .filter(|_| proven && matches!(base.workload, Workload::Topics(_) | Workload::Mixed { .. }))
        .map_or(0, |(at, _)| at);
    let leading = compared.get(leading).cloned();
    let (cause, also) = causes(&proof, found, &explored.best, leading.as_ref());
    let mut notes = Vec::new();
    if !proven && cause.code == Code::Connecting {
        notes.push("A SYN that is lost is sent again after 1 s (RFC 6298 §2): no sysctl, route metric or socket option of Linux changes that.".to_owned());
    }
    let sets = explored.sets;
    notes.extend(
        compared
            .iter()
            .filter(|one| proven && better(one) * WORTH < 1.0)
            .map(|one| format!("With the remedy {} is {:.0} % worse.", one.metric, (1.0 - better(one)) * 100.0)),
    );
    let tried: Vec<(Remedy, f64)> = explored.tried.into_iter().take(LISTED).collect();
    let labels = names(&tried.iter().map(|(remedy, _)| vec![remedy.clone()]).collect::<Vec<_>>());
    let search: Vec<Candidate> = tried
        .into_iter()
        .zip(labels)
        .map(|((remedy, ratio), name)| Candidate {
            name,
            codes: vec![remedy.code],
            changes: remedy.changes,
            ratios: Some(ratio).filter(|ratio| ratio.is_finite()).into_iter().collect(),
            corners: Vec::new(),
        })
        .collect();
    notes.push(format!("{sets} sets of settings were run."));
    let mut remedy = merge(explored.best);
    if let Some(remedy) = &mut remedy {
        // It was the alternative to another one.
        if let Some(rest) = remedy.reason.strip_prefix("Or ") {
            remedy.reason = rest[..1].to_uppercase() + &rest[1..];
        }
        from_defaults(&mut remedy.changes, &proof.kernel);
    }
    FixReport {
        schema: "thalweg.fix/1".to_owned(),
        cause,
        also,
        needs: Vec::new(),
        apply: remedy.as_ref().map(|remedy| thalweg_tune::apply(&remedy.changes)).unwrap_or_default(),
        undo: remedy.as_ref().map(|remedy| thalweg_tune::undo(&remedy.changes)).unwrap_or_default(),
        metric: leading.as_ref().map_or_else(|| "duration_s".to_owned(), |figure| figure.metric.clone()),
        before: leading.as_ref().map(|figure| figure.before).unwrap_or_default(),
        after: leading.as_ref().filter(|_| proven).map(|figure| figure.after),
        ratio: leading.as_ref().filter(|_| proven).map(better).filter(|ratio| ratio.is_finite()),
        figures: if proven { compared } else { Vec::new() },
        capture: None,
        search,
        rival: None,
        rejected: Vec::new(),
        other_fits: Vec::new(),
        notes,
        remedy,
        proof: Some(proof),
    }
}

/// What the scenario does not set is as the kernel has it.
fn from_defaults(changes: &mut [Change], kernel: &str) {
    let release = thalweg_model::since::release(kernel);
    for change in changes.iter_mut().filter(|change| change.from.is_none()) {
        if let Setting::Sysctl(name) = &change.setting {
            let entry = thalweg_tune::catalogue::sysctl(name);
            change.from = entry.and_then(|entry| entry.default_on(release)).map(str::to_owned);
        }
    }
}

/// How many times better a figure is with the remedy.
fn better(figure: &FixFigure) -> f64 {
    let more = figure.metric.ends_with("_bps") || figure.metric.ends_with("_per_s");
    if more { figure.after / figure.before } else { figure.before / figure.after }
}

/// The cause to name first, and the others that stand: what the best set answers comes before what no setting mends.
fn causes(
    proof: &LabReport,
    found: Option<&ArmFindings>,
    best: &[Remedy],
    figure: Option<&FixFigure>,
) -> (DiagnosisLine, Vec<DiagnosisLine>) {
    let mut lines: Vec<DiagnosisLine> = found.map(|found| found.lines.clone()).unwrap_or_default();
    let seen = lines.first().map(|line| line.claim.clone()).unwrap_or_default();
    for (at, remedy) in best.iter().enumerate() {
        if !lines.iter().any(|line| line.code == remedy.code) && remedy.code != Code::Unknown {
            lines.extend(by_trial(proof, (at, best), figure));
        }
    }
    let answered = |line: &DiagnosisLine| best.iter().position(|remedy| remedy.code == line.code);
    // What a program waited for is no more than what is left where a setting mends the rest.
    let waits = |line: &DiagnosisLine| matches!(line.code, Code::WaitingForServer | Code::WaitingForClient);
    let first = lines.first().is_some_and(|line| line.code.is_of_life() && !waits(line) || answered(line).is_some());
    let at = if first {
        0
    } else {
        (0..lines.len()).min_by_key(|at| answered(&lines[*at]).unwrap_or(best.len() + at)).unwrap_or(0)
    };
    if lines.is_empty() {
        let claim = if seen.is_empty() { "The capture holds no connection with data.".to_owned() } else { seen };
        return (DiagnosisLine { code: Code::Unknown, share: 0.0, gain: None, claim }, Vec::new());
    }
    let cause = lines.remove(at);
    let stands = |line: &DiagnosisLine| {
        let told = !matches!(line.code, Code::NothingToGain | Code::Unknown) && line.code != cause.code;
        told && line.share >= NAMED_SHARE && line.gain.is_none_or(|gain| gain >= WORTH)
    };
    lines.retain(stands);
    (cause, lines)
}

/// A cause that the search shows and the capture does not: the remedy alone makes the figure better.
fn by_trial(proof: &LabReport, (at, best): (usize, &[Remedy]), figure: Option<&FixFigure>) -> Option<DiagnosisLine> {
    let (figure, remedy) = (figure?, &best[at]);
    let of = |arm: &ArmReport| value(arm, &figure.metric);
    let before = of(&proof.arms[0])?;
    let arm = &proof.arms[at + 1];
    let own = &arm.name;
    let alone = FixFigure { metric: figure.metric.clone(), before, after: of(arm)? };
    let gain = better(&alone);
    Some(DiagnosisLine {
        code: remedy.code,
        share: (1.0 - 1.0 / gain).max(0.0),
        gain: Some(gain).filter(|gain| gain.is_finite()),
        claim: match gain.is_finite() {
            true => format!("{} With {own} alone it is {gain:.2} times as good.", remedy.reason),
            false => remedy.reason.clone(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use thalweg_model::Applicability;

    fn stream() -> Experiment {
        let text = "name = \"s\"\n[workload]\nkind = \"stream\"\nseconds = \"5s\"\n";
        let none = |_: &str| Err(std::io::ErrorKind::NotFound.into());
        thalweg_config::parse_scenario("s", text, &[], &none).expect("a scenario").arms.remove(0).experiment
    }

    fn remedy(reason: &str) -> Remedy {
        Remedy {
            code: Code::CongestionLoss,
            reason: reason.to_owned(),
            changes: Vec::new(),
            commands: Vec::new(),
            kernels: None,
            applicability: Applicability::Safe,
            wont_help: String::new(),
            notes: Vec::new(),
        }
    }

    fn arm(goodput: f64, within_noise: Option<bool>) -> serde_json::Value {
        let host = json!({"sysctl": {}, "route": {}, "socket": {}});
        json!({"name": "a", "kernel": "6.12", "baseline": null, "diagnosis": [], "capture": null, "samples": null,
               "metrics": {"bytes": 1e7, "goodput_steady_bps": goodput},
               "differences": {"goodput_steady_bps": {"difference": 1.0, "ratio": 1.0, "ci95": [-1.0, 1.0], "within_noise": within_noise}},
               "settings": {"client": host, "server": host, "path": []}})
    }

    #[test]
    fn a_search_goes_on_without_what_makes_a_figure_worse() {
        let (base, both) = (stream(), [remedy("a"), remedy("b")]);
        let left_out = |goodputs: &[f64], best: &[Remedy]| -> Vec<String> {
            let arms: Vec<ArmReport> =
                goodputs.iter().map(|goodput| serde_json::from_value(arm(*goodput, None)).expect("an arm")).collect();
            harmful(&base.workload, &arms, best).into_iter().map(|remedy| remedy.reason).collect()
        };
        assert_eq!(left_out(&[10e6, 5e6, 12e6, 6e6], &both), ["a"]);
        assert_eq!(left_out(&[10e6, 12e6, 12e6, 6e6], &both), ["a", "b"], "only together");
        assert_eq!(left_out(&[10e6, 5e6, 12e6, 11e6], &both), [""; 0], "together they are not worse");
        assert_eq!(left_out(&[10e6, 5e6], &both[..1]), ["a"]);
        assert_eq!(left_out(&[10e6], &[]), [""; 0]);
    }

    #[test]
    fn what_the_proof_does_not_bear_out_is_not_proposed() {
        let (base, remedy) = (stream(), remedy(""));
        let refuted_at = |goodput: f64, within_noise: Option<bool>| {
            let proof = json!({"schema": "thalweg.lab/1", "scenario": "s", "about": "", "kernel": "6.12", "engine": "virtual", "seed": 1,
                               "repeats": 6, "wall_s": 0.0, "virtual_s": 0.0, "arms": [arm(10e6, within_noise), arm(goodput, within_noise)]});
            refuted(&base, &serde_json::from_value(proof).expect("a report"), std::slice::from_ref(&remedy)).is_some()
        };
        assert!(!refuted_at(12e6, Some(false)) && !refuted_at(12e6, None));
        assert!(refuted_at(12e6, Some(true)), "chance alone may give it");
        assert!(refuted_at(10.2e6, Some(false)), "two percent");
    }
}
