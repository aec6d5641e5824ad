//! What a worker counts of its viewers, in memory of its own, and hands to the clerk once a second.

use crate::playout::Fetched;
use crate::token::Session;
use host::tcp_info::TcpInfo;
use std::collections::HashMap;
use std::net::IpAddr;

/// How a viewer plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HLS: a session over any number of connections.
    Hls,
    /// HTTP-FLV: one response.
    Flv,
}

impl Protocol {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hls => "hls",
            Self::Flv => "flv",
        }
    }
}

/// Who a viewer is, told when a worker first sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// `app/stream`.
    pub stream: Box<str>,
    /// How it plays.
    pub protocol: Protocol,
    /// Whether over TLS.
    pub is_tls: bool,
    /// Where from.
    pub address: IpAddr,
    /// What it calls itself, cut to 200 bytes.
    pub agent: Box<str>,
    /// The token's subject, where this worker checked the token.
    pub subject: Option<Box<str>>,
    /// When it came, milliseconds since 1970.
    pub began_ms: u64,
}

/// What the kernel said of a viewer's connection when it was last asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct TcpFacts {
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u64,
    /// Congestion window, segments.
    pub cwnd: u64,
    /// Segments sent again since the connection began.
    pub retransmits: u64,
    /// Bytes not sent yet.
    pub unsent_bytes: u64,
    /// Delivery rate, bytes per second.
    pub delivery_rate: u64,
}

impl TcpFacts {
    /// Of a connection's `tcp_info`.
    pub fn of(info: &TcpInfo) -> Self {
        Self {
            rtt_us: info.get("tcpi_rtt"),
            cwnd: info.get("tcpi_snd_cwnd"),
            retransmits: info.get("tcpi_total_retrans"),
            unsent_bytes: info.get("tcpi_notsent_bytes"),
            delivery_rate: info.get("tcpi_delivery_rate"),
        }
    }
}

/// What happened to a viewer since the last time.
#[derive(Debug, Clone)]
pub struct Update {
    /// The session's number.
    pub number: u64,
    /// Who it is, the first time.
    pub who: Option<Box<Who>>,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Requests answered.
    pub requests: u64,
    /// Responses with media that were complete.
    pub segments: u64,
    /// Times a live viewer was moved to the newest keyframe, in all.
    pub skips: u32,
    /// By how much what a live viewer is sent is behind the newest, milliseconds.
    pub behind_ms: u64,
    /// When it last asked or took something, milliseconds since 1970.
    pub seen_ms: u64,
    /// When its first media was complete.
    pub first_media_ms: Option<u64>,
    /// The connection.
    pub tcp: Option<TcpFacts>,
    /// A live response ended: the viewer has gone.
    pub is_over: bool,
}

/// A session that was found to be good.
#[derive(Debug)]
struct Checked {
    session: Session,
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
pub struct Accounts {
    /// Each in memory of its own, so that the table is small where it grows.
    slots: HashMap<u64, Box<Slot>>,
    dirty: Vec<u64>,
    fetched: Vec<(u64, Fetched)>,
}

impl Accounts {
    /// Whether this worker has checked this id for this stream before, and for this address if it is bound to one.
    pub fn knows(&self, session: &Session, stream: &str, address: IpAddr) -> bool {
        let checked = self.slots.get(&session.number).and_then(|slot| slot.session.as_ref());
        checked.is_some_and(|known| {
            known.session == *session && *known.stream == *stream && (!session.is_bound() || known.address == address)
        })
    }

    /// Makes a viewer's slot, unless it is there.
    pub fn open(&mut self, number: u64, session: Option<Session>, now_ms: u64, who: impl FnOnce() -> Who) {
        let dirty = &mut self.dirty;
        self.slots.entry(number).or_insert_with(|| {
            let who = who();
            dirty.push(number);
            let session = session.map(|session| Checked { session, stream: who.stream.clone(), address: who.address });
            let update = empty(number, now_ms, Some(Box::new(who)));
            Box::new(Slot { session, update, is_dirty: true, has_media: false })
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
            let next = Update { skips, behind_ms, ..empty(number, seen_ms, None) };
            let update = std::mem::replace(&mut slot.update, next);
            if update.is_over {
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

fn empty(number: u64, seen_ms: u64, who: Option<Box<Who>>) -> Update {
    Update {
        number,
        who,
        bytes: 0,
        requests: 0,
        segments: 0,
        skips: 0,
        behind_ms: 0,
        seen_ms,
        first_media_ms: None,
        tcp: None,
        is_over: false,
    }
}
