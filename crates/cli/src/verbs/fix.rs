//! `thalweg fix`: what slows a scenario or a captured connection, and a proven remedy.

use crate::args::FixArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Console;
use crate::{plots, scenarios, stop};
use anyhow::anyhow;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use thalweg_model::{Code, FixReport};
use thalweg_pipeline::fix::{self, CaptureRequest, Fixed, FixedCapture};
use thalweg_pipeline::{ArmFindings, Bench, OutFolder, bundle};
use thalweg_report::html::Page;

pub(crate) fn run(args: &FixArgs, output: &Output) -> Result<ExitCode, Failure> {
    let path = Path::new(&args.what);
    if is_binary(path) {
        return capture(path, args, output);
    }
    if args.flow.is_some() || args.bundle.is_some() || args.own_path {
        return Err(Failure::user(anyhow!(
            "--flow, --own-path and --bundle are for captures, and '{}' is none",
            args.what
        ))
        .hint("thalweg lab run takes a scenario as it is; a capture is pcap or pcapng"));
    }
    let mut scenario = scenarios::find(&args.what, &args.lab.set)?;
    if let Some(arm) = &args.arm {
        scenarios::keep(&mut scenario, std::slice::from_ref(arm))?;
    }
    let bench = Bench::prepare(scenario, &args.lab.bench(), args.lab.out.as_deref(), &stop::listen()?)?;
    let Fixed { report: fix, findings } = fix::scenario(&bench, &mut Console::new(output))?;
    conclude(&format!("fix {}", bench.scenario.name), &fix, findings, &bench.out, output)
}

/// Whether it is a file that is not text: a capture, packed or not.
fn is_binary(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut begin));
    read.is_ok() && (begin.contains(&0) || std::str::from_utf8(&begin).is_err_and(|error| error.error_len().is_some()))
}

fn capture(path: &Path, args: &FixArgs, output: &Output) -> Result<ExitCode, Failure> {
    if let Some(arm) = &args.arm {
        return Err(Failure::user(anyhow!(
            "--arm {arm} chooses an arm of a scenario, and '{}' is a capture",
            args.what
        ))
        .hint("--flow N chooses a connection of a capture"));
    }
    if !args.lab.set.is_empty() {
        return Err(Failure::user(anyhow!("--set changes a scenario, and '{}' is a capture", args.what))
            .hint("--bundle DIR writes the fitted scenario, which thalweg fix takes with --set"));
    }
    let stop = stop::listen()?;
    let request = CaptureRequest { path, flow: args.flow, own_path: args.own_path, options: args.lab.bench() };
    let name = path.file_stem().map_or_else(|| "capture".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let out = OutFolder::prepare(args.lab.out.as_deref(), &name)?;
    let FixedCapture { report: fix, scenario } = fix::capture(&request, &stop, &mut Console::new(output))?;
    if let Some(scenario) = &scenario {
        out.write("fitted.toml", scenario)?;
    }
    if let Some(folder) = &args.bundle {
        let scenario = scenario.as_ref().ok_or_else(|| {
            Failure::user(anyhow!("there is nothing to bundle: {}", fix.notes.join(" ")))
                .hint("without --bundle the diagnosis is shown as far as it goes")
        })?;
        bundle::write(folder, scenario, &fix, &request.options, &stop, &mut Console::new(output))?;
        output.note(&format!("bundle: {}", folder.display()));
    }
    conclude(&format!("fix {name}"), &fix, Vec::new(), &out, output)
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
    let proven = fix.remedy.is_some() && fix.after.is_some();
    Ok(if proven || fix.cause.code == Code::NothingToGain { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
