//! What came on a control connection and was not read yet.

use super::{COOKIE_LEN, Cookie, ProtocolError, State};
use serde_json::{Map, Value};

/// Largest parameters that are taken, in bytes; iperf3's own limit is 8 KiB (`MAX_PARAMS_JSON_STRING`).
pub const MAX_PARAMETERS: usize = 64 << 10;
/// Largest results that are taken, in bytes: 256 streams and a server's own output.
pub const MAX_RESULTS: usize = 1 << 20;
/// Bytes of the length before a document.
const LENGTH_LEN: usize = 4;

/// Bytes that came, in order. What is taken from it is what the caller expects next; each method returns `None` until that is whole.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    /// The most it holds: the largest document and its length. The caller reads no more than [`Inbox::room`].
    pub const CAPACITY: usize = LENGTH_LEN + MAX_RESULTS;

    /// How many bytes it still takes.
    pub fn room(&self) -> usize {
        Self::CAPACITY - self.bytes.len()
    }

    /// Takes what came; what is beyond [`Inbox::room`] is left out.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(self.room())]);
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A cookie.
    pub fn cookie(&mut self) -> Option<Cookie> {
        let cookie = self.bytes.first_chunk::<COOKIE_LEN>().copied()?;
        self.bytes.drain(..COOKIE_LEN);
        Some(Cookie(cookie))
    }

    /// A state.
    ///
    /// # Errors
    /// When the byte is none.
    pub fn state(&mut self) -> Result<Option<State>, ProtocolError> {
        let Some(&byte) = self.bytes.first() else { return Ok(None) };
        let state = State::of_byte(byte).ok_or(ProtocolError::State(byte))?;
        self.bytes.drain(..1);
        Ok(Some(state))
    }

    /// The two numbers behind [`State::ServerError`]: iperf3's own, and the kernel's.
    pub fn refusal(&mut self) -> Option<(i32, i32)> {
        let bytes = *self.bytes.first_chunk::<8>()?;
        self.bytes.drain(..8);
        let [code, errno] =
            [&bytes[..4], &bytes[4..]].map(|part| part.first_chunk().map_or(0, |number| i32::from_be_bytes(*number)));
        Some((code, errno))
    }

    /// A JSON object of at most `limit` bytes; `what` names it in errors.
    ///
    /// # Errors
    /// When its length is out of range, as soon as that has come, or it is no object.
    pub fn document(&mut self, limit: usize, what: &'static str) -> Result<Option<Map<String, Value>>, ProtocolError> {
        let Some(length) = self.bytes.first_chunk::<LENGTH_LEN>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length);
        if length == 0 || length as usize > limit.min(MAX_RESULTS) {
            return Err(ProtocolError::Length(u64::from(length), limit));
        }
        let end = LENGTH_LEN + length as usize;
        let Some(text) = self.bytes.get(LENGTH_LEN..end) else { return Ok(None) };
        // A C program may have counted its closing zero.
        let text = text.strip_suffix(&[0]).unwrap_or(text);
        let Ok(Value::Object(found)) = serde_json::from_slice(text) else { return Err(ProtocolError::Json(what)) };
        self.bytes.drain(..end);
        Ok(Some(found))
    }
}

/// A document as it is sent: its length, and its text without spaces.
pub fn framed(document: &Value) -> Vec<u8> {
    let text = document.to_string();
    let length = u32::try_from(text.len()).expect("invariant: a document is shorter than 4 GiB");
    [&length.to_be_bytes(), text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn things_come_in_any_pieces() {
        let cookie = Cookie::of_random([7; 36]);
        assert!(cookie.is_valid());
        let sent = [&cookie.0[..], &framed(&json!({"tcp": true})), &[4, 0xfe], &[0, 0, 0, 27, 0, 0, 0, 11]].concat();
        for size in 1..sent.len() {
            let mut inbox = Inbox::default();
            let (mut found, mut document, mut states, mut refusal) = (None, None, Vec::new(), None);
            for piece in sent.chunks(size) {
                inbox.push(piece);
                found = found.or_else(|| inbox.cookie());
                if found.is_some() && document.is_none() {
                    document = inbox.document(100, "parameters").expect("JSON");
                }
                while document.is_some() && states.len() < 2 {
                    let Some(state) = inbox.state().expect("a state") else { break };
                    states.push(state);
                }
                if states.len() == 2 && refusal.is_none() {
                    refusal = inbox.refusal();
                }
            }
            assert_eq!((found, refusal), (Some(cookie), Some((27, 11))));
            assert_eq!(
                (document.expect("a document").len(), &states[..]),
                (1, &[State::TestEnd, State::ServerError][..])
            );
            assert!(inbox.is_empty());
        }
    }

    #[test]
    fn a_length_is_refused_before_its_document_comes() {
        let mut inbox = Inbox::default();
        inbox.push(&u32::MAX.to_be_bytes());
        assert_eq!(inbox.document(100, "parameters"), Err(ProtocolError::Length(u64::from(u32::MAX), 100)));
        let mut inbox = Inbox::default();
        inbox.push(&[0, 0, 0, 2]);
        inbox.push(b"[]");
        assert_eq!(inbox.document(100, "parameters"), Err(ProtocolError::Json("parameters")));
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_or_refused_and_never_held_without_bound(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..20)) {
            let mut inbox = Inbox::default();
            for piece in pieces {
                inbox.push(&piece);
                let _ = inbox.document(1_000, "results");
                let _ = inbox.state();
                prop_assert!(inbox.bytes.len() <= Inbox::CAPACITY);
            }
        }
    }
}
