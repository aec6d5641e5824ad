//! The viewers of a server: what all workers counted, put together, so that a viewer is one however many connections it has.
//!
//! An HLS viewer enters at its session's first media playlist or segment: a session's id alone costs no memory. The registry is bounded
//! in all and for each address.

use crate::hooks::{Event, Hooks};
use crate::journal::Journal;
use crate::journal_budget::JournalBudget;
use crate::log::Log;
use crate::playout::Fetched;
use crate::viewer::{Left, Protocol, Update, Viewer, Who, client_network};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use thalweg_model::{LimitsConfig, LogLevel};

/// Workers report once a second, each at its own moment; after this time all have, in milliseconds.
const LATE_MS: u64 = 2_500;
/// Sessions that an application allowed and that have not played yet, at a time.
const ALLOWED_MAX: usize = 10_000;

/// Why a viewer does not enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// There are as many as `limits.viewers`.
    All,
    /// Its address has as many as `limits.viewers_per_address`.
    Address,
}

/// The records of all viewers.
#[derive(Debug)]
pub struct ViewerRegistry {
    state: Mutex<State>,
    journal: Option<Journal>,
    kicks: Vec<Kicks>,
    hooks: Arc<Hooks>,
    log: Arc<Log>,
    /// Viewers that have come since the start.
    pub seen: AtomicU64,
    /// Times that players stalled since the start.
    pub stalls: AtomicU64,
    /// For how long in all, milliseconds.
    pub stalled_ms: AtomicU64,
    /// Viewers that have gone since the start, by [`Left::ALL`].
    pub left: [AtomicU64; Left::ALL.len()],
}

#[derive(Debug, Default)]
struct State {
    viewers: BTreeMap<u64, Box<Entry>>,
    by_address: HashMap<IpAddr, u32>,
    by_stream: HashMap<(Box<str>, Protocol), u64>,
    /// Sessions that an application allowed and that have not played yet: `on_stop` follows each `on_play`.
    allowed: HashMap<u64, Box<Viewer>>,
    budget: JournalBudget,
}

#[derive(Debug)]
struct Entry {
    viewer: Viewer,
    /// Segments fetched of late, which other workers may still add to.
    fetched: Vec<Fetched>,
}

#[derive(Debug, Default)]
struct Kicks {
    is_any: AtomicBool,
    numbers: Mutex<Vec<u64>>,
}

/// A part of the viewers, in the order in which they came.
#[derive(Debug)]
pub struct Page {
    /// The viewers.
    pub viewers: Vec<Viewer>,
    /// The last one's number, where more follow.
    pub next: Option<u64>,
    /// How many there are in all.
    pub total: u64,
}

impl State {
    fn insert(&mut self, viewer: Viewer) {
        *self.by_address.entry(client_network(viewer.address)).or_insert(0) += 1;
        *self.by_stream.entry((viewer.stream.clone(), viewer.protocol)).or_insert(0) += 1;
        self.viewers.insert(viewer.id, Box::new(Entry { viewer, fetched: Vec::new() }));
    }

    fn remove(&mut self, number: u64) -> Option<Box<Entry>> {
        let entry = self.viewers.remove(&number)?;
        let Viewer { address, stream, protocol, .. } = &entry.viewer;
        let address = client_network(*address);
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
        let stream = (stream.clone(), *protocol);
        if let Some(count) = self.by_stream.get_mut(&stream) {
            *count -= 1;
            if *count == 0 {
                self.by_stream.remove(&stream);
            }
        }
        Some(entry)
    }

    fn has_room(&self, address: IpAddr, limits: &LimitsConfig) -> Result<(), Full> {
        if self.viewers.len() >= limits.viewers as usize {
            return Err(Full::All);
        }
        let here = self.by_address.get(&client_network(address)).copied().unwrap_or(0);
        if here >= limits.viewers_per_address { Err(Full::Address) } else { Ok(()) }
    }
}

