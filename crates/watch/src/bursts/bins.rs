//! Bins of one width, and what of them a report tells.

use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use thalweg_model::BurstBins;

/// Widths of bins, in nanoseconds. Source: Ghabashneh et al., "A Microscopic View of Bursts, Buffer Contention, and Loss in Data Centers",
/// IMC 2022, §3 (Millisampler).
pub(super) const WIDTHS_NS: [u64; 3] = [100_000, 1_000_000, 10_000_000];
/// How late a packet may come after younger ones and still be counted in its bin: processors hand packets over in turns.
const LATENESS_NS: u64 = 20_000_000;
/// Digits that a histogram keeps.
pub(super) const DIGITS: u8 = 3;
/// The most that a bin is told apart up to: 10 ms at 800 Gb/s.
const BIN_MAX_BYTES: u64 = 1_000_000_000;
const NS_PER_S: f64 = 1e9;

/// What passed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Load {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) packet_max_bytes: u64,
    pub(super) overflows: bool,
}

impl Load {
    pub(super) fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.packet_max_bytes = self.packet_max_bytes.max(other.packet_max_bytes);
        self.overflows |= other.overflows;
    }
}

/// Bins of one width.
#[derive(Debug)]
pub(super) struct Bins {
    width_ns: u64,
    /// Bins that may still get packets, by number.
    open: BTreeMap<u64, Load>,
    /// The first bin that is not closed.
    first: u64,
    /// Bytes of closed bins.
    closed: Histogram<u64>,
    busy: u64,
    /// The fullest closed bin: bytes, number.
    fullest: (u64, u64),
    /// Closed bins in which something passed, by number, where they are asked for.
    kept: Option<Vec<(u64, Load)>>,
}

impl Bins {
    pub(super) fn new(width_ns: u64, from_ns: u64, digits: u8) -> Self {
        let closed = Histogram::new_with_bounds(1, BIN_MAX_BYTES, digits).expect("invariant: bounds are in order");
        Self {
            width_ns,
            open: BTreeMap::new(),
            first: from_ns / width_ns,
            closed,
            busy: 0,
            fullest: (0, 0),
            kept: None,
        }
    }

    /// Keeps the bins that are closed from now on, for [`Self::take_kept`].
    pub(super) fn keep(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// Takes the bins that were kept: when each began, and what passed in it.
    pub(super) fn take_kept(&mut self) -> impl Iterator<Item = (u64, Load)> {
        let width_ns = self.width_ns;
        self.kept.iter_mut().flat_map(|kept| kept.drain(..)).map(move |(number, load)| (number * width_ns, load))
    }

    pub(super) fn add(&mut self, at_ns: u64, load: Load) {
        // What comes for a bin that is closed counts in the oldest that is open: nothing is lost.
        let number = (at_ns / self.width_ns).max(self.first);
        self.open.entry(number).or_default().add(load);
        let settled = at_ns.saturating_sub(LATENESS_NS) / self.width_ns;
        while let Some(entry) = self.open.first_entry().filter(|entry| *entry.key() < settled) {
            let (number, load) = entry.remove_entry();
            self.close(number, load);
        }
    }

    /// Closes a bin, and the empty ones before it.
    pub(super) fn close(&mut self, number: u64, load: Load) {
        let bytes = load.bytes;
        if let Some(kept) = &mut self.kept {
            kept.push((number, load));
        }
        self.closed.saturating_record_n(0, number.saturating_sub(self.first));
        self.closed.saturating_record(bytes);
        self.busy += u64::from(bytes > 0);
        self.first = number + 1;
        if bytes > self.fullest.0 {
            self.fullest = (bytes, number);
        }
    }

    pub(super) fn report(&mut self, until_ns: u64) -> BurstBins {
        let end = until_ns / self.width_ns;
        while let Some(entry) = self.open.first_entry().filter(|entry| *entry.key() < end) {
            let (number, load) = entry.remove_entry();
            self.close(number, load);
        }
        self.closed.saturating_record_n(0, end.saturating_sub(self.first));
        self.first = self.first.max(end);
        let rate = |bytes: u64| bytes as f64 * 8.0 * NS_PER_S / self.width_ns as f64;
        let at = |part: f64| rate(self.closed.value_at_quantile(part));
        let report = BurstBins {
            width_us: self.width_ns / 1_000,
            count: self.closed.len(),
            busy: self.busy,
            p50_bps: at(0.5),
            p90_bps: at(0.9),
            p99_bps: at(0.99),
            p999_bps: at(0.999),
            max_bps: rate(self.fullest.0),
            max_at_s: (self.fullest.1 * self.width_ns) as f64 / NS_PER_S,
        };
        self.closed.reset();
        (self.busy, self.fullest) = (0, (0, 0));
        report
    }
}
