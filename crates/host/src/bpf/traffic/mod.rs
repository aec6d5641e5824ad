//! What passes a device in short bins, counted in the kernel: no packet is copied, and nothing wakes this process.
//!
//! A program on the way in and one on the way out add each packet to a bin of its processor's, in memory that this process
//! reads when it chooses. Source of the design: Ghabashneh et al., "A Microscopic View of Bursts, Buffer Contention, and Loss
//! in Data Centers", IMC 2022, §3 (Millisampler).

mod flows;
mod layout;
mod program;

pub use flows::TrafficFlow;

use super::map::Map;
use super::mapped::Mapped;
use super::tcx;
use crate::error::HostError;
use crate::filter::{self, Direction};
use crate::link::{self, LinkKind};
use flows::Flows;
use layout::{DIRECTIONS, Layout, processors};
use std::io;
use std::os::fd::OwnedFd;
use thalweg_units::Timestamp;

/// How old a bin is when it is read: a processor that has looked at the clock has counted its packet by then.
const SETTLED_NS: u64 = 5_000_000;

/// Where programs see a device's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrafficHook {
    /// A link to the device. Linux 6.6.
    Tcx,
    /// A filter of the discipline `clsact`, which is added where it is not there.
    Clsact,
}

/// A bin of one processor in which something passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrafficBin {
    /// When it began.
    pub at: Timestamp,
    /// Whether this host sent it.
    pub is_sent: bool,
    /// Packets as the kernel hands them over.
    pub packets: u64,
    /// Their bytes, without the link's header.
    pub bytes: u64,
    /// The longest of them.
    pub packet_max_bytes: u64,
}

/// A flow's part of a bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrafficPart {
    /// The flow.
    pub flow: TrafficFlow,
    /// Its packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Programs at work on a device, and their bins.
#[derive(Debug)]
pub struct Traffic {
    memory: Mapped,
    layout: Layout,
    flows: Option<Flows>,
    /// The first bin that is not read.
    next: u64,
    missed: u64,
    _at_work: AtWork,
}

#[derive(Debug)]
enum AtWork {
    Tcx { _links: [OwnedFd; 2] },
    Clsact { _filters: filter::Attached },
}

impl Traffic {
    /// Begins to count what passes device `index` of the current namespace, in bins of `bin_ns`, or of 100 µs on a host with
    /// more processors than there is memory for; and so many TCP and UDP flows at a time by themselves. Filters of `clsact` whose
    /// process was killed leave the device.
    ///
    /// # Errors
    /// When the kernel refuses, which it does without CAP_BPF and CAP_NET_ADMIN or where it has no such hook; or when packets
    /// of this device begin with a header whose length is not known.
    pub fn start(index: u32, hook: TrafficHook, bin_ns: u64, flows: usize) -> Result<Self, HostError> {
        let header_len = match link::kind(index)? {
            LinkKind::Ethernet => 14,
            LinkKind::Ip => 0,
            LinkKind::Other(number) => {
                let why = format!("the length of headers of its kind, {number}, is not known");
                let source = io::Error::new(io::ErrorKind::Unsupported, why);
                return Err(HostError { act: format!("count by a program on device {index}"), source });
            }
        };
        let layout = Layout::new(bin_ns, processors(), header_len, flows > 0);
        let flows = if flows > 0 { Some(Flows::new(flows)?) } else { None };
        let map = Map::shared(layout.len())?;
        let memory = Mapped::of(&map, layout.len())?;
        let next = layout.now() / layout.bin_ns;
        memory.set(layout::FIRST_OPEN as usize / 8, next);
        let programs =
            DIRECTIONS.map(|direction| program::load(&map, direction, &layout, flows.as_ref().map(Flows::maps)));
        let [sends, receives] = programs;
        let programs = [sends?, receives?];
        filter::remove_stale(index);
        let at_work = match hook {
            TrafficHook::Tcx => {
                let [sends, receives] = [0, 1].map(|one: usize| tcx::attach(index, DIRECTIONS[one], &programs[one]));
                AtWork::Tcx { _links: [sends?, receives?] }
            }
            TrafficHook::Clsact => {
                let all = DIRECTIONS.into_iter().zip(&programs).collect::<Vec<_>>();
                AtWork::Clsact { _filters: filter::Attached::new(index, &all)? }
            }
        };
        Ok(Self { memory, layout, flows, next, missed: 0, _at_work: at_work })
    }

    /// How wide a bin is, in nanoseconds.
    pub const fn bin_ns(&self) -> u64 {
        self.layout.bin_ns
    }

    /// Hands over every bin that is over since the last call, in order, with the parts of flows that have room, and says until
    /// when: bins are read a few milliseconds after they end.
    pub fn read(&mut self, mut each: impl FnMut(&TrafficBin, &[TrafficPart])) -> Timestamp {
        let Self { memory, layout, flows, next, .. } = self;
        let end = (layout.now().saturating_sub(SETTLED_NS) / layout.bin_ns).max(*next);
        // From now on nothing is added to them.
        memory.set(layout::FIRST_OPEN as usize / 8, end);
        let mut bins = Vec::new();
        for direction in DIRECTIONS {
            for processor in 0..layout.processors {
                let ring = layout.begin_of(direction) + processor * layout.ring_len();
                // Of a reader that is late by more than the ring every place may hold one that is not read.
                let numbers = if end - *next > layout.bins as u64 { end - layout.bins as u64..end } else { *next..end };
                for number in numbers {
                    let place = ring + (number as usize & (layout.bins - 1)) * layout.bin_len;
                    let word = |at: i16| memory.get((place + at as usize) / 8);
                    let found = word(layout::NUMBER);
                    if (*next..end).contains(&found) {
                        let bin = TrafficBin {
                            at: Timestamp::from_nanos(found * layout.bin_ns),
                            is_sent: direction == Direction::Egress,
                            packets: word(layout::PACKETS),
                            bytes: word(layout::BYTES),
                            packet_max_bytes: word(layout::LONGEST),
                        };
                        bins.push((bin, place));
                    }
                }
            }
        }
        bins.sort_by_key(|(bin, _)| bin.at);
        if let Some(flows) = flows {
            flows.look();
        }
        let mut parts = Vec::new();
        for (bin, place) in &bins {
            parts.clear();
            if let Some(flows) = flows {
                parts.extend((0..layout::BIN_FLOWS).filter_map(|entry| {
                    let at = (place + layout::BIN_LEN + entry * layout::ENTRY_LEN) / 8;
                    let flow = flows.get(memory.get(at))?;
                    let counted = memory.get(at + layout::ENTRY_BYTES as usize / 8).to_ne_bytes();
                    let [b0, b1, b2, b3, p0, p1, p2, p3] = counted;
                    let [bytes, packets] = [[b0, b1, b2, b3], [p0, p1, p2, p3]].map(u32::from_ne_bytes).map(u64::from);
                    Some(TrafficPart { flow, packets, bytes })
                }));
            }
            each(bin, &parts);
        }
        *next = end;
        Timestamp::from_nanos(end * layout.bin_ns)
    }

    /// Gives the room of all flows but these to others.
    pub fn keep_flows(&mut self, keep: impl Fn(&TrafficFlow) -> bool) {
        if let Some(flows) = &mut self.flows {
            flows.keep(keep);
        }
    }

    /// Packets since the last call that are in no bin, or may be in none: this process read too late.
    pub fn missed(&mut self) -> u64 {
        let missed = self.memory.get(layout::MISSED as usize / 8);
        missed - std::mem::replace(&mut self.missed, missed)
    }
}

#[cfg(test)]
mod tests;
