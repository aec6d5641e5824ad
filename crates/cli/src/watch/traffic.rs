//! An interface's packets in short bins: counted by programs in the kernel, or here from a ring of packets.

use super::resent::ResentFeed;
use crate::args::watch::BurstSourceChoice;
use crate::failure::Failure;
use crate::live::refused;
use anyhow::anyhow;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thalweg_host::HostError;
use thalweg_host::bpf::{self, TrafficFlow, TrafficHook};
use thalweg_host::capture::Capture;
use thalweg_model::{BurstSource, BurstSourceKind, BurstsReport, FlowProtocol};
use thalweg_units::Timestamp;
use thalweg_watch::{Bursts, BusyBin, FlowId, Port, flow_of};

/// Packets the ring holds. It is emptied each [`LOOK_EVERY`]: three million packets a second find room.
const RING: usize = 1 << 16;
/// To be woken by each packet would cost more than to count it.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often bins are read that the kernel has filled: it keeps them for 400 ms.
const READ_EVERY: Duration = Duration::from_millis(50);
/// What is kept of each packet, whose length and time are all that counts: one byte, or what tells its flow. Source: linux/filter.h,
/// `BPF_RET | BPF_K`.
const KEEP_ONE_BYTE: [(u16, u8, u8, u32); 1] = [(6, 0, 0, 1)];
const KEEP_PORTS: [(u16, u8, u8, u32); 1] = [(6, 0, 0, 64)];
/// Widths of the kernel's bins, in nanoseconds: the shortest that are reported; and a tenth of that, to be held against a port.
const BIN_NS: u64 = 100_000;
const PORT_BIN_NS: u64 = 10_000;

/// What counts, and the bins.
#[derive(Debug)]
pub(crate) struct Traffic {
    feed: Feed,
    source: BurstSource,
    bursts: Bursts,
    /// Where flows are told apart.
    resent: Option<ResentFeed>,
    resent_reason: Option<String>,
}

#[derive(Debug)]
enum Feed {
    /// Read until then.
    Programs(bpf::Traffic, Timestamp),
    Packets(Capture),
}

impl Traffic {
    /// Begins to count.
    pub(crate) fn start(
        interface: &str,
        choice: BurstSourceChoice,
        port: Option<Port>,
        flows: u8,
    ) -> Result<Self, Failure> {
        let device = thalweg_host::link::index(interface).map_err(|error| {
            Failure::user(anyhow!("there is no interface {interface}: {}", error.source)).hint("ip link lists them")
        })?;
        let wanted = Wanted { bin_ns: if port.is_some() { PORT_BIN_NS } else { BIN_NS }, flows: usize::from(flows) };
        let (feed, kind, reason) = feed(device, choice, wanted)?;
        let step_us = match &feed {
            Feed::Programs(programs, _) => programs.bin_ns() / 1_000,
            Feed::Packets(_) => 0,
        };
        let source = BurstSource { kind, reason, step_us };
        let mut bursts = Bursts::new(interface, source.clone(), now(), port);
        let (mut resent, mut resent_reason) = (None, None);
        if flows > 0 {
            let (feed, said) = ResentFeed::start();
            resent_reason.clone_from(&said.reason);
            bursts.tell_flows(usize::from(flows), Some(said));
            resent = Some(feed);
        }
        Ok(Self { feed, source, bursts, resent, resent_reason })
    }

    /// Why retransmissions are not those of the tracepoint, where they are wanted.
    pub(crate) fn resent_reason(&self) -> Option<&str> {
        self.resent_reason.as_deref()
    }

    /// What counts.
    pub(crate) const fn source(&self) -> &BurstSource {
        &self.source
    }

    /// Counts until then; `false` if a signal came first.
    pub(crate) fn gather(&mut self, until: Instant, stop: &AtomicBool) -> Result<bool, Failure> {
        loop {
            let pause = self.take();
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(true);
            }
            std::thread::sleep(left.min(pause));
        }
    }

    /// Takes what is there; when to look again.
    fn take(&mut self) -> Duration {
        let Self { feed, bursts, .. } = self;
        match feed {
            Feed::Programs(programs, until) => {
                *until = programs.read(|bin, parts| {
                    let counted = BusyBin {
                        at_ns: bin.at.as_nanos(),
                        is_sent: bin.is_sent,
                        packets: bin.packets,
                        bytes: bin.bytes,
                        packet_max_bytes: bin.packet_max_bytes,
                        overflows: false,
                        flow: None,
                    };
                    bursts.bin(&counted, parts.iter().map(|part| (id(&part.flow), part.packets, part.bytes)));
                });
                READ_EVERY
            }
            Feed::Packets(capture) => {
                let counted: Result<(), Infallible> = capture.drain(|packet| {
                    let flow = flow_of(packet.bytes, packet.outgoing);
                    bursts.packet(packet.at, u64::from(packet.original_len), packet.outgoing, flow);
                    Ok(())
                });
                let Ok(()) = counted;
                LOOK_EVERY
            }
        }
    }

    /// Keeps bins for [`Self::busy_bins`].
    pub(crate) fn keep_bins(&mut self) {
        self.bursts.keep_bins();
    }

    /// The bins that are over since the last call.
    pub(crate) fn busy_bins(&mut self) -> Vec<BusyBin> {
        self.bursts.busy_bins()
    }

    /// What was counted since the last report.
    pub(crate) fn report(&mut self) -> Result<BurstsReport, Failure> {
        let (until, missed) = match &mut self.feed {
            Feed::Programs(programs, until) => (*until, programs.missed()),
            Feed::Packets(capture) => (now(), u64::from(capture.dropped().map_err(Failure::host)?)),
        };
        if let Some(resent) = &mut self.resent {
            resent.take(&mut self.bursts);
        }
        let report = self.bursts.report(until, missed);
        if let Feed::Programs(programs, _) = &mut self.feed {
            programs.keep_flows(|flow| self.bursts.is_kept(&id(flow)));
        }
        Ok(report)
    }
}

