//! The token that both ends know, and how each proves that it does without sending it.
//!
//! Each end sends a random challenge; a proof is the HMAC-SHA256 (RFC 2104) of both challenges and of which end proves, by the token.
//! A recorded proof is of no use later, and neither end's proof serves as the other's.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt;
use thalweg_host::{HostError, random};

/// Characters of a token at least: 64 bits, if they are random hexadecimal digits. A recorded proof allows guessing without a limit.
pub const TOKEN_CHARS_MIN: usize = 16;
/// Characters of a token at most.
pub const TOKEN_CHARS_MAX: usize = 1_024;
/// Hexadecimal digits of a challenge: 128 bits.
pub(crate) const CHALLENGE_CHARS: usize = 32;

/// A text that is too short, too long or not printable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a token has {TOKEN_CHARS_MIN} to {TOKEN_CHARS_MAX} printable ASCII characters, and no space")]
pub struct InvalidToken;

/// A secret text. Its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Which end proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}

impl Token {
    /// A token; white space around it is not part of it.
    ///
    /// # Errors
    /// When it is too short, too long, or not of printable ASCII characters.
    pub fn new(text: &str) -> Result<Self, InvalidToken> {
        let text = text.trim();
        let is_printable = text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_printable || !(TOKEN_CHARS_MIN..=TOKEN_CHARS_MAX).contains(&text.len()) {
            return Err(InvalidToken);
        }
        Ok(Self(text.to_owned()))
    }

    fn mac(&self, end: End, challenges: [&str; 2]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.0.as_bytes()).expect("invariant: HMAC takes keys of any length");
        let end = if end == End::Client { "client" } else { "server" };
        mac.update(format!("thalweg load 1\n{end}\n{}\n{}\n", challenges[0], challenges[1]).as_bytes());
        mac
    }

    /// This end's proof: hexadecimal digits. `challenges` are the server's and the client's.
    pub(crate) fn proof(&self, end: End, challenges: [&str; 2]) -> String {
        hexadecimal(&self.mac(end, challenges).finalize().into_bytes())
    }

    /// Whether this is that end's proof; takes as long for any wrong one.
    pub(crate) fn verifies(&self, end: End, challenges: [&str; 2], proof: &str) -> bool {
        bytes(proof).is_some_and(|proof| self.mac(end, challenges).verify_slice(&proof).is_ok())
    }
}

/// Two digits for each byte.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hexadecimal: &str) -> Option<Vec<u8>> {
    if !hexadecimal.len().is_multiple_of(2) || !hexadecimal.is_ascii() {
        return None;
    }
    (0..hexadecimal.len()).step_by(2).map(|at| u8::from_str_radix(&hexadecimal[at..at + 2], 16).ok()).collect()
}

/// A new challenge.
///
/// # Errors
/// When the kernel gives no random numbers.
pub(crate) fn challenge() -> Result<String, HostError> {
    Ok(hexadecimal(&random::bytes::<{ CHALLENGE_CHARS / 2 }>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_end_one_token_and_both_challenges() {
        let token = Token::new(" 0123456789abcdef\n").expect("a token");
        let other = Token::new("0123456789abcdeg").expect("a token");
        let proof = token.proof(End::Client, ["a", "b"]);
        assert!(token.verifies(End::Client, ["a", "b"], &proof));
        assert!(!token.verifies(End::Server, ["a", "b"], &proof));
        assert!(!token.verifies(End::Client, ["a", "c"], &proof) && !token.verifies(End::Client, ["c", "b"], &proof));
        assert!(!other.verifies(End::Client, ["a", "b"], &proof));
        for wrong in ["", "0", "zz", "é0", &proof[..62], &format!("{proof}00")] {
            assert!(!token.verifies(End::Client, ["a", "b"], wrong), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "Token(…)");
    }

    #[test]
    fn the_proof_is_what_openssl_prints() {
        // printf 'thalweg load 1\nclient\na\nb\n' | openssl dgst -sha256 -hmac 0123456789abcdef
        let token = Token::new("0123456789abcdef").expect("a token");
        assert_eq!(
            token.proof(End::Client, ["a", "b"]),
            "2f067d7718b80972bd7d9c34229ed54030af74efc6dcac5b842c65c238abfbfa"
        );
    }

    #[test]
    fn a_token_is_long_enough_to_resist_guessing() {
        for wrong in ["", "short", "0123456789 abcdefg", "0123456789abcdé", &"x".repeat(TOKEN_CHARS_MAX + 1)] {
            assert!(Token::new(wrong).is_err(), "{wrong}");
        }
    }
}
