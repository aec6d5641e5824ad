//! Sums over sockets since the first refresh, for metrics: a bounded number of series.

use std::collections::BTreeMap;
use thalweg_infer::socket::Sample;
use thalweg_model::{LimitName, SocketRow, SocketState, WatchReport};

/// Programs that have series of their own; those that come later are one, `other`.
pub(crate) const PROGRAMS_MAX: usize = 32;
/// The name of that one.
const OTHER: &str = "other";
/// Upper bounds of the histogram of round trips, in seconds: 1, 2.5 and 5 of each decade from 100 µs to 10 s.
pub(crate) const RTT_BOUNDS_S: [f64; 16] =
    [1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// What was counted of the sockets of a host.
#[derive(Debug, Default)]
pub struct Totals {
    pub(crate) programs: BTreeMap<String, ProgramTotals>,
    /// Sockets now, by [`SocketState::ALL`].
    pub(crate) sockets: [u64; SocketState::ALL.len()],
    /// Send queues, in bytes.
    pub(crate) queued_bytes: u64,
    pub(crate) tcp_memory: Option<thalweg_model::TcpMemoryUse>,
}

/// The sums of one program.
#[derive(Debug, Default, Clone)]
pub(crate) struct ProgramTotals {
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_segments: u64,
    pub(crate) retransmitted_segments: u64,
    pub(crate) timeouts: u64,
    pub(crate) spurious_segments: u64,
    pub(crate) reordering: u64,
    /// Seconds by [`LimitName::ALL`].
    pub(crate) limited_s: [f64; LimitName::ALL.len()],
    pub(crate) zero_window_s: f64,
    /// Sockets with a closed window of the peer now, and their send queues.
    pub(crate) zero_window_sockets: u64,
    pub(crate) queued_bytes: u64,
    /// Observations up to each of [`RTT_BOUNDS_S`], each counted once, and above all of them.
    pub(crate) rtt_counts: [u64; RTT_BOUNDS_S.len() + 1],
    pub(crate) rtt_sum_s: f64,
}

impl Totals {
    pub(crate) fn begin(&mut self) {
        self.sockets = [0; SocketState::ALL.len()];
        for program in self.programs.values_mut() {
            (program.zero_window_sockets, program.queued_bytes) = (0, 0);
        }
    }

    /// A socket, and what moved.
    pub(crate) fn add(&mut self, row: &SocketRow, before: &Sample, now: &Sample) {
        let name = row.process.as_ref().map_or("", |process| process.name.as_str());
        let total = self.program(name);
        let since = |counter: fn(&Sample) -> u64| counter(now).saturating_sub(counter(before));
        total.sent_bytes += since(|sample| sample.bytes_acked);
        total.received_bytes += since(|sample| sample.bytes_received);
        total.sent_segments += since(|sample| sample.data_segments_out);
        total.retransmitted_segments += since(|sample| sample.sent_again);
        total.timeouts += since(|sample| sample.timeouts);
        total.spurious_segments += since(|sample| sample.needless);
        total.reordering += since(|sample| sample.overtaken);
        total.queued_bytes += row.send.queued_bytes;
        let seconds = (now.at_s - before.at_s).max(0.0);
        if let Some(limit) = row.limit.now {
            for (sum, (_, share)) in total.limited_s.iter_mut().zip(limit.limits.named()) {
                *sum += share * seconds;
            }
        }
        if row.send.zero_window {
            total.zero_window_sockets += 1;
            total.zero_window_s += seconds;
        }
        let has_moved = since(|sample| sample.bytes_acked) > 0;
        if let Some(rtt_s) = row.rtt.smoothed_ms.filter(|_| has_moved).map(|ms| ms / 1e3) {
            total.rtt_counts[RTT_BOUNDS_S.partition_point(|bound| *bound < rtt_s)] += 1;
            total.rtt_sum_s += rtt_s;
        }
    }

    pub(crate) fn end(&mut self, report: &WatchReport) {
        self.queued_bytes = report.backlog.queued_bytes;
        self.tcp_memory = report.backlog.tcp_memory;
    }

    /// A socket of this state is there.
    pub(crate) fn count(&mut self, state: SocketState) {
        if let Some(place) = SocketState::ALL.iter().position(|one| *one == state) {
            self.sockets[place] += 1;
        }
    }

    fn program(&mut self, name: &str) -> &mut ProgramTotals {
        let name = if self.programs.contains_key(name) || self.programs.len() < PROGRAMS_MAX { name } else { OTHER };
        if !self.programs.contains_key(name) {
            self.programs.insert(name.to_owned(), ProgramTotals::default());
        }
        self.programs.get_mut(name).expect("invariant: inserted above")
    }
}
