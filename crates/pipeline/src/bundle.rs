//! A folder that anyone can rerun: the fitted scenario and a capture of it, with nothing of the original capture but what was fitted.

use crate::bench::{Bench, BenchOptions, Task, complete};
use crate::failure::Failure;
use crate::fit::parameters::{capture_at, read, tap};
use crate::observer::Observer;
use crate::remedy::{AS_FOUND, value};
use crate::whole;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use thalweg_lab::{CaptureEnds, RunOptions};
use thalweg_model::{ArmReport, Code, FixReport};
use thalweg_units::Rate;

const SCENARIO: &str = "fitted.toml";
const CAPTURE: &str = "synthetic.pcapng";

/// Refuses a folder that a bundle cannot be written into, before the work for it is done.
///
/// # Errors
/// A folder that is there and not empty.
pub fn check(folder: &Path) -> Result<(), Failure> {
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Failure::user(format!("the folder {} is not empty", folder.display()))
            .hint("a bundle is a folder of its own: choose another name"));
    }
    Ok(())
}

/// Runs the fitted scenario's first arm, and writes scenario, capture and document into `folder`.
///
/// The document names no file and no address. The capture is the lab's: its addresses are 10.0.0.0/8's of the lab, its payload is not kept.
///
/// # Errors
/// A folder that is there and not empty, or cannot be written; what the lab refuses.
pub fn write(
    folder: &Path,
    scenario: &str,
    report: &FixReport,
    options: &BenchOptions,
    stop: &Arc<AtomicBool>,
    observer: &mut dyn Observer,
) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::user(format!("cannot make the folder {}: {error}", folder.display()));
    check(folder)?;
    fs::create_dir_all(folder).map_err(cannot)?;
    let bench = Bench::prepare(read(SCENARIO, scenario)?, options, Some(&folder.join("run")), stop)?;
    let (arms, _) = thalweg_lab::across(&bench.scenario, &bench.engines);
    let end = report.capture.as_ref().map_or(CaptureEnds::Server, |fit| capture_at(tap(fit.vantage, fit.direction)));
    let mut run = |options| {
        let task = Task { arms: &arms[..1], expect: &[], repeats: 1, part: None, options, journal: None };
        complete(bench.run(&task, observer)?)
    };
    // A run of chance is another one where other things are recorded: what is expected is what `lab run` gives by itself.
    let again = run(RunOptions::default())?;
    let recorded = run(RunOptions { capture: end, samples: None })?;
    let made = recorded.report.arms.first().and_then(|arm| arm.capture.clone());
    let made = made.ok_or_else(|| Failure::host("the lab's run left no capture"))?;
    let run = bench.out.path().to_owned();
    fs::rename(run.join(&made), folder.join(CAPTURE)).map_err(cannot)?;
    fs::remove_dir_all(&run).map_err(cannot)?;
    whole::write(&folder.join(SCENARIO), &expecting(scenario, report, again.report.arms.first()))?;
    let json = serde_json::to_string_pretty(&anonymous(report)).map_err(Failure::host)?;
    whole::write(&folder.join("fix.json"), &json)
}

/// The scenario, whose last table is what is expected, as its first arm's run has it: that of one seed may have another verdict than most.
fn expecting(scenario: &str, report: &FixReport, run: Option<&ArmReport>) -> String {
    let Some(run) = run else { return scenario.to_owned() };
    let found = run.diagnosis.first().map_or(report.cause.code, |found| found.code);
    let mut whole = with_verdict(scenario, report.cause.code, found);
    if let Some(rate) = value(run, &report.metric).filter(|_| report.metric.ends_with("_bps")) {
        let rate = Rate::from_bits_per_second(rate as u64);
        whole += &format!("\"{AS_FOUND}/{}\" = \"{rate} +- 5%\"\n", report.metric);
    }
    whole
}

/// The scenario, which expects the verdict `cause`, with `found` in its place.
fn with_verdict(scenario: &str, cause: Code, found: Code) -> String {
    if found == cause {
        return scenario.to_owned();
    }
    let line = |code: Code| format!("\"{AS_FOUND}/verdict\" = \"{code}\"\n");
    let why = format!("# The capture's verdict is {cause}: that of most seeds, and not of the first.\n");
    scenario.replace(&line(cause), &(why + &line(found)))
}

/// The document without names and addresses.
fn anonymous(report: &FixReport) -> FixReport {
    let mut report = report.clone();
    if let Some(capture) = &mut report.capture {
        "capture".clone_into(&mut capture.file);
        "CLIENT".clone_into(&mut capture.client);
        "SERVER".clone_into(&mut capture.server);
    }
    // The commands name the peer; these have a placeholder.
    if let Some(remedy) = &report.remedy {
        report.apply = thalweg_tune::apply(&remedy.changes);
        report.undo = thalweg_tune::undo(&remedy.changes);
    }
    for rejected in &mut report.rejected {
        rejected.apply = thalweg_tune::apply(&rejected.set.changes);
    }
    for other in &mut report.other_fits {
        other.apply = other.set.as_ref().map(|set| thalweg_tune::apply(&set.changes)).unwrap_or_default();
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_of_the_first_seed_is_expected_and_the_captures_named() {
        let scenario = "[expect]\n\"as found/verdict\" = \"random-loss\"\n";
        assert_eq!(with_verdict(scenario, Code::RandomLoss, Code::RandomLoss), scenario);
        let other = with_verdict(scenario, Code::RandomLoss, Code::Policer);
        let lines: Vec<&str> = other.lines().collect();
        assert!(lines[1].starts_with("# ") && lines[1].contains("random-loss"), "{other}");
        assert_eq!((lines.len(), lines[2]), (3, "\"as found/verdict\" = \"policer\""));
    }
}
