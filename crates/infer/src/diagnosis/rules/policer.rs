//! A policer discards what is over its rate.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, fact};
use crate::diagnosis::gain::weight_of_time;
use crate::diagnosis::loss_cost::LossCost;
use crate::diagnosis::words;
use thalweg_model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::Policer, judge };

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let losses = &facts.sender.losses;
    // Where timers repair most of it the bucket is fitted to their silences.
    let silent = facts.limits().timeout > 0.5 && losses.timer * 2 > losses.total;
    let bucket = facts.bucket.filter(|_| !silent)?;
    let cost = LossCost::of(facts);
    let limits = facts.limits();
    // What the bucket lets through is the plateau: its time is the policer's, too, as is the silence after a burst was discarded whole.
    let share = (limits.loss_recovery + limits.congestion_window + limits.path_rate + limits.timeout).min(1.0);
    let claim = format!(
        "A policer drops what is over {} and queues nothing; it lets {} through at once. It holds the connection for {} of the time.",
        words::rate(bucket.rate),
        words::size(bucket.burst),
        words::percent(share),
    );
    // What a sender has that stays below the rate: its losses, and what it took to repair them, are gone.
    let split = &facts.split;
    let policed = split.loss_recovery.and(split.congestion_window).and(split.path_rate).and(split.timeout);
    let gain = facts.gain_without(policed, 0.0);
    let evidence = vec![
        cost.sent_again,
        fact(format!(
            "a token bucket of that rate and size is empty at {} of the {} losses, round trips weighed alike, and holds enough for {} of the packets that passed",
            words::percent(bucket.explained.0),
            bucket.losses,
            words::percent(bucket.explained.1),
        )),
        fact(format!(
            "packets that met an empty bucket were late by {} of what a queue in its place would have cost them",
            words::percent(bucket.delayed.max(0.0))
        )),
    ];
    Some(Judged { share, weight: weight_of_time(share), gain: Some(gain), claim, evidence, depends_on: None })
}
