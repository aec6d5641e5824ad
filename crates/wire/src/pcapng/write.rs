//! Writing pcapng: the same packets give the same bytes.

use super::{BYTE_ORDER_MAGIC, ENHANCED_PACKET, INTERFACE, OPT_COMMENT, OPT_END, SECTION, STATISTICS};
use crate::link::LinkType;
use std::io::{self, Write};
use thalweg_units::Timestamp;

const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const ISB_IFDROP: u16 = 5;

/// Writes one section of packets with nanosecond times.
///
/// Little-endian on every host and without the current time, so that files of equal packets are equal byte for byte. Each
/// block is one `write_all`; hand in a `BufWriter` for a file.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// Snapshot length of each interface.
    snaplens: Vec<u32>,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a section that names `application` as its maker.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn new(out: W, application: &str) -> io::Result<Self> {
        Self::with_comment(out, application, "")
    }

    /// Begins a section with a comment, where that is not empty.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn with_comment(out: W, application: &str, comment: &str) -> io::Result<Self> {
        let mut writer = Self { out, snaplens: Vec::new(), block: Vec::with_capacity(2048) };
        writer.begin(SECTION);
        writer.block.extend_from_slice(&BYTE_ORDER_MAGIC.to_le_bytes());
        writer.block.extend_from_slice(&1u16.to_le_bytes());
        writer.block.extend_from_slice(&0u16.to_le_bytes());
        // The section's length is not known in advance.
        writer.block.extend_from_slice(&(-1i64).to_le_bytes());
        if !comment.is_empty() {
            writer.option(OPT_COMMENT, comment.as_bytes());
        }
        writer.option(SHB_USERAPPL, application.as_bytes());
        writer.option(OPT_END, &[]);
        writer.end()?;
        Ok(writer)
    }

    /// Adds an interface and gives its number, from 0. A `snaplen` of 0 says that packets are not cut.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn add_interface(&mut self, name: &str, link: LinkType, snaplen: u32) -> io::Result<u32> {
        self.begin(INTERFACE);
        self.block.extend_from_slice(&link.0.to_le_bytes());
        self.block.extend_from_slice(&0u16.to_le_bytes());
        self.block.extend_from_slice(&snaplen.to_le_bytes());
        self.option(IF_NAME, name.as_bytes());
        // 10⁻⁹ s.
        self.option(IF_TSRESOL, &[9]);
        self.option(OPT_END, &[]);
        self.end()?;
        self.snaplens.push(snaplen);
        Ok(self.snaplens.len() as u32 - 1)
    }

    /// Writes a packet that had `original_len` bytes on the wire; `bytes` past the interface's snapshot length are cut.
    ///
    /// # Errors
    /// `InvalidInput` for an interface that was not added, else those of the underlying writer.
    pub fn packet(
        &mut self,
        interface: u32,
        at: Timestamp,
        original_len: u32,
        bytes: &[u8],
        comment: Option<&str>,
    ) -> io::Result<()> {
        let Some(&snaplen) = self.snaplens.get(interface as usize) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("there is no interface {interface} in this capture"),
            ));
        };
        let kept = if snaplen == 0 { bytes.len() } else { bytes.len().min(snaplen as usize) };
        let bytes = &bytes[..kept];
        self.begin(ENHANCED_PACKET);
        self.block.extend_from_slice(&interface.to_le_bytes());
        let nanos = at.as_nanos();
        self.block.extend_from_slice(&((nanos >> 32) as u32).to_le_bytes());
        self.block.extend_from_slice(&(nanos as u32).to_le_bytes());
        self.block.extend_from_slice(&(kept as u32).to_le_bytes());
        self.block.extend_from_slice(&original_len.max(kept as u32).to_le_bytes());
        self.block.extend_from_slice(bytes);
        self.pad();
        if let Some(comment) = comment {
            self.option(OPT_COMMENT, comment.as_bytes());
            self.option(OPT_END, &[]);
        }
        self.end()
    }

    /// Writes how many packets the capturing program lost on an interface in all.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn dropped(&mut self, interface: u32, at: Timestamp, packets: u64) -> io::Result<()> {
        self.begin(STATISTICS);
        let nanos = at.as_nanos();
        for word in [interface, (nanos >> 32) as u32, nanos as u32] {
            self.block.extend_from_slice(&word.to_le_bytes());
        }
        self.option(ISB_IFDROP, &packets.to_le_bytes());
        self.option(OPT_END, &[]);
        self.end()
    }

    /// The underlying writer.
    pub const fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Flushes and gives the underlying writer back.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.block.extend_from_slice(&kind.to_le_bytes());
        self.block.extend_from_slice(&[0; 4]);
    }

    /// An option's length field has 16 bits, so longer text is cut.
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.block.extend_from_slice(&code.to_le_bytes());
        self.block.extend_from_slice(&(value.len() as u16).to_le_bytes());
        self.block.extend_from_slice(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn end(&mut self) -> io::Result<()> {
        let length = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&length);
        self.block.extend_from_slice(&length);
        self.out.write_all(&self.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Capture;

    #[test]
    fn what_is_written_is_read_back() {
        let mut writer = Writer::with_comment(Vec::new(), "thalweg", "a test").expect("vec");
        assert_eq!(writer.add_interface("client", LinkType::ETHERNET, 128).expect("vec"), 0);
        assert_eq!(writer.add_interface("server", LinkType::RAW, 0).expect("vec"), 1);
        let at = Timestamp::from_nanos(1_700_000_000_123_456_789);
        writer.packet(0, at, 1514, &[7; 1514], None).expect("vec");
        writer.packet(1, at, 61, &[8; 61], Some("marked")).expect("vec");
        assert!(writer.packet(2, at, 1, &[1], None).is_err());
        writer.dropped(1, at, 7).expect("vec");
        let file = writer.finish().expect("vec");

        let mut capture = Capture::new(file.as_slice()).expect("a capture");
        let packet = capture.next().expect("read").expect("first packet");
        assert_eq!((packet.number, packet.at, packet.original_len, packet.bytes.len()), (1, at, 1514, 128));
        assert_eq!((packet.interface, packet.link), (0, LinkType::ETHERNET));
        let packet = capture.next().expect("read").expect("second packet");
        assert_eq!((packet.number, packet.interface, packet.link, packet.bytes), (2, 1, LinkType::RAW, &[8u8; 61][..]));
        assert!(capture.next().expect("read").is_none());
        let names: Vec<_> = capture.interfaces().iter().map(|i| i.name.as_deref()).collect();
        assert_eq!(names, [Some("client"), Some("server")]);
        assert_eq!((capture.damage().truncated, capture.damage().dropped), (false, 7));
    }
}
