//! `diagnose --json`: one document on stdout, written capture by capture.

use crate::failure::Failure;
use crate::output::printed;
use std::io::{self, BufWriter, Stdout};
use std::path::Path;
use thalweg_infer::CaptureDiagnosis;
use thalweg_pipeline::diagnose::Sink;
use thalweg_report::json::DiagnoseDocument;

const BUFFER_BYTES: usize = 1 << 16;

/// The document, begun with the first capture: if the only one cannot be read, stdout stays empty.
#[derive(Default)]
pub(super) struct Json {
    document: Option<DiagnoseDocument<BufWriter<Stdout>>>,
}

impl Sink for Json {
    fn capture(&mut self, _: &Path, found: &CaptureDiagnosis) -> Result<(), Failure> {
        let document = match &mut self.document {
            Some(document) => Ok(document),
            none => DiagnoseDocument::begin(BufWriter::with_capacity(BUFFER_BYTES, io::stdout()))
                .map(|document| none.insert(document)),
        };
        printed(document.and_then(|document| document.add(&found.report)))
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        self.document.map_or(Ok(()), |document| printed(document.finish()))
    }
}
