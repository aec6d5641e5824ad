//! Who may play: signed tokens in URLs, and session ids that carry what was checked.
//!
//! A token is `EXPIRES.SUBJECT.MAC`: seconds since 1970, any name without a dot, and in hexadecimal the HMAC-SHA256 of the lines
//! `app/stream`, EXPIRES, SUBJECT and the viewer's address, which may be empty, each with its line feed. With openssl:
//!
//! ```sh
//! printf 'live/cam\n1800000000\nalice\n\n' | openssl dgst -sha256 -hmac "$PLAY_KEY"
//! ```

use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::net::IpAddr;

type HmacSha256 = Hmac<Sha256>;

/// How long a session's id is good, in seconds: longer than anybody watches without a pause.
const SESSION_S: u64 = 86_400;
/// Bytes of a session id: number, expiry, MAC.
const SESSION_LEN: usize = 24;

/// A viewer's session, from its id in a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// Tells viewers apart.
    pub number: u64,
    bytes: [u8; SESSION_LEN],
}

/// What a token says of who may play.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Admission {
    /// Who that is.
    pub subject: String,
    /// The only address it may play from, if it is bound to one.
    pub address: Option<IpAddr>,
}

/// The bit of a session's number that says that it is bound to an address.
const BOUND: u64 = 1;

/// The keys that tokens and sessions are checked with.
#[derive(Clone)]
pub struct Keys {
    play: Option<HmacSha256>,
    session: HmacSha256,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

impl Keys {
    /// With the configured key. Sessions' own key derives from it, so that a restart keeps them; without a key anyone may play,
    /// and a session's id is nothing to forge.
    pub fn new(play_key: Option<&str>) -> Self {
        let of = |key: &[u8]| HmacSha256::new_from_slice(key).expect("invariant: HMAC takes keys of any length");
        let session = of(play_key.unwrap_or_default().as_bytes()).chain_update(b"session").finalize().into_bytes();
        Self { play: play_key.map(|key| of(key.as_bytes())), session: of(&session) }
    }

    /// Whether a token lets a viewer at `address` play `stream` at `now_s`; what it says if so. Without a play key anyone may.
    pub fn check(&self, token: Option<&str>, stream: &str, address: IpAddr, now_s: u64) -> Option<Admission> {
        let Some(key) = &self.play else { return Some(Admission::default()) };
        let mut parts = token?.splitn(3, '.');
        let (expires, subject, mac) = (parts.next()?, parts.next()?, parts.next()?);
        if subject.len() > 64 || subject.chars().any(char::is_control) || expires.parse::<u64>().ok()? < now_s {
            return None;
        }
        let mac = unhex(mac)?;
        let signed = |address: &str| {
            let lines = format!("{stream}\n{expires}\n{subject}\n{address}\n");
            key.clone().chain_update(lines).verify_slice(&mac).is_ok()
        };
        let to = |address| Some(Admission { subject: subject.to_owned(), address });
        if signed("") {
            return to(None);
        }
        if signed(&address.to_string()) { to(Some(address)) } else { None }
    }

    /// A token, as an application that sends viewers here would make it.
    pub fn token(&self, stream: &str, expires_s: u64, subject: &str, address: Option<IpAddr>) -> Option<String> {
        let address = address.map(|address| address.to_string()).unwrap_or_default();
        let lines = format!("{stream}\n{expires_s}\n{subject}\n{address}\n");
        let mac = self.play.clone()?.chain_update(lines).finalize().into_bytes();
        let digits: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(format!("{expires_s}.{subject}.{digits}"))
    }

    /// A session's id for `stream`, good only from `address` if there is one. The number is even, and odd for one that is bound.
    pub fn session(&self, number: u64, stream: &str, address: Option<IpAddr>, now_s: u64) -> Session {
        let number = number | if address.is_some() { BOUND } else { 0 };
        let mut bytes = [0; SESSION_LEN];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        bytes[8..12].copy_from_slice(&((now_s + SESSION_S) as u32).to_be_bytes());
        let mac = self.session_mac(&bytes, stream, address);
        bytes[12..].copy_from_slice(&mac);
        Session { number, bytes }
    }

    /// Whether a session's id was made here for `stream` and is still good at `address`.
    pub fn is_ours(&self, session: &Session, stream: &str, address: IpAddr, now_s: u64) -> bool {
        let expires = u32::from_be_bytes([session.bytes[8], session.bytes[9], session.bytes[10], session.bytes[11]]);
        let bound = session.is_bound().then_some(address);
        let mac = self.session_mac(&session.bytes, stream, bound);
        let differs = mac.iter().zip(&session.bytes[12..]).fold(0, |all, (one, other)| all | (one ^ other));
        differs == 0 && u64::from(expires) >= now_s
    }

    fn session_mac(&self, bytes: &[u8; SESSION_LEN], stream: &str, address: Option<IpAddr>) -> [u8; 12] {
        let mut mac = self.session.clone().chain_update(&bytes[..12]).chain_update(stream);
        if let Some(address) = address {
            // No stream's name holds a line feed.
            mac.update(format!("\n{address}").as_bytes());
        }
        let mac = mac.finalize().into_bytes();
        std::array::from_fn(|at| mac[at])
    }
}

impl Session {
    /// Whether it is good from one address only.
    pub const fn is_bound(&self) -> bool {
        self.number & BOUND != 0
    }

