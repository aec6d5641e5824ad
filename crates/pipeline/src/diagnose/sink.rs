//! What receives diagnoses.

use crate::failure::Failure;
use std::path::Path;
use thalweg_infer::CaptureDiagnosis;

/// Receives diagnoses of captures: writes them as text, JSON, tables, a page, or whatever a program wants of them.
///
/// Captures come one at a time in the order of the request, so that a sink needs no more memory than what it keeps of them.
pub trait Sink {
    /// Takes the diagnosis of the capture at `path`.
    ///
    /// # Errors
    /// When it cannot be written; the work ends with that.
    fn capture(&mut self, path: &Path, found: &CaptureDiagnosis) -> Result<(), Failure>;

    /// Takes note of one of several captures that cannot be read; the others are diagnosed all the same.
    ///
    /// # Errors
    /// As [`Sink::capture`].
    fn failed(&mut self, _path: &Path, _failure: &Failure) -> Result<(), Failure> {
        Ok(())
    }

    /// Writes what it kept until the last capture. It is not called when the work failed: then nothing half written may stay.
    ///
    /// # Errors
    /// As [`Sink::capture`].
    fn finish(self: Box<Self>) -> Result<(), Failure>;
}
