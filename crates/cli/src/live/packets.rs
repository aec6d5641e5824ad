//! `thalweg diagnose --live` and `fix --live`: this host's own packets, as a capture that is read while it is taken.

use super::sockets::{self, NAME};
use crate::args::DiagnoseArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::stop;
use anyhow::anyhow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use thalweg_host::HostError;
use thalweg_host::capture::{Capture, Captured, SNAPLEN, TUNNEL_SNAPLEN};
use thalweg_infer::{CaptureDiagnosis, Options};
use thalweg_units::{Span, Timestamp};
use thalweg_wire::LinkType;
use thalweg_wire::filter::Filter;
use thalweg_wire::pcapng::Writer;

/// Packets the ring holds: 32 MiB of slots.
const RING: usize = 1 << 16;
/// How long nothing may arrive before the end of the time, or Ctrl-C, is looked for.
const LOOK_EVERY_MS: i32 = 50;

/// Watches until the time is over or Ctrl-C, and judges what was seen.
pub(crate) fn watch(
    args: &DiagnoseArgs,
    filter: &Filter,
    options: Options,
    output: &Output,
) -> Result<CaptureDiagnosis, Failure> {
    let stop = stop::listen()?;
    if args.sockets {
        output.note("watching this host's sockets; Ctrl-C ends it and reports");
        return sockets::watch(args, filter, &stop, "this is from samples of sockets; no packet was seen");
    }
    let capture = match start(filter, args.interface.as_deref())? {
        Ok(capture) => capture,
        // Packets of one interface were asked for: sockets would be something else.
        Err(error) if args.interface.is_some() || !lacks_capability(&error) => return Err(refused(error)),
        Err(_) => {
            let why =
                format!("no packet was seen, which needs CAP_NET_RAW ({}); this is from samples of sockets", ways());
            output.note(&format!("{why}: watching them; Ctrl-C ends it and reports"));
            return sockets::watch(args, filter, &stop, &why);
        }
    };
    let reader = watching(capture, args.interface.as_deref(), args.duration, stop, output)?;
    let options = Options { filter: Some(filter.clone()), ..options };
    thalweg_infer::diagnose_reader_with(reader, NAME, options).map_err(|error| Failure::host(anyhow!("{error}")))
}

/// Writes the packets of the filter's connections into a file, until the time is over or Ctrl-C.
pub(crate) fn record_to(
    path: &Path,
    filter: &Filter,
    duration: Span,
    stop: &Arc<AtomicBool>,
    output: &Output,
) -> Result<(), Failure> {
    let capture = start(filter, None)?.map_err(refused)?;
    let mut reader = watching(capture, None, Some(duration), Arc::clone(stop), output)?;
    let unwritten = |error: io::Error| Failure::host(anyhow!("cannot write {}: {error}", path.display()));
    let mut file = File::create(path).map_err(unwritten)?;
    io::copy(&mut reader, &mut file).map_err(unwritten)?;
    Ok(())
}

/// Begins to capture what the filter wants, of one interface or of all; what the kernel refuses is the inner error.
fn start(filter: &Filter, interface: Option<&str>) -> Result<Result<Capture, HostError>, Failure> {
    let device = match interface {
        Some(name) => thalweg_host::link::index(name).map_err(|error| {
            Failure::user(anyhow!("there is no interface {name}: {}", error.source)).hint("ip link lists them")
        })?,
        None => 0,
    };
    let program: Option<Vec<_>> = filter
        .program(SNAPLEN, TUNNEL_SNAPLEN)
        .map(|steps| steps.iter().map(|step| (step.code, step.jt, step.jf, step.k)).collect());
    Ok(Capture::start_network_layer(device, RING, program.as_deref()))
}

fn watching(
    capture: Capture,
    interface: Option<&str>,
    duration: Option<Span>,
    stop: Arc<AtomicBool>,
    output: &Output,
) -> Result<Watch, Failure> {
    let on = interface.unwrap_or("all interfaces");
    output.note(&match duration {
        Some(span) => format!("watching {on} for {span}; Ctrl-C ends it sooner and reports"),
        None => format!("watching {on}; Ctrl-C ends it and reports"),
    });
    let until = duration.map(|span| Instant::now() + span.to_duration());
    Watch::new(capture, stop, until).map_err(Failure::host)
}

