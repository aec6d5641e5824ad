//! Reports about sockets: from this host's kernel, or from a file of those that were recorded.

use crate::failure::Failure;
use anyhow::anyhow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thalweg_host::HostError;
use thalweg_host::closed_connections::ClosedConnections;
use thalweg_host::memory;
use thalweg_host::socket_owners::{self, SocketOwners};
use thalweg_host::sockets::{Connection, each_connection};
use thalweg_model::{Verdict, WatchReport};
use thalweg_units::figures;
use thalweg_watch::{Observed, OtlpPeriod, Tracker};

/// The longest line of a recording: about ten times that of 20,000 sockets.
const LINE_MAX: u64 = 256 << 20;

/// Where reports come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// This host.
    Live(Box<Live>),
    /// A recording.
    Replay(Box<Replay>),
}

impl Source {
    /// The next report; `false` when there is none.
    pub(crate) fn refresh(&mut self) -> Result<bool, Failure> {
        match self {
            Self::Live(live) => live.refresh().map(|()| true),
            Self::Replay(replay) => replay.refresh(),
        }
    }

    /// Reads what the kernel reports between two refreshes; to be called often, since its buffer is bounded.
    pub(crate) fn gather(&mut self) {
        if let Self::Live(live) = self {
            live.gather();
        }
    }

    /// The last report.
    pub(crate) const fn report(&self) -> &WatchReport {
        match self {
            Self::Live(live) => live.tracker.report(),
            Self::Replay(replay) => &replay.report,
        }
    }

    /// How long after it the next one is due.
    pub(crate) fn pause(&self, interval: Duration) -> Duration {
        match self {
            Self::Live(_) => interval,
            Self::Replay(replay) => Duration::try_from_secs_f64(replay.report.interval_s).unwrap_or(interval),
        }
    }

    /// Follows this socket, and gives the doctor's verdict on it.
    pub(crate) fn judge(&mut self, followed: Option<u64>) -> Option<Verdict> {
        match self {
            Self::Live(live) => {
                live.tracker.follow(followed);
                live.tracker.verdict()
            }
            Self::Replay(_) => None,
        }
    }

    /// What was counted, as Prometheus reads it; empty for a recording.
    pub(crate) fn exposition(&self) -> String {
        match self {
            Self::Live(live) => thalweg_watch::exposition(live.tracker.totals()),
            Self::Replay(_) => String::new(),
        }
    }

    /// What was counted, as a collector takes it by OTLP; empty for a recording.
    pub(crate) fn otlp_request(&self, resource: &[(String, String)]) -> Vec<u8> {
        match self {
            Self::Live(live) => {
                let ns = |seconds: f64| (seconds * 1e9) as u64;
                let period = OtlpPeriod { from_ns: ns(live.began_s), until_ns: ns(live.tracker.report().at_s) };
                thalweg_watch::otlp_request(live.tracker.totals(), resource, period)
            }
            Self::Replay(_) => Vec::new(),
        }
    }

    /// Adds a sentence to the notes of the reports to come.
    pub(crate) fn note(&mut self, note: Option<String>) {
        if let Self::Live(live) = self {
            live.note = note;
        }
    }
}

/// This host's sockets.
#[derive(Debug)]
pub(crate) struct Live {
    tracker: Tracker,
    owners: SocketOwners,
    began: Instant,
    began_s: f64,
    sees_all_users: bool,
    uid: u32,
    /// Reports of connections that end, or why there are none.
    closed: Result<ClosedConnections, HostError>,
    /// A sentence for the notes.
    note: Option<String>,
}

impl Live {
    pub(crate) fn new() -> Self {
        let closed = ClosedConnections::open();
        let mut tracker = Tracker::default();
        if closed.is_ok() {
            tracker.expect_closings();
        }
        Self {
            tracker,
            owners: SocketOwners::default(),
            began: Instant::now(),
            began_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()),
            sees_all_users: socket_owners::sees_all_users(),
            uid: rustix::process::geteuid().as_raw(),
            closed,
            note: None,
        }
    }

    fn gather(&mut self) {
        let Self { tracker, began, began_s, closed: Ok(closed), .. } = self else { return };
        let at_s = *began_s + began.elapsed().as_secs_f64();
        let gathered = closed.each(|one| tracker.close(&observed(one), at_s, field_of(one)));
        match gathered.and_then(|()| closed.missed()) {
            Ok(missed) => tracker.closings_missed(missed),
            Err(error) => self.closed = Err(error),
        }
    }

    fn refresh(&mut self) -> Result<(), Failure> {
        self.gather();
        let Self { tracker, owners, began, began_s, sees_all_users, uid, closed, note } = self;
        tracker.begin(*began_s + began.elapsed().as_secs_f64());
        each_connection(|one| tracker.observe(&observed(one), field_of(one))).map_err(Failure::host)?;
        tracker.end(memory::of_tcp());
        tracker.gone().iter().for_each(|inode| owners.forget(*inode));
        let is_visible = |user: u32| *sees_all_users || user == *uid;
        let unowned: HashSet<u32> = tracker.unowned(is_visible).into_iter().collect();
        if !unowned.is_empty() {
            owners.find(unowned);
        }
        tracker.own(|inode| owners.of(inode).map(|process| process.as_ref().clone()));
        tracker.programs(|process| Some((memory::resident(process.pid)?, memory::available(&process.cgroup)?)));
        let hidden =
            tracker.report().sockets.iter().filter(|row| row.process.is_none() && !is_visible(row.uid)).count();
        let hidden = (hidden > 0).then(|| hidden_note(hidden));
        let closed = match closed {
            Ok(_) => tracker.report().closed.as_ref().and_then(|closed| missed_note(closed.missed)),
            Err(error) => Some(unreported_note(error)),
        };
        tracker.note(hidden.into_iter().chain(closed).chain(note.clone()).collect());
        Ok(())
    }
}

