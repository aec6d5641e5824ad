//! `diagnose --pcapng`: a copy of the capture that says what was found, packet by packet.

use crate::failure::Failure;
use crate::output::Output;
use anyhow::anyhow;
use std::fs::File;
use std::path::Path;
use thalweg_model::CaptureReport;
use thalweg_pipeline::whole;
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

/// Writes the copy; it has its name only when it is whole.
pub(crate) fn write(capture: &CaptureReport, from: &Path, to: &Path, output: &Output) -> Result<(), Failure> {
    let (summary, comments) = (thalweg_report::comments::summary(capture), thalweg_report::comments::comments(capture));
    let source = File::open(from)
        .map_err(|error| Failure::user(anyhow!("cannot read the capture '{}': {error}", from.display())))?;
    let done = whole::fill(to, |copy| {
        annotate(source, copy, &summary, &comments).map_err(|error| match error {
            AnnotateError::Read(error) => {
                Failure::user(anyhow!("cannot read the capture '{}': {error}", from.display()))
            }
            AnnotateError::Write(error) => whole::failed(to, &error),
        })
    })?;
    output.note(&format!("copy: {}, {} of {} packets with comments", to.display(), done.commented, done.packets));
    Ok(())
}
