//! After each pause the congestion window begins anew.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, fact, seen};
use crate::diagnosis::words;
use model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::IdleRestart, explain: EXPLAIN, judge };

/// Bursts that must have begun anew and lost nothing: one may be chance.
const ENOUGH: u64 = 2;
/// How much faster they must be with the window kept for that to outweigh the pauses between them, which are the program's own.
const IN_BURST: f64 = 1.3;

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let restarts = &facts.sender.restarts;
    if restarts.whole < ENOUGH || restarts.whole * 2 < restarts.bursts {
        return None;
    }
    let count = restarts.whole as f64;
    let spent = restarts.time as f64 / 1e9;
    let kept = count * facts.rtt_low_s + facts.capacity.map_or(0.0, |capacity| restarts.bytes as f64 / capacity);
    let gain = spent / kept.max(1e-9);
    if gain < IN_BURST {
        return None;
    }
    let share = (spent / facts.phase_s.max(1e-9)).min(1.0);
    let claim = format!(
        "After each pause the congestion window begins anew: {} of {} bursts took {} on average, where one round trip of {} and the path's rate would do in {}.",
        restarts.whole,
        restarts.bursts,
        words::time(spent / count),
        words::time(facts.rtt_low_s),
        words::time(kept / count),
    );
    let evidence = vec![
        seen(
            "bursts that began with half of the flight there was before, or less, and grew it again".to_owned(),
            &restarts.sights,
        ),
        fact(format!("together they carried {} in {}", words::size(restarts.bytes as f64), words::time(spent))),
    ];
    Some(Judged { share, weight: facts.weight_in_bursts(gain), gain: Some(gain), claim, evidence, depends_on: None })
}

const EXPLAIN: &str = "\
idle-restart

What it means
  The connection pauses for longer than its retransmission timeout, and each burst after a pause grows its congestion window from a
  small one again. The gain is of the bursts, not of the pauses between them.

Why it matters
  Linux halves the window for each timeout of silence (net.ipv4.tcp_slow_start_after_idle). A message or a segment of video
  then takes several round trips each time, as over a new connection.

Evidence
  Bursts after at least 200 ms of silence whose first flight is half of the one before the pause, or less, and grows again
  without a loss.

How to confirm
  On the sender: sysctl net.ipv4.tcp_slow_start_after_idle; ss -ti before and after a pause shows cwnd fall. Set it to 0: bursts take
  one round trip and their time on the line.

References
  RFC 5681 section 4.1; RFC 7661; Linux tcp_cwnd_restart, tcp_slow_start_after_idle_check.
";
