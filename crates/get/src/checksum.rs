//! Checksums of whole objects.

use sha2::Digest;
use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

/// An algorithm; a later one is stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// MD5, which detects accidents and no attacks.
    Md5,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl Kind {
    /// Reads its name as commands and header fields write it.
    pub fn named(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "md5" => Some(Self::Md5),
            "sha256" | "sha-256" => Some(Self::Sha256),
            "sha512" | "sha-512" => Some(Self::Sha512),
            _ => None,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    const fn len(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }
}

/// A checksum that an object should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksum {
    kind: Kind,
    digest: Vec<u8>,
}

impl Checksum {
    /// A checksum of the right length.
    pub fn new(kind: Kind, digest: Vec<u8>) -> Option<Self> {
        (digest.len() == kind.len()).then_some(Self { kind, digest })
    }

    /// Its algorithm.
    pub const fn kind(&self) -> Kind {
        self.kind
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.kind.name())?;
        self.digest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Checksum {
    type Err = String;

    /// Reads `sha256:HEX`.
    fn from_str(text: &str) -> Result<Self, String> {
        let help = "write it as sha256:HEX; sha512 and md5 are known too";
        let (name, hex) = text.split_once([':', '=']).ok_or(help)?;
        let kind = Kind::named(name).ok_or(help)?;
        let hex = hex.trim().as_bytes();
        let digest: Option<Vec<u8>> = hex
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|_| pair.len() == 2)?, 16).ok())
            .collect();
        let wrong = || format!("{} has {} hexadecimal digits, and this has {}", kind.name(), kind.len() * 2, hex.len());
        Self::new(kind, digest.ok_or_else(|| if hex.len() == kind.len() * 2 { help.to_owned() } else { wrong() })?)
            .ok_or_else(wrong)
    }
}

/// A checksum that is being computed.
#[derive(Debug, Clone)]
pub enum Hasher {
    /// MD5.
    Md5(md5::Md5),
    /// SHA-256.
    Sha256(sha2::Sha256),
    /// SHA-512.
    Sha512(sha2::Sha512),
}

impl Hasher {
    /// Begins.
    pub fn new(kind: Kind) -> Self {
        match kind {
            Kind::Md5 => Self::Md5(md5::Md5::new()),
            Kind::Sha256 => Self::Sha256(sha2::Sha256::new()),
            Kind::Sha512 => Self::Sha512(sha2::Sha512::new()),
        }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Md5(state) => state.update(bytes),
            Self::Sha256(state) => state.update(bytes),
            Self::Sha512(state) => state.update(bytes),
        }
    }

    /// The checksum.
    pub fn finish(self) -> Checksum {
        let (kind, digest) = match self {
            Self::Md5(state) => (Kind::Md5, state.finalize().to_vec()),
            Self::Sha256(state) => (Kind::Sha256, state.finalize().to_vec()),
            Self::Sha512(state) => (Kind::Sha512, state.finalize().to_vec()),
        };
        Checksum { kind, digest }
    }

    /// The checksum of all that `from` has.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(kind: Kind, mut from: impl Read) -> io::Result<Checksum> {
        let (mut hasher, mut buffer) = (Self::new(kind), vec![0; 1 << 20]);
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok(hasher.finish()),
                Ok(len) => hasher.update(&buffer[..len]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_sha256sum_prints_and_says_what_is_wrong() {
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let checksum: Checksum = text.parse().expect("a checksum");
        assert_eq!(Hasher::of(Kind::Sha256, &b"abc"[..]).expect("read"), checksum);
        assert_eq!(checksum.to_string(), text);
        let md5 = Hasher::of(Kind::Md5, &b""[..]).expect("read");
        assert_eq!(md5.to_string(), "md5:d41d8cd98f00b204e9800998ecf8427e");
        for wrong in ["", "abc", "sha256:", "sha256:zz", "crc32:00", "sha256:é", "md5:d41d8cd98f00b204e9800998ecf8427"]
        {
            assert!(wrong.parse::<Checksum>().is_err(), "{wrong}");
        }
    }
}
