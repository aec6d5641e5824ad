//! Compressed captures: gzip, xz and zstd, recognized by their first bytes and decompressed as they are read.
//!
//! What is kept in memory is a decompressor's window, which has a limit here; a file that asks for more is refused. What unpacks to
//! very much is read like any long file, piece by piece.

use std::io::{self, BufReader, Chain, Cursor, Read};

/// Most memory an xz decompressor may take: `xz -9` needs 65 MiB (xz(1)).
const XZ_MEMORY: u64 = 160 << 20;
/// Largest window a zstd frame may ask for, as a power of two: 128 MiB, what the zstd program itself takes without `--long`
/// (`ZSTD_WINDOWLOG_LIMIT_DEFAULT`, zstd.h).
const ZSTD_WINDOW_LOG: u32 = 27;
const READ_AHEAD: usize = 128 << 10;

const GZIP: &[u8] = b"\x1f\x8b";
const XZ: &[u8] = b"\xfd7zXZ\0";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

type Raw<R> = BufReader<Whole<R>>;
/// The bytes looked at, and those behind them.
type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

/// A file's bytes as they were before it was compressed, if it was.
pub(crate) struct Source<R: Read> {
    bytes: Bytes<R>,
    /// Why the decompressor gave up.
    failure: Option<String>,
}

enum Bytes<R: Read> {
    Plain(Whole<R>),
    Gzip(Box<flate2::bufread::MultiGzDecoder<Raw<R>>>),
    Xz(Box<liblzma::bufread::XzDecoder<Raw<R>>>),
    Zstd(Box<zstd::Decoder<'static, Raw<R>>>),
}

impl<R: Read> Source<R> {
    /// Looks at the first bytes of `from`.
    pub(crate) fn new(mut from: R) -> io::Result<Self> {
        let mut head = Vec::new();
        from.by_ref().take(XZ.len() as u64).read_to_end(&mut head)?;
        let is = |magic: &[u8]| head.starts_with(magic);
        let (is_gzip, is_xz, is_zstd) = (is(GZIP), is(XZ), is(ZSTD) || is_skippable(&head));
        let whole = Cursor::new(head).chain(from);
        if !(is_gzip || is_xz || is_zstd) {
            return Ok(Self { bytes: Bytes::Plain(whole), failure: None });
        }
        let raw = BufReader::with_capacity(READ_AHEAD, whole);
        let bytes = if is_gzip {
            Bytes::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(raw)))
        } else if is_xz {
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, liblzma::stream::CONCATENATED)?;
            Bytes::Xz(Box::new(liblzma::bufread::XzDecoder::new_stream(raw, stream)))
        } else {
            let mut decoder = zstd::Decoder::with_buffer(raw)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            Bytes::Zstd(Box::new(decoder))
        };
        Ok(Self { bytes, failure: None })
    }

    /// How the file is compressed.
    pub(crate) const fn compression(&self) -> Option<&'static str> {
        match self.bytes {
            Bytes::Plain(_) => None,
            Bytes::Gzip(_) => Some("gzip"),
            Bytes::Xz(_) => Some("xz"),
            Bytes::Zstd(_) => Some("zstd"),
        }
    }

    /// Why what was given ends before the file's own end, if it does.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

impl<R: Read> Read for Source<R> {
    /// A decompressor's failure ends the bytes, as a cut file does; the reader's own are errors.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let result = match &mut self.bytes {
            Bytes::Plain(whole) => return whole.read(into),
            _ if self.failure.is_some() => return Ok(0),
            Bytes::Gzip(decoder) => decoder.read(into),
            Bytes::Xz(decoder) => decoder.read(into),
            Bytes::Zstd(decoder) => decoder.read(into),
        };
        match result {
            Err(error) if error.raw_os_error().is_none() && error.kind() != io::ErrorKind::Interrupted => {
                self.failure = Some(error.to_string());
                Ok(0)
            }
            result => result,
        }
    }
}

impl<R: Read> std::fmt::Debug for Source<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("compression", &self.compression()).field("failure", &self.failure).finish()
    }
}

/// Whether a zstd file begins with a skippable frame, as those of `pzstd` do. Source: RFC 8878 §3.1.2.
fn is_skippable(head: &[u8]) -> bool {
    head.len() >= 4 && head[0] & 0xf0 == 0x50 && head[1..4] == [0x2a, 0x4d, 0x18]
}

#[cfg(test)]
mod tests;
