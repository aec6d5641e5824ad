//! `diagnose --json`: one document on stdout, written capture by capture.

use crate::failure::Failure;
use crate::output::printed;
use std::io::{self, BufWriter, Stdout};
use std::path::Path;
use std::time::Duration;
use thalweg_infer::CaptureDiagnosis;
use thalweg_model::CaptureReport;
use thalweg_pipeline::diagnose::Sink;
use thalweg_report::intervals::intervals;
use thalweg_report::json::DiagnoseDocument;

const BUFFER_BYTES: usize = 1 << 16;

/// The document, begun with the first capture: if the only one cannot be read, stdout stays empty.
pub(super) struct Json {
    document: Option<DiagnoseDocument<BufWriter<Stdout>>>,
    /// The length of the intervals that were asked for.
    every: Option<Duration>,
}

impl Json {
    pub(super) const fn new(every: Option<Duration>) -> Self {
        Self { document: None, every }
    }
}

/// The report with what the connections that were drawn did in each interval.
fn with_intervals(found: &CaptureDiagnosis, every: Duration) -> CaptureReport {
    let mut report = found.report.clone();
    for (index, series) in &found.series {
        report.flows[*index].intervals = intervals(series, every.as_secs_f64());
    }
    report
}

impl Sink for Json {
    fn capture(&mut self, _: &Path, found: &CaptureDiagnosis) -> Result<(), Failure> {
        let document = match &mut self.document {
            Some(document) => Ok(document),
            none => DiagnoseDocument::begin(BufWriter::with_capacity(BUFFER_BYTES, io::stdout()))
                .map(|document| none.insert(document)),
        };
        let divided = self.every.map(|every| with_intervals(found, every));
        printed(document.and_then(|document| document.add(divided.as_ref().unwrap_or(&found.report))))
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        self.document.map_or(Ok(()), |document| printed(document.finish()))
    }
}
