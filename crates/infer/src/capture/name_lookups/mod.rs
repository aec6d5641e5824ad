//! Name lookups in the capture, and the connections that followed them.
//!
//! The queries of one client for one name are one lookup, whatever types they ask for and however often they are sent, over UDP or, after an
//! answer that was truncated, over TCP. A connection belongs to it if it goes to an address of the answer, shortly after.

mod tcp_streams;

use crate::event::packet::{Endpoint, NameLookup};
use crate::observe::log_histogram::LogHistogram;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use tcp_streams::TcpStreams;
use thalweg_units::figures::{count, counted, elapsed};
use thalweg_wire::{DNS_PORT, Datagram, DnsMessage, Flags, Segment};

/// Lookups that are remembered, and the addresses of each. Bounds memory.
const LOOKUPS_MAX: usize = 4_096;
const ADDRESSES_MAX: usize = 16;
/// For how long a query waits for its answer, in nanoseconds: glibc sends it twice, five seconds apart (`RES_TIMEOUT`, `RES_DFLRETRY`), to up
/// to three servers (`MAXNS`).
const QUERY_LIFETIME_NS: u64 = 30_000_000_000;
/// After which silence nothing answered: glibc's time until it sends a query again.
const ANSWER_TIMEOUT_NS: u64 = 5_000_000_000;
/// A query is sent again by a timer; what comes sooner is the tap's copy, or the other side of a router. A mirror port delivers both within
/// milliseconds, and glibc asks again after seconds (`RES_TIMEOUT`).
const MIN_REPEAT_NS: u64 = 100_000_000;
/// A connection that begins so soon after an answer waited for it. `a_name_lookup_is_the_first_phase_of_the_connection_after_it` holds it.
const MAX_BEFORE_CONNECTION_NS: u64 = 1_000_000_000;
/// Names that a note has. Bounds work: a note is one line.
const NOTE_NAMES_MAX: usize = 3;

/// The response code (RFC 1035 §4.1.1).
const NO_SUCH_NAME: u8 = 3;

#[derive(Debug)]
struct Lookup {
    client: IpAddr,
    name: String,
    began: u64,
    /// The latest query of each type that waits for its answer: A, AAAA, others.
    asked: [Option<u64>; 3],
    last_asked: u64,
    /// Queries sent again.
    again: u32,
    /// An answer was truncated, and what types were asked for again over TCP.
    is_truncated: bool,
    over_tcp: bool,
    ended: Option<u64>,
    code: u8,
    addresses: Vec<IpAddr>,
}

/// What became of lookups that are over.
#[derive(Debug, Default)]
struct Totals {
    answered: u64,
    again: u64,
    over_tcp: u64,
    took: LogHistogram<5, 40>,
    /// How many had no answer, no such name, or another error, with the first names.
    failed: [(u64, Vec<String>); 3],
}

/// The lookups of a capture.
#[derive(Debug, Default)]
pub(super) struct NameLookups {
    recent: VecDeque<Lookup>,
    /// Number of the first of `recent`.
    first: u64,
    /// The latest lookup of a name by a client, and of an address, by number.
    by_name: HashMap<(IpAddr, String), u64>,
    by_address: HashMap<(IpAddr, IpAddr), u64>,
    streams: TcpStreams,
    totals: Totals,
}

impl NameLookups {
    /// Takes in a datagram with this payload, from or to a name server.
    pub(super) fn datagram(&mut self, datagram: &Datagram, payload: &[u8], now: u64) {
        let Some(message) = DnsMessage::read(payload) else { return };
        let ends = [(datagram.ip.source, datagram.source_port), (datagram.ip.destination, datagram.destination_port)];
        self.message(ends, message, false, now);
    }

    /// Takes in a segment of this packet, if it is from or to a name server.
    #[inline]
    pub(super) fn segment(&mut self, segment: &Segment, packet: &[u8], now: u64) {
        if segment.tcp.source_port == DNS_PORT || segment.tcp.destination_port == DNS_PORT {
            self.streams.segment(segment, segment.payload(packet), now);
            while let Some((ends, message)) = self.streams.next_message() {
                self.message(ends, message, true, now);
            }
        }
    }

    /// Takes in a message that the first of two ends sent to the second.
    fn message(&mut self, [from, to]: [Endpoint; 2], message: DnsMessage, over_tcp: bool, now: u64) {
        if message.is_answer && from.1 == DNS_PORT {
            self.answer(to.0, message, now);
        } else if !message.is_answer && to.1 == DNS_PORT {
            self.query(from.0, message, over_tcp, now);
        }
    }

    /// The lookup that a connection which begins with this segment waited for.
    pub(super) fn before(&self, segment: &Segment, now: u64) -> Option<Arc<NameLookup>> {
        let is_first = segment.tcp.flags.has(Flags::SYN) && !segment.tcp.flags.has(Flags::ACK);
        if !is_first || self.by_address.is_empty() {
            return None;
        }
        let number = self.by_address.get(&(segment.ip.source, segment.ip.destination))?;
        let found = self.recent.get(usize::try_from(number.checked_sub(self.first)?).ok()?)?;
        let ended =
            found.ended.filter(|ended| (*ended..=ended.saturating_add(MAX_BEFORE_CONNECTION_NS)).contains(&now))?;
        Some(Arc::new(NameLookup { name: found.name.clone(), began: found.began, ended, again: found.again }))
    }

