//! TLS records and the two hellos: the server's name, the protocols that are offered, the version.
//!
//! Source: RFC 8446 §4.1, §4.2.1 and §5.1; RFC 6066 §3 (server name); RFC 7301 §3.1 (ALPN).

use super::{Message, Payload, text};
use crate::bytes::be16;

/// A record's header, and its longest body (RFC 5246 §6.2.3).
const RECORD_HEADER: usize = 5;
const RECORD_MAX: usize = (1 << 14) + 2_048;
/// Bytes of a hello that are read.
const HELLO_MAX: usize = 1 << 14;
const NAME_MAX: usize = 253;
const PROTOCOLS_MAX: usize = 8;
const PROTOCOL_MAX: usize = 32;

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
/// An alert of TLS 1.3: two bytes, the kind of the record and the tag of the cipher (RFC 8446 §5.2, §6; RFC 5116 §5.1).
const ENCRYPTED_ALERT: usize = 19;

/// Kinds of records, a bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TlsRecords(pub u8);

impl TlsRecords {
    /// A handshake record that begins with a ClientHello.
    pub const CLIENT_HELLO: u8 = 1;
    /// A handshake record that begins with a ServerHello.
    pub const SERVER_HELLO: u8 = 2;
    /// Any handshake record.
    pub const HANDSHAKE: u8 = 4;
    /// The sender's cipher is in use from here on; in TLS 1.3 it means nothing (RFC 8446 §5).
    pub const CHANGE_CIPHER_SPEC: u8 = 8;
    /// An alert.
    pub const ALERT: u8 = 16;
    /// Application data, and whatever TLS 1.3 encrypts but alerts.
    pub const DATA: u8 = 32;

    /// Whether one of `kinds` is among them.
    pub const fn has(self, kinds: u8) -> bool {
        self.0 & kinds != 0
    }

    /// Whether the payload begins with no record.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A ClientHello, as far as it was captured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The server's name that the client asks for.
    pub server_name: Option<String>,
    /// Protocols that the client offers, its first choice first; at most eight.
    pub protocols: Vec<String>,
}

/// A ServerHello.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerHello {
    /// The version: 0x0303 is TLS 1.2, 0x0304 is TLS 1.3.
    pub version: u16,
    /// The protocol that the server chose; TLS 1.3 encrypts it.
    pub protocol: Option<String>,
}

/// Reads records from the start of `bytes` on.
pub(super) fn read(bytes: &[u8]) -> Payload {
    let mut found = Payload::default();
    let mut hello = Vec::new();
    let mut rest = bytes;
    while let Some((kind, length)) = header(rest) {
        let body = &rest[RECORD_HEADER..rest.len().min(RECORD_HEADER + length)];
        found.records.0 |= match kind {
            CHANGE_CIPHER_SPEC => TlsRecords::CHANGE_CIPHER_SPEC,
            ALERT => TlsRecords::ALERT,
            APPLICATION_DATA if length == ENCRYPTED_ALERT => TlsRecords::ALERT,
            HANDSHAKE => TlsRecords::HANDSHAKE | hello_bit(body, &hello),
            _ => TlsRecords::DATA,
        };
        let is_hello = found.records.has(TlsRecords::CLIENT_HELLO | TlsRecords::SERVER_HELLO);
        if kind == HANDSHAKE && is_hello && hello.len() < HELLO_MAX {
            hello.extend_from_slice(body);
        }
        rest = rest.get(RECORD_HEADER + length..).unwrap_or_default();
    }
    let length = hello.get(1..4).map_or(0, |three| three.iter().fold(0, |n, byte| n << 8 | usize::from(*byte)));
    let whole = 4 + length;
    let body = hello.get(4..whole.min(hello.len())).unwrap_or_default();
    match hello.first() {
        Some(1) => {
            found.goes_on = hello.len() < whole && whole <= HELLO_MAX;
            found.message = Some(Message::ClientHello(client_hello(body)));
        }
        // Its version is in its last extensions.
        Some(2) if body.len() == length => found.message = server_hello(body).map(Message::ServerHello),
        _ => {}
    }
    found
}

