//! A full queue drops packets.

use super::{Judged, Rule, fact, seen};
use crate::facts::Facts;
use crate::recovery::Kind;
use crate::words;
use model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::CongestionLoss, explain: EXPLAIN, judge };

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let (random, congested) = (facts.random_losses, facts.congested_losses);
    if congested == 0 || congested <= random {
        return None;
    }
    let limits = facts.limits();
    // What followed a timer's firing is the timer's.
    let part = 1.0 - facts.timer_part();
    let share = part * (limits.loss_recovery + limits.congestion_window);
    let spent = facts.split.loss_recovery.and(facts.split.congestion_window).part(part);
    let gain = facts.gain_without(spent, 0.0);
    let losses = &facts.sender.losses;
    let rate = losses.total as f64 / facts.sender.data_packets.max(1) as f64;
    let claim = format!(
        "A full queue drops packets ({} of them); repairing that and growing again takes {} of the time.",
        words::percent(rate),
        words::percent(share),
    );
    let first: Vec<(u64, u64)> = losses
        .episodes
        .iter()
        .filter(|loss| loss.kind == Kind::Fast)
        .take(3)
        .map(|loss| (loss.number, loss.at))
        .collect();
    let mean = facts.sender.losses.episodes.iter().map(|loss| loss.rtt_before).sum::<f64>()
        / losses.episodes.len().max(1) as f64;
    let evidence = vec![
        seen(
            format!("{} packets were sent again in {} episodes; the first ones", losses.total, losses.episodes.len()),
            &first,
        ),
        fact(format!(
            "just before the losses the round trip reaches {} on average; its minimum is {}",
            words::time(facts.loss_peak_s.unwrap_or(mean / 1e9)),
            words::time(facts.rtt_min_s)
        )),
        fact(format!("{congested} of {} episodes came behind a standing queue", random + congested)),
    ];
    let known = facts.capacity.is_some();
    Some(Judged { share, weight: gain, gain: known.then_some(gain), claim, evidence, depends_on: None })
}

const EXPLAIN: &str = "\
congestion-loss

What it means
  Packets were lost while the round-trip time was raised: a queue on the path was full and dropped what did not fit.

Why it matters
  The flow has its share of the bottleneck. What is lost on top is the time after each loss when the window is below what the
  path holds, which happens when the queue is small against rate times round-trip time.

Evidence
  Retransmissions with the round-trip time just before each at the largest it ever is, or nearly, and mostly well below that; and
  delivery at the plateau at that moment, or a good part of the window lost at once, as when it doubles over a short queue.

How to confirm
  Watch the bottleneck's queue counters; a deeper queue or one with AQM changes the losses, not the mean rate.

References
  RFC 5681; RFC 7567 (AQM); Appenzeller et al., Sizing router buffers, SIGCOMM 2004.
";
