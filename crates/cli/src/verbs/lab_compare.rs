//! `thalweg lab compare`: reports against each other, or parts of one run joined.

use crate::args::LabCompareArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::targets;
use anyhow::anyhow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use thalweg_model::{ArmComparison, LabReport};
use thalweg_report::figures::{Better, Figure, leading};
use thalweg_report::html::Page;

const SCHEMA: &str = "thalweg.lab/1";

pub(crate) fn run(args: &LabCompareArgs, output: &Output) -> Result<ExitCode, Failure> {
    let read_from: Vec<PathBuf> = args.reports.iter().map(|path| file(path)).collect();
    let written = [("--html", &args.html), ("--junit", &args.junit)].into_iter();
    let written: Vec<_> = written.filter_map(|(option, path)| Some((option, path.as_deref()?))).collect();
    targets::check(&read_from, &written)?;
    let reports = read_from.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    if reports.iter().any(|(_, report)| report.shard.is_some()) {
        return join(args, reports, output);
    }
    if reports.len() < 2 {
        return Err(Failure::user(anyhow!("one report is compared with nothing"))
            .hint("give two: thalweg lab compare before/report.json after/report.json"));
    }
    if args.html.is_some() || args.junit.is_some() {
        return Err(Failure::user(anyhow!(
            "--html and --junit are for parts that are joined, and these are whole runs"
        ))
        .hint("--json gives the comparison as a document"));
    }
    let mut compared = thalweg_lab::compare(&reports);
    for arm in &mut compared.arms {
        judge(arm, &reports, args.fail_worse);
    }
    if output.json {
        output.json_result(&compared)?;
    } else {
        output.result(&thalweg_report::terminal::compare(&compared, output.width, output.color))?;
    }
    let is_gated = args.fail_worse.is_some();
    Ok(exit(compared.arms.iter().any(|arm| arm.failed) || is_gated && !is_whole(&reports)))
}

/// Whether each later report has all arms of the first one, and no run without a result. What is not there is not known to be as good.
fn is_whole(reports: &[(String, LabReport)]) -> bool {
    let Some(((_, base), others)) = reports.split_first() else { return true };
    others
        .iter()
        .all(|(_, other)| other.failed.is_empty() && base.arms.iter().all(|arm| other.arm(&arm.name).is_some()))
}

/// Joins parts into the report one machine would have given, and shows it as `lab run` does.
fn join(args: &LabCompareArgs, parts: Vec<(String, LabReport)>, output: &Output) -> Result<ExitCode, Failure> {
    if args.fail_worse.is_some() {
        return Err(Failure::user(anyhow!("--fail-worse compares whole runs, and these are parts of one"))
            .hint("join them first: thalweg lab compare part-*/report.json --json > whole.json"));
    }
    let whole = thalweg_lab::join(parts).map_err(|error| {
        Failure::user(error).hint("give all parts of one run, and join each run on its own, with --json > whole.json")
    })?;
    if let Some(path) = &args.html {
        let page = Page { title: whole.scenario.clone(), lab: Some(&whole), ..Page::default() };
        thalweg_pipeline::whole::write(path, &thalweg_report::html::page(&page))?;
    }
    if let Some(path) = &args.junit {
        thalweg_pipeline::whole::write(path, &thalweg_report::junit::junit(std::slice::from_ref(&whole)))?;
    }
    if output.json {
        output.json_result(&whole)?;
    } else {
        output.result(&thalweg_report::terminal::lab(&whole, false, output.width, output.color))?;
    }
    Ok(exit(whole.expect.iter().any(|outcome| !outcome.met)))
}

/// Finds the figure that leads, and whether it got worse by more than is allowed.
fn judge(arm: &mut ArmComparison, reports: &[(String, LabReport)], allowed: Option<f64>) {
    let of = |(_, report): &(String, LabReport)| report.arm(&arm.name).cloned();
    let mine = reports.iter().find(|(file, _)| *file == arm.file);
    let both: Vec<_> = reports.first().into_iter().chain(mine).filter_map(of).collect();
    let figure = leading(&both).into_iter().find(|figure| arm.metrics.contains_key(&figure.name));
    let Some(figure) = figure else {
        arm.failed = allowed.is_some();
        return;
    };
    let compared = arm.metrics[&figure.name];
    arm.worse_percent = worse_percent(&figure, compared.base, compared.value);
    let chance = compared.difference.within_noise == Some(true);
    arm.failed = !chance && allowed.is_some_and(|allowed| arm.worse_percent > allowed);
    arm.leading = Some(figure.name);
}