/// The kind and the length of the record that begins here.
fn header(bytes: &[u8]) -> Option<(u8, usize)> {
    let &[kind @ 20..=23, 3, 0..=4, high, low] = bytes.first_chunk::<RECORD_HEADER>()? else { return None };
    let length = usize::from(u16::from_be_bytes([high, low]));
    (1..=RECORD_MAX).contains(&length).then_some((kind, length))
}

/// The bit of the hello that begins with this record; an encrypted message begins with anything.
fn hello_bit(body: &[u8], before: &[u8]) -> u8 {
    let is_plain = body.len() < 6 || body[4] == 3;
    match body.first() {
        Some(1) if before.is_empty() && is_plain => TlsRecords::CLIENT_HELLO,
        Some(2) if before.is_empty() && is_plain => TlsRecords::SERVER_HELLO,
        _ => 0,
    }
}

fn client_hello(body: &[u8]) -> ClientHello {
    let mut hello = ClientHello::default();
    // Version and random, then the session's id, cipher suites, compression methods, each with its length before it.
    let Some(rest) = body.get(34..).and_then(after_u8).and_then(after_u16).and_then(after_u8) else { return hello };
    for (kind, value) in extensions(rest) {
        match kind {
            0 => hello.server_name = server_name(value),
            16 => hello.protocols = protocols(value),
            _ => {}
        }
    }
    hello
}

fn server_hello(body: &[u8]) -> Option<ServerHello> {
    let mut hello = ServerHello { version: be16(body, 0)?, protocol: None };
    // Behind the session's id: a cipher suite and a compression method.
    let Some(rest) = body.get(34..).and_then(after_u8).and_then(|rest| rest.get(3..)) else { return Some(hello) };
    for (kind, value) in extensions(rest) {
        match kind {
            43 => hello.version = be16(value, 0).unwrap_or(hello.version),
            16 => hello.protocol = protocols(value).into_iter().next(),
            _ => {}
        }
    }
    Some(hello)
}

/// What follows a vector with a length of one byte.
fn after_u8(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(1 + usize::from(*bytes.first()?)..)
}

/// What follows a vector with a length of two bytes.
fn after_u16(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(2 + usize::from(be16(bytes, 0)?)..)
}

/// The extensions that are there as a whole.
fn extensions(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (kind, length) = (be16(rest, 0)?, usize::from(be16(rest, 2)?));
        let value = rest.get(4..4 + length)?;
        rest = &rest[4 + length..];
        Some((kind, value))
    })
}

fn server_name(value: &[u8]) -> Option<String> {
    let length = usize::from(be16(value, 3)?);
    let name = value.get(5..5 + length)?;
    (value.get(2) == Some(&0) && !name.is_empty()).then(|| text(name, NAME_MAX))
}

