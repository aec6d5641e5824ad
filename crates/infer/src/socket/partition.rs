//! Where the time between samples went, and what moved in it.

use super::Sample;
use crate::estimate::partition::{LimitShare, Partition};

/// A round trip this many times the least one tells of a queue, if it is above that by more than round trips vary by: where delays vary, the
/// least of thousands is this many mean deviations below their mean. `what_a_full_path_shows_is_its_rate_and_bounds_what_can_be_gained` holds it.
const MIN_QUEUED_RTT_RATIO: f64 = 1.25;
/// The number of these deviations. `a_queue_lengthens_round_trips_by_more_than_six_deviations` holds it.
const MIN_QUEUED_DEVIATIONS: f64 = 6.0;
/// `TCP_CA_Recovery` and `TCP_CA_Loss`, include/uapi/linux/tcp.h.
pub(super) const CA_RECOVERY: u64 = 3;
pub(super) const CA_LOSS: u64 = 4;
/// Part of the congestion window from which on it is full: what is gathered into one burst may still wait (`tcp_tso_should_defer`).
const MIN_FULL_WINDOW_PART: f64 = 0.9;
/// Part of the send buffer from which on it is full: a program that waits is let write again when a third is free (`sk_stream_is_writeable`).
const MIN_FULL_BUFFER_PART: f64 = 0.6;
/// Slow start grows by more than this from one sample to the next. `a_window_that_grows_by_a_twentieth_is_in_slow_start` holds it.
const MIN_GROWTH: f64 = 1.05;
/// Segments of the smallest burst. Source: `tcp_min_tso_segs`, net.ipv4.tcp_min_tso_segs, 2.
const MIN_BURST_SEGMENTS: u64 = 2;
/// Nothing is sent for this many round trips and so long, though something is under way: longer than acknowledgements are delayed by
/// (`TCP_DELACK_MIN`).
const MIN_STALL_ROUND_TRIPS: f64 = 1.5;
const MIN_STALL_S: f64 = 0.045;
/// Part of its time in which a path with a queue shows its rate. `what_a_full_path_shows_is_its_rate_and_bounds_what_can_be_gained` holds it.
const MIN_QUEUED_SHARE: f64 = 0.05;
/// The path's rate is what it delivers at in one interval of ten: acknowledgements come in bunches. `each_limit_is_told_and_shares_add_up` holds it.
const PATH_RATE_QUANTILE: f64 = 0.9;

/// Time and bytes between the first sample and the last, by what held the sender.
#[derive(Debug, Default)]
pub(super) struct Spending {
    pub(super) split: Partition,
    /// What intervals delivered at, in bytes per second: those in which the path had a queue, and all.
    queued: Vec<f64>,
    rates: Vec<f64>,
    fastest: f64,
}

impl Spending {
    /// Divides the time between samples.
    pub(super) fn of(samples: &[Sample]) -> Self {
        let mut all = Self::default();
        let least_us = least_us(samples);
        for pair in samples.windows(2) {
            let (before, now) = (&pair[0], &pair[1]);
            let step = (now.at_s - before.at_s).max(0.0);
            let share = |to: u64, from: u64| (to.saturating_sub(from) as f64 / 1e6).clamp(0.0, step);
            let busy = share(now.busy_us, before.busy_us);
            let window = share(now.window_limited_us, before.window_limited_us).min(busy);
            let buffer = share(now.buffer_limited_us, before.buffer_limited_us).min(busy - window);
            let bytes = now.bytes_acked.saturating_sub(before.bytes_acked) as f64;
            let part =
                |seconds: f64| LimitShare { seconds, bytes: if busy > 0.0 { bytes * seconds / busy } else { 0.0 } };
            let add = |to: &mut LimitShare, seconds: f64| *to = to.and(part(seconds));
            add(&mut all.split.receive_window, window);
            add(&mut all.split.send_buffer, buffer);
            all.split.application.seconds += step - busy;
            let rest = busy - window - buffer;
            let stalled = waits(before, now).min(rest);
            add(&mut all.split.timeout, stalled);
            let (held, is_network) = holder(&mut all.split, before, now, least_us);
            add(held, rest - stalled);
            if step > 0.0 && bytes > 0.0 {
                all.rates.push(bytes / step);
                if is_network && window + buffer == 0.0 && is_queued(before, least_us) && is_queued(now, least_us) {
                    all.queued.push(bytes / step);
                }
            }
            all.fastest = all.fastest.max(now.delivery_rate as f64);
        }
        all
    }

    /// All that was delivered, in bytes per second.
    pub(super) fn rate(&self) -> f64 {
        self.split.bytes() / self.split.seconds().max(f64::MIN_POSITIVE)
    }

