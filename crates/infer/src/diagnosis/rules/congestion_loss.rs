//! A full queue drops packets.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, fact};
use crate::diagnosis::loss_cost::LossCost;
use crate::diagnosis::rules::reordering;
use crate::diagnosis::words;
use model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::CongestionLoss, explain: EXPLAIN, judge };

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let (random, congested) = (facts.random_losses, facts.congested_losses);
    if facts.bucket.is_some() || reordering::is_it(facts) {
        return None;
    }
    if random + congested == 0 {
        return marked(facts);
    }
    if congested <= random {
        return None;
    }
    let cost = LossCost::of(facts);
    let claim = format!(
        "A full queue drops packets ({} of them); repairing that and growing again takes {} of the time.",
        words::percent(cost.rate),
        words::percent(cost.share),
    );
    let round_trip = facts.loss_peak_s.or(cost.rtt_before_s).map(|before| {
        fact(format!(
            "just before the losses the round trip reaches {} on average; its minimum is {}",
            words::time(before),
            words::time(facts.rtt_min_s)
        ))
    });
    let evidence = [Some(cost.sent_again), round_trip, Some(cost.behind_a_queue)].into_iter().flatten().collect();
    Some(Judged { share: cost.share, weight: cost.gain, gain: cost.known_gain, claim, evidence, depends_on: None })
}

/// The same where the queue marks what it would drop.
fn marked(facts: &Facts<'_>) -> Option<Judged> {
    let ecn = facts.marks()?;
    let share = facts.limits().congestion_window;
    if share <= 0.0 {
        return None;
    }
    let gain = facts.gain_without(facts.split.congestion_window, 0.0);
    let claim = format!(
        "A queue marks packets instead of dropping them (ECN): the congestion window was cut {}, and growing again takes {} of the time.",
        words::count(ecn.reductions, "time"),
        words::percent(share),
    );
    let evidence = vec![fact(format!(
        "{} with ECE, and {} of the sender's with CWR",
        words::count(ecn.echoes, "packet"),
        ecn.reductions
    ))];
    Some(Judged { share, weight: gain, gain: facts.capacity.map(|_| gain), claim, evidence, depends_on: None })
}

const EXPLAIN: &str = "\
congestion-loss

What it means
  Packets were lost while the round-trip time was raised: a queue on the path was full and dropped what did not fit. Or nothing was
  lost, and a queue marked packets of a connection that has ECN: its window is cut all the same.

Why it matters
  The flow has its share of the bottleneck. What is lost on top is the time after each loss when the window is below what the
  path holds, which happens when the queue is small against rate times round-trip time.

Evidence
  Retransmissions with the round-trip time just before each at the largest it ever is, or nearly, and mostly well below that; and
  delivery at the plateau at that moment, or a good part of the window lost at once, as when it doubles over a short queue. Of
  marks, the sender's packets that say it has cut its window (CWR).

How to confirm
  Watch the bottleneck's queue counters; a deeper queue or one with AQM changes the losses, not the mean rate.

References
  RFC 5681; RFC 3168 (ECN); RFC 7567 (AQM); Appenzeller et al., Sizing router buffers, SIGCOMM 2004.
";
