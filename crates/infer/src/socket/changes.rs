//! What became smaller between samples: windows after pauses, segments after timeouts.

use super::Sample;
use super::partition::CA_LOSS;

/// Pauses after which the window restarted, and the segments sent after each, at the least, for that to cost round trips: twice the ten that it
/// begins with (RFC 6928).
const MIN_RESTARTS: usize = 2;
const MIN_BURST_SEGMENTS: u64 = 20;

/// How often the window restarted after pauses (RFC 5681 §4.1): it is smaller than before, and nothing was lost. `None` if that is rare.
pub(super) fn restarts(samples: &[Sample]) -> Option<u64> {
    let (first, last) = (&samples[0], &samples[samples.len() - 1]);
    // Nothing was under way: it is no congestion control that takes its own window back (BBR, each ten seconds).
    let anew = |pair: &&[Sample]| {
        let is_less = pair[1].window < pair[0].window && pair[0].in_flight == 0;
        is_less && pair[1].sent_again == pair[0].sent_again && pair[1].state == 0
    };
    let times = samples.windows(2).filter(anew).count();
    let bytes = last.bytes_acked.saturating_sub(first.bytes_acked);
    (times >= MIN_RESTARTS && bytes / times as u64 >= MIN_BURST_SEGMENTS * last.segment).then_some(times as u64)
}

/// The segment sizes before and after timeouts, where they became smaller: `tcp_mtu_probing` found that larger ones vanish.
pub(super) fn smaller_segments(samples: &[Sample]) -> Option<(u64, u64)> {
    let timed_out = samples.iter().position(|sample| sample.state == CA_LOSS)?;
    let before = samples[timed_out].segment;
    let after = samples[timed_out..].iter().map(|sample| sample.segment).min().filter(|&after| after < before)?;
    Some((before, after))
}
