//! `thalweg diagnose`.

use crate::args::DiagnoseArgs;
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::live;
use crate::output::Output;
use crate::{annotate, whole};
use anyhow::anyhow;
use infer::{CaptureDiagnosis, Options};
use model::{Code, DiagnoseReport};
use report::html::{ArmPlots, Page};
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Below this gain there is nothing to report.
const WORTH: f64 = 1.05;
/// Plots on one page.
const PLOTS_MAX: usize = 20;

pub(crate) fn run(args: &DiagnoseArgs, output: &Output) -> Result<ExitCode, Failure> {
    if let Some(copy) = &args.pcapng {
        annotate::check(&args.captures, copy)?;
    }
    let options = Options { series: args.html.is_some(), filter: args.filter.clone() };
    let mut fleet = args.parquet.as_deref().map(Fleet::create).transpose()?;
    let mut captures = Vec::new();
    if let Some(filter) = &args.live {
        captures.push(live::watch(args, filter, options.clone(), output)?);
    }
    for path in &args.captures {
        let capture = read(path, options.clone())?;
        if let Some(fleet) = &mut fleet {
            fleet.add(&capture.report)?;
        }
        if let Some(copy) = &args.pcapng {
            annotate::write(&capture.report, path, copy, output)?;
        }
        captures.push(capture);
    }
    if let (Some(fleet), Some(folder)) = (fleet, &args.parquet) {
        fleet.finish()?;
        output.note(&format!("tables: {}", folder.display()));
    }
    let problem = captures.iter().flat_map(|capture| &capture.report.flows).any(|flow| {
        let own = matches!(flow.verdict.code, Code::NothingToGain | Code::Unknown | Code::Application | Code::PathRate);
        !own && flow.verdict.gain.is_some_and(|gain| gain >= WORTH)
    });
    let mut arms = Vec::new();
    let mut report = DiagnoseReport { schema: "thalweg.diagnose/1".to_owned(), captures: Vec::new() };
    for CaptureDiagnosis { report: capture, series } in captures {
        for (flow, series) in capture.flows.iter().zip(series) {
            if args.html.is_some() && arms.len() < PLOTS_MAX {
                let seen_at = flow.interface.as_ref().map(|name| format!(", at {name}")).unwrap_or_default();
                let name = format!("{} – {}{seen_at}", flow.client, flow.server);
                arms.push(ArmPlots::of_flow(name, flow, series));
            }
        }
        report.captures.push(capture);
    }
    if let Some(path) = &args.html {
        let title = report.captures.iter().map(|capture| capture.file.clone()).collect::<Vec<_>>().join(", ");
        let page = Page { title, lab: None, fix: None, arms };
        whole::write(path, &report::html::page(&page))?;
        output.note(&format!("plots: {}", path.display()));
    }
    if output.json {
        output.json_result(&report)?;
    } else {
        output.result(&report::terminal::diagnose(&report, output.width, output.color));
    }
    Ok(if problem { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn read(path: &Path, options: Options) -> Result<CaptureDiagnosis, Failure> {
    let result = if path == Path::new("-") {
        infer::diagnose_reader_with(io::stdin().lock(), "-", options)
    } else {
        infer::diagnose_file_with(path, options)
    };
    result.map_err(|error| {
        Failure::user(anyhow!("{error}"))
            .hint("captures are pcap or pcapng files, as tcpdump -w and Wireshark write them, as they are or packed with gzip, xz or zstd")
    })
}
