//! Captures that could not be read, on stderr.

use crate::failure::Failure;
use crate::output::Output;
use std::path::Path;
use thalweg_infer::CaptureDiagnosis;
use thalweg_pipeline::diagnose::Sink;

/// Prints why a capture could not be read, when it is its turn.
pub(super) struct Failures<'a> {
    output: &'a Output,
}

impl<'a> Failures<'a> {
    pub(super) const fn new(output: &'a Output) -> Self {
        Self { output }
    }
}

impl Sink for Failures<'_> {
    fn capture(&mut self, _: &Path, _: &CaptureDiagnosis) -> Result<(), Failure> {
        Ok(())
    }

    fn failed(&mut self, _: &Path, failure: &Failure) -> Result<(), Failure> {
        self.output.failure(failure);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}
