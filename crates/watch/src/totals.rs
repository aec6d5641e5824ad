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
    /// Sockets now, by [`SocketState::LIVE`].
    pub(crate) sockets: [u64; SocketState::LIVE.len()],
    /// Send queues, in bytes.
    pub(crate) queued_bytes: u64,
    pub(crate) tcp_memory: Option<thalweg_model::TcpMemoryUse>,
    /// Connections whose end was not reported, since the buffer of reports was full; `None` where the kernel reports none.
    pub(crate) closed_missed: Option<u64>,
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
    /// Connections whose end was reported.
    pub(crate) closed: u64,
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
        self.sockets = [0; SocketState::LIVE.len()];
        for program in self.programs.values_mut() {
            (program.zero_window_sockets, program.queued_bytes) = (0, 0);
        }
    }

    /// A socket, and what moved.
    pub(crate) fn add(&mut self, row: &SocketRow, before: &Sample, now: &Sample) {
        let total = self.program(row);
        total.count(row, before, now);
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
    }

    /// A connection that ended, and what moved since it was observed last. When within the interval it ended is not known, so of its time only
    /// what the kernel's clocks measure is added.
    pub(crate) fn close(&mut self, row: &SocketRow, before: &Sample, now: &Sample) {
        let total = self.program(row);
        total.count(row, before, now);
        total.closed += 1;
        let clocks = [
            (LimitName::ReceiveWindow, now.window_limited_us.saturating_sub(before.window_limited_us)),
            (LimitName::SendBuffer, now.buffer_limited_us.saturating_sub(before.buffer_limited_us)),
        ];
        for (name, us) in clocks {
            total.limited_s[name as usize] += us as f64 / 1e6;
        }
    }

    pub(crate) fn end(&mut self, report: &WatchReport) {
        self.queued_bytes = report.backlog.queued_bytes;
        self.tcp_memory = report.backlog.tcp_memory;
        self.closed_missed = report.closed.as_ref().map(|closed| self.closed_missed.unwrap_or(0) + closed.missed);
    }

    /// A socket of this state is there.
    pub(crate) fn count(&mut self, state: SocketState) {
        if let Some(place) = SocketState::LIVE.iter().position(|one| *one == state) {
            self.sockets[place] += 1;
        }
    }

    fn program(&mut self, row: &SocketRow) -> &mut ProgramTotals {
        let name = row.process.as_ref().map_or("", |process| process.name.as_str());
        let name = if self.programs.contains_key(name) || self.programs.len() < PROGRAMS_MAX { name } else { OTHER };
        if !self.programs.contains_key(name) {
            self.programs.insert(name.to_owned(), ProgramTotals::default());
        }
        self.programs.get_mut(name).expect("invariant: inserted above")
    }
}

impl ProgramTotals {
    fn count(&mut self, row: &SocketRow, before: &Sample, now: &Sample) {
        let since = |counter: fn(&Sample) -> u64| counter(now).saturating_sub(counter(before));
        self.sent_bytes += since(|sample| sample.bytes_acked);
        self.received_bytes += since(|sample| sample.bytes_received);
        self.sent_segments += since(|sample| sample.data_segments_out);
        self.retransmitted_segments += since(|sample| sample.sent_again);
        self.timeouts += since(|sample| sample.timeouts);
        self.spurious_segments += since(|sample| sample.needless);
        self.reordering += since(|sample| sample.overtaken);
        let has_moved = since(|sample| sample.bytes_acked) > 0;
        if let Some(rtt_s) = row.rtt.smoothed_ms.filter(|_| has_moved).map(|ms| ms / 1e3) {
            self.rtt_counts[RTT_BOUNDS_S.partition_point(|bound| *bound < rtt_s)] += 1;
            self.rtt_sum_s += rtt_s;
        }
    }
}
