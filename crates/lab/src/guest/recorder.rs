//! Recording while workloads run: packets at both ends, and every socket's `tcp_info`.

use super::hosts::{DEVICE, Host, Topology};
use crate::plan::{CAPTURE_FILE, RunOptions, SAMPLES_FILE};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::path::Path;
use thalweg_host::capture::{Capture, SNAPLEN};
use thalweg_host::mem_info::MemInfo;
use thalweg_host::tcp_info::TcpInfo;
use thalweg_host::{HostError, link};
use thalweg_model::Side;
use thalweg_units::{Span, Timestamp};
use thalweg_wire::{LinkType, pcapng};

/// Packets a ring holds: 13 ms of 10 Gb/s in full frames, more than ever waits between two wake-ups.
const RING_PACKETS: usize = 65_536;
/// Bytes written at once, and so about what the guest's page cache holds of a file: few enough to stay in a processor's
/// cache on their way out.
const WRITE_BYTES: usize = 1 << 18;

const PAGE_BYTES: u64 = 4096;

/// The packet capture of a run.
pub(super) struct Packets {
    ends: Vec<(u32, Capture)>,
    writer: pcapng::Writer<BufWriter<Uncached>>,
    /// Packets of one drain, put in order of time over both ends before they are written.
    batch: Vec<Kept>,
}

struct Kept {
    at: Timestamp,
    interface: u32,
    original_len: u32,
    len: usize,
    bytes: [u8; SNAPLEN as usize],
}

impl Packets {
    /// Begins to capture; `None` where none is asked for.
    pub(super) fn start(topology: &Topology, options: RunOptions, folder: &Path) -> Result<Option<Self>, HostError> {
        let (client, server) = options.capture.at();
        if !client && !server {
            return Ok(None);
        }
        let file = Uncached::create(&folder.join(CAPTURE_FILE))?;
        let mut writer =
            pcapng::Writer::new(BufWriter::with_capacity(WRITE_BYTES, file), "thalweg lab").map_err(written)?;
        let mut ends = Vec::new();
        let is_wanted = |host: &&Host| if host.side == Some(Side::Client) { client } else { server };
        // The client first, as its packets begin every connection.
        let (servers, mut wanted): (Vec<&Host>, Vec<&Host>) =
            topology.hosts().filter(is_wanted).partition(|host| host.side == Some(Side::Server));
        wanted.extend(servers);
        let ring = (RING_PACKETS * 2 / wanted.len().max(2)).next_power_of_two();
        for host in wanted {
            let interface = writer.add_interface(&host.name, LinkType::ETHERNET, SNAPLEN).map_err(written)?;
            ends.push((interface, host.ns.run(|| Capture::start(link::index(DEVICE)?, ring))?));
        }
        Ok(Some(Self { ends, writer, batch: Vec::new() }))
    }

    /// Writes what the rings hold.
    pub(super) fn drain(&mut self) -> Result<(), HostError> {
        self.batch.clear();
        for (interface, capture) in &mut self.ends {
            capture.drain(|packet| {
                let len = packet.bytes.len().min(SNAPLEN as usize);
                let mut bytes = [0; SNAPLEN as usize];
                bytes[..len].copy_from_slice(&packet.bytes[..len]);
                let (at, original_len) = (packet.at, packet.original_len);
                self.batch.push(Kept { at, interface: *interface, original_len, len, bytes });
                Ok::<(), HostError>(())
            })?;
        }
        self.batch.sort_by_key(|kept| kept.at);
        for kept in &self.batch {
            let bytes = &kept.bytes[..kept.len];
            self.writer.packet(kept.interface, kept.at, kept.original_len, bytes, None).map_err(written)?;
        }
        Ok(())
    }

    /// Writes the rest; returns how many packets the rings had no room for.
    pub(super) fn finish(mut self) -> Result<u32, HostError> {
        self.drain()?;
        let mut dropped = 0;
        for (_, capture) in &self.ends {
            dropped += capture.dropped()?;
        }
        self.writer.finish().and_then(|mut file| file.flush()).map_err(written)?;
        Ok(dropped)
    }
}

/// The `tcp_info` samples of a run, as comma-separated values with the kernel's names at the top.
pub(super) struct Samples {
    file: BufWriter<Uncached>,
    begun: bool,
}

impl Samples {
    /// Begins the file; `None` where no samples are asked for.
    pub(super) fn start(options: RunOptions, folder: &Path) -> Result<Option<Self>, HostError> {
        if options.samples.is_none() {
            return Ok(None);
        }
        let file = Uncached::create(&folder.join(SAMPLES_FILE))?;
        Ok(Some(Self { file: BufWriter::with_capacity(WRITE_BYTES, file), begun: false }))
    }

    /// Writes one line.
    pub(super) fn write(&mut self, at: Span, host: &Host, connection: u32, tcp: impl AsFd) -> Result<(), HostError> {
        let (info, memory) = (TcpInfo::of(&tcp)?, MemInfo::of(&tcp)?);
        let fields = || info.fields().chain(memory.fields());
        if !self.begun {
            self.begun = true;
            let names: Vec<&str> = fields().map(|(name, _)| name).collect();
            writeln!(self.file, "time_s,host,connection,{}", names.join(",")).map_err(written)?;
        }
        let nanos = at.as_nanos();
        write!(self.file, "{}.{:09},{},{connection}", nanos / 1_000_000_000, nanos % 1_000_000_000, host.name)
            .map_err(written)?;
        for (_, value) in fields() {
            write!(self.file, ",{value}").map_err(written)?;
        }
        writeln!(self.file).map_err(written)
    }

    /// Writes the rest.
    pub(super) fn finish(mut self) -> Result<(), HostError> {
        self.file.flush().map_err(written)
    }
}

/// A file that leaves the guest's page cache as it is written: what stayed there would be first-touched memory of the
/// host's, a gigabyte for a long capture, and the host's own cache holds it anyway.
struct Uncached {
    file: File,
    len: u64,
}

impl Uncached {
    fn create(path: &Path) -> Result<Self, HostError> {
        Ok(Self { file: File::create(path).map_err(written)?, len: 0 })
    }
}

impl Write for Uncached {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        // From the page on that the last write left half full; the advice writes pages out and then drops whole ones.
        // Source: mm/fadvise.c, `generic_fadvise`.
        let from = self.len - self.len % PAGE_BYTES;
        self.len += count as u64;
        fadvise(&self.file, from, NonZeroU64::new(self.len - from), Advice::DontNeed)?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn written(source: io::Error) -> HostError {
    HostError { act: "write what was recorded".to_owned(), source }
}
