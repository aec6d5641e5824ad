//! `diagnose --html`: one page with the plots of all captures.

use crate::failure::Failure;
use crate::output::Output;
use std::path::{Path, PathBuf};
use thalweg_infer::CaptureDiagnosis;
use thalweg_pipeline::diagnose::Sink;
use thalweg_report::html::{ArmPlots, Page};

/// Plots on one page.
pub(crate) const PLOTS_MAX: usize = 20;

/// Keeps what is plotted, and writes the page.
pub(super) struct Pages<'a> {
    path: &'a Path,
    captures: &'a [PathBuf],
    is_one_flow: bool,
    output: &'a Output,
    arms: Vec<ArmPlots>,
    notes: Vec<String>,
    connections: u64,
}

impl<'a> Pages<'a> {
    /// `is_one_flow` where only one connection of each capture was asked for.
    pub(super) const fn new(path: &'a Path, captures: &'a [PathBuf], is_one_flow: bool, output: &'a Output) -> Self {
        Self { path, captures, is_one_flow, output, arms: Vec::new(), notes: Vec::new(), connections: 0 }
    }

    fn title(&self) -> String {
        match self.captures {
            [first, _, _, _, ..] => format!("{} and {} more", first.display(), self.captures.len() - 1),
            [] => "live".to_owned(),
            few => few.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
        }
    }
}

impl Sink for Pages<'_> {
    fn capture(&mut self, _: &Path, found: &CaptureDiagnosis) -> Result<(), Failure> {
        let CaptureDiagnosis { report: capture, series, connections, .. } = found;
        let several = self.captures.len() > 1;
        self.connections += connections;
        let file = if several { format!("{}: ", capture.file) } else { String::new() };
        self.notes.extend(capture.notes.iter().map(|note| format!("{file}{note}")));
        for (index, series) in series {
            if self.arms.len() == PLOTS_MAX {
                break;
            }
            let flow = &capture.flows[*index];
            let seen_at = flow.interface.as_ref().map(|name| format!(", at {name}")).unwrap_or_default();
            let file = if several { format!(", in {}", capture.file) } else { String::new() };
            let name = format!("#{} {} – {}{seen_at}{file}", flow.id, flow.client, flow.server);
            self.arms.push(ArmPlots::of_flow(name, flow, series.clone()));
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        let (title, shown) = (self.title(), self.arms.len() as u64);
        let mut notes = self.notes;
        if shown < self.connections && !self.is_one_flow {
            notes.insert(0, format!("{shown} of {} connections are shown", self.connections));
        }
        let page = Page { title, notes, arms: self.arms, ..Page::default() };
        thalweg_pipeline::whole::write(self.path, &thalweg_report::html::page(&page))?;
        self.output.note(&format!("plots: {}", self.path.display()));
        Ok(())
    }
}
