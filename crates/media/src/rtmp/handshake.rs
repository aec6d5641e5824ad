//! The RTMP handshake (§5.2), answered with or without digests, as the client begins.
//!
//! A client whose version field is not zero may hide a digest of its first packet in it, at one of two places, and expects one back:
//! old Flash players refuse video otherwise. Without a right digest the plain handshake is spoken, as with a version of zero.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// What is left of the handshake.
#[derive(Debug)]
pub struct Handshake {
    /// C0 and C1, then C2, as far as they have come.
    held: Vec<u8>,
    random: Box<[u8; PACKET]>,
    answered: bool,
}

/// Why a connection is none of RTMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The first byte is not 3: another protocol, or an encrypted variant.
    #[error("the first byte is {0:#04x}, where RTMP has 0x03{hint}", hint = other_protocol(*.0))]
    Version(u8),
}

/// What else begins with a byte, as an addition to a sentence.
const fn other_protocol(first: u8) -> &'static str {
    match first {
        // Source: RFC 8446 §5.1: a handshake record.
        22 => ": this is TLS (rtmps://), and not RTMP alone (rtmp://)",
        // Of a method, as GET; all have capital letters (RFC 9110 §9.1).
        b'A'..=b'Z' => ": this is HTTP or another protocol of text",
        _ => "",
    }
}

const PACKET: usize = 1536;
const VERSION: u8 = 3;
const DIGEST: usize = 32;
/// What a digest is of: the packet without itself, under the first 30 or 36 bytes of these.
const CLIENT_KEY: &[u8] = b"Genuine Adobe Flash Player 001";
const SERVER_KEY: &[u8] = b"Genuine Adobe Flash Media Server 001\
    \xf0\xee\xc2\x4a\x80\x68\xbe\xe8\x2e\x00\xd0\xd1\x02\x9e\x7e\x57\x6e\xec\x5d\x2d\x29\x80\x6f\xab\x93\xb8\xe6\x36\xcf\xeb\x31\xae";
const SERVER_KEY_NAME: usize = 36;

impl Handshake {
    /// Waits for a client. `random` becomes the server's random bytes.
    pub fn new(random: [u8; 1536]) -> Self {
        Self { held: Vec::new(), random: Box::new(random), answered: false }
    }

    /// Takes what has come off the head of `input` and appends what is to be sent to `output`; `true` once the handshake is over.
    ///
    /// # Errors
    /// [`HandshakeError`] when this is no RTMP.
    pub fn handle(&mut self, input: &mut &[u8], output: &mut Vec<u8>) -> Result<bool, HandshakeError> {
        if !self.answered {
            if self.held.is_empty()
                && let Some(&version) = input.first()
                && version != VERSION
            {
                return Err(HandshakeError::Version(version));
            }
            if !self.hold(input, 1 + PACKET) {
                return Ok(false);
            }
            output.push(VERSION);
            self.answer(output);
            self.answered = true;
            self.held.clear();
        }
        // C2 repeats S1. Nobody checks it: clients send what they like.
        Ok(self.hold(input, PACKET))
    }

    fn hold(&mut self, input: &mut &[u8], wanted: usize) -> bool {
        let n = input.len().min(wanted - self.held.len());
        self.held.extend(&input[..n]);
        *input = &input[n..];
        self.held.len() == wanted
    }

    /// Appends S1 and S2.
    fn answer(&self, output: &mut Vec<u8>) {
        let theirs = &self.held[1..];
        let mut ours = *self.random;
        let found = [8, 772].into_iter().find_map(|base| {
            let at = place(theirs, base);
            let digest = digest(CLIENT_KEY, theirs, at);
            (digest[..] == theirs[at..at + DIGEST]).then_some((base, digest))
        });
        let Some((base, digest_of_theirs)) = found else {
            ours[..8].fill(0);
            output.extend(ours);
            output.extend(theirs);
            return;
        };
        // Time, then a version that says digests are known.
        ours[..8].copy_from_slice(&[0, 0, 0, 0, 4, 5, 0, 1]);
        let at = place(&ours, base);
        let own = digest(&SERVER_KEY[..SERVER_KEY_NAME], &ours, at);
        ours[at..at + DIGEST].copy_from_slice(&own);
        output.extend(ours);
        let key = hmac(SERVER_KEY, &[&digest_of_theirs]);
        let mut echo = *self.random;
        echo.reverse();
        let own = hmac(&key, &[&echo[..PACKET - DIGEST]]);
        echo[PACKET - DIGEST..].copy_from_slice(&own);
        output.extend(echo);
    }
}

/// Where the digest is, by the four bytes at `base`.
fn place(packet: &[u8], base: usize) -> usize {
    let sum: usize = packet[base..base + 4].iter().map(|&byte| usize::from(byte)).sum();
    base + 4 + sum % 728
}

/// The digest of all of a packet but the digest at `at`.
fn digest(key: &[u8], packet: &[u8], at: usize) -> [u8; DIGEST] {
    hmac(key, &[&packet[..at], &packet[at + DIGEST..]])
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; DIGEST] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("invariant: HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random() -> [u8; PACKET] {
        std::array::from_fn(|at| (at * 7 + 3) as u8)
    }

    #[test]
    fn another_protocol_is_named() {
        for (first, name) in [(0x16, "TLS"), (b'G', "HTTP"), (6, "0x06, where RTMP has 0x03")] {
            let error = Handshake::new(random()).handle(&mut &[first][..], &mut Vec::new()).expect_err("no RTMP");
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn plain_clients_get_their_packet_back() {
        let mut c = vec![VERSION];
        c.extend([0; 8]);
        c.extend((0..PACKET - 8).map(|at| at as u8));
        let mut handshake = Handshake::new(random());
        let mut output = Vec::new();
        // A byte at a time.
        for byte in &c {
            assert_eq!(handshake.handle(&mut &[*byte][..], &mut output), Ok(false));
        }
        assert_eq!(output.len(), 1 + 2 * PACKET);
        assert_eq!(output[1 + PACKET..], c[1..]);
        let mut rest: &[u8] = &[&output[1..=PACKET], b"next"].concat();
        assert_eq!(handshake.handle(&mut rest, &mut output), Ok(true));
        assert_eq!(rest, b"next");
    }

    #[test]
    fn digests_are_answered_with_digests_in_the_same_place() {
        for base in [8, 772] {
            let mut c1 = random();
            c1[4..8].copy_from_slice(&[9, 0, 124, 2]);
            let at = place(&c1, base);
            let own = digest(CLIENT_KEY, &c1, at);
            c1[at..at + DIGEST].copy_from_slice(&own);
            let mut output = Vec::new();
            let c: Vec<u8> = [&[VERSION], &c1[..]].concat();
            assert_eq!(Handshake::new(random()).handle(&mut &c[..], &mut output), Ok(false));
            let (s1, s2) = output[1..].split_at(PACKET);
            let at = place(s1, base);
            assert_eq!(digest(&SERVER_KEY[..SERVER_KEY_NAME], s1, at), s1[at..at + DIGEST]);
            let key = hmac(SERVER_KEY, &[&own]);
            assert_eq!(hmac(&key, &[&s2[..PACKET - DIGEST]]), s2[PACKET - DIGEST..]);
        }
    }

    #[test]
    fn other_protocols_are_told_at_once() {
        let mut handshake = Handshake::new(random());
        assert_eq!(handshake.handle(&mut &b"GET /"[..], &mut Vec::new()), Err(HandshakeError::Version(b'G')));
    }
}
