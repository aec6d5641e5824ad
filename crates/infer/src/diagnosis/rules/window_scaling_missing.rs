//! A handshake without window scaling.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule};
use crate::diagnosis::rules::receive_window;
use crate::diagnosis::words;
use thalweg_model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::WindowScalingMissing, judge };

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
