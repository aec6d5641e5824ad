//! Who watches what: what all workers counted, put together, so that a viewer is one however many connections it has.

use crate::hooks::{Event, Hooks};
use crate::journal::Journal;
use crate::log::Log;
use crate::playout::{Fetched, Playout};
use crate::worker::{Protocol, TcpFacts, Update, Who};
use model::LogLevel;
use serde::Serialize;
use serde_json::json;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most viewers that are remembered at a time; those past it are served, and not listed.
const VIEWERS_MAX: usize = 1 << 20;

/// Workers tell what they counted once a second, each at its own moment; after so long all have, in milliseconds.
const LATE_MS: u64 = 2_500;

/// A viewer, as the API and the journal tell of it.
#[derive(Debug, Clone, Serialize)]
pub struct Viewer {
    /// The session.
    pub id: String,
    /// `app/stream`.
    pub stream: Box<str>,
    /// How it plays.
    pub protocol: Protocol,
    /// Over TLS.
    pub tls: bool,
    /// Where from.
    pub address: IpAddr,
    /// What it calls itself.
    pub agent: Box<str>,
    /// Of its token.
    pub subject: Option<Box<str>>,
    /// When it came, milliseconds since 1970.
    pub began_ms: u64,
    /// When it last asked or took something.
    pub seen_ms: u64,
    /// From its coming until its first media was there, milliseconds.
    pub first_media_after_ms: Option<u64>,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Requests.
    pub requests: u64,
    /// Whole segments.
    pub segments: u64,
    /// Times it was moved to the newest keyframe.
    pub skips: u32,
    /// By how much what a live viewer is sent is behind the newest, milliseconds.
    pub behind_ms: u64,
    /// How its player fared, as far as that can be told from what it fetched when.
    #[serde(flatten)]
    pub playout: Playout,
    /// Its connection when last looked at.
    pub tcp: Option<TcpFacts>,
    /// Segments fetched of late, which other workers may still add to.
    #[serde(skip)]
    fetched: Vec<Fetched>,
}

/// The records of all viewers.
#[derive(Debug)]
pub struct Clerk {
    viewers: Mutex<HashMap<u64, Box<Viewer>>>,
    journal: Option<Journal>,
    kicks: Vec<Kicks>,
    hooks: Arc<Hooks>,
    log: Arc<Log>,
    /// Viewers that have come since the start.
    pub seen: AtomicU64,
    /// Times that players stood still since the start.
    pub stalls: AtomicU64,
    /// For how long in all, milliseconds.
    pub stalled_ms: AtomicU64,
}

#[derive(Debug, Default)]
struct Kicks {
    is_any: AtomicBool,
    numbers: Mutex<Vec<u64>>,
}

impl Clerk {
    /// Of so many workers; who has gone is told to the journal and to `on_stop`, and who comes and goes to the log.
    pub fn new(workers: usize, journal: Option<Journal>, hooks: Arc<Hooks>, log: Arc<Log>) -> Self {
        let kicks = (0..workers).map(|_| Kicks::default()).collect();
        let (seen, stalls, stalled_ms) = Default::default();
        Self { viewers: Mutex::default(), journal, kicks, hooks, log, seen, stalls, stalled_ms }
    }

    fn viewers(&self) -> MutexGuard<'_, HashMap<u64, Box<Viewer>>> {
        self.viewers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what a worker counted, and the segments that were fetched by whom.
    pub fn update(&self, updates: Vec<Update>, fetched: Vec<(u64, Fetched)>) {
        let mut viewers = self.viewers();
        let mut over = Vec::new();
        for update in updates {
            if !viewers.contains_key(&update.number) {
                let Some(who) = &update.who else { continue };
                if viewers.len() >= VIEWERS_MAX {
                    continue;
                }
                self.seen.fetch_add(1, Ordering::Relaxed);
                let viewer = begin(who, &update);
                self.log.event(LogLevel::Debug, "play", || {
                    vec![
                        ("stream", (*viewer.stream).into()),
                        ("protocol", viewer.protocol.name().into()),
                        ("address", viewer.address.to_string().into()),
                        ("session", viewer.id.as_str().into()),
                    ]
                });
                viewers.insert(update.number, Box::new(viewer));
            }
            let Some(viewer) = viewers.get_mut(&update.number) else { continue };
            let subject = update.who.and_then(|who| who.subject);
            viewer.subject = viewer.subject.take().or(subject);
            viewer.seen_ms = viewer.seen_ms.max(update.seen_ms);
            viewer.bytes += update.bytes;
            viewer.requests += update.requests;
            viewer.segments += update.segments;
            viewer.skips = viewer.skips.max(update.skips);
            viewer.behind_ms = update.behind_ms;
            viewer.tcp = update.tcp.or(viewer.tcp);
            let first = update.first_media_ms.map(|at_ms| at_ms.saturating_sub(viewer.began_ms));
            viewer.first_media_after_ms = viewer.first_media_after_ms.or(first);
            if update.is_over {
                over.push(update.number);
            }
        }
        for (number, fetched) in fetched {
            if let Some(viewer) = viewers.get_mut(&number) {
                let at = viewer.fetched.partition_point(|other| other.done_ms <= fetched.done_ms);
                viewer.fetched.insert(at, fetched);
            }
        }
        for number in over {
            let gone = viewers.remove(&number);
            self.record(gone);
        }
    }

