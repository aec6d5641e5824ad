//! Random loss keeps the congestion window down.

use super::{Judged, Rule, fact, seen};
use crate::facts::Facts;
use crate::recovery::Kind;
use crate::words;
use model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::RandomLoss, explain: EXPLAIN, judge };

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let (random, congested) = (facts.random_losses, facts.congested_losses);
    if random + congested == 0 || congested > random {
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
        "Losses without a queue before them ({} of the packets) hold the congestion window down for {} of the time.",
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
    let mut evidence = vec![
        seen(
            format!("{} packets were sent again in {} episodes; the first ones", losses.total, losses.episodes.len()),
            &first,
        ),
        fact(format!(
            "before the losses the round trip is {} on average; its minimum is {}",
            words::time(mean / 1e9),
            words::time(facts.rtt_min_s)
        )),
        fact(format!("{congested} of {} episodes came behind a standing queue", random + congested)),
    ];
    // More than half proven needless: reordering, which the sender took for loss (RFC 8985 §1).
    if losses.spurious * 2 > losses.total {
        evidence.push(fact(format!(
            "{} of the {} packets sent again were not needed: the path reorders packets, and the sender took that for loss",
            losses.spurious, losses.total
        )));
    }
    let known = facts.capacity.is_some();
    Some(Judged { share, weight: gain, gain: known.then_some(gain), claim, evidence, depends_on: None })
}

const EXPLAIN: &str = "\
random-loss

What it means
  Packets were lost although no queue had built up before them: radio, a bad cable, an overrun of some box's ring, or a
  policer. Loss-based congestion control takes each for congestion and halves its window.

Why it matters
  On a long path a cubic or reno sender needs thousands of round trips without loss to fill the path, so even 0.01 % is far too
  much. Congestion control that models the path's rate (BBR) is not held down by it.

Evidence
  Retransmissions with the round-trip time before each at its floor, and the share of the data phase in recovery and in the
  growth after it.

How to confirm
  Repeat with tcp_congestion_control=bbr; ethtool -S and interface counters show where packets vanish.

References
  Mathis et al., CCR 1997 (rate over root of loss); RFC 9438 section 5 (CUBIC); Cardwell et al., BBR, ACM Queue 2016.
";
