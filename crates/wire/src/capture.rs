//! A capture file of either format, packet by packet.

use crate::damage::Damage;
use crate::link::LinkType;
use crate::magic::looks_like;
use crate::packet::{Interface, Packet};
use crate::read_buffer::ReadBuffer;
use crate::{pcap, pcapng};
use std::io::{self, Read};
use thiserror::Error;

/// Why packets could not be read.
#[derive(Debug, Error)]
pub enum Error {
    /// The underlying reader failed.
    #[error("cannot read the capture: {0}")]
    Read(#[from] io::Error),
    /// The bytes are neither pcap nor pcapng.
    #[error("not a pcap or pcapng capture: it looks like {looks_like}")]
    NotACapture {
        /// What they look like.
        looks_like: String,
    },
}

#[derive(Debug)]
enum Format {
    Pcap(pcap::Reader),
    Pcapng(pcapng::read::Reader),
}

/// A capture file being read, compressed with gzip, xz or zstd or not; memory is bounded whatever the file holds.
#[derive(Debug)]
pub struct Capture<R: Read> {
    buffer: ReadBuffer<R>,
    format: Format,
    interfaces: Vec<Interface>,
    damage: Damage,
    packets: u64,
}

impl<R: Read> Capture<R> {
    /// Tells the compression and the format from the first bytes.
    ///
    /// # Errors
    /// [`Error::Read`] from the reader; [`Error::NotACapture`] for bytes of another kind.
    pub fn new(from: R) -> Result<Self, Error> {
        Self::of_buffer(ReadBuffer::new(from)?)
    }

    pub(crate) fn of_buffer(mut buffer: ReadBuffer<R>) -> Result<Self, Error> {
        buffer.want(64)?;
        if pcap::Reader::begin(buffer.peek()).is_some() {
            buffer.want(pcap::PROBED)?;
        }
        let mut interfaces = Vec::new();
        let format = if let Some((reader, interface)) = pcap::Reader::begin(buffer.peek()) {
            buffer.consume(pcap::FILE_HEADER);
            interfaces.push(interface);
            Format::Pcap(reader)
        } else if pcapng::read::is_section(buffer.peek()) {
            Format::Pcapng(pcapng::read::Reader::default())
        } else {
            return Err(Error::NotACapture { looks_like: kind_of(&buffer) });
        };
        Ok(Self { buffer, format, interfaces, damage: Damage::default(), packets: 0 })
    }

    /// The next packet; `None` at the end. Damage is stepped over and noted in [`Capture::damage`].
    ///
    /// # Errors
    /// [`Error::Read`] from the reader.
    #[expect(clippy::should_implement_trait, reason = "the packet borrows from the capture")]
    pub fn next(&mut self) -> Result<Option<Packet<'_>>, Error> {
        let found = match &mut self.format {
            Format::Pcap(reader) => reader.next(&mut self.buffer, &mut self.damage)?,
            Format::Pcapng(reader) => reader.next(&mut self.buffer, &mut self.interfaces, &mut self.damage)?,
        };
        let Some(found) = found else {
            let source = self.buffer.source();
            self.damage.decompression = source.compression().zip(source.failure().map(str::to_owned));
            return Ok(None);
        };
        self.packets += 1;
        let link = self.interfaces.get(found.interface as usize).map_or(LinkType::ETHERNET, |i| i.link);
        let bytes = &self.buffer.consumed(found.len + found.after)[..found.len];
        Ok(Some(Packet {
            number: self.packets,
            at: found.at,
            interface: found.interface,
            link,
            original_len: found.original_len,
            dropped_before: found.dropped_before,
            bytes,
        }))
    }

    /// The interfaces described so far, over all sections.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// What was wrong with the file so far.
    pub const fn damage(&self) -> &Damage {
        &self.damage
    }
}

/// What bytes that are no capture look like.
fn kind_of<R: Read>(buffer: &ReadBuffer<R>) -> String {
    let source = buffer.source();
    match (source.compression(), source.failure()) {
        (Some(kind), Some(failure)) => format!("{kind}-compressed data that is cut or damaged ({failure})"),
        (Some(kind), None) => format!("{kind}-compressed data that holds {}", looks_like(buffer.peek())),
        (None, _) => looks_like(buffer.peek()).to_owned(),
    }
}