    /// Infers from what was fetched until `until_ms` how a player fared.
    fn infer(&self, viewer: &mut Viewer, until_ms: u64) {
        let count = viewer.fetched.partition_point(|fetched| fetched.done_ms <= until_ms);
        for fetched in viewer.fetched.drain(..count) {
            let stalled_ms = viewer.playout.fetched(&fetched);
            self.stalls.fetch_add(u64::from(stalled_ms > 0), Ordering::Relaxed);
            self.stalled_ms.fetch_add(stalled_ms, Ordering::Relaxed);
        }
    }

    /// Those who play segments and have been silent for `expiry_ms` have gone.
    pub fn expire(&self, now_ms: u64, expiry_ms: u64) {
        let mut viewers = self.viewers();
        let silent =
            |viewer: &Viewer| viewer.protocol == Protocol::Hls && now_ms.saturating_sub(viewer.seen_ms) > expiry_ms;
        for (_, viewer) in viewers.extract_if(|_, viewer| silent(viewer)) {
            self.record(Some(viewer));
        }
        for viewer in viewers.values_mut().filter(|viewer| !viewer.fetched.is_empty()) {
            self.infer(viewer, now_ms.saturating_sub(LATE_MS));
        }
    }

    /// The server ends: everybody goes.
    pub fn close(&self) {
        let mut viewers = self.viewers();
        viewers.drain().for_each(|(_, viewer)| self.record(Some(viewer)));
    }

    fn record(&self, viewer: Option<Box<Viewer>>) {
        let Some(mut viewer) = viewer else { return };
        self.infer(&mut viewer, u64::MAX);
        self.log.event(LogLevel::Debug, "stop", || {
            vec![
                ("stream", (*viewer.stream).into()),
                ("session", viewer.id.as_str().into()),
                ("bytes", viewer.bytes.into()),
                ("seconds", (viewer.seen_ms.saturating_sub(viewer.began_ms) / 1_000).into()),
            ]
        });
        if self.hooks.has(Event::Stop) {
            self.hooks.tell(Event::Stop, json!({ "stream": viewer.stream, "session": viewer.id, "viewer": viewer }));
        }
        if let Some(journal) = &self.journal
            && let Ok(line) = serde_json::to_string(&viewer)
        {
            journal.write(line);
        }
    }

    /// Lines that the journal could not take.
    pub fn journal_lost(&self) -> u64 {
        self.journal.as_ref().map_or(0, Journal::lost)
    }

    /// The viewers, of one stream or of all.
    pub fn list(&self, stream: Option<&str>) -> Vec<Viewer> {
        let viewers = self.viewers();
        let wanted = viewers.values().filter(|viewer| stream.is_none_or(|stream| *viewer.stream == *stream));
        wanted.map(|viewer| Viewer::clone(viewer)).collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.viewers().len()
    }

    /// How many there are of each stream and protocol.
    pub fn counts(&self) -> HashMap<(Box<str>, Protocol), u64> {
        let mut counts = HashMap::new();
        for viewer in self.viewers().values() {
            *counts.entry((viewer.stream.clone(), viewer.protocol)).or_insert(0) += 1;
        }
        counts
    }

    /// Ends a viewer's session; whether there was one. The workers have to be woken after it.
    pub fn kick(&self, id: &str) -> bool {
        let Some(number) = u64::from_str_radix(id, 16).ok() else { return false };
        let Some(viewer) = self.viewers().remove(&number) else { return false };
        self.record(Some(viewer));
        for kicks in &self.kicks {
            kicks.numbers.lock().unwrap_or_else(PoisonError::into_inner).push(number);
            kicks.is_any.store(true, Ordering::Release);
        }
        true
    }

