//! Lookups with copies, repetitions and errors, and the connections after them.

use super::*;
use crate::testing::packet;
use thalweg_wire::IpFacts;

const MILLI: u64 = 1_000_000;
const SERVER: [u8; 4] = [10, 0, 0, 2];

/// A message about `name` with these addresses, and a response code if it is an answer.
fn message(name: &str, kind: u8, code: Option<u8>, addresses: &[[u8; 4]]) -> Vec<u8> {
    let flags = code.map_or([1, 0], |code| [0x81, 0x80 | code]);
    let mut bytes = vec![0, 7, flags[0], flags[1], 0, 1, 0, addresses.len() as u8, 0, 0, 0, 0];
    for label in name.split('.') {
        bytes.push(label.len() as u8);
        bytes.extend(label.as_bytes());
    }
    bytes.extend([0, 0, kind, 0, 1]);
    for address in addresses {
        bytes.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        bytes.extend(address);
    }
    bytes
}

fn send(found: &mut NameLookups, millis: u64, payload: &[u8]) {
    let (client, server): (IpAddr, IpAddr) = (packet(true, 0, 0, 0, 0).ip.source, [9, 9, 9, 9].into());
    let is_answer = payload[2] & 0x80 != 0;
    let (source, destination) = if is_answer { (server, client) } else { (client, server) };
    let (source_port, destination_port) = if is_answer { (DNS_PORT, 5_353) } else { (5_353, DNS_PORT) };
    let datagram = Datagram {
        ip: IpFacts { source, destination, ttl: 64, ecn: 0, id: None },
        source_port,
        destination_port,
        payload_len: payload.len() as u32,
        payload_at: 0,
    };
    found.datagram(&datagram, payload, millis * MILLI);
}

/// The lookup before a SYN at this time: its name, begin, end, and queries sent again.
fn before(found: &NameLookups, millis: u64) -> Option<(String, u64, u64, u32)> {
    let lookup = found.before(&packet(true, Flags::SYN, 100, 0, 0), millis * MILLI)?;
    Some((lookup.name.clone(), lookup.began / MILLI, lookup.ended / MILLI, lookup.again))
}

#[test]
fn a_connection_belongs_to_the_lookup_that_gave_its_address() {
    let mut found = NameLookups::default();
    let name = "www.example.org";
    assert_eq!(before(&found, 0), None);
    send(&mut found, 100, &message(name, 1, None, &[]));
    send(&mut found, 100, &message(name, 28, None, &[]));
    send(&mut found, 101, &message(name, 1, None, &[]));
    send(&mut found, 5_100, &message(name, 1, None, &[]));
    send(&mut found, 5_150, &message(name, 1, Some(0), &[SERVER, [10, 0, 0, 3]]));
    send(&mut found, 5_180, &message(name, 28, Some(2), &[]));
    send(&mut found, 5_181, &message(name, 28, Some(2), &[]));
    assert_eq!(before(&found, 5_181), Some((name.to_owned(), 100, 5_180, 1)));
    assert_eq!(before(&found, 6_180), Some((name.to_owned(), 100, 5_180, 1)));
    assert_eq!(before(&found, 6_181), None, "long after");
    assert!(found.before(&packet(false, Flags::SYN | Flags::ACK, 1, 1, 0), 5_181 * MILLI).is_none());
    // The same name again is another lookup.
    send(&mut found, 8_000, &message(name, 1, None, &[]));
    send(&mut found, 8_020, &message(name, 1, Some(0), &[SERVER]));
    assert_eq!(before(&found, 8_021), Some((name.to_owned(), 8_000, 8_020, 0)));
    let note = found.note(9_000 * MILLI).expect("lookups");
    assert_eq!(note, "2 name lookups: 2 answered after 20.2 ms (median), 5.08 s (longest); 1 query sent again");
}