fn protocols(value: &[u8]) -> Vec<String> {
    let mut rest = value.get(2..).unwrap_or_default();
    let mut found = Vec::new();
    while let Some((&length, tail)) = rest.split_first()
        && let Some(name) = tail.get(..usize::from(length))
        && found.len() < PROTOCOLS_MAX
    {
        // Values of GREASE are no text (RFC 8701).
        if !name.is_empty() && name.iter().all(u8::is_ascii_graphic) {
            found.push(text(name, PROTOCOL_MAX));
        }
        rest = &tail[usize::from(length)..];
    }
    found
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn with_u16(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat()
    }

    fn record(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind, 3, 1][..], &with_u16(body)].concat()
    }

    fn hello(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind, 0][..], &with_u16(body)].concat()
    }

    fn extension(kind: u16, value: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &with_u16(value)].concat()
    }

    /// A ClientHello for `name` that offers HTTP/2 and 1.1, with `padding` bytes before its name.
    fn client(name: &str, padding: usize) -> Vec<u8> {
        let list = with_u16(&[&[0][..], &with_u16(name.as_bytes())].concat());
        let offered = with_u16(&[&[2, 0x0a, 0x0a, 2][..], b"h2", &[8], b"http/1.1"].concat());
        let extensions = [extension(21, &vec![0; padding]), extension(0, &list), extension(16, &offered)].concat();
        let front = [&[3, 3][..], &[7; 32], &[4, 1, 2, 3, 4], &with_u16(&[0x13, 1, 0x13, 2]), &[1, 0]].concat();
        hello(1, &[front, with_u16(&extensions)].concat())
    }

    fn server(version: u16) -> Vec<u8> {
        let extensions = extension(43, &version.to_be_bytes());
        hello(2, &[&[3, 3][..], &[7; 32], &[0, 0x13, 1, 0], &with_u16(&extensions)].concat())
    }

    #[test]
    fn hellos_are_read_with_the_records_behind_them() {
        let found = Payload::read(&record(HANDSHAKE, &client("example.org", 0)));
        let hello = ClientHello {
            server_name: Some("example.org".to_owned()),
            protocols: vec!["h2".to_owned(), "http/1.1".to_owned()],
        };
        assert_eq!((found.message, found.goes_on), (Some(Message::ClientHello(hello)), false));
        assert_eq!(found.records.0, TlsRecords::CLIENT_HELLO | TlsRecords::HANDSHAKE);
        let flight =
            [record(HANDSHAKE, &server(0x0304)), record(CHANGE_CIPHER_SPEC, &[1]), record(23, &[9; 40])].concat();
        let found = Payload::read(&flight);
        assert_eq!(found.message, Some(Message::ServerHello(ServerHello { version: 0x0304, protocol: None })));
        let kinds =
            TlsRecords::SERVER_HELLO | TlsRecords::HANDSHAKE | TlsRecords::CHANGE_CIPHER_SPEC | TlsRecords::DATA;
        assert_eq!(found.records.0, kinds);
        assert_eq!(Payload::read(&record(ALERT, &[1, 0])).records.0, TlsRecords::ALERT);
        assert_eq!(Payload::read(&record(APPLICATION_DATA, &[7; 19])).records.0, TlsRecords::ALERT);
        assert_eq!(Payload::read(&record(HANDSHAKE, &[2, 200, 1, 1, 9, 9, 9])).records.0, TlsRecords::HANDSHAKE);
        for other in [&[23, 3, 9, 0, 1, 1][..], &[22, 3, 3, 0, 0], &[23, 3, 3, 0xff, 0xff, 1], &[23, 3]] {
            assert!(Payload::read(other).records.is_empty(), "{other:?}");
        }
    }

    #[test]
    fn a_hello_that_is_cut_goes_on_and_tells_what_is_there() {
        let whole = record(HANDSHAKE, &client("example.org", 1_700));
        for cut in RECORD_HEADER + 4..whole.len() {
            let found = Payload::read(&whole[..cut]);
            assert!(found.goes_on && matches!(found.message, Some(Message::ClientHello(_))), "{cut}");
        }
        let found = Payload::read(&whole);
        assert!(!found.goes_on && format!("{:?}", found.message).contains("example.org"));
        // In two records.
        let hello = client("example.org", 20);
        let found = Payload::read(&[record(HANDSHAKE, &hello[..50]), record(HANDSHAKE, &hello[50..])].concat());
        assert!(!found.goes_on && format!("{:?}", found.message).contains("example.org"));
    }

    proptest! {
        #[test]
        fn never_panics(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        ) {
            let mut hello = [record(HANDSHAKE, &client("a.example", 3)), record(HANDSHAKE, &server(0x0304))].concat();
            for (at, byte) in changes {
                let at = at.index(hello.len());
                hello[at] = byte;
            }
            let _ = Payload::read(&hello);
            let _ = Payload::read(&[&[HANDSHAKE, 3, 3][..], &bytes].concat());
        }
    }
}
