//! `thalweg diagnose`.

use crate::args::DiagnoseArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::{self, Reading};
use crate::sinks::{self, INTERVALS_MAX, PLOTS_MAX, annotated_copy};
use crate::tables::fleet;
use crate::targets::{self, Target};
use crate::{failure, live};
use anyhow::anyhow;
use std::path::PathBuf;
use std::process::ExitCode;
use thalweg_infer::{Options, PlotSelection, Retain};
use thalweg_pipeline::diagnose::{DiagnoseRequest, Plots, Remedies, capture_files, deliver, diagnose_many};

/// Connections for which remedies are planned where only the costliest are shown; more than the terminal and a page show.
const PLANNED: usize = 64;

pub(crate) fn run(args: &DiagnoseArgs, output: &Output) -> Result<ExitCode, Failure> {
    let request = request(args, output);
    check(args, &request.paths)?;
    if args.live.is_none() {
        thalweg_host::allocator::keep_freed_memory();
    }
    let bar = progress::bar(output, "diagnosing");
    let sinks = sinks::all(args, output, &request, &bar)?;
    let outcome = match &args.live {
        Some(filter) => {
            let plots = if args.html.is_some() || args.flow.is_some() || args.intervals.is_some() {
                Options::default().drawn
            } else {
                PlotSelection::None
            };
            bar.finish_and_clear();
            let found = live::watch(args, filter, Options { drawn: plots, ..Options::default() }, output)?;
            deliver(&request, live::NAME, found, sinks)
        }
        None => diagnose_many(&request, sinks, &mut Reading { bar: bar.clone() }),
    };
    bar.finish_and_clear();
    let outcome = outcome?;
    Ok(outcome.failed.map_or_else(|| ExitCode::from(u8::from(outcome.slowed)), failure::code_of))
}

fn request(args: &DiagnoseArgs, output: &Output) -> DiagnoseRequest {
    let every = output.json || args.parquet.is_some();
    let planned = if every { usize::MAX } else { args.top.max(PLANNED) };
    let all = every || args.pcapng.is_some() || args.flow.is_some();
    let paths = capture_files(&args.captures);
    // Of several captures those connections are plotted in the end that turn out to be the worst.
    let plots = match args.html {
        Some(_) if args.flow.is_none() && paths.len() == 1 => PLOTS_MAX,
        _ if args.intervals.is_some() => INTERVALS_MAX,
        _ => 0,
    };
    DiagnoseRequest {
        paths,
        jobs: args.jobs.map_or(0, usize::from),
        filter: args.filter.clone(),
        retain: if all { Retain::All } else { Retain::Costliest(planned) },
        flow: args.flow,
        plots: Plots { captures: if plots > 0 { usize::MAX } else { 0 }, flows: plots },
        remedies: if args.live.is_some() {
            live::remedies(args.kernel)
        } else {
            Remedies { kernel: args.kernel, own: None }
        },
        planned,
        ends_process: true,
    }
}

/// Refuses what cannot be done before anything is read.
fn check(args: &DiagnoseArgs, paths: &[PathBuf]) -> Result<(), Failure> {
    if paths.is_empty() && args.live.is_none() {
        return Err(Failure::user(anyhow!("there is no capture in the folders given"))
            .hint("in folders, files named .pcap, .pcapng or .cap are read, also with a number or compressed"));
    }
    if args.intervals.is_some_and(|every| every.to_duration().is_zero()) {
        return Err(Failure::user(anyhow!("--intervals takes a time above 0")).hint("for each second: --intervals 1s"));
    }
    if args.pcapng.is_some() {
        annotated_copy::check(paths)?;
    }
    let tables: Vec<_> = args.parquet.as_deref().map(fleet::files).into_iter().flatten().collect();
    let files = [("--html", &args.html), ("--pcapng", &args.pcapng)].into_iter();
    let files = files.filter_map(|(option, path)| Some((option, path.as_deref()?)));
    let written: Vec<Target<'_>> = files.chain(tables.iter().map(|path| ("--parquet", path.as_path()))).collect();
    targets::check(paths, &written)
}