    fn query(&mut self, client: IpAddr, message: DnsMessage, over_tcp: bool, now: u64) {
        let kind = kind(&message);
        let key = (client, message.name);
        let known = self.by_name.get(&key).and_then(|number| number.checked_sub(self.first));
        if let Some(known) = known.and_then(|place| self.recent.get_mut(usize::try_from(place).ok()?))
            && now.saturating_sub(known.last_asked) <= QUERY_LIFETIME_NS
        {
            // What is asked for over TCP after an answer that was cut is no repetition, and the lookup goes on.
            let goes_on = over_tcp && known.is_truncated;
            let again = known.asked[kind].map(|last| now.saturating_sub(last) > MIN_REPEAT_NS);
            let is_same = goes_on || known.ended.is_none_or(|ended| now <= ended.saturating_add(MIN_REPEAT_NS));
            if goes_on {
                (known.over_tcp, known.ended) = (true, None);
            }
            if again.is_some() || is_same {
                if again != Some(false) {
                    (known.asked[kind], known.last_asked) = (Some(now), now);
                    known.again += u32::from(again.is_some());
                }
                return;
            }
        }
        let mut asked = [None; 3];
        asked[kind] = Some(now);
        let number = self.first + self.recent.len() as u64;
        let (client, name) = key.clone();
        self.by_name.insert(key, number);
        self.recent.push_back(Lookup {
            client,
            name,
            began: now,
            asked,
            last_asked: now,
            again: 0,
            is_truncated: false,
            over_tcp,
            ended: None,
            code: 0,
            addresses: Vec::new(),
        });
        if self.recent.len() > LOOKUPS_MAX {
            self.forget(now);
        }
    }

    fn answer(&mut self, client: IpAddr, message: DnsMessage, now: u64) {
        let kind = kind(&message);
        let Some(&number) = self.by_name.get(&(client, message.name)) else { return };
        let place = number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        let Some(known) = place.and_then(|place| self.recent.get_mut(place)) else { return };
        // A copy, or the answer to a query that was sent again.
        if known.asked[kind].take().is_none() || now.saturating_sub(known.last_asked) > QUERY_LIFETIME_NS {
            return;
        }
        // An error of one type does not take back the addresses of another.
        if known.addresses.is_empty() {
            known.code = message.code;
        }
        known.is_truncated |= message.is_truncated;
        known.ended = Some(now);
        for address in message.addresses {
            if known.addresses.len() < ADDRESSES_MAX && !known.addresses.contains(&address) {
                known.addresses.push(address);
                self.by_address.insert((client, address), number);
            }
        }
    }

    /// Counts the oldest lookup and forgets it.
    fn forget(&mut self, now: u64) {
        let Some(old) = self.recent.pop_front() else { return };
        let number = self.first;
        self.first += 1;
        self.totals.add(&old, now);
        for address in old.addresses {
            let key = (old.client, address);
            if self.by_address.get(&key) == Some(&number) {
                self.by_address.remove(&key);
            }
        }
        let key = (old.client, old.name);
        if self.by_name.get(&key) == Some(&number) {
            self.by_name.remove(&key);
        }
    }

    /// What there is to say of them in a capture that ends at `now`.
    pub(super) fn note(&mut self, now: u64) -> Option<String> {
        while !self.recent.is_empty() {
            self.forget(now);
        }
        let Totals { answered, again, over_tcp, took, failed } = &self.totals;
        let mut parts = Vec::new();
        if *answered > 0 {
            let [median, longest] = [0.5, 1.0].map(|part| elapsed(took.percentile(part) as f64 / 1e9));
            parts.push(format!("{} answered after {median} (median), {longest} (longest)", count(*answered as f64)));
        }
        if *again > 0 {
            parts.push(format!(
                "{} sent again",
                if *again == 1 { "1 query".to_owned() } else { format!("{again} queries") }
            ));
        }
        if *over_tcp > 0 {
            parts.push(format!("{over_tcp} over TCP"));
        }
        for ((count, names), what) in
            failed.iter().zip(["not answered", "of names that do not exist", "answered by an error"])
        {
            if *count > 0 {
                let more = if *count > names.len() as u64 { ", …" } else { "" };
                parts.push(format!("{count} {what} ({}{more})", names.join(", ")));
            }
        }
        let all = answered + failed.iter().map(|(count, _)| count).sum::<u64>();
        (all > 0).then(|| format!("{}: {}", counted(all, "name lookup"), parts.join("; ")))
    }
}

impl Totals {
    fn add(&mut self, lookup: &Lookup, now: u64) {
        self.again += u64::from(lookup.again);
        let failed = match (lookup.ended, lookup.code) {
            (None, _) if lookup.again > 0 || now.saturating_sub(lookup.last_asked) >= ANSWER_TIMEOUT_NS => Some(0),
            // The capture ends too soon.
            (None, _) => return,
            (Some(ended), 0) => {
                self.answered += 1;
                self.took.add(ended.saturating_sub(lookup.began), 1);
                None
            }
            (Some(_), NO_SUCH_NAME) => Some(1),
            (Some(_), _) => Some(2),
        };
        self.over_tcp += u64::from(lookup.over_tcp);
        if let Some(failed) = failed {
            let (count, names) = &mut self.failed[failed];
            *count += 1;
            if names.len() < NOTE_NAMES_MAX && !names.contains(&lookup.name) {
                names.push(lookup.name.clone());
            }
        }
    }
}

const fn kind(message: &DnsMessage) -> usize {
    match message.kind {
        1 => 0,
        28 => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests;
