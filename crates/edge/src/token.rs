//! Who may play: signed tokens in URLs, and session ids that carry what was checked.
//!
//! A token is `EXPIRES.SUBJECT.MAC`: seconds since 1970, any name without a dot, and in hexadecimal the HMAC-SHA256 of the lines
//! `app/stream`, EXPIRES, SUBJECT and the viewer's address, which may be empty, each with its line feed. With openssl:
//!
//! ```sh
//! printf 'live/cam\n1800000000\nalice\n\n' | openssl dgst -sha256 -hmac "$PLAY_KEY"
//! ```

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::net::IpAddr;
use thalweg_model::ServeConfig;

type HmacSha256 = Hmac<Sha256>;

/// How long a session's id is good, in seconds: longer than anybody watches without a pause.
const SESSION_S: u64 = 86_400;
/// Bytes of a session's id before its subject: number, expiry, MAC.
const SESSION_BYTES: usize = 24;
/// Characters of these bytes.
const SESSION_CHARS: usize = SESSION_BYTES / 3 * 4;
/// Bytes of a subject.
const SUBJECT_MAX: usize = 64;

/// A viewer's session, from its id in a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// Distinguishes viewers.
    pub number: u64,
    bytes: [u8; SESSION_BYTES],
}

/// What a token admits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Admission {
    /// Who that is.
    pub subject: String,
    /// The only address it may play from, if it is bound to one.
    pub address: Option<IpAddr>,
}

/// The bit of a session's number that says that it is bound to an address.
pub(crate) const BOUND: u64 = 1;

/// The keys that tokens and sessions are checked with.
#[derive(Clone)]
pub struct Keys {
    play: Option<HmacSha256>,
    session: HmacSha256,
    /// What sessions' key was made of, where that is a secret.
    secret: Option<[u8; 32]>,
    /// Sessions of the configuration before this one are good, too.
    former: Option<HmacSha256>,
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
        Self::derived(play_key, play_key.unwrap_or_default().as_bytes())
    }

    /// With what is configured. Where a webhook lets viewers in rather than a key, sessions' key derives from the webhooks' secret;
    /// where there is none either, from `salt`, and a restart ends them.
    pub fn of(config: &ServeConfig, salt: &[u8]) -> Self {
        let hooks = &config.webhooks;
        match &config.auth.play_key {
            None if hooks.on_play.is_some() => {
                Self::derived(None, hooks.secret.as_deref().map_or(salt, |secret| secret.as_bytes()))
            }
            key => Self::new(key.as_deref()),
        }
    }

    fn derived(play_key: Option<&str>, from: &[u8]) -> Self {
        let of = |key: &[u8]| HmacSha256::new_from_slice(key).expect("invariant: HMAC takes keys of any length");
        let session = of(from).chain_update(b"session").finalize().into_bytes();
        let secret = (!from.is_empty()).then(|| session.into());
        Self { play: play_key.map(|key| of(key.as_bytes())), session: of(&session), secret, former: None }
    }

    /// These keys; the sessions that `former` let in stay good. Where anyone could play anyone could make an id, so that those are not.
    pub fn after(mut self, former: &Self) -> Self {
        self.former = match self.secret == former.secret {
            true => former.former.clone(),
            false => former.secret.map(|_| former.session.clone()),
        };
        self
    }

    /// Whether a token lets a viewer at `address` play `stream` at `now_s`; what it says if so. Without a play key anyone may.
    pub fn check(&self, token: Option<&str>, stream: &str, address: IpAddr, now_s: u64) -> Option<Admission> {
        let Some(key) = &self.play else { return Some(Admission::default()) };
        let mut parts = token?.splitn(3, '.');
        let (expires, subject, mac) = (parts.next()?, parts.next()?, parts.next()?);
        if subject.len() > SUBJECT_MAX || subject.chars().any(char::is_control) || expires.parse::<u64>().ok()? < now_s
        {
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

    /// A session of `stream`, good only from `address` if there is one. The number is even, and odd for one that is bound. What shows the
    /// session is [`Session::id`] with the same subject.
    pub fn session(&self, number: u64, stream: &str, address: Option<IpAddr>, subject: &str, now_s: u64) -> Session {
        let number = number | if address.is_some() { BOUND } else { 0 };
        let mut bytes = [0; SESSION_BYTES];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        bytes[8..12].copy_from_slice(&((now_s + SESSION_S) as u32).to_be_bytes());
        let mac = session_mac(&self.session, &bytes, stream, address, subject);
        bytes[12..].copy_from_slice(&mac);
        Session { number, bytes }
    }

    /// Whether a session was made here for `stream` and this subject, and is still good at `address`.
    pub fn is_ours(&self, session: &Session, stream: &str, address: IpAddr, subject: &str, now_s: u64) -> bool {
        let expires = u32::from_be_bytes([session.bytes[8], session.bytes[9], session.bytes[10], session.bytes[11]]);
        let bound = session.is_bound().then_some(address);
        let is_right = |key: &HmacSha256| {
            let mac = session_mac(key, &session.bytes, stream, bound, subject);
            mac.iter().zip(&session.bytes[12..]).fold(0, |all, (one, other)| all | (one ^ other)) == 0
        };
        u64::from(expires) >= now_s && (is_right(&self.session) || self.former.as_ref().is_some_and(is_right))
    }
}

fn session_mac(
    key: &HmacSha256,
    bytes: &[u8; SESSION_BYTES],
    stream: &str,
    address: Option<IpAddr>,
    subject: &str,
) -> [u8; 12] {
    let address = address.map(|address| address.to_string()).unwrap_or_default();
    // Neither a stream's key nor an address holds a line feed.
    let mac = key.clone().chain_update(&bytes[..12]).chain_update(format!("{stream}\n{address}\n{subject}"));
    let mac = mac.finalize().into_bytes();
    std::array::from_fn(|at| mac[at])
}

impl Session {
    /// Whether it is good from one address only.
    pub const fn is_bound(&self) -> bool {
        self.number & BOUND != 0
    }

    /// Reads an id, without checking it: the session, and its subject as [`decode_subject`] reads it.
    pub fn parse(id: &str) -> Option<(Self, &str)> {
        let (fixed, subject) = id.split_at_checked(SESSION_CHARS)?;
        let mut bytes = [0; SESSION_BYTES];
        let len = URL_SAFE_NO_PAD.decode_slice(fixed, &mut bytes).ok()?;
        let number = u64::from_be_bytes(std::array::from_fn(|at| bytes[at]));
        (len == SESSION_BYTES).then_some((Self { number, bytes }, subject))
    }

    /// The id: what was checked, so that nothing has to be remembered of a session that never plays.
    pub fn id(&self, subject: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.bytes) + &URL_SAFE_NO_PAD.encode(subject)
    }
}

