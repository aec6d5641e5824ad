//! A whole capture: read, followed, judged.

mod decode;
mod header_copy;
mod hello_assembly;
mod merge;
mod name_lookups;
mod notes;
mod options;
mod quic;
mod repeated_packets;
mod shard;
mod time_order;

pub use decode::CaptureDecoder;
pub use header_copy::copy_headers;
pub use merge::{CaptureDiagnosis, merge};
pub use options::Options;
pub use shard::{Shard, ShardResult};

use crate::Error;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use thalweg_units::Timestamp;
use thalweg_wire::Capture;

/// Diagnoses a capture file.
///
/// # Errors
/// [`Error`] when the file cannot be opened or read, or is no capture. A file that is cut or damaged is no error: the report's
/// notes say what is missing.
pub fn diagnose_file(path: &Path) -> Result<CaptureDiagnosis, Error> {
    diagnose_file_with(path, Options::default())
}

/// Diagnoses a capture file, as `options` say.
///
/// # Errors
/// As [`diagnose_file`].
pub fn diagnose_file_with(path: &Path, options: Options) -> Result<CaptureDiagnosis, Error> {
    diagnose_reader_with(open(path)?, &path.display().to_string(), options)
}

/// Diagnoses a capture file up to `until`: what came later is not read.
///
/// # Errors
/// As [`diagnose_file`].
pub fn diagnose_file_until(path: &Path, options: Options, until: Timestamp) -> Result<CaptureDiagnosis, Error> {
    read(open(path)?, &path.display().to_string(), options, Some(until))
}

/// Diagnoses the capture that `from` gives; `name` is what the report and errors call it.
///
/// # Errors
/// [`Error`] when it cannot be read, or is no capture.
pub fn diagnose_reader(from: impl Read, name: &str) -> Result<CaptureDiagnosis, Error> {
    diagnose_reader_with(from, name, Options::default())
}

/// Diagnoses the capture that `from` gives, as `options` say.
///
/// # Errors
/// As [`diagnose_reader`].
pub fn diagnose_reader_with(from: impl Read, name: &str, options: Options) -> Result<CaptureDiagnosis, Error> {
    read(from, name, options, None)
}

fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(|cause| Error::Open { path: path.display().to_string(), cause })
}

fn read(from: impl Read, name: &str, options: Options, until: Option<Timestamp>) -> Result<CaptureDiagnosis, Error> {
    let mut capture = Capture::new(from).map_err(|error| Error::from_wire(error, name))?;
    let mut decoder = CaptureDecoder::new(options.filter.clone());
    let mut shard = Shard::new(options);
    while let Some(packet) = capture.next().map_err(|error| Error::from_wire(error, name))? {
        if until.is_some_and(|until| packet.at > until) {
            break;
        }
        decoder.packet(&packet, |seen| shard.packet(&seen));
    }
    decoder.finish(|seen| shard.packet(&seen));
    let part = shard.finish(decoder.clock());
    Ok(merge(name, &capture, decoder, vec![part]))
}