fn lacks_capability(error: &HostError) -> bool {
    error.source.raw_os_error() == Some(rustix::io::Errno::PERM.raw_os_error())
}

/// The ways to be let see packets.
fn ways() -> String {
    let program = std::env::current_exe().map_or_else(|_| "thalweg".to_owned(), |path| path.display().to_string());
    format!("run it with sudo, or give the program the capability once: sudo setcap cap_net_raw+ep {program}")
}

/// Why the kernel does not let packets be seen, and the ways to change that.
pub(crate) fn refused(error: HostError) -> Failure {
    let hint = lacks_capability(&error).then(|| format!("seeing packets needs CAP_NET_RAW: {}", ways()));
    let failure = Failure::host(anyhow!("{error}"));
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// A running capture, read as a pcapng file.
struct Watch {
    capture: Capture,
    stop: Arc<AtomicBool>,
    until: Option<Instant>,
    /// Writes into memory what is read next.
    writer: Writer<Vec<u8>>,
    /// Bytes of the writer's that were read.
    given: usize,
    /// Numbers in the file of the devices seen.
    devices: HashMap<u32, u32>,
    last: Timestamp,
    dropped: u64,
    ended: bool,
}

impl Watch {
    fn new(capture: Capture, stop: Arc<AtomicBool>, until: Option<Instant>) -> io::Result<Self> {
        Ok(Self {
            capture,
            stop,
            until,
            writer: Writer::new(Vec::new(), "thalweg")?,
            given: 0,
            devices: HashMap::new(),
            last: Timestamp::default(),
            dropped: 0,
            ended: false,
        })
    }

    /// Writes what is in the ring.
    fn drain(&mut self) -> io::Result<()> {
        let Self { capture, writer, devices, last, .. } = self;
        capture.drain(|packet| record(writer, devices, last, &packet))
    }

    fn end(&mut self) -> io::Result<()> {
        self.ended = true;
        self.drain()?;
        self.dropped += u64::from(self.capture.dropped().map_err(io::Error::other)?);
        if self.dropped > 0 {
            if self.devices.is_empty() {
                self.writer.add_interface("any", LinkType::RAW, TUNNEL_SNAPLEN)?;
            }
            self.writer.dropped(0, self.last, self.dropped)?;
        }
        Ok(())
    }
}

fn record(
    writer: &mut Writer<Vec<u8>>,
    devices: &mut HashMap<u32, u32>,
    last: &mut Timestamp,
    packet: &Captured<'_>,
) -> io::Result<()> {
    // On a loopback device each packet is seen twice; the copy coming in is complete, with what offloads leave out.
    if packet.loopback && packet.outgoing {
        return Ok(());
    }
    let interface = match devices.get(&packet.device) {
        Some(&interface) => interface,
        None => {
            let name = thalweg_host::link::name(packet.device).unwrap_or_else(|| format!("device {}", packet.device));
            let interface = writer.add_interface(&name, LinkType::RAW, TUNNEL_SNAPLEN)?;
            devices.insert(packet.device, interface);
            interface
        }
    };
    *last = packet.at;
    writer.packet(interface, packet.at, packet.original_len, packet.bytes, None)
}

impl Read for Watch {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let bytes = &self.writer.get_mut()[self.given..];
            if !bytes.is_empty() {
                let len = bytes.len().min(into.len());
                into[..len].copy_from_slice(&bytes[..len]);
                self.given += len;
                return Ok(len);
            }
            self.writer.get_mut().clear();
            self.given = 0;
            if self.ended {
                return Ok(0);
            }
            let is_over = self.until.is_some_and(|until| Instant::now() >= until);
            if is_over || self.stop.load(Ordering::Relaxed) {
                self.end()?;
                continue;
            }
            self.drain()?;
            if self.writer.get_mut().is_empty() {
                self.capture.wait(LOOK_EVERY_MS).map_err(io::Error::other)?;
            }
        }
    }
}
