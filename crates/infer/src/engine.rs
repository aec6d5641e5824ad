//! The work on a capture in parts that can be done side by side: taking packets in, following connections, joining what was found.
//!
//! Connections are divided by [`Seen::spread`], and each is followed by one [`Shard`] that sees its packets in their order. What a
//! shard does depends on these alone, so however many there are, [`join`] gives the same report to the byte.

use crate::diagnose::{CaptureDiagnosis, Options};
use crate::finished::Finished;
use crate::kept::{Kept, Wanted};
use crate::key::Key;
use crate::order::is_slowed;
use crate::table::{Seen, Table};
use model::CaptureReport;
use std::collections::BTreeMap;
use std::io::Read;
use wire::filter::Filter;
use wire::{Capture, Decoded, Decoder, Late, Other, Packet};

/// Most nanoseconds by which one packet alone moves the clock on: a damaged time must not end every connection.
const STRIDE: u64 = 3 * 3600 * 1_000_000_000;

/// Unknown link types that are told each.
const LINKS_TOLD: usize = 3;

/// The packets of a capture, counted and decoded in their order.
#[derive(Debug, Default)]
pub struct Intake {
    decoder: Decoder,
    others: BTreeMap<Other, u64>,
    packets: u64,
    bytes: u64,
    cut: u64,
    /// Of those, the ones whose options are not all there.
    options_cut: u64,
    clock: Clock,
}

/// The capture's clock, in nanoseconds since the epoch: the latest time seen.
#[derive(Debug, Default)]
struct Clock {
    now: Option<u64>,
    /// A time far ahead, which counts when the next packet's is near it.
    ahead: Option<u64>,
}

impl Clock {
    fn at(&mut self, at: u64) -> u64 {
        let now = self.now.unwrap_or(at);
        let far = at > now.saturating_add(STRIDE);
        let believed = !far || self.ahead.is_some_and(|ahead| ahead.abs_diff(at) <= STRIDE);
        self.ahead = far.then_some(at);
        let now = if believed { now.max(at) } else { now };
        self.now = Some(now);
        now
    }
}

impl Intake {
    /// Takes in what the filter wants; `None` for all.
    pub fn new(filter: Option<Filter>) -> Self {
        Self { decoder: Decoder::with_filter(filter), ..Self::default() }
    }

    /// Takes the next packet in, and hands the TCP segments on that are in it.
    pub fn packet(&mut self, packet: &Packet<'_>, mut segment: impl FnMut(Seen)) {
        self.packets += 1;
        self.bytes += u64::from(packet.original_len);
        let is_cut = (packet.bytes.len() as u64) < u64::from(packet.original_len);
        let mut options_cut = false;
        let clock = self.clock.at(packet.at.as_nanos());
        let (interface, at, number) = (packet.interface, packet.at, packet.number);
        self.decoder.decode(packet, |decoded| match decoded {
            Decoded::Tcp(found) => {
                options_cut |= found.tcp.options.cut;
                segment(Seen { interface, at, number, clock, segment: found });
            }
            Decoded::Late(late) => segment(Seen::late(&late, clock)),
            Decoded::Other(other) => *self.others.entry(other).or_default() += 1,
        });
        if is_cut {
            self.cut += 1;
            self.options_cut += u64::from(options_cut);
        }
    }

    /// Hands on what is known of packets in fragments whose last did not come; to be called when the capture is over.
    pub fn finish(&mut self, mut segment: impl FnMut(Seen)) {
        let clock = self.clock.now.unwrap_or_default();
        self.decoder.finish(|decoded| match decoded {
            Decoded::Tcp(_) => {}
            Decoded::Late(late) => segment(Seen::late(&late, clock)),
            Decoded::Other(other) => *self.others.entry(other).or_default() += 1,
        });
    }
}

impl Seen {
    const fn late(late: &Late, clock: u64) -> Self {
        Self { interface: late.interface, at: late.at, number: late.number, clock, segment: late.segment }
    }

    /// A number by which connections are divided among shards: all packets of one connection have the same.
    pub fn spread(&self) -> u64 {
        Key::of(self.interface, &self.segment).spread()
    }
}

/// Some of a capture's connections, being followed.
#[derive(Debug)]
pub struct Shard {
    table: Table,
}

impl Shard {
    /// Follows connections as `options` say. Of several shards none may be asked to draw the first so many: it does not know which
    /// those are.
    pub fn new(options: Options) -> Self {
        Self { table: Table::new(options.drawn, options.wanted) }
    }

    /// Takes the next packet of its connections in.
    pub fn packet(&mut self, seen: &Seen) {
        self.table.packet(seen);
    }

    /// Sums its connections up.
    pub fn finish(self) -> Part {
        Part { kept: self.table.finish() }
    }
}

/// What a shard found.
#[derive(Debug)]
pub struct Part {
    kept: Kept,
}

