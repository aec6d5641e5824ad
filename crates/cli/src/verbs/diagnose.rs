//! `thalweg diagnose`.

use crate::annotate;
use crate::args::DiagnoseArgs;
use crate::captures::{self, Work};
use crate::failure::Failure;
use crate::live;
use crate::output::{Output, printed};
use crate::remedies::Remedies;
use crate::tables::fleet::{self, Fleet};
use crate::targets::{self, Target};
use anyhow::anyhow;
use std::io::{self, BufWriter, Stdout};
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use thalweg_infer::{CaptureDiagnosis, Options, PlotSelection, Retain};
use thalweg_model::CaptureReport;
use thalweg_report::html::{ArmPlots, Page};
use thalweg_report::json::DiagnoseDocument;

/// Connections for which remedies are planned where they are not all told; more than the terminal and a page tell of.
const PLANNED: usize = 64;
/// Plots on one page.
const PLOTS_MAX: usize = 20;

pub(crate) fn run(args: &DiagnoseArgs, output: &Output) -> Result<ExitCode, Failure> {
    let paths = captures::expand(&args.captures)
        .map_err(|(path, error)| Failure::user(anyhow!("cannot read the folder '{}': {error}", path.display())))?;
    if paths.is_empty() && args.live.is_none() {
        return Err(Failure::user(anyhow!("there is no capture in the folders given"))
            .hint("in folders, files named .pcap, .pcapng or .cap are read, also with a number or compressed"));
    }
    if args.pcapng.is_some() {
        annotate::check(&paths)?;
    }
    let tables: Vec<_> = args.parquet.as_deref().map(fleet::files).into_iter().flatten().collect();
    let files = [("--html", &args.html), ("--pcapng", &args.pcapng)].into_iter();
    let files = files.filter_map(|(option, path)| Some((option, path.as_deref()?)));
    let written: Vec<Target<'_>> = files.chain(tables.iter().map(|path| ("--parquet", path.as_path()))).collect();
    targets::check(&paths, &written)?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let drawn = if args.html.is_some() && args.flow.is_none() { (PLOTS_MAX, PLOTS_MAX) } else { (0, 0) };
    let jobs = args.jobs.map_or(cores, usize::from);
    let all = output.json || args.parquet.is_some() || args.pcapng.is_some() || args.flow.is_some();
    let wanted = if all { Retain::All } else { Retain::Costliest(args.top.max(PLANNED)) };
    let work = Work { paths, jobs, drawn, flow: args.flow, filter: args.filter.clone(), wanted };
    let mut told = Told {
        args,
        to_files: output.quiet && !written.is_empty(),
        output,
        count: work.paths.len(),
        fleet: args.parquet.as_deref().map(Fleet::create).transpose()?,
        json: None,
        remedies: Remedies::new(args.kernel, args.live.is_some()),
        arms: Vec::new(),
        page_notes: Vec::new(),
        connections: 0,
        problem: false,
        flow_found: false,
        failed: false,
    };
    if let Some(filter) = &args.live {
        let draws = args.html.is_some() || args.flow.is_some();
        let options =
            if draws { Options::default() } else { Options { drawn: PlotSelection::None, ..Options::default() } };
        told.capture(0, Path::new("live"), live::watch(args, filter, options, output)?)?;
    }
    captures::diagnose(&work, output, |place, found| {
        match found {
            Ok(found) => told.capture(place, &work.paths[place], found),
            Err(error) => {
                let failure = Failure::user(anyhow!("{error}")).hint(captures::hint(&error));
                // Of many captures one that cannot be read is told, and the others are diagnosed all the same.
                if told.count == 1 {
                    return Err(failure);
                }
                output.failure(&failure);
                told.failed = true;
                Ok(())
            }
        }
    })?;
    told.finish(&work)
}

/// What is told of captures as they come; none is kept.
struct Told<'a> {
    args: &'a DiagnoseArgs,
    /// Nothing is printed: files were asked for, and quiet.
    to_files: bool,
    output: &'a Output,
    count: usize,
    fleet: Option<Fleet>,
    json: Option<DiagnoseDocument<BufWriter<Stdout>>>,
    remedies: Remedies,
    arms: Vec<ArmPlots>,
    /// Of the page: what is said of each capture, and connections in all.
    page_notes: Vec<String>,
    connections: u64,
    problem: bool,
    flow_found: bool,
    failed: bool,
}

