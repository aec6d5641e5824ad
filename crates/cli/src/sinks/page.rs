//! `diagnose --html`: one page with plots; of many captures with what they have in common, and plots of the worst connections of all.

use crate::failure::Failure;
use crate::output::Output;
use std::collections::BTreeMap;
use std::path::Path;
use thalweg_infer::CaptureDiagnosis;
use thalweg_model::{Flow, Series};
use thalweg_pipeline::diagnose::{DiagnoseRequest, Sink, plot};
use thalweg_report::html::{ArmPlots, Page};
use thalweg_report::many::Many;

/// Plots on one page.
pub(crate) const PLOTS_MAX: usize = 20;

/// Keeps what is plotted, and writes the page.
pub(super) struct Pages<'a> {
    path: &'a Path,
    request: &'a DiagnoseRequest,
    output: &'a Output,
    /// What they have in common, where there are many.
    many: Option<Many>,
    arms: Vec<ArmPlots>,
    notes: Vec<String>,
    connections: u64,
}

impl<'a> Pages<'a> {
    pub(super) fn new(path: &'a Path, request: &'a DiagnoseRequest, output: &'a Output) -> Self {
        let many = (request.paths.len() > 1).then(Many::default);
        Self { path, request, output, many, arms: Vec::new(), notes: Vec::new(), connections: 0 }
    }

    fn title(&self) -> String {
        match self.request.paths.as_slice() {
            [first, _, _, _, ..] => format!("{} and {} more", first.display(), self.request.paths.len() - 1),
            [] => "live".to_owned(),
            few => few.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
        }
    }

    /// The plots of the worst connections of all captures, which are read again for them.
    fn plot_worst(&mut self, many: &Many) {
        let worst: Vec<_> = many.worst().iter().take(PLOTS_MAX).collect();
        let mut series: BTreeMap<(&str, u64), Series> = BTreeMap::new();
        for path in &self.request.paths {
            let name = path.display().to_string();
            let of_file = worst.iter().filter(|ranked| ranked.file == name);
            let firsts: Vec<u64> = of_file.clone().map(|ranked| ranked.flow.first_packet).collect();
            if firsts.is_empty() || path == Path::new("-") {
                continue;
            }
            match plot(self.request, path, firsts) {
                Ok(found) => {
                    for (index, drawn) in found.series {
                        let first = found.report.flows[index].first_packet;
                        if let Some(ranked) = of_file.clone().find(|ranked| ranked.flow.first_packet == first) {
                            series.insert((&ranked.file, first), drawn);
                        }
                    }
                }
                Err(failure) => {
                    self.notes.push(format!("{name} could not be read again for its plots: {}", failure.cause()))
                }
            }
        }
        for ranked in &worst {
            // Remedies are on the page once, for all.
            let flow = Flow { remedies: Vec::new(), ..ranked.flow.clone() };
            let drawn = series.remove(&(ranked.file.as_str(), flow.first_packet)).unwrap_or_default();
            self.arms.push(ArmPlots::of_flow(name(&flow, Some(&ranked.file)), &flow, drawn));
        }
    }
}

/// The name of a connection, and of the capture where there are several.
fn name(flow: &Flow, file: Option<&str>) -> String {
    let seen_at = flow.interface.as_ref().map(|name| format!(", at {name}")).unwrap_or_default();
    let file = file.map(|file| format!(", in {file}")).unwrap_or_default();
    format!("#{} {} – {}{seen_at}{file}", flow.id, flow.client, flow.server)
}

impl Sink for Pages<'_> {
    fn capture(&mut self, _: &Path, found: &CaptureDiagnosis) -> Result<(), Failure> {
        let CaptureDiagnosis { report: capture, series, connections, .. } = found;
        self.connections += connections;
        if let Some(many) = &mut self.many {
            many.add(capture, *connections);
            return Ok(());
        }
        self.notes.extend(capture.notes.iter().cloned());
        for (index, series) in series.iter().take(PLOTS_MAX) {
            let flow = &capture.flows[*index];
            self.arms.push(ArmPlots::of_flow(name(flow, None), flow, series.clone()));
        }
        Ok(())
    }

    fn failed(&mut self, path: &Path, failure: &Failure) -> Result<(), Failure> {
        if let Some(many) = &mut self.many {
            many.unread(&path.display().to_string(), &failure.cause());
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Failure> {
        let many = self.many.take();
        if let Some(many) = &many {
            self.plot_worst(many);
        }
        let (title, shown) = (self.title(), self.arms.len() as u64);
        let mut notes = self.notes;
        if shown < self.connections && self.request.flow.is_none() {
            notes.insert(0, format!("{shown} of {} connections are plotted", self.connections));
        }
        let page = Page { title, notes, many: many.as_ref(), arms: self.arms, ..Page::default() };
        thalweg_pipeline::whole::write(self.path, &thalweg_report::html::page(&page))?;
        self.output.note(&format!("plots: {}", self.path.display()));
        Ok(())
    }
}
