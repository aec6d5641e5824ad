//! The sender's socket buffer holds less than the path.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::Judged;
use crate::observe::sndbuf_wakeups::SndbufWakeups;
use thalweg_model::{Cause, FullSendBuffer, SendBufferSeen, Vantage, Wakeups};

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let share = facts.limits().send_buffer;
    if share <= 0.0 || facts.clamp.is_some() {
        return None;
    }
    let (weight, gain) = facts.weigh_bound(facts.split.send_buffer);
    let seen = match facts.wakes.filter(|wakes| wakes.full().is_none()) {
        Some(wakes) => {
            SendBufferSeen::Level { level_bytes: wakes.level(), flight_max_bytes: facts.sender.totals.flight_max }
        }
        None => SendBufferSeen::Flight {
            flight_bytes: facts.wakes.and_then(SndbufWakeups::full).unwrap_or(facts.split.buffered_flight),
            rtt_min_s: facts.rtt_min_s,
            window_max_bytes: facts.sender.window.max,
        },
    };
    let wakeups = facts.wakes.map(|wakes| Wakeups {
        count: wakes.woken,
        seconds: wakes.time as f64 / 1e9,
        level_bytes: wakes.level(),
        buffer_bytes: wakes.buffer(),
    });
    let cause = FullSendBuffer { seen, wakeups, at_sender: facts.vantage == Vantage::Sender };
    Some(Judged::new(Cause::SendBuffer(cause), share, weight, gain))
}
