//! The chunked transfer coding, for bodies whose length is not known when they begin. A client of HTTP/1.1 can tell its last chunk from
//! a connection that broke; HTTP/1.0 has the end of the connection alone.
//!
//! Source: RFC 9112 §7.1.

/// Bytes of a chunk's size line: eight hexadecimal digits and CRLF.
const SIZE_LINE_MAX: usize = 10;
/// Ends a body.
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// As it is.
    Identity,
    /// In chunks.
    Chunked,
}

impl Coding {
    /// The line before a chunk of `bytes`; empty without chunks.
    pub(super) fn size_line(self, bytes: usize) -> SizeLine {
        let mut line = SizeLine::default();
        if self == Self::Identity {
            return line;
        }
        line.bytes[SIZE_LINE_MAX - 2..].copy_from_slice(b"\r\n");
        line.from = SIZE_LINE_MAX - 2;
        let mut rest = bytes;
        loop {
            line.from -= 1;
            line.bytes[line.from] = b"0123456789abcdef"[rest & 15];
            rest >>= 4;
            if rest == 0 || line.from == 0 {
                return line;
            }
        }
    }

    /// What follows a chunk.
    pub(super) const fn end(self) -> &'static [u8] {
        match self {
            Self::Identity => b"",
            Self::Chunked => b"\r\n",
        }
    }

    /// Bytes on the wire of a chunk of `bytes`.
    pub(super) fn coded_len(self, bytes: usize) -> usize {
        self.size_line(bytes).as_bytes().len() + bytes + self.end().len()
    }
}

/// A chunk's size line.
#[derive(Debug, Clone, Copy)]
pub(super) struct SizeLine {
    bytes: [u8; SIZE_LINE_MAX],
    from: usize,
}

impl Default for SizeLine {
    fn default() -> Self {
        Self { bytes: [0; SIZE_LINE_MAX], from: SIZE_LINE_MAX }
    }
}

impl SizeLine {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.from..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_its_size_in_hexadecimal() {
        for bytes in [1, 9, 10, 255, 256, 0x00ab_cdef, 0xffff_ffff] {
            let line = Coding::Chunked.size_line(bytes);
            assert_eq!(line.as_bytes(), format!("{bytes:x}\r\n").as_bytes());
            assert_eq!(Coding::Chunked.coded_len(bytes), line.as_bytes().len() + bytes + 2);
            assert!(Coding::Identity.size_line(bytes).as_bytes().is_empty());
            assert_eq!(Coding::Identity.coded_len(bytes), bytes);
        }
    }
}
