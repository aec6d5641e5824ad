//! `diagnose --pcapng`: a copy of the capture that says what was found, packet by packet.

use crate::failure::Failure;
use crate::output::Output;
use anyhow::anyhow;
use std::fs::File;
use std::path::Path;
use thalweg_infer::CaptureDiagnosis;
use thalweg_pipeline::diagnose::{DiagnoseRequest, Sink, mark};
use thalweg_pipeline::whole;
use thalweg_report::comments;
use thalweg_wire::pcapng::{AnnotateError, annotate};

/// Refuses what cannot be copied, before anything is read.
pub(crate) fn check(captures: &[impl AsRef<Path>]) -> Result<(), Failure> {
    let [capture] = captures else {
        return Err(Failure::user(anyhow!("--pcapng copies one capture, {} were given", captures.len())));
    };
    let capture = capture.as_ref();
    if capture == Path::new("-") {
        return Err(Failure::user(anyhow!("--pcapng reads the capture twice, which stdin does not allow"))
            .hint("save it to a file first: tcpdump -w capture.pcap …"));
    }
    Ok(())
}

/// Writes the copy of a capture.
pub(super) struct AnnotatedCopy<'a> {
    to: &'a Path,
    request: &'a DiagnoseRequest,
    output: &'a Output,
}

impl<'a> AnnotatedCopy<'a> {
    pub(super) const fn new(to: &'a Path, request: &'a DiagnoseRequest, output: &'a Output) -> Self {
        Self { to, request, output }
    }
}

impl Sink for AnnotatedCopy<'_> {
    /// The copy has its name only when it is whole.
    fn capture(&mut self, from: &Path, found: &CaptureDiagnosis) -> Result<(), Failure> {
        let CaptureDiagnosis { report: marked, series, .. } = mark(self.request, from)?;
        let marks = series.into_iter().map(|(index, series)| (marked.flows[index].id, series)).collect();
        let (summary, comments) = (comments::summary(&found.report), comments::comments(&found.report, &marks));
        let unreadable = |error: &dyn std::fmt::Display| {
            Failure::user(anyhow!("cannot read the capture '{}': {error}", from.display()))
        };
        let source = File::open(from).map_err(|error| unreadable(&error))?;
        let done = whole::fill(self.to, |copy| {
            annotate(source, copy, &summary, &comments).map_err(|error| match error {
                AnnotateError::Read(error) => unreadable(&error),
                AnnotateError::Write(error) => whole::failed(self.to, &error),
            })
        })?;
        let (to, commented) = (self.to.display(), done.commented);
        self.output.note(&format!("copy: {to}, {commented} of {} packets with comments", done.packets));
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}