    /// Reads an id, without checking it.
    pub fn parse(text: &str) -> Option<Self> {
        let text: &[u8; SESSION_LEN / 3 * 4] = text.as_bytes().try_into().ok()?;
        let mut bytes = [0; SESSION_LEN];
        for (four, three) in text.chunks_exact(4).zip(bytes.chunks_exact_mut(3)) {
            let mut word = 0;
            for &digit in four {
                word = word << 6 | ALPHABET.iter().position(|&known| known == digit)? as u32;
            }
            three.copy_from_slice(&word.to_be_bytes()[1..]);
        }
        let number = u64::from_be_bytes(std::array::from_fn(|at| bytes[at]));
        Some(Self { number, bytes })
    }
}

impl std::fmt::Display for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for three in self.bytes.chunks_exact(3) {
            let word = u32::from_be_bytes([0, three[0], three[1], three[2]]);
            for shift in [18, 12, 6, 0] {
                write!(f, "{}", char::from(ALPHABET[(word >> shift & 63) as usize]))?;
            }
        }
        Ok(())
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some((digit(pair[0])? << 4 | digit(*pair.get(1)?)?) as u8)).collect()
}

/// Source: RFC 4648 §5.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const ELSEWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn admission(subject: &str, address: Option<IpAddr>) -> Option<Admission> {
        Some(Admission { subject: subject.to_owned(), address })
    }

    #[test]
    fn a_token_is_as_openssl_signs_it() {
        let keys = Keys::new(Some("a-long-key"));
        // printf 'live/cam\n1800000000\nalice\n\n' | openssl dgst -sha256 -hmac a-long-key
        let mac = "8612a5eb9b108d0c5465479a09ef269a8e4ff7761e22b50bd2d10a13c9db69b5";
        let token = format!("1800000000.alice.{mac}");
        assert_eq!(keys.token("live/cam", 1_800_000_000, "alice", None).as_deref(), Some(token.as_str()));
        assert_eq!(keys.check(Some(&token), "live/cam", HERE, 1_700_000_000), admission("alice", None));
        assert_eq!(keys.check(Some(&token), "live/cam", HERE, 1_800_000_001), None, "late");
        assert_eq!(keys.check(Some(&token), "live/cat", HERE, 1_700_000_000), None, "another stream");
        assert_eq!(keys.check(Some(&token.replace("alice", "mallory")), "live/cam", HERE, 0), None);
        assert_eq!(keys.check(Some(&token.replace("1800", "1900")), "live/cam", HERE, 0), None);
        for odd in ["", ".", "..", "1.a", "1800000000.alice.", "1800000000.alice.0g", "1800000000.alice.000", "x.y.00"]
        {
            assert_eq!(keys.check(Some(odd), "live/cam", HERE, 0), None, "{odd}");
        }
        assert_eq!(keys.check(None, "live/cam", HERE, 0), None);
        assert_eq!(Keys::new(None).check(None, "live/cam", HERE, 0), admission("", None));
    }

    #[test]
    fn a_token_may_be_bound_to_an_address() {
        let keys = Keys::new(Some("a-long-key"));
        let token = keys.token("live/cam", 9, "a", Some(HERE)).expect("a key");
        assert_eq!(keys.check(Some(&token), "live/cam", HERE, 0), admission("a", Some(HERE)));
        assert!(keys.check(Some(&token), "live/cam", ELSEWHERE, 0).is_none());
        let session = keys.session(8, "live/cam", Some(HERE), 0);
        let read = Session::parse(&session.to_string()).expect("read");
        assert!(read.is_bound() && read.number == 9);
        assert!(keys.is_ours(&read, "live/cam", HERE, 0) && !keys.is_ours(&read, "live/cam", ELSEWHERE, 0));
    }

    #[test]
    fn a_session_is_good_for_its_stream_and_server() {
        let keys = Keys::new(Some("a-long-key"));
        let session = keys.session(8, "live/cam", None, 1_000);
        let text = session.to_string();
        assert_eq!(text.len(), 32);
        let read = Session::parse(&text).expect("read");
        assert_eq!((read, read.number), (session, 8));
        assert!(
            keys.is_ours(&read, "live/cam", ELSEWHERE, 1_000) && keys.is_ours(&read, "live/cam", ELSEWHERE, 87_400)
        );
        assert!(
            !keys.is_ours(&read, "live/cam", ELSEWHERE, 87_401) && !keys.is_ours(&read, "live/cat", ELSEWHERE, 1_000)
        );
        assert!(Keys::new(Some("a-long-key")).is_ours(&read, "live/cam", ELSEWHERE, 1_000), "a restart keeps it");
        assert!(!Keys::new(Some("another-key")).is_ours(&read, "live/cam", ELSEWHERE, 1_000));
        for at in 0..32 {
            let mut other = text.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let other = Session::parse(std::str::from_utf8(&other).expect("text")).expect("read");
            assert!(!keys.is_ours(&other, "live/cam", ELSEWHERE, 1_000), "{at}");
        }
        for odd in ["", "a", &text[1..], &format!("{text}A"), &text.replace(&text[..1], "!")] {
            assert_eq!(Session::parse(odd), None, "{odd}");
        }
    }
}
