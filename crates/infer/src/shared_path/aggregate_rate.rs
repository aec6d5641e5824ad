//! What connections between the same two hosts carry together, by the capture's time.

use crate::tcp::sender::Sender;
use thalweg_units::Timestamp;

/// Most bins of a connection: with them it stays within the 4 KB that are kept of each. It bounds memory.
pub(crate) const MAX_BINS: u64 = 128;
/// Fewest in which a connection's own course is seen, and the bytes under which it is a matter of its first windows. Bounds memory: what is shorter
/// is not kept until the capture ends.
pub(crate) const MIN_BINS: u64 = 8;
pub(crate) const MIN_BYTES: u64 = 100_000;

/// What one connection carried.
#[derive(Debug)]
pub(crate) struct CarriedBytes {
    /// Its first bin's beginning, in nanoseconds since the epoch, and how long each is.
    pub(crate) start: u64,
    pub(crate) width: u64,
    /// Bytes delivered in each.
    pub(crate) bins: Box<[f32]>,
}

impl CarriedBytes {
    /// What a sender's connection, begun at `started`, carried; `None` where that was little, or at once.
    pub(crate) fn of(sender: &Sender, started: Timestamp) -> Option<Self> {
        let timeline = &sender.observers.time;
        let (start, slices) = (timeline.start?, &timeline.slices);
        let count = slices.last()?.index + 1;
        if count < MIN_BINS || sender.totals.delivered < MIN_BYTES {
            return None;
        }
        let merged = count.div_ceil(MAX_BINS);
        let mut bins = vec![0.0; count.div_ceil(merged) as usize].into_boxed_slice();
        for slice in slices {
            bins[(slice.index / merged) as usize] += slice.delivered as f32;
        }
        Some(Self {
            start: started.as_nanos().saturating_add(start),
            width: timeline.width.saturating_mul(merged),
            bins,
        })
    }

    /// When its last bin ends.
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.width.saturating_mul(self.bins.len() as u64))
    }

    /// All it carried, in bytes.
    pub(crate) fn bytes(&self) -> f64 {
        self.bins.iter().map(|&bytes| f64::from(bytes)).sum()
    }
}

/// The sum of several connections' courses.
#[derive(Debug)]
pub(crate) struct AggregateRate {
    /// Moments at which the sum's rate changes: when, what was carried until then in bytes, and the rate from then on per nanosecond.
    moments: Vec<(u64, f64, f64)>,
    starts: Vec<u64>,
    ends: Vec<u64>,
}

impl AggregateRate {
    pub(crate) fn of<'a>(all: impl Iterator<Item = &'a CarriedBytes> + Clone) -> Self {
        let mut changes: Vec<(u64, f64)> = Vec::new();
        for one in all.clone() {
            let mut rate = 0.0;
            for (n, &bytes) in (0..).zip(&one.bins) {
                let next = f64::from(bytes) / one.width as f64;
                changes.push((one.start.saturating_add(n * one.width), next - rate));
                rate = next;
            }
            changes.push((one.end(), -rate));
        }
        // A stable sort: the same connections in the same order always give the same sums.
        changes.sort_by_key(|change| change.0);
        let (mut carried, mut rate, mut last) = (0.0, 0.0_f64, 0);
        let mut moments: Vec<(u64, f64, f64)> = Vec::with_capacity(changes.len());
        for (at, change) in changes {
            carried += rate * (at - last) as f64;
            (rate, last) = ((rate + change).max(0.0), at);
            match moments.last_mut() {
                Some(moment) if moment.0 == at => moment.2 = rate,
                _ => moments.push((at, carried, rate)),
            }
        }
        let mut starts: Vec<u64> = all.clone().map(|one| one.start).collect();
        let mut ends: Vec<u64> = all.map(CarriedBytes::end).collect();
        starts.sort_unstable();
        ends.sort_unstable();
        Self { moments, starts, ends }
    }

    /// Bytes carried until `at`.
    fn until(&self, at: u64) -> f64 {
        let after = self.moments.partition_point(|moment| moment.0 <= at);
        let Some((since, carried, rate)) = after.checked_sub(1).map(|index| self.moments[index]) else { return 0.0 };
        carried + rate * (at - since) as f64
    }

    /// Mean rate from `from` to `to`, in bytes per second.
    pub(crate) fn rate(&self, from: u64, to: u64) -> f64 {
        (self.until(to) - self.until(from)).max(0.0) / (to.saturating_sub(from).max(1) as f64 / 1e9)
    }

    /// How many of the connections have data at some time between `from` and `to`.
    pub(crate) fn count(&self, from: u64, to: u64) -> usize {
        let begun = self.starts.partition_point(|&start| start < to);
        begun.saturating_sub(self.ends.partition_point(|&end| end <= from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(start: u64, bins: &[f32]) -> CarriedBytes {
        CarriedBytes { start, width: 1_000_000_000, bins: bins.into() }
    }

    #[test]
    fn rates_add_up_where_connections_overlap() {
        const S: u64 = 1_000_000_000;
        let all = [carried(10 * S, &[100.0, 100.0, 0.0, 100.0]), carried(11 * S + S / 2, &[50.0, 50.0])];
        let together = AggregateRate::of(all.iter());
        assert!((together.rate(10 * S, 14 * S) - 100.0).abs() < 1e-6);
        assert!((together.rate(11 * S, 12 * S) - 125.0).abs() < 1e-6);
        assert!((together.rate(12 * S, 13 * S) - 50.0).abs() < 1e-6);
        assert!(together.rate(20 * S, 21 * S).abs() < 1e-6);
        assert_eq!(
            [(10, 14), (10, 11), (9, 10), (14, 20)].map(|(from, to)| together.count(from * S, to * S)),
            [2, 1, 0, 0]
        );
    }
}
