//! The congestion window stands at a fixed size.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::Judged;
use crate::diagnosis::rules::pacing_rate;
use thalweg_model::{Cause, Clamp, Vantage};

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let share = facts.limits().send_buffer;
    if facts.was_the_windows(share) || pacing_rate::paced(facts).is_some() {
        return None;
    }
    let window_bytes = facts.clamp.filter(|_| share > 0.0)?;
    let clamp = Clamp {
        window_bytes,
        segment_bytes: facts.sender.space.mss,
        rtt_min_s: facts.rtt_min_s,
        window_max_bytes: facts.sender.window.max,
        at_sender: facts.vantage == Vantage::Sender,
    };
    let (weight, gain) = facts.weigh_bound(facts.split.send_buffer);
    Some(Judged::new(Cause::CongestionWindowClamp(clamp), share, weight, gain))
}
