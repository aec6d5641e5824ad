//! Notes on what of a capture was not analysed.

use crate::flow::failed_flow::FailedFlow;
use std::collections::BTreeMap;
use thalweg_units::figures::{counted, elapsed};
use thalweg_wire::Other;

/// Unknown link types that are listed each. `an_unknown_link_type_is_told_by_number_and_name_and_many_are_not_told_each` holds it.
const LINKS_MAX: usize = 3;

/// What the snapshot length cut; the options are asked for by name, as without a SYN's the analysis lacks them.
pub(super) fn cut_note(cut: u64, options_cut: u64) -> Option<String> {
    match (cut, options_cut) {
        (0, _) => None,
        (_, 0) => Some(format!("{cut} packets are cut by the snapshot length; their headers are what is analysed")),
        _ => Some(format!(
            "{cut} packets are cut by the snapshot length, {options_cut} of them within their TCP options: what those say (window scale, selective acknowledgements, timestamps) is not known; capture 128 bytes of each packet or more"
        )),
    }
}

/// That connections are missing because their analysis panicked.
pub(super) fn failed_note(failed: &[FailedFlow]) -> Option<String> {
    let FailedFlow { first_packet, ends: [(client, client_port), (server, server_port)], .. } = failed.first()?;
    let count = counted(failed.len() as u64, "connection");
    Some(format!(
        "an internal error ended the analysis of {count}, which the report lacks; the first began with packet {first_packet}: {client} port {client_port} to {server} port {server_port}"
    ))
}

/// That packets lay behind later ones in the file, `too_late` of them so far that they could not be put before those.
pub(super) fn order_note(behind: u64, too_late: u64) -> Option<String> {
    let s = if behind == 1 { " is" } else { "s are" };
    let order = match too_late {
        0 => "they are analysed in order of their times, no ACK before its data".to_owned(),
        _ => format!(
            "{too_late} of them lie too far behind to be put in order, and what is said of their connections may be wrong; sort the file first (reordercap)"
        ),
    };
    (behind > 0).then(|| format!("time runs backwards in the capture: {behind} packet{s} behind later ones; {order}"))
}

/// That the clock jumps back, this many times and by this many nanoseconds at most.
pub(super) fn set_back_note(times: u64, furthest: u64) -> Option<String> {
    (times > 0).then(|| {
        format!(
            "time jumps back in the capture: {}, by {} at most; a connection that goes on after that is taken to go on at once",
            counted(times, "time"),
            elapsed(furthest as f64 / 1e9)
        )
    })
}

/// That packets are in the capture twice.
pub(super) fn repeated_note(known: u64) -> Option<String> {
    (known > 0).then(|| {
        format!(
            "the capture holds {} a second time, from its first packet on: it was joined with itself; the second copies were dropped",
            counted(known, "packet")
        )
    })
}

/// A note for each kind of packet that is not analysed. Of link types, which a file may name by the thousand, only some are listed.
pub(super) fn notes_of(others: &BTreeMap<Other, u64>) -> Vec<String> {
    let (links, others): (Vec<_>, Vec<_>) =
        others.iter().partition(|(other, _)| matches!(other, Other::UnknownLink(_)));
    let told = links.iter().take(LINKS_MAX).chain(&others).map(|(other, count)| note_of(**other, **count));
    let rest: u64 = links.iter().skip(LINKS_MAX).map(|(_, count)| **count).sum();
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
    use thalweg_wire::LinkType;

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
}
