//! The sender's socket buffer holds less than the path.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::Judged;
use crate::diagnosis::rules::pacing_rate;
use crate::observe::sndbuf_wakeups::SndbufWakeups;
use thalweg_model::{Cause, FullSendBuffer, SendBufferSeen, Vantage, Wakeups};

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    [full(facts), emptied(facts)].into_iter().flatten().max_by(|a, b| a.share.total_cmp(&b.share))
}

/// A buffer that is kept full.
fn full(facts: &Facts<'_>) -> Option<Judged> {
    let share = facts.limits().send_buffer;
    if share <= 0.0 || facts.was_the_windows(share) || facts.clamp.is_some() || pacing_rate::paced(facts).is_some() {
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

/// A buffer that is written again once it is empty, as some systems have where the program sets its size. Its pauses look like a program's.
pub(super) fn emptied(facts: &Facts<'_>) -> Option<Judged> {
    let share = facts.limits().application;
    let write_bytes = facts.emptied.filter(|_| share > 0.0)?;
    let waits = &facts.sender.observers.stop_and_wait;
    let rtt_min_s = facts.sender.rtt.least().unwrap_or(0) as f64 / 1e9;
    let writes = waits.stops.count + 1;
    let ack_delay_s = waits.ack_delay();
    let seen = SendBufferSeen::Emptied { write_bytes, writes, rtt_min_s, ack_delay_s };
    let at_sender = facts.vantage == Vantage::Sender;
    let cause = Cause::SendBuffer(FullSendBuffer { seen, wakeups: None, at_sender });
    let gain = facts.shows_capacity().then(|| facts.gain_without(facts.split.application, 0.0));
    let judged = Judged::new(cause, share, facts.weight_of_pauses(), gain);
    Some(Judged { in_bursts: true, ..judged })
}
