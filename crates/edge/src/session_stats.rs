//! What a worker counts of its viewers, in memory of its own, and hands to the registry once a second.

use crate::playout::Fetched;
use crate::token::Session;
use crate::viewer::{TcpFacts, Update};
use std::collections::HashMap;
use std::net::IpAddr;

/// A session that was found to be good.
#[derive(Debug)]
struct Checked {
    session: Session,
    /// As in the id, see [`Session::parse`].
    subject: Box<str>,
    stream: Box<str>,
    address: IpAddr,
}

/// A viewer's slot.
#[derive(Debug)]
struct Slot {
    /// What was checked; a request with the same id needs no second check.
    session: Option<Checked>,
    update: Update,
    is_dirty: bool,
    has_media: bool,
}

/// A worker's slots.
#[derive(Debug, Default)]
pub struct SessionStats {
    /// Each in memory of its own, so that the table is small where it grows.
    slots: HashMap<u64, Box<Slot>>,
    dirty: Vec<u64>,
    fetched: Vec<(u64, Fetched)>,
}

impl SessionStats {
    /// Whether this worker has checked this id for this stream before, and for this address if it is bound to one.
    pub fn knows(&self, (session, subject): (&Session, &str), stream: &str, address: IpAddr) -> bool {
        let checked = self.slots.get(&session.number).and_then(|slot| slot.session.as_ref());
        checked.is_some_and(|known| {
            known.session == *session
                && *known.subject == *subject
                && *known.stream == *stream
                && (!session.is_bound() || known.address == address)
        })
    }

    /// Makes a viewer's slot, unless it is there.
    pub fn open(&mut self, number: u64, session: Option<(Session, &str)>, stream: &str, address: IpAddr, now_ms: u64) {
        self.slots.entry(number).or_insert_with(|| {
            let checked = |(session, subject): (Session, &str)| Checked {
                session,
                subject: subject.into(),
                stream: stream.into(),
                address,
            };
            let session = session.map(checked);
            let update = Update::empty(number, now_ms);
            Box::new(Slot { session, update, is_dirty: false, has_media: false })
        });
    }

    /// Changes a viewer's counts.
    pub fn count(&mut self, number: u64, now_ms: u64, change: impl FnOnce(&mut Update)) {
        let Some(slot) = self.slots.get_mut(&number) else { return };
        slot.update.seen_ms = now_ms;
        change(&mut slot.update);
        if !std::mem::replace(&mut slot.is_dirty, true) {
            self.dirty.push(number);
        }
    }

    /// Counts a response with media that is complete, and with it a whole segment.
    pub fn media(&mut self, number: u64, now_ms: u64, tcp: Option<TcpFacts>, fetched: Option<Fetched>) {
        self.count(number, now_ms, |update| {
            update.segments += 1;
            update.tcp = tcp.or(update.tcp);
        });
        self.first_media(number, now_ms);
        self.fetched.extend(fetched.map(|fetched| (number, fetched)));
    }

    /// Media has come to a viewer; the first time counts.
    pub fn first_media(&mut self, number: u64, now_ms: u64) {
        if self.slots.get_mut(&number).is_some_and(|slot| !std::mem::replace(&mut slot.has_media, true)) {
            self.count(number, now_ms, |update| update.first_media_ms = Some(now_ms));
        }
    }

    /// Notes a live viewer's connection.
    pub fn sample(&mut self, number: u64, facts: Option<TcpFacts>, skips: u32, behind_ms: u64) {
        let Some(seen_ms) = self.slots.get(&number).map(|slot| slot.update.seen_ms) else { return };
        self.count(number, seen_ms, |update| {
            (update.tcp, update.skips, update.behind_ms) = (facts.or(update.tcp), skips, behind_ms);
        });
    }

    /// Hands over what changed and which segments were fetched by whom, and forgets who has been silent for `expiry_ms`.
    pub fn hand_over(&mut self, now_ms: u64, expiry_ms: u64) -> (Vec<Update>, Vec<(u64, Fetched)>) {
        let mut into = Vec::new();
        for number in self.dirty.drain(..) {
            let Some(slot) = self.slots.get_mut(&number) else { continue };
            slot.is_dirty = false;
            let seen_ms = slot.update.seen_ms;
            let Update { skips, behind_ms, .. } = slot.update;
            let next = Update { skips, behind_ms, ..Update::empty(number, seen_ms) };
            let update = std::mem::replace(&mut slot.update, next);
            if update.left.is_some() {
                self.slots.remove(&number);
            }
            into.push(update);
        }
        // A live viewer is over when its response is; it may be silent for longer.
        self.slots.retain(|_, slot| slot.session.is_none() || now_ms.saturating_sub(slot.update.seen_ms) <= expiry_ms);
        (into, std::mem::take(&mut self.fetched))
    }

    /// Forgets a viewer.
    pub fn forget(&mut self, number: u64) {
        self.slots.remove(&number);
    }

    /// Viewers that have a slot.
    pub fn viewers(&self) -> usize {
        self.slots.len()
    }
}
