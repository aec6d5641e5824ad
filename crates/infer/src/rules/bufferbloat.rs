//! The queue in front of the bottleneck is far longer than the path needs.

use super::{Judged, Rule, fact};
use crate::facts::Facts;
use crate::words;
use model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::Bufferbloat, explain: EXPLAIN, judge };

/// What waits on average, in round trips without a queue. One is all that a window halved by a loss can use (Appenzeller et al., Sizing
/// router buffers, SIGCOMM 2004), so a queue of one and a half, kept full, has more than half of a round trip to spare.
const TOO_LONG: f64 = 1.6;
/// And in seconds: what people notice in a call is from 150 ms on (ITU-T G.114), of which this leaves little.
const NOTICED_S: f64 = 0.08;

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let waits = facts.rtt_mean_s - facts.rtt_min_s;
    let limits = facts.limits();
    if waits < NOTICED_S || waits < TOO_LONG * facts.rtt_min_s || limits.path_rate < 0.3 {
        return None;
    }
    let claim = format!(
        "The queue in front of the bottleneck holds packets for {} on average, {:.1} round trips' worth: the line is full either way, and everything else that passes it waits as long.",
        words::time(waits),
        waits / facts.rtt_min_s.max(1e-6),
    );
    let evidence = vec![fact(format!(
        "the round trip is {} on average, {} at best",
        words::time(facts.rtt_mean_s),
        words::time(facts.rtt_min_s)
    ))];
    // This connection would be no faster with a shorter queue.
    Some(Judged { share: limits.path_rate, weight: 1.0, gain: None, claim, evidence, depends_on: Some(Code::PathRate) })
}

const EXPLAIN: &str = "\
bufferbloat

What it means
  The connection fills its bottleneck, and the queue there holds far more than keeps the line busy: the round trip is several times what it
  is without load.

Why it matters
  This connection gains nothing from it, and everything beside it loses: calls, games, the first packets of a page wait behind it.

Evidence
  The mean of the round trips against the least of them, while the path's rate is used up.

How to confirm
  ping the other side with the transfer and without. Pace the sender a little below the path's rate, or use BBR: the round trip falls and
  the rate stays.

References
  RFC 7567, 8289 (CoDel), 8290 (FQ-CoDel); Gettys, Nichols, Bufferbloat, ACM Queue 2011.
";