/// The subject in a session's id.
pub fn decode_subject(text: &str) -> Option<String> {
    if text.len() > SUBJECT_MAX * 4 / 3 + 1 {
        return None;
    }
    String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

/// Compares without telling by the time it takes how much of it is right.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some((digit(pair[0])? << 4 | digit(*pair.get(1)?)?) as u8)).collect()
}

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
        let session = keys.session(8, "live/cam", Some(HERE), "a", 0);
        let id = session.id("a");
        let (read, subject) = Session::parse(&id).expect("read");
        assert!(read.is_bound() && read.number == 9 && decode_subject(subject).as_deref() == Some("a"));
        assert!(keys.is_ours(&read, "live/cam", HERE, "a", 0) && !keys.is_ours(&read, "live/cam", ELSEWHERE, "a", 0));
    }

    #[test]
    fn a_session_is_good_for_its_stream_and_server() {
        let keys = Keys::new(Some("a-long-key"));
        let session = keys.session(8, "live/cam", None, "ä/b", 1_000);
        let text = session.id("ä/b");
        assert!(text.len() == 38 && !text.contains('/'), "{text}");
        let (read, subject) = Session::parse(&text).expect("read");
        assert_eq!((read, read.number, decode_subject(subject).as_deref()), (session, 8, Some("ä/b")));
        assert!(
            keys.is_ours(&read, "live/cam", ELSEWHERE, "ä/b", 1_000)
                && keys.is_ours(&read, "live/cam", ELSEWHERE, "ä/b", 87_400)
        );
        assert!(
            !keys.is_ours(&read, "live/cam", ELSEWHERE, "ä/b", 87_401)
                && !keys.is_ours(&read, "live/cat", ELSEWHERE, "ä/b", 1_000)
        );
        assert!(
            Keys::new(Some("a-long-key")).is_ours(&read, "live/cam", ELSEWHERE, "ä/b", 1_000),
            "a restart keeps it"
        );
        assert!(!Keys::new(Some("another-key")).is_ours(&read, "live/cam", ELSEWHERE, "ä/b", 1_000));
        assert!(
            Keys::new(Some("another-key")).after(&keys).is_ours(&read, "live/cam", ELSEWHERE, "ä/b", 1_000),
            "a reload keeps it"
        );
        for at in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let (other, subject) = Session::parse(std::str::from_utf8(&other).expect("text")).expect("read");
            let is_good = |subject: String| keys.is_ours(&other, "live/cam", ELSEWHERE, &subject, 1_000);
            assert!(!decode_subject(subject).is_some_and(is_good), "{at}");
        }
        for odd in ["", "a", &text[..31], &text.replace(&text[..1], "!"), &"ä".repeat(20)] {
            assert_eq!(Session::parse(odd), None, "{odd}");
        }
        for odd in ["A", "!!", "_w", &"A".repeat(88)] {
            assert_eq!(decode_subject(odd), None, "{odd}");
        }
    }

    #[test]
    fn another_configuration_keeps_sessions_that_could_not_be_forged() {
        let [open, one, two, three] = [None, Some("key-one"), Some("key-two"), Some("key-three")].map(Keys::new);
        let is_good =
            |keys: &Keys, by: &Keys| keys.is_ours(&by.session(8, "live/cam", None, "", 0), "live/cam", HERE, "", 0);
        let closed = one.clone().after(&open);
        assert!(is_good(&closed, &one) && !is_good(&closed, &open), "anyone could have made that id");
        let second = two.clone().after(&closed);
        assert!(is_good(&second, &one) && is_good(&second, &two) && !is_good(&second, &open));
        let same = two.clone().after(&second);
        assert!(is_good(&same, &one), "what changes no key ends no session");
        assert!(!is_good(&three.after(&same), &one), "one key before is remembered, not two");
    }

    #[test]
    fn where_a_webhook_decides_sessions_cannot_be_forged() {
        let of = |text: &str, salt: &[u8]| Keys::of(&thalweg_config::parse_serve("test", text).expect("read"), salt);
        let hook = "[webhooks]\non_play = 'http://h/'\n";
        let keys = of(hook, b"one");
        let session = keys.session(8, "live/cam", None, "", 0);
        assert!(
            keys.is_ours(&session, "live/cam", HERE, "", 0)
                && !of(hook, b"two").is_ours(&session, "live/cam", HERE, "", 0)
        );
        assert!(!Keys::new(None).is_ours(&session, "live/cam", HERE, "", 0));
        let signed = format!("{hook}secret = 'a-long-secret'");
        let session = of(&signed, b"one").session(8, "live/cam", None, "", 0);
        assert!(of(&signed, b"two").is_ours(&session, "live/cam", HERE, "", 0), "a restart keeps it");
    }
}
