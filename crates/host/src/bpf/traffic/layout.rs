//! Where in the memory is what, and what the program counts by.

use crate::bpf::clock;
use crate::filter::Direction;

/// Of the head of the memory: the first bin that is not read, and packets that may not be counted.
pub(super) const FIRST_OPEN: i16 = 0;
pub(super) const MISSED: i16 = 8;
/// Bytes of the head; bins follow.
pub(super) const HEAD: usize = 64;
/// Of a bin.
pub(super) const NUMBER: i16 = 0;
pub(super) const BYTES: i16 = 8;
pub(super) const PACKETS: i16 = 16;
pub(super) const LONGEST: i16 = 24;
/// Bytes of a bin, without what its flows take.
pub(super) const BIN_LEN: usize = 32;
/// Flows that have an entry in a bin of one processor; what others send counts in the bin alone.
pub(super) const BIN_FLOWS: usize = 8;
/// Of an entry: the flow's number, its bytes and packets, of 32 bits each.
pub(super) const ENTRY_LEN: usize = 16;
pub(super) const ENTRY_BYTES: i16 = 8;
pub(super) const ENTRY_PACKETS: i16 = 12;

/// How far back the bins go: a reader may come late by most of it.
const RING_NS: u64 = 400_000_000;
/// What the memory may take. A host with so many processors that it would be more has bins no finer than [`WIDEST_NS`], or a
/// shorter ring.
pub(super) const MEMORY_MAX: usize = 64 << 20;
pub(super) const WIDEST_NS: u64 = 100_000;
pub(super) const BINS_MIN: usize = 1_024;
pub(super) const DIRECTIONS: [Direction; 2] = [Direction::Egress, Direction::Ingress];

/// Where what is in the memory, and what the program counts by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// The epoch by CLOCK_MONOTONIC.
    pub(super) epoch_ns: u64,
    pub(super) bin_ns: u64,
    /// Bins of a processor and direction; a power of two.
    pub(super) bins: usize,
    pub(super) bin_len: usize,
    /// The next power of two.
    pub(super) processors: usize,
    pub(super) header_len: usize,
}

impl Layout {
    /// Of this host, for bins of so many nanoseconds.
    pub(super) fn new(bin_ns: u64, processors: usize, header_len: usize, with_flows: bool) -> Self {
        let mut layout = Self::of_ring(bin_ns, processors, header_len, with_flows);
        if layout.len() > MEMORY_MAX {
            layout = Self::of_ring(WIDEST_NS, processors, header_len, with_flows);
        }
        while layout.len() > MEMORY_MAX && layout.bins > BINS_MIN {
            layout.bins /= 2;
        }
        layout
    }

    fn of_ring(bin_ns: u64, processors: usize, header_len: usize, with_flows: bool) -> Self {
        let processors = processors.next_power_of_two();
        let bins = (RING_NS.div_ceil(bin_ns) as usize).next_power_of_two();
        let bin_len = BIN_LEN + if with_flows { BIN_FLOWS * ENTRY_LEN } else { 0 };
        Self { epoch_ns: clock::epoch_ns(), bin_ns, bins, bin_len, processors, header_len }
    }

    /// Bytes of all.
    pub(super) const fn len(&self) -> usize {
        HEAD + DIRECTIONS.len() * self.ring_len() * self.processors
    }

    /// Bytes of the bins of a processor and direction.
    pub(super) const fn ring_len(&self) -> usize {
        self.bins * self.bin_len
    }

    /// Where the bins of a direction begin.
    pub(super) const fn begin_of(&self, direction: Direction) -> usize {
        HEAD + match direction {
            Direction::Egress => 0,
            Direction::Ingress => self.ring_len() * self.processors,
        }
    }
}

impl Layout {
    /// The time by the clock of the bins.
    pub(super) fn now(&self) -> u64 {
        self.epoch_ns + clock::monotonic_ns()
    }
}

/// One more than the highest number of a processor of this host.
pub(super) fn processors() -> usize {
    // Such as 0-3,8.
    let present = std::fs::read_to_string("/sys/devices/system/cpu/present").unwrap_or_default();
    let last = present.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<usize>().ok());
    last.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), |last| last + 1)
}