impl ViewerRegistry {
    /// For this number of workers. A viewer that has gone is written to the journal and sent to `on_stop`; the log has a line for each that comes or goes.
    pub fn new(workers: usize, journal: Option<Journal>, hooks: Arc<Hooks>, log: Arc<Log>) -> Self {
        let kicks = (0..workers).map(|_| Kicks::default()).collect();
        let (seen, stalls, stalled_ms, left) = Default::default();
        Self { state: Mutex::default(), journal, kicks, hooks, log, seen, stalls, stalled_ms, left }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a viewer, unless it is counted already.
    ///
    /// # Errors
    /// Which limit leaves no room.
    pub fn enter(&self, number: u64, limits: &LimitsConfig, who: impl FnOnce() -> Who) -> Result<(), Full> {
        let mut state = self.state();
        if state.viewers.contains_key(&number) {
            return Ok(());
        }
        let who = who();
        if let Err(full) = state.has_room(who.address, limits) {
            drop(state);
            self.log.event(LogLevel::Warn, "viewer-refused", || {
                let limit = match full {
                    Full::All => "limits.viewers",
                    Full::Address => "limits.viewers_per_address",
                };
                vec![("address", who.address.to_string().into()), ("limit", limit.into())]
            });
            return Err(full);
        }
        let is_known_to_application = state.allowed.remove(&number).is_some();
        let viewer = Viewer::new(number, who);
        self.seen.fetch_add(1, Ordering::Relaxed);
        self.log.event(LogLevel::Debug, "play", || {
            vec![
                ("stream", (*viewer.stream).into()),
                ("protocol", viewer.protocol.name().into()),
                ("address", viewer.address.to_string().into()),
                ("session", format!("{number:x}").into()),
            ]
        });
        // The answer was known, or the session comes back after its `on_stop`.
        if !is_known_to_application && self.hooks.has(Event::Play) {
            self.hooks.tell(Event::Play, played(&viewer));
        }
        state.insert(viewer);
        Ok(())
    }

    /// An application allowed a session that it was asked about. If the session never plays `on_stop` follows all the same.
    pub fn allow(&self, number: u64, who: Who) {
        let mut state = self.state();
        let viewer = Box::new(Viewer::new(number, who));
        if state.viewers.contains_key(&number) {
            return;
        }
        if state.allowed.len() < ALLOWED_MAX {
            state.allowed.insert(number, viewer);
        } else {
            drop(state);
            self.tell_stop(&viewer);
        }
    }

    /// Adds what a worker counted, and the segments that were fetched by whom; returns those that are not counted any more.
    pub fn update(&self, updates: Vec<Update>, fetched: Vec<(u64, Fetched)>) -> Vec<u64> {
        let mut state = self.state();
        let (mut over, mut unknown) = (Vec::new(), Vec::new());
        for update in updates {
            match state.viewers.get_mut(&update.number) {
                Some(entry) => {
                    entry.viewer.add(&update);
                    over.extend(update.left.map(|left| (update.number, left)));
                }
                None => unknown.push(update.number),
            }
        }
        for (number, fetched) in fetched {
            if let Some(entry) = state.viewers.get_mut(&number) {
                let at = entry.fetched.partition_point(|other| other.done_ms <= fetched.done_ms);
                entry.fetched.insert(at, fetched);
            }
        }
        for (number, left) in over {
            self.end(&mut state, number, left);
        }
        unknown
    }

    /// Infers from what was fetched until `until_ms` how a player fared.
    fn infer(&self, entry: &mut Entry, until_ms: u64) {
        let count = entry.fetched.partition_point(|fetched| fetched.done_ms <= until_ms);
        for fetched in entry.fetched.drain(..count) {
            let stalled_ms = entry.viewer.playout.fetched(&fetched);
            self.stalls.fetch_add(u64::from(stalled_ms > 0), Ordering::Relaxed);
            self.stalled_ms.fetch_add(stalled_ms, Ordering::Relaxed);
        }
    }

    /// Those who play segments and have been silent for `expiry_ms` have gone.
    pub fn expire(&self, now_ms: u64, expiry_ms: u64) {
        let mut state = self.state();
        let is_silent = |viewer: &Viewer| now_ms.saturating_sub(viewer.seen_ms) > expiry_ms;
        let silent = state.viewers.values().map(|entry| &entry.viewer);
        let silent = silent.filter(|viewer| viewer.protocol == Protocol::Hls && is_silent(viewer));
        for number in silent.map(|viewer| viewer.id).collect::<Vec<_>>() {
            self.end(&mut state, number, Left::Silent);
        }
        for entry in state.viewers.values_mut().filter(|entry| !entry.fetched.is_empty()) {
            self.infer(entry, now_ms.saturating_sub(LATE_MS));
        }
        for (_, viewer) in state.allowed.extract_if(|_, viewer| is_silent(viewer)) {
            self.tell_stop(&viewer);
        }
        self.sum_up(&mut state, now_ms, false);
    }

    /// The server ends: every viewer goes.
    pub fn close(&self, now_ms: u64) {
        let mut state = self.state();
        for number in state.viewers.keys().copied().collect::<Vec<_>>() {
            self.end(&mut state, number, Left::Drained);
        }
        state.allowed.drain().for_each(|(_, viewer)| self.tell_stop(&viewer));
        self.sum_up(&mut state, now_ms, true);
    }

    /// A viewer has gone; whether there was one.
    fn end(&self, state: &mut State, number: u64, left: Left) -> bool {
        let Some(mut entry) = state.remove(number) else { return false };
        self.infer(&mut entry, u64::MAX);
        entry.viewer.why = Some(left.text());
        self.left[left as usize].fetch_add(1, Ordering::Relaxed);
        let viewer = &entry.viewer;
        let level = if left.is_cut_off() { LogLevel::Info } else { LogLevel::Debug };
        self.log.event(level, "stop", || {
            vec![
                ("stream", (*viewer.stream).into()),
                ("session", format!("{number:x}").into()),
                ("address", viewer.address.to_string().into()),
                ("why", left.text().into()),
                ("bytes", viewer.bytes.into()),
                ("seconds", (viewer.seen_ms.saturating_sub(viewer.began_ms) / 1_000).into()),
            ]
        });
        self.tell_stop(viewer);
        if let Some(journal) = &self.journal
            && state.budget.admit(viewer, viewer.seen_ms)
            && let Ok(line) = serde_json::to_string(viewer)
        {
            journal.write(line);
        }
        true
    }

    fn tell_stop(&self, viewer: &Viewer) {
        if self.hooks.has(Event::Stop) {
            let session = format!("{:x}", viewer.id);
            self.hooks.tell(Event::Stop, json!({ "stream": viewer.stream, "session": session, "viewer": viewer }));
        }
    }

    fn sum_up(&self, state: &mut State, now_ms: u64, end: bool) {
        if let Some(journal) = &self.journal {
            state.budget.summaries(now_ms, end).into_iter().for_each(|line| journal.write(line));
        }
    }

    /// Lines that the journal could not take.
    pub fn journal_lost(&self) -> u64 {
        self.journal.as_ref().map_or(0, Journal::lost)
    }

    /// At most `most` viewers, of one stream or of all, of those after number `after`.
    pub fn page(&self, stream: Option<&str>, after: Option<u64>, most: usize) -> Page {
        let state = self.state();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let all = state.viewers.range((from, Bound::Unbounded)).map(|(_, entry)| &entry.viewer);
        let mut wanted = all.filter(|viewer| stream.is_none_or(|stream| *viewer.stream == *stream));
        let viewers: Vec<Viewer> = wanted.by_ref().take(most).cloned().collect();
        let next = wanted.next().and(viewers.last()).map(|viewer| viewer.id);
        let is_of = |key: &&(Box<str>, Protocol)| stream.is_none_or(|stream| *key.0 == *stream);
        let total = state.by_stream.iter().filter(|(key, _)| is_of(key)).map(|(_, count)| count).sum();
        Page { viewers, next, total }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.state().viewers.len()
    }

    /// How many there are of each stream and protocol.
    pub fn counts(&self) -> HashMap<(Box<str>, Protocol), u64> {
        self.state().by_stream.clone()
    }

    /// Ends a viewer's session; whether there was one. The workers have to be woken after it.
    pub fn kick(&self, id: &str) -> bool {
        let Ok(number) = u64::from_str_radix(id, 16) else { return false };
        if !self.end(&mut self.state(), number, Left::Kicked) {
            return false;
        }
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

/// The notice of `on_play` for a session that was let in by an answer already known.
fn played(viewer: &Viewer) -> Value {
    json!({
        "known": true,
        "stream": viewer.stream,
        "session": format!("{:x}", viewer.id),
        "protocol": viewer.protocol.name(),
        "tls": viewer.tls,
        "address": viewer.address,
        "agent": viewer.agent,
        "subject": viewer.subject.as_deref().unwrap_or_default(),
        // The session's id holds neither.
        "query": null,
        "token_sha256": null,
    })
}

#[cfg(test)]
mod tests;
