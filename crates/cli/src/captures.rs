//! Captures being diagnosed: several side by side, and a large one by all processors.

use crate::output::Output;
use crate::progress;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use thalweg_infer::{
    CaptureDecoder, CaptureDiagnosis, Error, Options, PlotSelection, Retain, Shard, ShardResult, TcpPacket,
};
use thalweg_wire::Capture;
use thalweg_wire::filter::Filter;

/// Files from this size on are divided among processors; below it the work is over before threads have started to pay.
const DIVIDED_BYTES: u64 = 32 << 20;
/// Segments handed over at a time: enough that waking a thread costs little of what they do.
const BATCH: usize = 4_096;
/// Batches on their way to a shard.
const AHEAD: usize = 2;
/// Captures under way or waiting for one before them, for each worker: what bounds memory.
const WINDOW: usize = 2;
/// What the names of capture files end in; also with a number behind, as tcpdump's -C and log rotation have them, or packed.
const NAMES: [&str; 4] = [".pcap", ".pcapng", ".cap", ".ntar"];
/// What packed ones end in besides.
const PACKED: [&str; 3] = [".gz", ".xz", ".zst"];

/// What is to be done with captures.
#[derive(Debug)]
pub(crate) struct Work {
    /// The files, in order; `-` is stdin.
    pub(crate) paths: Vec<PathBuf>,
    /// Processors to use.
    pub(crate) jobs: usize,
    /// Of how many captures, from the first on, flows are drawn, and of how many flows.
    pub(crate) drawn: (usize, usize),
    /// Which packets are looked at; `None` for all.
    pub(crate) filter: Option<Filter>,
    /// Draw this flow of each capture.
    pub(crate) flow: Option<u64>,
    /// Which flows of a capture are told of.
    pub(crate) wanted: Retain,
}

/// The captures that `paths` name: a folder stands for the captures in it and below, in order of their names.
///
/// # Errors
/// When a folder cannot be read, with its path.
pub(crate) fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut all = Vec::new();
    for path in paths {
        if path.is_dir() { folder(path, &mut all)? } else { all.push(path.clone()) }
    }
    Ok(all)
}

fn folder(path: &Path, all: &mut Vec<PathBuf>) -> Result<(), (PathBuf, io::Error)> {
    let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(|error| (path.to_owned(), error))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().to_lowercase());
        // A link to a folder above would never end.
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if path.is_dir() {
            if !is_link {
                folder(&path, all)?;
            }
        } else if is_capture(&name) {
            all.push(path);
        }
    }
    Ok(())
}

/// Whether a file in a folder is taken for a capture, by its name in small letters: `a.pcap`, `a.pcap3`, `a.pcap.3`, packed or not. What
/// lies beside one and is named after it, `a.pcap.json`, is none.
fn is_capture(name: &str) -> bool {
    let whole = PACKED.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let plain = whole.trim_end_matches(|c: char| c.is_ascii_digit());
    let plain = if plain.len() < whole.len() { plain.strip_suffix('.').unwrap_or(plain) } else { plain };
    NAMES.iter().any(|end| plain.ends_with(end))
}

/// What to do about a capture that could not be read.
pub(crate) fn hint(error: &Error) -> &'static str {
    match error {
        Error::Open { cause, .. } | Error::Read { cause, .. } => match cause.kind() {
            io::ErrorKind::NotFound => "is the name right? A folder stands for all captures in it",
            io::ErrorKind::PermissionDenied => {
                "what root captured is often root's alone: sudo chown it, or run this with sudo"
            }
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                "it is damaged or was cut while it was packed: copy it again, or unpack what is left of it first"
            }
            _ => "it could not be read to its end: copy it again, or look after the disk that it is on",
        },
        Error::NotACapture { .. } => {
            "captures are pcap or pcapng files, as tcpdump -w and Wireshark write them, as they are or packed with gzip, xz or zstd"
        }
    }
}