/// Joins what the shards found in a capture that was read to its end.
pub fn join<R: Read>(name: &str, capture: &Capture<R>, intake: Intake, parts: Vec<Part>) -> CaptureDiagnosis {
    let mut parts = parts.into_iter().map(|part| part.kept);
    let mut kept = parts.next().unwrap_or_else(|| Kept::new(Wanted::All));
    for part in parts {
        kept.records.extend(part.records);
        kept.firsts.extend(part.firsts);
        kept.tap_duplicates += part.tap_duplicates;
        kept.missed = (kept.missed.0 + part.missed.0, kept.missed.1 + part.missed.1);
        kept.joined += part.joined;
        kept.slowed |= part.slowed;
    }
    let most = kept.most();
    let Kept { records: mut found, mut firsts, tap_duplicates: duplicates, joined, missed, slowed, .. } = kept;
    let mut notes = capture.damage().notes();
    notes.extend(notes_of(&intake.others));
    notes.extend(cut_note(intake.cut, intake.options_cut));
    if duplicates > 0 {
        notes.push(format!("the tap delivered {duplicates} packets twice; the second copies were dropped"));
    }
    if joined > 0 {
        notes.push(format!(
            "the two directions of {} came under different tags or from different interfaces; they were joined",
            crate::words::count(joined, "connection")
        ));
    }
    if missed.0 > 0 {
        notes.push(format!(
            "the capture lacks {} that were acknowledged ({}): it lost packets, and what is told rests on the others",
            crate::words::size(missed.1 as f64),
            crate::words::count(missed.0, "connection"),
        ));
    }
    crate::shared::judge(&mut found);
    // Flows are numbered in order of their first packets, and listed costliest first.
    firsts.sort_unstable();
    let slowed = slowed || found.iter().any(|one| is_slowed(&one.flow));
    found.sort_by_cached_key(Finished::cost);
    found.truncate(most);
    let mut series = Vec::new();
    let interfaces = capture.interfaces();
    for (index, one) in found.iter_mut().enumerate() {
        one.flow.id = firsts.partition_point(|&first| first < one.flow.first_packet) as u64;
        one.flow.interface = interfaces
            .get(one.interface as usize)
            .filter(|_| interfaces.len() > 1)
            .map(|interface| interface.name.clone().unwrap_or_else(|| one.interface.to_string()));
        series.extend(one.series.take().map(|drawn| (index, *drawn)));
    }
    let flows = found.into_iter().map(|one| one.flow).collect();
    let truncated = capture.damage().truncated;
    let (packets, bytes) = (intake.packets, intake.bytes);
    CaptureDiagnosis {
        report: CaptureReport { file: name.to_owned(), packets, bytes, truncated, notes, flows },
        series,
        connections: firsts.len() as u64,
        slowed,
    }
}

/// What the snapshot length cut; the options are asked for by name, as without a SYN's the analysis lacks them.
fn cut_note(cut: u64, options_cut: u64) -> Option<String> {
    match (cut, options_cut) {
        (0, _) => None,
        (_, 0) => Some(format!("{cut} packets are cut by the snapshot length; their headers are what is analysed")),
        _ => Some(format!(
            "{cut} packets are cut by the snapshot length, {options_cut} of them within their TCP options: what those say (window scale, selective acknowledgements, timestamps) is not known; capture 128 bytes of each packet or more"
        )),
    }
}

/// A note for each kind of packet that is not analysed. Of link types, which a file may name by the thousand, only some are told.
fn notes_of(others: &BTreeMap<Other, u64>) -> Vec<String> {
    let (links, others): (Vec<_>, Vec<_>) =
        others.iter().partition(|(other, _)| matches!(other, Other::UnknownLink(_)));
    let told = links.iter().take(LINKS_TOLD).chain(&others).map(|(other, count)| note_of(**other, **count));
    let rest: u64 = links.iter().skip(LINKS_TOLD).map(|(_, count)| **count).sum();
    told.chain((rest > 0).then(|| format!("{rest} packets of other link types are not read either"))).collect()
}

fn note_of(other: Other, count: u64) -> String {
    let s = if count == 1 { " is" } else { "s are" };
    match other {
        Other::UnknownLink(link) => {
            let name = link.name().map_or_else(String::new, |name| format!(" ({name})"));
            format!("{count} packet{s} of link type {}{name}, which is not read here", link.0)
        }
        Other::NotIp => format!("{count} packet{s} not IP"),
        Other::NotTcp => format!("{count} packet{s} IP but not TCP"),
        Other::Encrypted => {
            format!("{count} frame{s} of 802.11 and encrypted: capture behind the decryption to see what is in them")
        }
        Other::Fragment => format!("{count} packet{s} fragments of IP whose first is not in the capture"),
        Other::FrameRest => {
            format!("{count} frame{s} later fragments of 802.11 frames, whose first tell the length of the whole")
        }
        Other::Unwanted => format!("{count} packet{s} TCP that the filter leaves out"),
        Other::Malformed => format!("{count} packet{s} cut within the headers, or contradicting themselves there"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::LinkType;

    #[test]
    fn options_that_are_cut_are_told() {
        assert_eq!(cut_note(0, 0), None);
        assert!(cut_note(7, 0).is_some_and(|note| note.ends_with("their headers are what is analysed")));
        assert!(cut_note(7, 2).is_some_and(|note| note.contains("2 of them within their TCP options")));
    }

    #[test]
    fn an_unknown_link_type_is_told_by_number_and_name_and_many_are_not_told_each() {
        let mut others: BTreeMap<Other, u64> =
            [147, 219, 300, 301, 302].map(|link| (Other::UnknownLink(LinkType(link)), 2)).into();
        others.insert(Other::NotIp, 1);
        assert_eq!(
            notes_of(&others),
            [
                "2 packets are of link type 147 (for private use), which is not read here",
                "2 packets are of link type 219 (MPLS), which is not read here",
                "2 packets are of link type 300, which is not read here",
                "1 packet is not IP",
                "4 packets of other link types are not read either",
            ]
        );
    }

    #[test]
    fn one_damaged_time_does_not_move_the_clock_and_a_gap_of_days_does() {
        let (mut clock, day) = (Clock::default(), 86_400_000_000_000);
        let times = [day, day + 5, 900 * day, day + 7, day + 6, 9 * day, 9 * day + 1];
        assert_eq!(times.map(|at| clock.at(at)), [day, day + 5, day + 5, day + 7, day + 7, day + 7, 9 * day + 1]);
    }
}
