//! A whole capture: read, followed, judged.

use crate::Error;
use crate::engine::{Intake, Shard, join};
use crate::kept::Wanted;
use crate::table::Drawn;
use model::{CaptureReport, Series};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use wire::Capture;
use wire::filter::Filter;

/// Connections that are drawn where nobody says which.
const DRAWN: u64 = 256;

/// What is wanted of a diagnosis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Of which connections the series are recorded that plots draw; each takes up to half a megabyte.
    pub drawn: Drawn,
    /// Which packets are looked at; `None` for all.
    pub filter: Option<Filter>,
    /// Which connections are reported.
    pub wanted: Wanted,
}

impl Default for Options {
    /// All connections are reported, and the first 256 drawn.
    fn default() -> Self {
        Self { drawn: Drawn::First(DRAWN), filter: None, wanted: Wanted::All }
    }
}

/// A capture's connections, judged; those where most time could be saved come first.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptureDiagnosis {
    /// What is reported; [`model::Flow::id`] numbers flows in order of their first packets.
    pub report: CaptureReport,
    /// What is drawn, with the index of its flow in the report, in the report's order. Each series has at most 4,000 points.
    pub series: Vec<(usize, Series)>,
    /// How many connections the capture has, reported or not.
    pub connections: u64,
    /// Whether something other than its program makes one of them slower than it could be on its path.
    pub slowed: bool,
}

impl CaptureDiagnosis {
    /// What is drawn of the flow at `index` in the report.
    pub fn series_of(&self, index: usize) -> Option<&Series> {
        let place = self.series.binary_search_by_key(&index, |(at, _)| *at).ok()?;
        Some(&self.series[place].1)
    }
}

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
    let name = path.display().to_string();
    let file = File::open(path).map_err(|cause| Error::Open { path: name.clone(), cause })?;
    diagnose_reader_with(file, &name, options)
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
    let mut capture = Capture::new(from).map_err(|error| Error::from_wire(error, name))?;
    let mut intake = Intake::new(options.filter.clone());
    let mut shard = Shard::new(options);
    while let Some(packet) = capture.next().map_err(|error| Error::from_wire(error, name))? {
        intake.packet(&packet, |seen| shard.packet(&seen));
    }
    intake.finish(|seen| shard.packet(&seen));
    Ok(join(name, &capture, intake, vec![shard.finish()]))
}
