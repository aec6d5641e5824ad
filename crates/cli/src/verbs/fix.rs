//! `thalweg fix`: what slows a scenario or a captured connection, and a proven remedy.

use crate::args::FixArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Console;
use crate::{live, plots, scenarios, stop};
use anyhow::anyhow;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thalweg_model::{Code, FixReport};
use thalweg_pipeline::fix::{self, CaptureRequest, Fixed, FixedCapture};
use thalweg_pipeline::{ArmFindings, Bench, OutFolder, bundle};
use thalweg_report::html::Page;
use thalweg_wire::filter::{Filter, FilterError};

pub(crate) fn run(args: &FixArgs, output: &Output) -> Result<ExitCode, Failure> {
    let stop = stop::listen()?;
    if let Some(what) = &args.live {
        return live(what, args, &stop, output);
    }
    let what = args.what.as_deref().unwrap_or_default();
    let path = Path::new(what);
    if is_binary(path) {
        check_capture(what, args)?;
        let name = path.file_stem().map_or_else(|| "capture".to_owned(), |stem| stem.to_string_lossy().into_owned());
        let out = OutFolder::prepare(args.lab.out.as_deref(), &name)?;
        return capture(path, (&name, &out), args, &stop, output);
    }
    if args.flow.is_some() || args.bundle.is_some() {
        return Err(Failure::user(anyhow!("--flow and --bundle are for captures, and '{what}' is none"))
            .hint("thalweg lab run takes a scenario as it is; a capture is pcap or pcapng"));
    }
    let mut scenario = scenarios::find(what, &args.lab.set)?;
    if let Some(arm) = &args.arm {
        scenarios::keep(&mut scenario, std::slice::from_ref(arm))?;
    }
    let bench = Bench::prepare(scenario, &args.lab.bench(), args.lab.out.as_deref(), &stop)?;
    let Fixed { report: fix, findings } = fix::scenario(&bench, args.own_path, &mut Console::new(output))?;
    conclude(&format!("fix {}", bench.scenario.name), &fix, findings, &bench.out, output)
}

/// Whether it is a file that is not text: a capture, packed or not.
fn is_binary(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut begin));
    read.is_ok() && (begin.contains(&0) || std::str::from_utf8(&begin).is_err_and(|error| error.error_len().is_some()))
}

/// Captures first. Ctrl-C ends the capture, and then the fix.
fn live(what: &str, args: &FixArgs, stop: &Arc<AtomicBool>, output: &Output) -> Result<ExitCode, Failure> {
    check_capture("live", args)?;
    let filter = live::filter_of(what)?;
    let filter: Filter = filter.parse().map_err(|error: FilterError| {
        let hint = error.hint.clone();
        Failure::user(anyhow!("--live: {error}")).hint(hint)
    })?;
    let out = OutFolder::prepare(args.lab.out.as_deref(), "live")?;
    let path = out.path().join("live.pcapng");
    live::record_to(&path, &filter, args.duration, stop, output)?;
    stop.store(false, Ordering::Relaxed);
    capture(&path, ("live", &out), args, stop, output)
}

/// Refuses what is for scenarios.
fn check_capture(what: &str, args: &FixArgs) -> Result<(), Failure> {
    if let Some(arm) = &args.arm {
        return Err(Failure::user(anyhow!("--arm {arm} chooses an arm of a scenario, and '{what}' is a capture"))
            .hint("--flow N chooses a connection of a capture"));
    }
    if !args.lab.set.is_empty() {
        return Err(Failure::user(anyhow!("--set changes a scenario, and '{what}' is a capture"))
            .hint("--bundle DIR writes the fitted scenario, which thalweg fix takes with --set"));
    }
    Ok(())
}

fn capture(
    path: &Path,
    (name, out): (&str, &OutFolder),
    args: &FixArgs,
    stop: &Arc<AtomicBool>,
    output: &Output,
) -> Result<ExitCode, Failure> {
    if let Some(folder) = &args.bundle {
        bundle::check(folder)?;
    }
    let request = CaptureRequest { path, flow: args.flow, own_path: args.own_path, options: args.lab.bench() };
    let FixedCapture { report: fix, scenario } = fix::capture(&request, stop, &mut Console::new(output))?;
    if let Some(scenario) = &scenario {
        out.write("fitted.toml", scenario)?;
    }
    match (&args.bundle, &scenario) {
        (Some(folder), Some(scenario)) => {
            bundle::write(folder, scenario, &fix, &request.options, stop, &mut Console::new(output))?;
            output.note(&format!("bundle: {}", folder.display()));
        }
        (Some(_), None) => output.note("no bundle: no path was fitted"),
        (None, _) => {}
    }
    conclude(&format!("fix {name}"), &fix, Vec::new(), out, output)
}

/// Writes the document and its page into the folder of results, and prints what was asked for.
fn conclude(
    title: &str,
    fix: &FixReport,
    findings: Vec<Option<ArmFindings>>,
    out: &OutFolder,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let json = thalweg_report::json::to_string(fix).map_err(Failure::host)?;
    out.write("fix.json", &json)?;
    let arms = fix.proof.as_ref().map(|proof| plots::of_arms(proof, findings)).unwrap_or_default();
    let page = Page { title: title.to_owned(), lab: fix.proof.as_ref(), fix: Some(fix), arms, ..Page::default() };
    let html = out.write("report.html", &thalweg_report::html::page(&page))?;
    let html = html.canonicalize().unwrap_or(html).display().to_string();
    if output.json {
        output.result(&json)?;
    } else {
        output.result(&thalweg_report::terminal::fix(fix, Some(&html), output.width, output.color))?;
    }
    Ok(if is_answered(fix) { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Whether a remedy is proven, or nothing is to gain: by the verdict, or because no set of settings that was run is better. A set that is better
/// and not accepted is something to gain.
fn is_answered(fix: &FixReport) -> bool {
    let is_proven = fix.remedy.is_some() && fix.after.is_some();
    let is_searched_in_vain = fix.proof.is_some() && fix.remedy.is_none() && fix.rejected.is_empty();
    is_proven || fix.cause.code == Code::NothingToGain || is_searched_in_vain
}