impl Told<'_> {
    fn capture(&mut self, place: usize, path: &Path, mut found: CaptureDiagnosis) -> Result<(), Failure> {
        let all = self.output.json || self.fleet.is_some();
        let told = if all { usize::MAX } else { self.args.top.max(PLANNED) };
        for (place, flow) in found.report.flows.iter_mut().enumerate() {
            if place < told || self.args.flow == Some(flow.id) {
                self.remedies.plan(flow);
            }
        }
        if let Some(fleet) = &mut self.fleet {
            fleet.add(&found.report)?;
        }
        self.problem |= found.slowed;
        if let Some(copy) = &self.args.pcapng {
            annotate::write(&found.report, path, copy, self.output)?;
        }
        let chosen = self.args.flow.and_then(|id| found.report.flows.iter().position(|flow| flow.id == id));
        self.flow_found |= chosen.is_some();
        if self.output.json {
            match (self.args.flow, chosen) {
                (None, _) => self.json(&found.report)?,
                (Some(_), Some(index)) => self.json(&alone(&found.report, index))?,
                (Some(_), None) => {}
            }
        } else if self.to_files {
            // Asked for nothing but files.
        } else if let Some(index) = chosen {
            let (flow, series) = (&found.report.flows[index], found.series_of(index));
            let (width, color) = (self.output.width, self.output.color);
            self.output.result(&thalweg_report::terminal::diagnose_flow(&found.report, flow, series, width, color))?;
        } else if self.args.flow.is_none() {
            let (width, color) = (self.output.width, self.output.color);
            let all = found.connections;
            let text = thalweg_report::terminal::diagnose_capture(&found.report, all, self.args.top, width, color);
            self.output.result(&if place > 0 { format!("\n{text}") } else { text })?;
        }
        if self.args.html.is_some() {
            let CaptureDiagnosis { report: capture, series, connections, .. } = found;
            self.connections += connections;
            let file = if self.count > 1 { format!("{}: ", capture.file) } else { String::new() };
            self.page_notes.extend(capture.notes.iter().map(|note| format!("{file}{note}")));
            for (index, series) in series {
                let flow = &capture.flows[index];
                if self.args.flow.is_none_or(|id| id == flow.id) && self.arms.len() < PLOTS_MAX {
                    let seen_at = flow.interface.as_ref().map(|name| format!(", at {name}")).unwrap_or_default();
                    let file = if self.count > 1 { format!(", in {}", capture.file) } else { String::new() };
                    let name = format!("#{} {} – {}{seen_at}{file}", flow.id, flow.client, flow.server);
                    self.arms.push(ArmPlots::of_flow(name, flow, series));
                }
            }
        } else if self.count == 1 {
            // The process ends next: to free ten thousands of flows one by one takes a part of its time that is noticed.
            std::mem::forget(found);
        }
        Ok(())
    }

    fn json(&mut self, found: &CaptureReport) -> Result<(), Failure> {
        let document = match &mut self.json {
            Some(document) => Ok(document),
            none => DiagnoseDocument::begin(BufWriter::with_capacity(1 << 16, io::stdout()))
                .map(|document| none.insert(document)),
        };
        printed(document.and_then(|document| document.add(found)))
    }

    fn finish(self, work: &Work) -> Result<ExitCode, Failure> {
        if let Some(id) = self.args.flow.filter(|_| !self.flow_found) {
            return Err(Failure::user(anyhow!("there is no connection #{id} in what was read"))
                .hint("the list without --flow numbers them"));
        }
        if let Some(document) = self.json {
            printed(document.finish())?;
        }
        if let (Some(fleet), Some(folder)) = (self.fleet, &self.args.parquet) {
            fleet.finish()?;
            self.output.note(&format!("tables: {}", folder.display()));
        }
        if let Some(path) = &self.args.html {
            let title = match work.paths.as_slice() {
                [first, _, _, _, ..] => format!("{} and {} more", first.display(), work.paths.len() - 1),
                [] => "live".to_owned(),
                few => few.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
            };
            let shown = self.arms.len() as u64;
            let mut notes = self.page_notes;
            if shown < self.connections && self.args.flow.is_none() {
                notes.insert(0, format!("{shown} of {} connections are shown", self.connections));
            }
            let page = Page { title, notes, arms: self.arms, ..Page::default() };
            thalweg_pipeline::whole::write(path, &thalweg_report::html::page(&page))?;
            self.output.note(&format!("plots: {}", path.display()));
        }
        // 2, as when the one capture cannot be read.
        Ok(ExitCode::from(if self.failed { 2 } else { u8::from(self.problem) }))
    }
}

/// A capture's report with this one of its connections.
fn alone(report: &CaptureReport, index: usize) -> CaptureReport {
    CaptureReport {
        file: report.file.clone(),
        notes: report.notes.clone(),
        flows: vec![report.flows[index].clone()],
        ..*report
    }
}
