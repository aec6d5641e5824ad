//! A download: begins, chooses how many workers fetch, stores, and says what limited it.

use crate::answer::First;
use crate::backoff::Backoff;
use crate::begin::{FirstResponse, NoResponse, begin};
use crate::checksum::{Checksum, Hasher};
use crate::client::{Client, shown};
use crate::division::Division;
use crate::error::{GetError, Left};
use crate::fields::{Validator, digests};
use crate::file_name;
use crate::journal::Journal;
use crate::options::{Observer, Options, Output};
use crate::range_set::RangeSet;
use crate::rate_limit::RateLimit;
use crate::store::{PartialFile, Sink};
use crate::transfer::{Again, Outcome, Transfer};
use crate::worker::{Shared, State};
use hyper::header::CONTENT_DISPOSITION;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thalweg_model::{GetChecksum, GetReport};
use tokio::task::LocalSet;

/// How often an object that changes is fetched from the beginning.
const MAX_RESTARTS: u32 = 3;
/// How often it is looked whether the user stopped it, while nothing else happens.
const STOP_INTERVAL: Duration = Duration::from_millis(100);
/// The least that is worth a request of its own, until the window is known.
const MIN_REQUEST_BYTES: u64 = 1 << 20;
const NO_RANGES: &str = "the server does not keep to ranges";

