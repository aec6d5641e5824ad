//! Queries of the domain name system and their answers, as far as they tell who waited for which address.
//!
//! Source: RFC 1035 §4.1; RFC 3596 (AAAA); over TCP RFC 7766.

use crate::bytes::be16;
use std::net::IpAddr;

/// The port of name servers.
pub const DNS_PORT: u16 = 53;
/// Addresses kept of an answer, and records looked at.
const ADDRESSES_MAX: usize = 16;
const RECORDS_MAX: u16 = 64;
/// Characters of a name, and labels it has at most (RFC 1035 §2.3.4).
const NAME_MAX: usize = 253;
const LABELS_MAX: usize = 128;

const A: u16 = 1;
const AAAA: u16 = 28;

/// A query, or the answer to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsMessage {
    /// It is an answer.
    pub is_answer: bool,
    /// It is longer than a datagram may be, and was cut: the client may ask again over TCP (RFC 7766 §5).
    pub is_truncated: bool,
    /// The response code of an answer: 0 no error, 2 the server failed, 3 there is no such name.
    pub code: u8,
    /// The name that is asked for, in small letters.
    pub name: String,
    /// The type that is asked for: 1 an IPv4 address, 28 an IPv6 address.
    pub kind: u16,
    /// Addresses in the answer, at most 16.
    pub addresses: Vec<IpAddr>,
}

impl DnsMessage {
    /// The first message of a stream of TCP, behind its length, and what follows it; `None` if it is not whole.
    ///
    /// Source: RFC 1035 §4.2.2.
    pub fn split_first(stream: &[u8]) -> Option<(&[u8], &[u8])> {
        let length = usize::from(be16(stream, 0)?);
        stream.get(2..)?.split_at_checked(length)
    }

    /// Reads the payload of a datagram, or a message of a stream; `None` if that is no query and no answer with one question. Of an answer that is cut, the addresses
    /// before the cut are read.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        const HEADER: usize = 12;
        let (flags, questions, answers) = (be16(bytes, 2)?, be16(bytes, 4)?, be16(bytes, 6)?);
        let is_query = flags >> 11 & 0xf == 0;
        if questions != 1 || !is_query {
            return None;
        }
        let (name, at) = name(bytes, HEADER)?;
        let kind = be16(bytes, at)?;
        let is_answer = flags & 0x8000 != 0;
        let addresses = if is_answer { addresses(bytes, at + 4, answers) } else { Vec::new() };
        let is_truncated = is_answer && flags & 0x0200 != 0;
        Some(Self { is_answer, is_truncated, code: (flags & 0xf) as u8, name, kind, addresses })
    }
}

/// The name at `at`, which is not compressed, and where it ends.
fn name(bytes: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut name = String::new();
    for _ in 0..LABELS_MAX {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            return Some((name, at));
        }
        let label = bytes.get(at..at + length).filter(|_| length < 64)?;
        at += length;
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(&super::text(label, NAME_MAX).to_ascii_lowercase());
        if name.len() > 4 * NAME_MAX {
            return None;
        }
    }
    None
}

fn addresses(bytes: &[u8], mut at: usize, records: u16) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for _ in 0..records.min(RECORDS_MAX) {
        let Some((kind, data, next)) = record(bytes, at) else { break };
        let address = match kind {
            A => data.try_into().ok().map(|four: [u8; 4]| IpAddr::from(four)),
            AAAA => data.try_into().ok().map(|sixteen: [u8; 16]| IpAddr::from(sixteen)),
            _ => None,
        };
        found.extend(address.filter(|_| found.len() < ADDRESSES_MAX));
        at = next;
    }
    found
}

/// The record at `at`: its type, its data, and where it ends.
fn record(bytes: &[u8], at: usize) -> Option<(u16, &[u8], usize)> {
    let at = after_name(bytes, at)?;
    // Type, class, time to live, length.
    let length = usize::from(be16(bytes, at + 8)?);
    let data = bytes.get(at + 10..at + 10 + length)?;
    Some((be16(bytes, at)?, data, at + 10 + length))
}

/// Where the name at `at` ends, which may be compressed (RFC 1035 §4.1.4).
fn after_name(bytes: &[u8], mut at: usize) -> Option<usize> {
    for _ in 0..LABELS_MAX {
        match *bytes.get(at)? {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + usize::from(length),
            0xc0.. => return Some(at + 2),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(flags: u16, name: &str, kind: u16, answers: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0x12, 0x34];
        bytes.extend(flags.to_be_bytes());
        bytes.extend([0, 1, 0, answers.len() as u8, 0, 0, 0, 0]);
        for label in name.split('.') {
            bytes.push(label.len() as u8);
            bytes.extend(label.as_bytes());
        }
        bytes.push(0);
        bytes.extend(kind.to_be_bytes());
        bytes.extend([0, 1]);
        for (kind, data) in answers {
            bytes.extend([0xc0, 12]);
            bytes.extend(kind.to_be_bytes());
            bytes.extend([0, 1, 0, 0, 0, 60, 0, data.len() as u8]);
            bytes.extend(*data);
        }
        bytes
    }

    #[test]
    fn queries_and_answers_are_read() {
        let query = DnsMessage::read(&message(0x0100, "WWW.example.org", A, &[])).expect("a query");
        assert_eq!((query.is_answer, query.name.as_str(), query.kind), (false, "www.example.org", A));
        let alias = b"\x03cdn\xc0\x10";
        let answers: [(u16, &[u8]); 3] = [(5, alias), (A, &[192, 0, 2, 7]), (A, &[192, 0, 2, 8])];
        let whole = message(0x8180, "www.example.org", A, &answers);
        let answer = DnsMessage::read(&whole).expect("an answer");
        let texts: Vec<String> = answer.addresses.iter().map(ToString::to_string).collect();
        assert!(answer.is_answer && answer.code == 0);
        assert_eq!(texts, ["192.0.2.7", "192.0.2.8"]);
        assert_eq!(DnsMessage::read(&whole[..whole.len() - 1]).map(|cut| cut.addresses.len()), Some(1));
        let none = DnsMessage::read(&message(0x8183, "nowhere.example", AAAA, &[])).expect("an answer");
        assert_eq!((none.code, none.kind), (3, AAAA));
        assert_eq!(DnsMessage::read(&message(0x2800, "a.example", A, &[])), None, "an update");
        assert_eq!(DnsMessage::read(&whole[..20]), None);
        assert!(!answer.is_truncated);
        assert!(DnsMessage::read(&message(0x8380, "a.example", A, &[])).is_some_and(|cut| cut.is_truncated));
    }

    #[test]
    fn a_stream_is_split_into_messages() {
        let stream = [0, 2, 7, 8, 0, 0, 0, 3, 9];
        let (first, rest) = DnsMessage::split_first(&stream).expect("whole");
        assert_eq!((first, rest), (&[7, 8][..], &[0, 0, 0, 3, 9][..]));
        let (second, rest) = DnsMessage::split_first(rest).expect("an empty one");
        assert_eq!((second, DnsMessage::split_first(rest), DnsMessage::split_first(&[0])), (&[][..], None, None));
    }

    proptest! {
        #[test]
        fn never_panics(
            tail in proptest::collection::vec(any::<u8>(), 0..100),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        ) {
            let mut bytes = message(0x8180, "a.example", A, &[(A, &[1, 2, 3, 4]), (AAAA, &[1; 16])]);
            bytes.extend(tail);
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Some(read) = DnsMessage::read(&bytes) {
                prop_assert!(read.addresses.len() <= ADDRESSES_MAX);
            }
        }
    }
}