/// Diagnoses the captures, and gives each to `done` with its place, in their order.
///
/// # Errors
/// Those of `done`, and with them the work ends.
pub(crate) fn diagnose<E>(
    work: &Work,
    output: &Output,
    mut done: impl FnMut(usize, Result<CaptureDiagnosis, Error>) -> Result<(), E>,
) -> Result<(), E> {
    let count = work.paths.len();
    let sizes: u64 = work.paths.iter().filter_map(|path| fs::metadata(path).ok()).map(|data| data.len()).sum();
    let workers = work.jobs.clamp(1, count.max(1));
    let bar = progress::bar(output, "diagnosing");
    let read = AtomicU64::new(0);
    let (to_do, next) = mpsc::channel::<usize>();
    let next = Mutex::new(next);
    let (finished, results) = mpsc::channel();
    let result = thread::scope(|scope| {
        for _ in 0..workers {
            let (next, read, finished) = (&next, &read, finished.clone());
            scope.spawn(move || {
                loop {
                    let place = next.lock().ok().and_then(|next| next.recv().ok());
                    let Some(place) = place else { return };
                    let result = one(work, place, work.jobs / workers, read);
                    if finished.send((place, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(finished);
        let mut given = count.min(workers * WINDOW);
        for place in 0..given {
            let _ = to_do.send(place);
        }
        let mut waiting = BTreeMap::new();
        let mut place = 0;
        let mut failed = Ok(());
        while place < count && failed.is_ok() {
            match results.recv_timeout(Duration::from_millis(100)) {
                Ok((place, result)) => drop(waiting.insert(place, result)),
                Err(RecvTimeoutError::Timeout) => {}
                // A worker panicked; the scope passes that on.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            progress::set(&bar, read.load(Ordering::Relaxed) as f64 / sizes.max(1) as f64);
            while let Some(result) = waiting.remove(&place) {
                if count > 1 {
                    bar.set_message(format!("diagnosing {} of {count}", place + 1));
                }
                failed = bar.suspend(|| done(place, result));
                place += 1;
                if given < count && failed.is_ok() {
                    let _ = to_do.send(given);
                    given += 1;
                }
                if failed.is_err() {
                    break;
                }
            }
        }
        drop(to_do);
        failed
    });
    bar.finish_and_clear();
    result
}

/// Diagnoses one capture; what is to be drawn of a file is known after reading it once, so it is read again.
fn one(work: &Work, place: usize, threads: usize, read: &AtomicU64) -> Result<CaptureDiagnosis, Error> {
    let path = &work.paths[place];
    let (captures, flows) = work.drawn;
    let flows = if place < captures { flows } else { 0 };
    let draws = flows > 0 || work.flow.is_some();
    if path == Path::new("-") {
        let drawn = if draws { Options::default().drawn } else { PlotSelection::None };
        let options = Options { drawn, filter: work.filter.clone(), wanted: Retain::All };
        return thalweg_infer::diagnose_reader_with(io::stdin().lock(), "-", options);
    }
    let options = |drawn, wanted| Options { drawn, filter: work.filter.clone(), wanted };
    let mut wanted = work.wanted;
    let mut found = file(path, options(PlotSelection::None, wanted), threads, Some(read))?;
    let interfaces = found.report.flows.iter().any(|flow| flow.interface.is_some());
    if interfaces && found.connections > found.report.flows.len() as u64 {
        // Where the costliest are told, so is what other interfaces saw of them, however little that cost.
        drop(found);
        wanted = Retain::All;
        found = file(path, options(PlotSelection::None, wanted), threads, None)?;
    }
    let all = found.report.flows.iter().enumerate();
    let drawn = all.filter(|(index, flow)| *index < flows || work.flow == Some(flow.id));
    let mut drawn: Vec<u64> = drawn.map(|(_, flow)| flow.first_packet).collect();
    if drawn.is_empty() {
        return Ok(found);
    }
    drop(found);
    drawn.sort_unstable();
    file(path, options(PlotSelection::Of(drawn), wanted), threads, None)
}

fn file(path: &Path, options: Options, threads: usize, read: Option<&AtomicU64>) -> Result<CaptureDiagnosis, Error> {
    let name = path.display().to_string();
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
    let (size, file) = opened.map_err(|cause| Error::Open { path: name.clone(), cause })?;
    let from = Counted { from: file, read };
    if threads > 1 && size >= DIVIDED_BYTES {
        divided(from, &name, &options, threads)
    } else {
        thalweg_infer::diagnose_reader_with(from, &name, options)
    }
}

/// Diagnoses a capture with its connections divided among `shards` threads; this one reads and decodes.
///
/// The report is that of one thread, to the byte.
fn divided(from: impl Read, name: &str, options: &Options, shards: usize) -> Result<CaptureDiagnosis, Error> {
    let mut capture = Capture::new(from).map_err(|error| Error::from_wire(error, name))?;
    let mut decoder = CaptureDecoder::new(options.filter.clone());
    let parts = thread::scope(|scope| {
        let (back, used) = mpsc::channel::<Vec<TcpPacket>>();
        let mut threads = Vec::with_capacity(shards);
        let mut ends = Vec::with_capacity(shards);
        for _ in 0..shards {
            let (end, batches) = mpsc::sync_channel::<Vec<TcpPacket>>(AHEAD);
            let (back, mut shard) = (back.clone(), Shard::new(options.clone()));
            ends.push((end, Vec::with_capacity(BATCH)));
            threads.push(scope.spawn(move || {
                for mut batch in batches {
                    batch.iter().for_each(|seen| shard.packet(seen));
                    batch.clear();
                    let _ = back.send(batch);
                }
                shard.finish()
            }));
        }
        let mut hand_over = |seen: TcpPacket| {
            let (end, batch) = &mut ends[(seen.shard_hash() % shards as u64) as usize];
            batch.push(seen);
            if batch.len() == BATCH {
                let fresh = used.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
                // A thread that is gone panicked, and is asked for its part below.
                let _ = end.send(std::mem::replace(batch, fresh));
            }
        };
        loop {
            match capture.next() {
                Ok(Some(packet)) => decoder.packet(&packet, &mut hand_over),
                Ok(None) => break,
                Err(error) => return Err(Error::from_wire(error, name)),
            }
        }
        decoder.finish(&mut hand_over);
        for (end, batch) in ends {
            let _ = end.send(batch);
        }
        let join = |thread: thread::ScopedJoinHandle<'_, ShardResult>| {
            thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p))
        };
        Ok(threads.into_iter().map(join).collect::<Vec<ShardResult>>())
    })?;
    Ok(thalweg_infer::merge(name, &capture, decoder, parts))
}

/// A reader that tells how much was read.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merged;

    #[test]
    fn a_folders_captures_are_told_by_their_names() {
        for name in ["a.pcap", "a.pcapng", "a.cap", "a.pcap3", "a.pcap.3", "a.pcap12.gz", "a.pcap.1.xz", "a.pcapng.zst"]
        {
            assert!(is_capture(name), "{name}");
        }
        for name in
            ["a.pcap.json", "notes.pcap.txt", "a.pcap.partial", "a.pcapng.gz.md5", "pcap", "a.capture", "a.gz", "3"]
        {
            assert!(!is_capture(name), "{name}");
        }
    }

    #[test]
    fn a_hint_fits_its_cause() {
        let open = |kind: io::ErrorKind| hint(&Error::Open { path: "x".to_owned(), cause: kind.into() });
        assert!(open(io::ErrorKind::NotFound).contains("name"));
        assert!(open(io::ErrorKind::PermissionDenied).contains("sudo"));
        let other = hint(&Error::NotACapture { path: "x".to_owned(), looks_like: "text".to_owned() });
        assert!(other.contains("pcap or pcapng"));
    }

    /// A capture of many connections, divided among one to five threads, gives the report of one.
    #[test]
    fn divided_work_gives_the_same_report() {
        let bytes = merged::capture();
        for wanted in [Retain::All, Retain::Costliest(3)] {
            let options = Options { drawn: PlotSelection::Of(vec![1, 2, 3, 50]), filter: None, wanted };
            let whole =
                thalweg_infer::diagnose_reader_with(bytes.as_slice(), "merged", options.clone()).expect("a capture");
            assert!(whole.connections >= 200, "{} connections", whole.connections);
            let text = thalweg_report::json::to_string(&whole.report).expect("JSON");
            for shards in [1, 2, 5] {
                let found = divided(bytes.as_slice(), "merged", &options, shards).expect("a capture");
                assert!(thalweg_report::json::to_string(&found.report).expect("JSON") == text, "{shards} shards");
                assert!(found == whole, "{shards} shards");
            }
        }
    }
}