fn id(flow: &TrafficFlow) -> FlowId {
    let protocol = if flow.protocol == 6 { FlowProtocol::Tcp } else { FlowProtocol::Udp };
    FlowId { protocol, local: flow.local, peer: flow.peer }
}

/// What is to be counted.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    bin_ns: u64,
    flows: usize,
}

/// The first source that the choice and this host allow, and why it is none before it.
fn feed(
    device: u32,
    choice: BurstSourceChoice,
    wanted: Wanted,
) -> Result<(Feed, BurstSourceKind, Option<String>), Failure> {
    let programs =
        |hook| bpf::Traffic::start(device, hook, wanted.bin_ns, wanted.flows).map(|one| Feed::Programs(one, now()));
    let keep = if wanted.flows > 0 { &KEEP_PORTS } else { &KEEP_ONE_BYTE };
    let packets = || Capture::start_network_layer(device, RING, Some(keep)).map(Feed::Packets);
    let asked = |result: Result<Feed, HostError>, kind| match result {
        Ok(feed) => Ok((feed, kind, None)),
        Err(error) => Err(refused_programs(&error)),
    };
    match choice {
        BurstSourceChoice::Tcx => return asked(programs(TrafficHook::Tcx), BurstSourceKind::Tcx),
        BurstSourceChoice::Clsact => return asked(programs(TrafficHook::Clsact), BurstSourceKind::Clsact),
        BurstSourceChoice::AfPacket => {
            return Ok((packets().map_err(refused)?, BurstSourceKind::AfPacket, None));
        }
        BurstSourceChoice::Auto => {}
    }
    let no_tcx = match programs(TrafficHook::Tcx) {
        Ok(feed) => return Ok((feed, BurstSourceKind::Tcx, None)),
        Err(error) => error,
    };
    let reason = if is_without_tcx(&no_tcx) {
        let no_clsact = match programs(TrafficHook::Clsact) {
            Ok(feed) => return Ok((feed, BurstSourceKind::Clsact, Some(why(&no_tcx)))),
            Err(error) => error,
        };
        why(&no_clsact)
    } else {
        why(&no_tcx)
    };
    Ok((packets().map_err(refused)?, BurstSourceKind::AfPacket, Some(reason)))
}

/// Whether the kernel took the programs and did not know how to attach them. Source: kernel/bpf/syscall.c, `link_create`.
fn is_without_tcx(error: &HostError) -> bool {
    error.source.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error())
}

fn lacks_capability(error: &HostError) -> bool {
    [rustix::io::Errno::PERM, rustix::io::Errno::ACCESS]
        .iter()
        .any(|errno| error.source.raw_os_error() == Some(errno.raw_os_error()))
}

/// Why programs do not count, as the end of a sentence.
fn why(error: &HostError) -> String {
    if lacks_capability(error) {
        "BPF needs CAP_BPF and CAP_NET_ADMIN".to_owned()
    } else if is_without_tcx(error) {
        "this kernel has no tcx, which is in Linux 6.6 and later".to_owned()
    } else {
        error.to_string()
    }
}

fn refused_programs(error: &HostError) -> Failure {
    let failure = Failure::host(anyhow!("{error}"));
    if lacks_capability(error) {
        let program = std::env::current_exe().map_or_else(|_| "thalweg".to_owned(), |path| path.display().to_string());
        return failure.hint(format!(
            "counting by BPF needs CAP_BPF and CAP_NET_ADMIN: run it with sudo, or give the program the capabilities once: sudo setcap cap_bpf,cap_net_admin+ep {program}"
        ));
    }
    failure.hint("--burst-source auto takes another way where this one is refused")
}

/// The clock that the kernel stamps packets by.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
