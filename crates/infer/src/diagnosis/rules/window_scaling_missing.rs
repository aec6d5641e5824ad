//! A handshake without window scaling.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule};
use crate::diagnosis::rules::receive_window;
use crate::diagnosis::words;
use model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::WindowScalingMissing, explain: EXPLAIN, judge };

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    if !receive_window::lacks_scaling(facts) {
        return None;
    }
    let mut judged = receive_window::judge_window(facts)?;
    judged.claim = format!(
        "The handshake left window scaling out, so the window cannot pass 65,535 bytes; it was full for {} of the time, which over a round trip of {} allows {}.",
        words::percent(judged.share),
        words::time(facts.rtt_min_s),
        words::rate(65_535.0 / facts.rtt_min_s.max(1e-6)),
    );
    Some(judged)
}

const EXPLAIN: &str = "\
window-scaling-missing

What it means
  One side's SYN had no window scale option, so no window can pass 65,535 bytes, whatever the buffers are.

Why it matters
  At 100 ms that is 5 Mb/s. The option is lost to net.ipv4.tcp_window_scaling=0, to a small SO_RCVBUF set before connecting on
  some systems, or to a firewall or load balancer that strips or rewrites SYN options.

Evidence
  The SYN or SYN-ACK without the option, a window that came to half of 65,535 bytes at least, and the share of the data phase in which
  it was full.

How to confirm
  Capture at both ends: an option present where it left and absent where it arrives was stripped on the way.

References
  RFC 7323 section 2; Linux net.ipv4.tcp_window_scaling.
";
