//! A full queue drops packets.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, fact};
use crate::diagnosis::loss_cost::LossCost;
use crate::diagnosis::rules::reordering;
use crate::diagnosis::words;
use thalweg_model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::CongestionLoss, judge };

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
