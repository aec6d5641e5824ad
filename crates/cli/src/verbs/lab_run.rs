//! `thalweg lab run`.

use crate::args::{Capture, ExportFormat, LabOptions, LabRunArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Console;
use crate::tables::export::Export;
use crate::{plots, scenarios, stop, targets};
use anyhow::anyhow;
use std::path::Path;
use std::process::ExitCode;
use thalweg_config::RUNS_MAX;
use thalweg_lab::{CaptureEnds, RunJournal, RunOptions};
use thalweg_model::{Expectation, FailedRun, LabReport, Metric, Scenario};
use thalweg_pipeline::{Bench, BenchOptions, Task, folder_name, whole};
use thalweg_report::html::Page;
use thalweg_report::tables::Format;
use thalweg_units::Span;

pub(crate) fn run(args: LabRunArgs, output: &Output) -> Result<ExitCode, Failure> {
    let options = RunOptions {
        capture: match args.capture {
            Capture::Both => CaptureEnds::Both,
            Capture::Client => CaptureEnds::Client,
            Capture::Server => CaptureEnds::Server,
            Capture::Off => CaptureEnds::Off,
        },
        samples: interval(&args.samples)?,
    };
    if args.live {
        check_alone(&args.lab)?;
    }
    if let Some(junit) = &args.junit {
        targets::check(&args.scenarios, &[("--junit", junit)])?;
    }
    // Before anything is made or run: what is wrong here is the user's mistake.
    let chosen = args.scenarios.iter().map(|name| choose(name, &args)).collect::<Result<Vec<_>, _>>()?;
    for (at, scenario) in chosen.iter().enumerate() {
        if chosen[..at].iter().any(|other| other.name == scenario.name) {
            return Err(Failure::user(anyhow!("two scenarios are named '{}'", scenario.name)));
        }
        let is_same = |other: &&Scenario| folder_name(&other.name) == folder_name(&scenario.name);
        if let Some(other) = chosen[..at].iter().find(is_same) {
            let problem = anyhow!("the scenarios '{}' and '{}' would have the same folder", other.name, scenario.name);
            return Err(Failure::user(problem));
        }
    }
    let several = chosen.len() > 1;
    let stop = stop::listen()?;
    let mut benches = Vec::new();
    for scenario in chosen {
        let folder =
            args.lab.out.as_ref().map(|out| if several { out.join(folder_name(&scenario.name)) } else { out.clone() });
        let options = BenchOptions { live: args.live, ..args.lab.bench() };
        benches.push(Bench::prepare(scenario, &options, folder.as_deref(), &stop)?);
    }

    let mut reports = Vec::new();
    let mut stopped = false;
    for bench in &benches {
        let (report, was_stopped) = one(bench, &args, options, output)?;
        stopped |= was_stopped;
        if !output.json {
            if !reports.is_empty() {
                output.result("")?;
            }
            output.result(&thalweg_report::terminal::lab(&report, args.intervals, output.width, output.color))?;
        }
        reports.push(report);
        if stopped {
            break;
        }
    }
    if output.json {
        match reports.as_slice() {
            [report] => output.json_result(report)?,
            reports => output.json_result(&reports)?,
        }
    }
    if let Some(path) = &args.junit {
        whole::write(path, &thalweg_report::junit::junit(&reports))?;
    }
    if stopped {
        let folders: Vec<String> = benches.iter().map(|bench| bench.out.path().display().to_string()).collect();
        let out = args.lab.out.as_ref().map_or_else(|| folders.join(" "), |out| out.display().to_string());
        return Err(Failure::stopped().hint(format!("the same command with --resume --out {out} runs what is missing")));
    }
    let failed: Vec<&FailedRun> = reports.iter().flat_map(|report| &report.failed).collect();
    if let Some(first) = failed.first() {
        let FailedRun { arm, seed, why } = first;
        return Err(Failure::host(anyhow!(
            "{} of the runs gave no result: arm '{arm}', seed {seed}: {why}",
            failed.len()
        ))
        .hint("the report holds the others"));
    }
    let met = reports.iter().flat_map(|report| &report.expect).all(|outcome| outcome.met);
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Refuses what was typed that a run in real time has no use for; the same from the environment is for other runs.
fn check_alone(lab: &LabOptions) -> Result<(), Failure> {
    let is_typed = |variable: &str| std::env::var_os(variable).is_none();
    if !lab.kernel.is_empty() && is_typed("THALWEG_KERNEL") {
        return Err(Failure::user(anyhow!("--live runs on this host's kernel, so it takes no --kernel"))
            .hint("leave out one of the two; thalweg lab compare holds the reports of two runs side by side"));
    }
    if lab.jobs.is_some_and(|jobs| jobs > 1) && is_typed("THALWEG_JOBS") {
        return Err(Failure::user(anyhow!(
            "runs in real time would disturb each other, so --live makes one at a time"
        ))
        .hint("leave out --jobs"));
    }
    Ok(())
}

/// Finds a scenario, and keeps the arms that are wanted.
fn choose(name: &str, args: &LabRunArgs) -> Result<Scenario, Failure> {
    let mut chosen = scenarios::find(name, &args.lab.set)?;
    scenarios::keep(&mut chosen, &args.arm)?;
    let named = [&args.lab.kernel, &chosen.kernels].into_iter().find(|list| !list.is_empty()).map_or(1, Vec::len);
    let kernels = if args.live { 1 } else { named };
    if chosen.arms.len().saturating_mul(kernels).saturating_mul(args.repeat as usize) > RUNS_MAX {
        let problem = format!(
            "'{}': {} arms, {kernels} kernels and {} repeats make more than {RUNS_MAX} runs",
            chosen.name,
            chosen.arms.len(),
            args.repeat
        );
        return Err(Failure::user(anyhow!(problem)));
    }
    Ok(chosen)
}

/// Runs a scenario and writes what came of it into its folder.
fn one(bench: &Bench, args: &LabRunArgs, options: RunOptions, output: &Output) -> Result<(LabReport, bool), Failure> {
    let (arms, mut expect) = thalweg_lab::across(&bench.scenario, &bench.engines);
    if options.capture == CaptureEnds::Off {
        // Without a capture there is no verdict to hold an expectation against.
        expect.retain(|line| line.metric != "verdict");
    }
    let journal = journal(bench, args, output)?;
    let task =
        Task { arms: &arms, expect: &expect, repeats: args.repeat, part: args.shard, options, journal: Some(&journal) };
    let mut console = Console::new(output);
    bench.note_vain_settings(&mut console);
    let ran = bench.run(&task, &mut console)?;
    if !ran.stopped && ran.report.failed.is_empty() {
        journal.finish();
    }
    let mut report = ran.report;
    if args.shard.is_none() {
        // What the user stopped before it ran is not judged.
        let is_judged = |line: &&Expectation| !ran.stopped || report.arm(&line.arm).is_some();
        report.expect = expect.iter().filter(is_judged).map(|line| thalweg_lab::check(line, &report.arms)).collect();
        for why in unknown_figures(&expect, &report) {
            output.note(&why);
        }
        report.expect.extend(thalweg_lab::unexpected_exits(&report.arms, &expect));
    }
    bench.out.write("report.json", &thalweg_report::json::to_string(&report).map_err(Failure::host)?)?;
    if let Some(format) = args.export {
        let format = match format {
            ExportFormat::Csv => Format::Csv,
            ExportFormat::Parquet => Format::Parquet,
        };
        let folder = bench.out.path();
        Export { scenario: &report.scenario, arms: &arms, runs: &ran.runs, folder, format }.write()?;
    }
    let arms = plots::of_arms(&report, ran.findings);
    let page = Page { title: report.scenario.clone(), lab: Some(&report), arms, ..Page::default() };
    let html = bench.out.write("report.html", &thalweg_report::html::page(&page))?;
    output.note(&format!("plots: {}", html.display()));
    Ok((report, ran.stopped))
}

/// What expectations ask of arms that have no such figure, with the nearest that they have. Which figures an arm has, its run decides.
fn unknown_figures(expect: &[Expectation], report: &LabReport) -> Vec<String> {
    let mut found = Vec::new();
    for line in expect.iter().filter(|line| line.metric != "verdict") {
        let Some(arm) = report.arm(&line.arm) else { continue };
        if Metric::named(&arm.metrics, &line.metric).is_none() {
            let names: Vec<String> = Metric::flatten(&arm.metrics).into_iter().map(|(name, _)| name).collect();
            let nearest = thalweg_config::nearest(&line.metric, names.iter().map(String::as_str));
            let hint = nearest.map_or_else(String::new, |nearest| format!("; did you mean '{nearest}'?"));
            found.push(format!("[expect]: arm '{}' has no figure '{}'{hint}", line.arm, line.metric));
        }
    }
    found
}

/// The journal of finished runs, which `--resume` goes on with.
fn journal(bench: &Bench, args: &LabRunArgs, output: &Output) -> Result<RunJournal, Failure> {
    let folder = bench.out.path();
    if args.resume {
        check_is_of(&bench.scenario.name, folder)?;
    }
    let journal = RunJournal::open(folder, args.resume).map_err(|error| {
        Failure::host(anyhow!("cannot write {}: {error}", folder.join(RunJournal::FILE).display()))
            .hint("choose another folder by --out DIR")
    })?;
    if args.resume {
        output.note(&format!("{} of the runs are known from before", journal.known()));
    }
    Ok(journal)
}

/// Refuses to go on in a folder whose report is another scenario's: their files would be mixed.
fn check_is_of(scenario: &str, folder: &Path) -> Result<(), Failure> {
    let Ok(text) = std::fs::read(folder.join("report.json")) else { return Ok(()) };
    let document: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    match document["scenario"].as_str() {
        Some(other) if other != scenario => {
            let problem = anyhow!("{} holds a run of '{other}', not of '{scenario}'", folder.display());
            Err(Failure::user(problem).hint("choose another folder by --out DIR"))
        }
        _ => Ok(()),
    }
}

fn interval(text: &str) -> Result<Option<Span>, Failure> {
    if text == "off" {
        return Ok(None);
    }
    match text.parse::<Span>() {
        Ok(span) if span >= Span::from_micros(100) => Ok(Some(span)),
        Ok(span) => Err(Failure::user(anyhow!("samples every {span} are more than the lab takes: 100us is the least"))),
        Err(error) => Err(Failure::user(anyhow!("--samples: {error}, or off"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_another_scenario_is_not_gone_on_with() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(check_is_of("a", folder.path()).is_ok(), "no report");
        std::fs::write(folder.path().join("report.json"), "{\"scenario\":\"a\"}").expect("written");
        assert!(check_is_of("a", folder.path()).is_ok());
        let failure = check_is_of("b", folder.path()).expect_err("another").to_string();
        assert!(failure.contains("holds a run of 'a', not of 'b'"), "{failure}");
    }
}