/// Fetches an object.
///
/// Returns when it is stored as a whole and durable. When `stop` is set it ends with [`GetError::Stopped`], and what was fetched is
/// kept for the next call where the server sends ranges and a validator.
///
/// # Errors
/// [`GetError`] says who can mend it.
pub fn run(options: &Options, stop: &AtomicBool, observer: &mut dyn Observer) -> Result<GetReport, GetError> {
    if !matches!(options.url.scheme(), "http" | "https") || options.url.host_str().is_none_or(str::is_empty) {
        let why = format!("it is of the kind {}, and http and https are known", options.url.scheme());
        return Err(GetError::Url { url: shown(&options.url), why });
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let runtime =
        runtime.map_err(|error| GetError::Unreachable { why: format!("cannot wait for sockets: {error}") })?;
    let result = LocalSet::new().block_on(&runtime, download(options, stop, observer));
    // A name that is still being looked up is not waited for.
    runtime.shutdown_background();
    result
}

async fn download(options: &Options, stop: &AtomicBool, observer: &mut dyn Observer) -> Result<GetReport, GetError> {
    let began = Instant::now();
    // Before anything is sent: what cannot be stored need not be fetched.
    if let Output::File(path) = &options.output
        && !options.force
        && is_regular_or_absent(path)
        && path.symlink_metadata().is_ok()
    {
        return Err(GetError::Exists { path: path.clone() });
    }
    let client = Rc::new(Client::new(options)?);
    let (mut backoff, mut retries, mut restarts) = (Backoff::new(options.retries), 0, 0);
    let (mut sink, mut ranged) = (None, true);
    loop {
        let begun =
            until_begun(&client, (options, ranged), stop, (&mut backoff, &mut retries), began, observer).await?;
        let expected = expected(options, &begun);
        let opened = match sink.take() {
            Some(sink) => Opened { sink, journal: None },
            None => open(options, &begun, expected.as_ref())?,
        };
        let (division, resumed) = division(&begun, &opened, observer)?;
        let mut transfer = transfer(options, Rc::clone(&client), begun, division, opened.sink, began);
        (transfer.backoff, transfer.retries, transfer.resumed) = (backoff, retries, resumed);
        let again = match transfer.run(stop, observer).await {
            Ok(Outcome::Complete) => return finish(options, transfer, restarts, expected.as_ref()),
            Ok(Outcome::Again(again)) => again,
            Err(error) if transfer.is_kept() => return Err(error),
            Err(error) => return Err(given_up(transfer.into_sink(), error)),
        };
        (backoff, retries) = (transfer.backoff.clone(), transfer.retries);
        let back = transfer.into_sink();
        let url = shown(&options.url);
        if matches!(&back, Sink::Stream { written, .. } if *written > 0) {
            // What was written cannot be taken back.
            return Err(match again {
                Again::Broken { why } => GetError::GivenUp { url, tries: 1, why, left: Left::Written },
                Again::NoRange => GetError::GivenUp { url, tries: 1, why: NO_RANGES.to_owned(), left: Left::Written },
                Again::Changed => GetError::Changed { url },
            });
        }
        match again {
            Again::Broken { why } => {
                observer.note(&format!("{why}, and the server sends no ranges: the download begins again"));
                let wait = backoff.until().saturating_sub(began.elapsed());
                if until_stopped(stop, tokio::time::sleep(wait)).await.is_err() {
                    return Err(given_up(back, GetError::Stopped { left: Left::Nothing }));
                }
            }
            Again::NoRange => {
                ranged = false;
                observer.note(&format!("{NO_RANGES}: the download begins again with one request for the whole object"));
            }
            Again::Changed if restarts == MAX_RESTARTS => return Err(GetError::Changed { url }),
            Again::Changed => {
                restarts += 1;
                observer.note("the object changed: the download begins again");
            }
        }
        sink = Some(back);
    }
}

/// Removes a partial file that no later call can go on with.
fn given_up(sink: Sink, error: GetError) -> GetError {
    if let Sink::File(file) = sink {
        file.discard();
    }
    error
}

fn is_regular_or_absent(path: &Path) -> bool {
    path.metadata().map_or(true, |metadata| metadata.is_file())
}

/// The first request, repeated while that makes sense.
async fn until_begun(
    client: &Client,
    (options, ranged): (&Options, bool),
    stop: &AtomicBool,
    (backoff, retries): (&mut Backoff, &mut u32),
    began: Instant,
    observer: &mut dyn Observer,
) -> Result<FirstResponse, GetError> {
    loop {
        let begun = until_stopped(stop, begin(client, &options.url, ranged)).await?;
        let (why, after) = match begun {
            Ok(begun) => return Ok(begun),
            Err(NoResponse::Fatal(error)) => return Err(error),
            Err(NoResponse::Later { why, after }) => (why, after),
        };
        *retries += 1;
        if !backoff.failed(began.elapsed(), after) {
            let (url, tries) = (shown(&options.url), backoff.failures());
            return Err(GetError::GivenUp { url, tries, why, left: Left::AsBefore });
        }
        let wait = backoff.until().saturating_sub(began.elapsed());
        observer.note(&format!("{why}; the next try is in {:.1} s", wait.as_secs_f64()));
        until_stopped(stop, tokio::time::sleep(wait)).await?;
    }
}

async fn until_stopped<T>(stop: &AtomicBool, work: impl Future<Output = T>) -> Result<T, GetError> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Ok(done),
            () = tokio::time::sleep(STOP_INTERVAL) => if stop.load(Ordering::Relaxed) { return Err(GetError::Stopped { left: Left::AsBefore }) },
        }
    }
}

