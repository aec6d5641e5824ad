//! What the payload of a segment begins with, as far as timing needs it: heads of HTTP/1 messages and TLS records; long
//! headers of QUIC; queries of names.
//!
//! A segment is looked at alone. What begins in the middle of one is not found, except behind a message whose end is known.

mod dns;
mod http;
mod quic;
mod tls;

pub use dns::{DNS_PORT, DnsMessage};
pub use http::{Request, Response};
pub use quic::QuicPackets;
pub use tls::{ClientHello, ServerHello, TlsRecords};

/// What a segment's payload begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payload {
    /// Kinds of the TLS records in it; none if it does not begin with one.
    pub records: TlsRecords,
    /// The message, if it has one.
    pub message: Option<Message>,
    /// The message is a ClientHello that goes on in the next segment.
    pub goes_on: bool,
}

/// A message of an application's protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// HTTP/1 requests, one after the other.
    Requests(Vec<Request>),
    /// HTTP/1 responses, one after the other.
    Responses(Vec<Response>),
    /// The client's first message of TLS.
    ClientHello(ClientHello),
    /// The server's.
    ServerHello(ServerHello),
}

impl Message {
    /// How many of HTTP/1's responses in it answer a request; `None` for other messages.
    pub fn final_responses(&self) -> Option<u32> {
        match self {
            Self::Responses(all) => Some(all.iter().filter(|response| response.is_final()).count() as u32),
            _ => None,
        }
    }
}

impl Payload {
    /// Whether what begins with these bytes may be a message or a record: most payload is neither, and this asks for three bytes only,
    /// or for a word where those are capitals.
    #[inline]
    pub fn may_begin(bytes: &[u8]) -> bool {
        match bytes {
            [20..=23, 3, 0..=4, ..] => true,
            [a, b, c, ..] => [a, b, c].iter().all(|byte| byte.is_ascii_uppercase()) && http::may_begin(bytes),
            _ => false,
        }
    }

    /// Reads what is captured of a segment's payload.
    pub fn read(bytes: &[u8]) -> Self {
        if !Self::may_begin(bytes) {
            return Self::default();
        }
        if !bytes[0].is_ascii_uppercase() {
            return tls::read(bytes);
        }
        let message = if bytes.starts_with(b"HTTP/1.") {
            Some(http::responses(bytes)).filter(|all| !all.is_empty()).map(Message::Responses)
        } else {
            Some(http::requests(bytes)).filter(|all| !all.is_empty()).map(Message::Requests)
        };
        Self { message, ..Self::default() }
    }
}

/// A text of the wire with at most `most` characters; what is no printable ASCII is replaced.
fn text(bytes: &[u8], most: usize) -> String {
    let bytes = &bytes[..bytes.len().min(most)];
    // Nearly every text is plain.
    if let Some(plain) = str::from_utf8(bytes).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic())) {
        return plain.to_owned();
    }
    let printable = |&byte: &u8| if byte.is_ascii_graphic() { char::from(byte) } else { char::REPLACEMENT_CHARACTER };
    bytes.iter().map(printable).collect()
}
