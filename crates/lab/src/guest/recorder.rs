//! Recording while workloads run: packets at both ends, and every socket's `tcp_info`.

use super::clock::{minus, plus};
use super::hosts::{DEVICE, Host, Topology};
use super::sampler::Sampler;
use crate::plan::{CAPTURE_FILE, Clock, Plan, SAMPLES_FILE};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::path::Path;
use thalweg_host::capture::{Capture, SNAPLEN};
use thalweg_host::tcp_samples::Sample;
use thalweg_host::{HostError, link};
use thalweg_model::Side;
use thalweg_units::{Span, Timestamp};
use thalweg_wire::{LinkType, pcapng};

/// Packets a ring holds: 13 ms of 10 Gb/s in full frames, more than ever waits between two wake-ups.
const RING_PACKETS: usize = 65_536;
/// Packets in a ring that wake the loop, if nothing else does: few enough that they are still in the cache.
const WAKE_PACKETS: u32 = 1024;
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
    pub(super) fn start(topology: &Topology, plan: &Plan, folder: &Path) -> Result<Option<Self>, HostError> {
        let (client, server) = plan.options.capture.at();
        if !client && !server {
            return Ok(None);
        }
        let file = Uncached::create(&folder.join(CAPTURE_FILE), plan.clock)?;
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
            let capture = host.ns.run(|| Capture::start(link::index(DEVICE)?, ring))?;
            capture.wake_from(WAKE_PACKETS)?;
            ends.push((interface, capture));
        }
        Ok(Some(Self { ends, writer, batch: Vec::new() }))
    }

    /// What the loop watches.
    pub(super) fn rings(&self) -> impl Iterator<Item = &Capture> {
        self.ends.iter().map(|(_, capture)| capture)
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
    sampler: Sampler,
    lines: Lines,
}

impl Samples {
    /// Begins the file; `None` where no samples are asked for.
    pub(super) fn start(plan: &Plan, folder: &Path, began: Span) -> Result<Option<Self>, HostError> {
        let Some(period) = plan.options.samples else { return Ok(None) };
        let file = BufWriter::with_capacity(WRITE_BYTES, Uncached::create(&folder.join(SAMPLES_FILE), plan.clock)?);
        let sampler = Sampler::start(plan.clock, plus(began, period), period)?;
        Ok(Some(Self { sampler, lines: Lines { file, began, connections: Vec::new(), line: Vec::new() } }))
    }

    /// What the loop watches.
    pub(super) fn sampler(&self) -> &Sampler {
        &self.sampler
    }

    /// Samples a host's connection from now on, until it is removed by the number returned. Of connections that are sampled at
    /// one time, that of the lower key comes first.
    pub(super) fn add(&mut self, key: usize, host: &str, connection: u32, tcp: impl AsFd) -> Result<u64, HostError> {
        let id = ((key as u64) << 32) | self.lines.connections.len() as u64;
        self.lines.connections.push(format!("{host},{connection}"));
        self.sampler.add(id, tcp)?;
        Ok(id)
    }

    /// Takes a connection's last sample.
    pub(super) fn remove(&mut self, id: u64) -> Result<(), HostError> {
        self.sampler.remove(id, |sample| self.lines.write(&sample))
    }

    /// Writes what was taken.
    pub(super) fn drain(&mut self) -> Result<(), HostError> {
        self.sampler.read(|sample| self.lines.write(&sample))
    }

    /// Writes the rest.
    pub(super) fn finish(mut self) -> Result<(), HostError> {
        self.drain()?;
        self.lines.file.flush().map_err(written)
    }
}

struct Lines {
    file: BufWriter<Uncached>,
    began: Span,
    /// Host and number of each connection, as a line has them.
    connections: Vec<String>,
    line: Vec<u8>,
}

impl Lines {
    fn write(&mut self, sample: &Sample) -> Result<(), HostError> {
        let fields = || sample.info.fields().chain(sample.memory.fields());
        self.line.clear();
        if self.file.get_ref().len == 0 && self.file.buffer().is_empty() {
            let names: Vec<&str> = fields().map(|(name, _)| name).collect();
            writeln!(self.line, "time_s,host,connection,{}", names.join(",")).map_err(written)?;
        }
        let nanos = minus(sample.at, self.began).as_nanos();
        let connection = &self.connections[sample.id as u32 as usize];
        write!(self.line, "{}.{:09},{connection}", nanos / 1_000_000_000, nanos % 1_000_000_000).map_err(written)?;
        // A run has millions of these: std's formatting would take longer than the kernel's sampling.
        let mut digits = itoa::Buffer::new();
        for (_, value) in fields() {
            self.line.push(b',');
            self.line.extend_from_slice(digits.format(value).as_bytes());
        }
        self.line.push(b'\n');
        self.file.write_all(&self.line).map_err(written)
    }
}

/// A file that leaves the guest's page cache as it is written: what stayed there would be first-touched memory of the
/// host's, a gigabyte for a long capture, and the host's own cache holds it anyway.
struct Uncached {
    file: File,
    len: u64,
    /// In real time the file stays where the host has it: to give it away would wait for the disk.
    stays: bool,
}

impl Uncached {
    fn create(path: &Path, clock: Clock) -> Result<Self, HostError> {
        Ok(Self { file: File::create(path).map_err(written)?, len: 0, stays: clock == Clock::Real })
    }
}

impl Write for Uncached {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        // From the page on that the last write left half full; the advice writes pages out and then drops whole ones.
        // Source: mm/fadvise.c, `generic_fadvise`.
        let from = self.len - self.len % PAGE_BYTES;
        self.len += count as u64;
        if self.stays {
            return Ok(count);
        }
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
