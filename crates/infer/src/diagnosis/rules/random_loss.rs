//! Random loss keeps the congestion window down.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, fact};
use crate::diagnosis::loss_cost::LossCost;
use crate::diagnosis::rules::reordering;
use crate::diagnosis::words;
use model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::RandomLoss, explain: EXPLAIN, judge };

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let (random, congested) = (facts.random_losses, facts.congested_losses);
    if facts.bucket.is_some() || reordering::is_it(facts) {
        return None;
    }
    if random + congested == 0 || congested > random {
        return None;
    }
    let cost = LossCost::of(facts);
    let claim = format!(
        "Losses without a queue before them ({} of the packets) hold the congestion window down for {} of the time.",
        words::percent(cost.rate),
        words::percent(cost.share),
    );
    let round_trip = cost.rtt_before_s.map(|before| {
        fact(format!(
            "before the losses the round trip is {} on average; its minimum is {}",
            words::time(before),
            words::time(facts.rtt_min_s)
        ))
    });
    let evidence = [Some(cost.sent_again), round_trip, Some(cost.behind_a_queue)].into_iter().flatten().collect();
    Some(Judged { share: cost.share, weight: cost.gain, gain: cost.known_gain, claim, evidence, depends_on: None })
}

const EXPLAIN: &str = "\
random-loss

What it means
  Packets were lost although no queue had built up before them: radio, a bad cable, an overrun of some box's ring, or a
  policer. Loss-based congestion control takes each for congestion and reduces its window: Reno to half, CUBIC to 0.7.

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