    /// The rate of the path, in bytes per second, where it had a queue for long enough to show it.
    pub(super) fn capacity(&self) -> Option<f64> {
        let shown = !self.queued.is_empty() && self.queued.len() as f64 >= MIN_QUEUED_SHARE * self.rates.len() as f64;
        // Less than all of it on average is no path's rate.
        shown.then(|| high(&self.queued)).filter(|&rate| rate >= self.rate())
    }

    /// The rate that the path was seen to deliver at, at least, in bytes per second.
    pub(super) fn seen(&self) -> f64 {
        self.capacity().unwrap_or_else(|| if self.rates.is_empty() { 0.0 } else { high(&self.rates).max(self.fastest) })
    }
}

/// What held the sender between two samples, in the time that the kernel does not say is another's; and whether that was the network, not
/// this host.
fn holder<'a>(split: &'a mut Partition, before: &Sample, now: &Sample, least_us: u64) -> (&'a mut LimitShare, bool) {
    // Less than a segment waits for more, or for an acknowledgement (RFC 9293 §3.7.4).
    let has_more = now.unsent >= now.segment.max(1);
    let is_full = now.in_flight as f64 >= MIN_FULL_WINDOW_PART * now.window as f64;
    let is_buffered = now.buffer > 0 && now.buffered as f64 >= MIN_FULL_BUFFER_PART * now.buffer as f64;
    match now.state {
        CA_LOSS => (&mut split.timeout, true),
        // What could go by the congestion window and does not by the receiver's; paced senders (BBR) have the kernel count little of it
        // (`tcp_chrono_start` in `tcp_write_xmit`, net/ipv4/tcp_output.c, comes after `tcp_pacing_check`).
        _ if !is_full && has_more && fills_window(now) => (&mut split.receive_window, false),
        // What could go and does not is paced, by what the path was found to deliver (BBR); so it is while losses are repaired.
        _ if !is_full && has_more && now.in_flight > 0 => (&mut split.path_rate, true),
        CA_RECOVERY => (&mut split.loss_recovery, true),
        _ if !is_full && is_buffered => (&mut split.send_buffer, false),
        _ if !is_full => (&mut split.application, false),
        _ if now.window < now.threshold && now.window as f64 > MIN_GROWTH * before.window as f64 => {
            (&mut split.slow_start, true)
        }
        _ if is_queued(now, least_us) => (&mut split.path_rate, true),
        _ => (&mut split.congestion_window, true),
    }
}

/// Whether the receiver's window was full between two samples: the kernel says so, or it was at the second one.
pub(super) fn is_held_by_window(before: &Sample, now: &Sample) -> bool {
    now.window_limited_us > before.window_limited_us || fills_window(now)
}

/// Whether the receiver's window has no room for another two segments, which is what the kernel gathers at least where it paces
/// (`tcp_min_tso_segs`).
fn fills_window(sample: &Sample) -> bool {
    sample.peer_window > 0 && (sample.in_flight + MIN_BURST_SEGMENTS) * sample.segment > sample.peer_window
}

/// For how much of the time between two samples it waited for a timer, in seconds: something is under way, and for longer than acknowledgements take
/// nothing was sent.
fn waits(before: &Sample, now: &Sample) -> f64 {
    let step = (now.at_s - before.at_s).max(0.0);
    let silent_s = |sample: &Sample| sample.silent_ms as f64 / 1e3;
    let is_stuck = |sample: &Sample| {
        sample.in_flight > 0 && silent_s(sample) > MIN_STALL_S + MIN_STALL_ROUND_TRIPS * sample.rtt_us as f64 / 1e6
    };
    if is_stuck(now) {
        silent_s(now).min(step)
    } else if is_stuck(before) && now.sent_again > before.sent_again {
        // Until the timer fired; what it sent, and what that brought about, is what was sent last.
        (step - silent_s(now)).max(0.0)
    } else {
        0.0
    }
}

/// The round trip of a path without a queue. What overtakes makes some shorter than any is.
fn least_us(samples: &[Sample]) -> u64 {
    let last = &samples[samples.len() - 1];
    let shortest = samples.iter().map(|sample| sample.rtt_us).filter(|&rtt_us| rtt_us > 0).min();
    if last.overtaken > samples[0].overtaken { shortest.unwrap_or(last.rtt_min_us) } else { last.rtt_min_us }
}

/// Whether packets wait before the path.
fn is_queued(sample: &Sample, least_us: u64) -> bool {
    let (rtt_us, least_us) = (sample.rtt_us as f64, least_us as f64);
    rtt_us > MIN_QUEUED_RTT_RATIO * least_us && rtt_us - least_us > MIN_QUEUED_DEVIATIONS * sample.rtt_var_us as f64
}

fn high(rates: &[f64]) -> f64 {
    let mut rates = rates.to_vec();
    rates.sort_unstable_by(f64::total_cmp);
    rates[((rates.len() - 1) as f64 * PATH_RATE_QUANTILE).round() as usize]
}