/// By how many percent of `base` a figure is worse; a time that doubled is 100 % worse, a rate that halved 50 %.
fn worse_percent(figure: &Figure, base: f64, value: f64) -> f64 {
    let change = match figure.better {
        Better::More => (base - value) / base,
        Better::Less => (value - base) / base,
        Better::Neither => 0.0,
    };
    if change.is_finite() { (change * 100.0).max(0.0) } else { 0.0 }
}

/// A report's file: itself, or the one in a run's folder.
fn file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("report.json") } else { path.to_owned() }
}

fn read(path: &Path) -> Result<(String, LabReport), Failure> {
    let name = path.display().to_string();
    let hint = "lab run writes report.json into its folder, and prints the same with --json";
    let text = std::fs::read(path)
        .map_err(|error| Failure::user(anyhow!("cannot read the report '{name}': {error}")).hint(hint))?;
    let no_report = |cause: String| Failure::user(anyhow!("'{name}' is no report of lab run: {cause}")).hint(hint);
    let document: serde_json::Value =
        serde_json::from_slice(&text).map_err(|error| no_report(format!("it is not JSON: {error}")))?;
    match (&document, document["schema"].as_str()) {
        (_, Some(SCHEMA)) => {}
        (serde_json::Value::Array(_), _) => {
            return Err(no_report("it holds several".to_owned()).hint("each is in its scenario's folder, too"));
        }
        (_, Some(other)) => return Err(no_report(format!("its schema is {other}, not {SCHEMA}"))),
        (_, None) => return Err(no_report(format!("it does not say that its schema is {SCHEMA}"))),
    }
    let report: LabReport = serde_json::from_slice(&text).map_err(|error| no_report(error.to_string()))?;
    Ok((name, report))
}

fn exit(problem: bool) -> ExitCode {
    if problem { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(arms: &[&str], figure: &str, failed: bool) -> (String, LabReport) {
        let arm = |name: &&str| {
            serde_json::json!({ "name": name, "kernel": "6.12", "settings": thalweg_model::SettingsReport::default(),
                "metrics": { figure: 1.0 }, "differences": {}, "outliers": [], "intervals": [], "diagnosis": [] })
        };
        let failed =
            if failed { vec![serde_json::json!({ "arm": "b", "seed": 1, "why": "timed out" })] } else { Vec::new() };
        let document = serde_json::json!({ "schema": SCHEMA, "scenario": "s", "about": "", "kernel": "6.12", "engine": "virtual", "seed": 1,
            "repeats": 1, "wall_s": 0.0, "virtual_s": 1.0, "arms": arms.iter().map(arm).collect::<Vec<_>>(), "failed": failed, "expect": [] });
        ("report.json".to_owned(), serde_json::from_value(document).expect("a report"))
    }

    #[test]
    fn an_arm_that_is_gone_or_failed_is_not_as_good() {
        let base = || report(&["a", "b"], "goodput_bps", false);
        assert!(is_whole(&[base(), base()]));
        assert!(is_whole(&[report(&["a"], "goodput_bps", false), base()]), "a new arm is no loss");
        assert!(!is_whole(&[base(), report(&["a"], "goodput_bps", false)]));
        assert!(!is_whole(&[base(), report(&["c"], "goodput_bps", false)]));
        assert!(!is_whole(&[base(), report(&["a", "b"], "goodput_bps", true)]));
        let reports = [base(), report(&["a", "b"], "duration_s", false)];
        let mut compared = thalweg_lab::compare(&reports);
        compared.arms.iter_mut().for_each(|arm| judge(arm, &reports, Some(5.0)));
        assert!(compared.arms.iter().all(|arm| arm.failed), "no figure in common");
    }

    #[test]
    fn worse_is_less_of_a_rate_and_more_of_a_time() {
        let (rate, time) = (Figure::named("goodput_bps"), Figure::named("duration_s"));
        assert_eq!(worse_percent(&rate, 100.0, 50.0), 50.0);
        assert_eq!(worse_percent(&rate, 100.0, 150.0), 0.0);
        assert_eq!(worse_percent(&time, 1.0, 2.0), 100.0);
        assert_eq!(worse_percent(&time, 0.0, 2.0), 0.0);
    }
}