/// A checksum that the object should have, and who says so.
type Expected = (Checksum, &'static str);

fn expected(options: &Options, begun: &FirstResponse) -> Option<Expected> {
    let own = options.checksum.clone().map(|checksum| (checksum, "user"));
    // The body of a 206 response to `bytes=0-` is the whole object, but an MD5 of it is defined for a part only.
    let whole = begun.response.status() == hyper::StatusCode::OK;
    own.or_else(|| Some((digests(begun.response.headers(), whole).into_iter().next()?, "server")))
}

/// An output, and what it holds of an earlier download.
struct Opened {
    sink: Sink,
    journal: Option<Journal>,
}

fn open(options: &Options, begun: &FirstResponse, expected: Option<&Expected>) -> Result<Opened, GetError> {
    let stream = |to: File| {
        let hashers = expected.iter().map(|(checksum, _)| Hasher::new(checksum.kind())).collect();
        Opened { sink: Sink::Stream { to, written: 0, hashers }, journal: None }
    };
    let path = match &options.output {
        Output::Stdout => {
            let stdout =
                std::io::stdout().as_fd().try_clone_to_owned().map_err(|source| GetError::Stream { source })?;
            return Ok(stream(File::from(stdout)));
        }
        Output::File(path) if path == Path::new("/dev/null") => {
            return Ok(Opened { sink: Sink::Nowhere, journal: None });
        }
        Output::File(path) if !is_regular_or_absent(path) => {
            let file = OpenOptions::new().write(true).open(path).map_err(GetError::disk("open", path))?;
            return Ok(stream(file));
        }
        Output::File(path) => path.clone(),
        Output::Folder(folder) => {
            let disposition = begun.response.headers().get(CONTENT_DISPOSITION);
            let disposition = disposition.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
            folder.join(file_name::choose(disposition.as_deref(), &begun.url))
        }
    };
    let (file, journal) = PartialFile::open(&path, options.force)?;
    Ok(Opened { sink: Sink::File(file), journal })
}

/// What is to be fetched, and how many bytes of it are there.
fn division(begun: &FirstResponse, opened: &Opened, observer: &mut dyn Observer) -> Result<(Division, u64), GetError> {
    let total = match &begun.answer {
        First::Ranges { total, .. } => *total,
        First::Whole { total, .. } => total.unwrap_or(u64::MAX),
        _ => 0,
    };
    let mut done = RangeSet::default();
    if let Sink::File(file) = &opened.sink {
        let same = |journal: &Journal| {
            matches!(&begun.answer, First::Ranges { validator, .. } if *validator == journal.validator)
                && journal.total == total
        };
        match &opened.journal {
            Some(journal) if same(journal) => done = journal.done.clone(),
            Some(_) => {
                observer
                    .note("the object is not the one that an earlier download began: it is fetched from the beginning");
                file.restart()?;
            }
            None => file.restart()?,
        }
    }
    let resumed = done.bytes();
    Ok((Division::new(total, done), resumed))
}

fn transfer(
    options: &Options,
    client: Rc<Client>,
    begun: FirstResponse,
    division: Division,
    sink: Sink,
    began: Instant,
) -> Transfer {
    let validator: Option<Validator> = match &begun.answer {
        First::Ranges { validator, .. } => Some(validator.clone()),
        _ => None,
    };
    let ordered = matches!(sink, Sink::Stream { .. });
    let state = State {
        division,
        sink,
        limit: RateLimit::new(options.limit),
        ranges: 1,
        min_request_bytes: MIN_REQUEST_BYTES,
        min_new_connection_bytes: MIN_REQUEST_BYTES,
        received: 0,
        writing: Duration::ZERO,
        writing_since: None,
        rate_limited: false,
        lines: BTreeMap::new(),
        opened: 0,
    };
    let most = if ordered || validator.is_none() { 1 } else { options.max_ranges };
    let shared =
        Shared { client, asked: options.url.clone(), url: begun.url, validator, began, state: RefCell::new(state) };
    let first = (begun.connection, begun.response.into_body());
    Transfer::new(Rc::new(shared), first, most, options)
}

/// Checks the data and gives the file its name.
fn finish(
    options: &Options,
    transfer: Transfer,
    restarts: u32,
    expected: Option<&Expected>,
) -> Result<GetReport, GetError> {
    let (mut report, began) = (transfer.report(restarts), transfer.shared.began);
    let total = report.bytes;
    let sink = transfer.into_sink();
    let check = |found: Checksum| match expected {
        Some((expected, by)) if found != *expected => {
            Err(GetError::Checksum { found: found.to_string(), expected: expected.to_string(), by })
        }
        _ => Ok(()),
    };
    let mut held = expected.map(|(value, by)| GetChecksum { value: value.to_string(), by });
    match sink {
        Sink::File(file) => {
            if let Some((expected, _)) = expected
                && let Err(error) = check(file.checksum(expected.kind())?)
            {
                file.discard();
                return Err(error);
            }
            report.file = Some(file.finish(total)?.display().to_string());
        }
        Sink::Stream { hashers, .. } => hashers.into_iter().try_for_each(|hasher| check(hasher.finish()))?,
        Sink::Nowhere => held = None,
    }
    if let (Output::File(path), None) = (&options.output, &report.file) {
        report.file = Some(path.display().to_string());
    }
    report.checksum = held;
    report.wall_s = began.elapsed().as_secs_f64();
    Ok(report)
}