    /// Sessions that a worker has to end.
    pub fn kicked(&self, worker: usize) -> Vec<u64> {
        let Some(kicks) = self.kicks.get(worker).filter(|kicks| kicks.is_any.swap(false, Ordering::AcqRel)) else {
            return Vec::new();
        };
        std::mem::take(&mut kicks.numbers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn begin(who: &Who, update: &Update) -> Viewer {
    let first_ms = update.first_media_ms.unwrap_or(update.seen_ms);
    Viewer {
        id: format!("{:x}", update.number),
        stream: who.stream.clone(),
        protocol: who.protocol,
        tls: who.is_tls,
        address: who.address,
        agent: who.agent.clone(),
        subject: who.subject.clone(),
        began_ms: who.began_ms.min(first_ms),
        seen_ms: update.seen_ms,
        first_media_after_ms: None,
        bytes: 0,
        requests: 0,
        segments: 0,
        skips: 0,
        behind_ms: 0,
        playout: Playout::default(),
        tcp: None,
        fetched: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::Accounts;

    fn clerk(workers: usize) -> Clerk {
        let log = Arc::new(Log::silent());
        let hooks = Hooks::new(model::WebhooksConfig::default(), Vec::new(), Arc::clone(&log));
        Clerk::new(workers, None, Arc::new(hooks), log)
    }

    fn who(protocol: Protocol) -> Who {
        Who {
            stream: "live/cam".into(),
            protocol,
            is_tls: false,
            address: [192, 0, 2, 1].into(),
            agent: "x".into(),
            subject: None,
            began_ms: 1_000,
        }
    }

    fn hand(accounts: &mut Accounts, clerk: &Clerk, now_ms: u64) {
        let (updates, fetched) = accounts.hand_over(now_ms, 30_000);
        clerk.update(updates, fetched);
    }

    #[test]
    fn a_viewer_on_two_workers_is_one() {
        let clerk = clerk(2);
        let mut workers = [Accounts::default(), Accounts::default()];
        for worker in &mut workers {
            worker.open(7, None, 1_000, || who(Protocol::Hls));
            worker.count(7, 1_500, |update| update.bytes += 10);
            worker.media(7, 1_700, None, None);
        }
        for worker in &mut workers {
            hand(worker, &clerk, 2_000);
        }
        let viewers = clerk.list(Some("live/cam"));
        assert_eq!((viewers.len(), viewers[0].bytes, viewers[0].segments), (1, 20, 2));
        assert_eq!(viewers[0].first_media_after_ms, Some(700));
        clerk.expire(31_700, 30_000);
        assert_eq!(clerk.list(None).len(), 1);
        clerk.expire(31_701, 30_000);
        assert!(clerk.list(None).is_empty() && clerk.seen.load(Ordering::Relaxed) == 1);
    }

    #[test]
    fn a_stall_is_seen_though_workers_tell_of_segments_out_of_order() {
        let clerk = clerk(2);
        let mut workers = [Accounts::default(), Accounts::default()];
        for (at, done_ms) in [1_000, 3_000, 8_000, 8_500].into_iter().enumerate() {
            let worker = &mut workers[at % 2];
            worker.open(7, None, 1_000, || who(Protocol::Hls));
            let published_ms = at as u64 * 2_000;
            let fetched = Fetched { asked_ms: published_ms + 100, done_ms, published_ms, duration_ms: 2_000 };
            worker.media(7, done_ms, None, Some(fetched));
        }
        for worker in workers.iter_mut().rev() {
            hand(worker, &clerk, 9_000);
        }
        for (now_ms, stalls, stalled_ms, left) in [(10_499, 0, 0, 2), (10_500, 1, 3_000, 1)] {
            clerk.expire(now_ms, 30_000);
            let viewer = &clerk.list(None)[0];
            let playout = &viewer.playout;
            assert_eq!((playout.stalls, playout.stalled_ms, viewer.fetched.len()), (stalls, stalled_ms, left));
        }
        clerk.close();
        assert_eq!((clerk.stalls.load(Ordering::Relaxed), clerk.stalled_ms.load(Ordering::Relaxed)), (1, 3_000));
    }

    #[test]
    fn a_live_viewer_goes_with_its_response_and_may_be_kicked() {
        let clerk = clerk(1);
        let mut worker = Accounts::default();
        for number in [1, 2] {
            worker.open(number, None, 0, || who(Protocol::Flv));
        }
        hand(&mut worker, &clerk, 900_000);
        worker.count(1, 900_000, |update| update.is_over = true);
        hand(&mut worker, &clerk, 900_000);
        assert_eq!((clerk.list(None).len(), worker.viewers()), (1, 1));
        assert!(clerk.kick("2") && !clerk.kick("2") && !clerk.kick("x"));
        assert_eq!((clerk.kicked(0), clerk.kicked(0)), (vec![2], vec![]));
    }
}