fn observed(one: &Connection) -> Observed<'_> {
    let (sent, received) = (one.info.get("tcpi_segs_out"), one.info.get("tcpi_segs_in"));
    Observed {
        cookie: one.cookie,
        inode: one.inode,
        uid: one.uid,
        state: one.state,
        local: SocketAddr::from(one.local),
        peer: SocketAddr::from(one.remote),
        unread: one.unread,
        unacknowledged: one.unacknowledged,
        packets: (sent as u32, received as u32),
        congestion_control: one.congestion_control(),
    }
}

fn field_of(one: &Connection) -> impl Fn(&str) -> u64 {
    |name| if name.starts_with("sk_") { one.memory.get(name) } else { one.info.get(name) }
}

fn unreported_note(error: &HostError) -> String {
    format!("connections that begin and end between two refreshes are not seen: {error}")
}

fn missed_note(missed: u64) -> Option<String> {
    let connections = figures::counted(missed, "connection");
    (missed > 0).then(|| {
        format!(
            "{connections} ended while the kernel's buffer of reports was full and are in no figure: CAP_NET_ADMIN or a larger net.core.rmem_max gives it more room"
        )
    })
}

fn hidden_note(hidden: usize) -> String {
    let program = std::env::current_exe().map_or_else(|_| "thalweg".to_owned(), |path| path.display().to_string());
    let sockets = figures::counted(hidden as u64, "socket");
    format!(
        "{sockets} of other users without program: run it with sudo, or once sudo setcap cap_sys_ptrace,cap_dac_read_search+ep {program}"
    )
}

/// A recording of `thalweg watch --json`.
pub(crate) struct Replay {
    name: PathBuf,
    lines: Box<dyn BufRead>,
    line: u64,
    report: WatchReport,
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").field("name", &self.name).field("line", &self.line).finish_non_exhaustive()
    }
}

impl Replay {
    pub(crate) fn open(name: &Path) -> Result<Self, Failure> {
        let lines: Box<dyn BufRead> = if name == Path::new("-") {
            Box::new(BufReader::new(io::stdin()))
        } else {
            let file =
                File::open(name).map_err(|error| Failure::user(anyhow!("cannot open {}: {error}", name.display())))?;
            Box::new(BufReader::new(file))
        };
        let report = Tracker::default().report().clone();
        Ok(Self { name: name.to_owned(), lines, line: 0, report })
    }

    fn refresh(&mut self) -> Result<bool, Failure> {
        let wrong = |line: u64, error: &dyn std::fmt::Display| {
            Failure::user(anyhow!("{}, line {line}: {error}", self.name.display()))
                .hint("--replay reads what thalweg watch --json printed")
        };
        let mut text = Vec::new();
        self.line += 1;
        let read = self.lines.by_ref().take(LINE_MAX).read_until(b'\n', &mut text);
        match read.map_err(|error| wrong(self.line, &error))? {
            0 if self.line == 1 => return Err(wrong(1, &"the file is empty")),
            0 => return Ok(false),
            _ => {}
        }
        let report: WatchReport = match serde_json::from_slice(&text) {
            Ok(report) => report,
            Err(_) if text.len() as u64 == LINE_MAX => {
                return Err(wrong(self.line, &format!("it is longer than {LINE_MAX} bytes")));
            }
            // What recorded it was stopped while it wrote.
            Err(_) if self.line > 1 && !text.ends_with(b"\n") => return Ok(false),
            Err(error) => {
                // The place that the parser tells is one within this line.
                let what = error.to_string();
                let what = what.split(" at line ").next().unwrap_or_default();
                return Err(wrong(self.line, &format!("this is no {} document: {what}", self.report.schema)));
            }
        };
        if report.schema != self.report.schema {
            return Err(wrong(self.line, &format!("this is '{}', not {}", report.schema, self.report.schema)));
        }
        self.report = report;
        Ok(true)
    }
}