#[test]
fn lookups_that_failed_are_named() {
    let mut found = NameLookups::default();
    assert_eq!(found.note(0), None);
    for name in ["a.example", "b.example"] {
        send(&mut found, 0, &message(name, 1, None, &[]));
        send(&mut found, 5_000, &message(name, 1, None, &[]));
    }
    send(&mut found, 0, &message("nowhere.example", 1, None, &[]));
    send(&mut found, 30, &message("nowhere.example", 1, Some(3), &[]));
    send(&mut found, 9_000, &message("late.example", 1, None, &[]));
    let note = found.note(9_100 * MILLI).expect("lookups");
    assert_eq!(
        note,
        "3 name lookups: 2 queries sent again; 2 not answered (a.example, b.example); 1 of names that do not exist (nowhere.example)"
    );
}

/// A segment between the client and the name server at this time, its number counted from the stream's first byte; the SYN without payload.
fn segment(found: &mut NameLookups, millis: u64, from_client: bool, number: u32, payload: &[u8]) {
    let (flags, number) = if payload.is_empty() { (Flags::SYN, u32::MAX) } else { (Flags::ACK, number) };
    let mut segment = packet(from_client, flags, 0xffff_fff0u32.wrapping_add(number), 1, payload.len() as u32);
    segment.payload_at = 40;
    (segment.tcp.source_port, segment.tcp.destination_port) =
        if from_client { (6_000, DNS_PORT) } else { (DNS_PORT, 6_000) };
    found.segment(&segment, &[&[0; 40], payload].concat(), millis * MILLI);
}

/// A message behind its length.
fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes()[..], message].concat()
}

#[test]
fn a_truncated_answer_and_what_follows_over_tcp_are_one_lookup() {
    let mut found = NameLookups::default();
    let name = "large.example.org";
    send(&mut found, 100, &message(name, 1, None, &[]));
    let mut cut = message(name, 1, Some(0), &[]);
    cut[2] |= 2;
    send(&mut found, 130, &cut);
    let whole = framed(&message(name, 1, Some(0), &[SERVER; 60]));
    let (first, last) = whole.split_at(500);
    let again = framed(&message(name, 1, None, &[]));
    segment(&mut found, 330, true, 0, &[]);
    segment(&mut found, 430, false, 0, &[]);
    segment(&mut found, 430, true, 0, &again);
    // The end comes first, and the beginning twice.
    segment(&mut found, 600, false, 500, last);
    assert_eq!(before(&found, 610), None, "its answer is not whole");
    segment(&mut found, 640, false, 0, first);
    segment(&mut found, 650, false, 0, first);
    assert_eq!(before(&found, 640), Some((name.to_owned(), 100, 640, 0)));
    // Several of another stream in one segment, the last of them in two.
    let queries = ["a.example", "b.example"].map(|name| framed(&message(name, 28, None, &[]))).concat();
    let queried = again.len() as u32;
    segment(&mut found, 700, true, queried, &queries[..40]);
    segment(&mut found, 701, true, queried + 40, &queries[40..]);
    let note = found.note(800 * MILLI).expect("lookups");
    assert_eq!(note, "1 name lookup: 1 answered after 540 ms (median), 540 ms (longest); 1 over TCP");
}

#[test]
fn a_truncated_answer_that_is_enough_ends_its_lookup() {
    let mut found = NameLookups::default();
    send(&mut found, 100, &message("a.example", 1, None, &[]));
    let mut cut = message("a.example", 1, Some(0), &[SERVER]);
    cut[2] |= 2;
    send(&mut found, 130, &cut);
    assert_eq!(before(&found, 140), Some(("a.example".to_owned(), 100, 130, 0)));
}

#[test]
fn many_lookups_take_no_memory() {
    let mut found = NameLookups::default();
    for n in 0..3 * LOOKUPS_MAX as u64 {
        let name = format!("host{n}.example");
        send(&mut found, n, &message(&name, 1, None, &[]));
        send(&mut found, n, &message(&name, 1, Some(0), &[(n as u32).to_be_bytes()]));
    }
    assert_eq!(
        (found.recent.len(), found.by_name.len(), found.by_address.len()),
        (LOOKUPS_MAX, LOOKUPS_MAX, LOOKUPS_MAX)
    );
    assert!(found.note(0).is_some_and(|note| note.starts_with("12,288 name lookups: 12,288 answered")));
}
