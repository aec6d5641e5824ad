//! Random loss keeps the congestion window down.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, fact};
use crate::diagnosis::loss_cost::LossCost;
use crate::diagnosis::rules::reordering;
use crate::diagnosis::words;
use thalweg_model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::RandomLoss, judge };

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
