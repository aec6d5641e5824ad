//! A scenario whose program never ends as found, because its connections time out: a transfer over the same path shows why.

use super::proof::{Fixed, prove};
use super::work;
use crate::bench::Bench;
use crate::failure::Failure;
use crate::lab_runs::LabRuns;
use crate::observer::Observer;
use crate::remedy::{apply, figure, name, value};
use crate::score::score;
use thalweg_lab::LabArm;
use thalweg_model::{
    Amount, Arm, ArmReport, DiagnosisLine, Experiment, FixReport, LabReport, Remedy, Stream, Way, Workload,
};
use thalweg_units::Span;

/// How long the transfer goes on: several retransmission timeouts, each twice as long as the one before (RFC 6298 §5.5).
const PROBE: Span = Span::from_millis(8_000);

/// Diagnoses a transfer in the place of the program whose run failed, and runs the program with each remedy of that cause. `None` where a transfer
/// shows nothing either.
pub(super) fn hung(
    bench: &Bench,
    lab: &LabRuns<'_>,
    why: &str,
    observer: &mut dyn Observer,
) -> Result<Option<Fixed>, Failure> {
    let base = &bench.scenario.arms[0].experiment;
    for direction in work::directions(&base.workload) {
        let Some((cause, options)) = cause(lab, base, direction, observer)? else { continue };
        let mut best: Option<(f64, Remedy, LabReport)> = None;
        for option in options {
            let mut experiment = base.clone();
            option.changes.iter().for_each(|change| apply(&mut experiment, change));
            let arm = Arm::new(name(std::slice::from_ref(&option)), experiment);
            let Ok(ran) = prove(bench, &[LabArm { arm, engine: lab.engine.clone() }], 1, observer) else { continue };
            let Some(score) = score(&base.workload, &ran.report.arms[0]) else { continue };
            if best.as_ref().is_none_or(|(most, ..)| score > *most) {
                best = Some((score, option, ran.report));
            }
        }
        return Ok(Some(Fixed { report: report(base, why, cause, best), findings: Vec::new() }));
    }
    Ok(None)
}

/// What a transfer in one direction shows, with the options that answer it.
fn cause(
    lab: &LabRuns<'_>,
    base: &Experiment,
    direction: Way,
    observer: &mut dyn Observer,
) -> Result<Option<(DiagnosisLine, Vec<Remedy>)>, Failure> {
    let mut probe = base.clone();
    probe.workload = Workload::Stream(Stream { direction, amount: Amount::Seconds(PROBE), ..Stream::default() });
    let Some((arm, Some(found))) = lab.diagnosed("a transfer in its place", &probe, observer)? else { return Ok(None) };
    let Some(cause) = found.lines.first().cloned() else { return Ok(None) };
    let families = work::families(lab.engine.release(), &probe, &arm, Some(&found));
    let options = families.into_iter().flat_map(|family| family.options);
    let options: Vec<Remedy> = options.filter(|option| option.code == cause.code).collect();
    Ok((!options.is_empty()).then_some((cause, options)))
}

fn report(base: &Experiment, why: &str, cause: DiagnosisLine, best: Option<(f64, Remedy, LabReport)>) -> FixReport {
    let mut notes = vec![format!(
        "As found the program does not end: {why}. The cause is that of a transfer over the same path in its place."
    )];
    if best.is_none() {
        notes.push("With no remedy of that cause the program ends.".to_owned());
    }
    let (remedy, proof) = best.map(|(_, remedy, proof)| (remedy, proof)).unzip();
    // As found there are none.
    let metric = match &base.workload {
        Workload::Topics(_) => "messages".to_owned(),
        workload => figure(workload).0,
    };
    let after = proof.as_ref().and_then(|proof: &LabReport| {
        let arm: Option<&ArmReport> = proof.arms.first();
        value(arm?, &metric)
    });
    FixReport {
        schema: "thalweg.fix/1".to_owned(),
        cause,
        also: Vec::new(),
        needs: Vec::new(),
        apply: remedy.as_ref().map(|remedy: &Remedy| thalweg_tune::apply(&remedy.changes)).unwrap_or_default(),
        undo: remedy.as_ref().map(|remedy| thalweg_tune::undo(&remedy.changes)).unwrap_or_default(),
        remedy,
        metric,
        before: 0.0,
        after,
        ratio: None,
        figures: Vec::new(),
        capture: None,
        search: Vec::new(),
        rival: None,
        rejected: Vec::new(),
        other_fits: Vec::new(),
        notes,
        proof,
    }
}
