//! One capture, read as often as it takes: what is drawn of it is known after reading it once.

use super::defect;
use super::files::unreadable;
use super::request::DiagnoseRequest;
use super::shards::divided;
use crate::failure::Failure;
use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use thalweg_infer::{CaptureDiagnosis, Error, Options, PlotSelection, Retain};

/// Files from this size on are divided among processors; below it the work is over before threads have started to pay.
const DIVIDED_BYTES: u64 = 32 << 20;

/// Diagnoses the capture at `place` of the request with `threads` threads, and adds what was read of its file to `read`.
///
/// A panic is caught: it is this program's defect, and the other captures are not to suffer from it.
pub(super) fn one(
    request: &DiagnoseRequest,
    place: usize,
    threads: usize,
    read: &AtomicU64,
) -> Result<CaptureDiagnosis, Failure> {
    let path = &request.paths[place];
    let found = catch_unwind(AssertUnwindSafe(|| diagnose(request, place, threads, read))).unwrap_or_else(|_| {
        Err(Failure::host(format!("an internal error ended the diagnosis of {}", path.display())).hint(
            "this is a defect of thalweg: report it with the message above and, if you may share it, the capture",
        ))
    });
    found.map(|mut found| {
        if path != Path::new("-") {
            defect::save(&mut found, path, &std::env::temp_dir());
        }
        request.plan(&mut found);
        found
    })
}

fn diagnose(
    request: &DiagnoseRequest,
    place: usize,
    threads: usize,
    read: &AtomicU64,
) -> Result<CaptureDiagnosis, Failure> {
    let path = &request.paths[place];
    let flows = if place < request.plots.captures { request.plots.flows } else { 0 };
    let options = |drawn, wanted| Options { drawn, filter: request.filter.clone(), wanted };
    if path == Path::new("-") {
        // It can be read once only, so more is drawn than may be wanted.
        let draws = flows > 0 || request.flow.is_some();
        let drawn = if draws { Options::default().drawn } else { PlotSelection::None };
        let found = thalweg_infer::diagnose_reader_with(io::stdin().lock(), "-", options(drawn, Retain::All));
        return found.map_err(unreadable);
    }
    let mut wanted = request.retain;
    let mut found = file(path, options(PlotSelection::None, wanted), threads, Some(read))?;
    let interfaces = found.report.flows.iter().any(|flow| flow.interface.is_some());
    if interfaces && found.connections > found.report.flows.len() as u64 {
        // With the costliest flows belongs what other interfaces saw of them, however little that cost.
        drop(found);
        wanted = Retain::All;
        found = file(path, options(PlotSelection::None, wanted), threads, None)?;
    }
    let chosen = request.flow;
    let all = found.report.flows.iter().enumerate();
    let drawn = all.filter(|(index, flow)| *index < flows || chosen == Some(flow.id));
    let mut drawn: Vec<u64> = drawn.map(|(_, flow)| flow.first_packet).collect();
    if drawn.is_empty() {
        return Ok(found);
    }
    drop(found);
    drawn.sort_unstable();
    file(path, options(PlotSelection::Of(drawn), wanted), threads, None)
}

/// Reads a capture again, and records the plots of the flows with these first packets.
///
/// # Errors
/// When it cannot be read again, as stdin cannot.
pub fn plot(request: &DiagnoseRequest, path: &Path, mut first_packets: Vec<u64>) -> Result<CaptureDiagnosis, Failure> {
    first_packets.sort_unstable();
    let drawn = PlotSelection::Of(first_packets);
    let options = Options { drawn, filter: request.filter.clone(), wanted: request.retain };
    file(path, options, request.jobs(), None)
}

/// Reads a capture again, and records the retransmissions and zero windows of all its flows ([`PlotSelection::Marks`]).
///
/// # Errors
/// As [`plot`].
pub fn mark(request: &DiagnoseRequest, path: &Path) -> Result<CaptureDiagnosis, Failure> {
    let options = Options { drawn: PlotSelection::Marks, filter: request.filter.clone(), wanted: Retain::All };
    file(path, options, request.jobs(), None)
}

fn file(path: &Path, options: Options, threads: usize, read: Option<&AtomicU64>) -> Result<CaptureDiagnosis, Failure> {
    let name = path.display().to_string();
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
    let (size, file) = opened.map_err(|cause| unreadable(Error::Open { path: name.clone(), cause }))?;
    let from = Counted { from: file, read };
    let found = if threads > 1 && size >= DIVIDED_BYTES {
        divided(from, &name, &options, threads)
    } else {
        thalweg_infer::diagnose_reader_with(from, &name, options)
    };
    found.map_err(unreadable)
}

/// A reader that counts what is read.
struct Counted<'a> {
    from: File,
    read: Option<&'a AtomicU64>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        if let Some(read) = self.read {
            read.fetch_add(count as u64, Ordering::Relaxed);
        }
        Ok(count)
    }
}
