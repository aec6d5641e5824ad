//! Replay of a recorded link.

use thalweg_units::Span;

/// Bytes an opportunity delivers: an IP packet of 1500 and the 4 bytes that a TUN device puts before it in Mahimahi.
///
/// Source: mahimahi, src/frontend/link_queue.cc.
const OPPORTUNITY_BYTES: u64 = 1504;
const TUN_HEADER_BYTES: u64 = 4;
const NANOS_PER_MILLISECOND: u64 = 1_000_000;

/// A link that delivers at the opportunities of a trace, which repeats.
///
/// Small packets share an opportunity, long ones take several. An opportunity that finds nothing to deliver is lost.
#[derive(Debug, Clone)]
pub(crate) struct TraceReplay {
    opportunities_ms: Vec<u32>,
    /// The opportunity in use, counted from 0 through all repetitions.
    current: u64,
    /// Bytes that it has left.
    left: u64,
    /// When the last packet left.
    left_at: Option<Span>,
}

impl TraceReplay {
    /// A replay that begins at time 0; `None` if the trace's last opportunity is not after 0 ms.
    pub(crate) fn new(opportunities_ms: &[u32]) -> Option<Self> {
        opportunities_ms.last().filter(|last| **last > 0)?;
        Some(Self { opportunities_ms: opportunities_ms.to_vec(), current: 0, left: 0, left_at: None })
    }

    /// When an IP packet of `bytes` has left, not before `now`.
    pub(crate) fn take(&mut self, now: Span, bytes: u64) -> Span {
        if self.left_at.is_none_or(|left_at| left_at < now) {
            (self.current, self.left) = (self.first_after(now), OPPORTUNITY_BYTES);
        }
        let wanted = bytes + TUN_HEADER_BYTES;
        let more = wanted.saturating_sub(self.left).div_ceil(OPPORTUNITY_BYTES);
        self.current += more;
        self.left = self.left + more * OPPORTUNITY_BYTES - wanted;
        let at = self.time(self.current);
        self.left_at = Some(at);
        at
    }

    /// Mean rate of the trace, in bytes per second.
    pub(crate) fn mean_bytes_per_second(&self) -> f64 {
        self.opportunities_ms.len() as f64 * 1500.0 / (self.period_ms() as f64 / 1e3)
    }

    fn period_ms(&self) -> u64 {
        self.opportunities_ms.last().copied().map_or(1, u64::from)
    }

    fn time(&self, opportunity: u64) -> Span {
        let count = self.opportunities_ms.len() as u64;
        let within = self.opportunities_ms[(opportunity % count) as usize];
        Span::from_millis(opportunity / count * self.period_ms() + u64::from(within))
    }

    /// The first opportunity of a later millisecond.
    fn first_after(&self, now: Span) -> u64 {
        let now_ms = now.as_nanos() / NANOS_PER_MILLISECOND;
        let within = now_ms % self.period_ms();
        let index = self.opportunities_ms.partition_point(|at| u64::from(*at) <= within);
        now_ms / self.period_ms() * self.opportunities_ms.len() as u64 + index as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_share_opportunities_and_take_several() {
        let mut replay = TraceReplay::new(&[2, 2, 5, 10]).expect("a trace");
        let mut take = |now_us, bytes| replay.take(Span::from_micros(now_us), bytes).as_micros() / 1_000;
        // Two small packets in the first opportunity, then one in the second; a large one takes the next two.
        assert_eq!([take(0, 700), take(0, 700), take(0, 1_500), take(0, 3_000)], [2, 2, 2, 10]);
        // After a pause the opportunities missed are lost; the trace repeats after 10 ms.
        assert_eq!([take(13_000, 1_500), take(13_000, 1_500)], [15, 20]);
    }

    #[test]
    fn a_trace_without_a_period_is_refused() {
        assert!(TraceReplay::new(&[]).is_none());
        assert!(TraceReplay::new(&[0]).is_none());
    }
}
