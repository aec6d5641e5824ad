//! How data moved, in words.

use crate::figures::{count, counted, data, milliseconds, percent, rate};
use thalweg_model::{
    BufferState, Bursts, CongestionFamily, Delivery, FamilyName, Flow, InitialWindow, LossClass, LossFacts,
    ReceiveWindow, Reordering, RoundTrips, RttSource, SharedPath, SlowStart, SlowStartExit,
};

/// What there is to tell, in order.
pub(super) fn lines(flow: &Flow) -> Vec<(&'static str, String)> {
    let facts = &flow.facts;
    let mut lines = Vec::new();
    lines.extend(facts.rtt.as_deref().map(|rtt| ("round trips", round_trips(rtt, flow.rtt_min_ms))));
    lines.extend(facts.initial_window.as_ref().map(|first| ("first window", initial_window(first))));
    lines.extend(facts.slow_start.as_ref().map(|start| ("slow start", slow_start(start))));
    if facts.flight_max_bytes > 0 {
        lines.push(("flight", format!("at most {}", data(facts.flight_max_bytes as f64))));
    }
    lines.extend(facts.receive_window.as_deref().map(|window| ("window", receive_window(window))));
    lines.extend(facts.delivery.as_ref().map(|delivery| ("delivery", self::delivery(delivery))));
    lines.extend(facts.shared_path.as_deref().map(|shared| ("shared path", shared_path(shared))));
    lines.extend(facts.congestion_control.as_ref().map(|family| ("control", self::family(family))));
    lines.extend(facts.losses.as_deref().map(|losses| ("losses", self::losses(losses))));
    lines.extend(facts.bursts.as_deref().map(|bursts| ("bursts", self::bursts(bursts))));
    lines.extend(facts.reordering.as_deref().map(|found| ("reordering", reordering(found))));
    lines.extend(facts.idle_restarts.as_deref().map(|idle| {
        let (pauses, restarts) = (count(idle.pauses as f64), count(idle.restarts as f64));
        ("pauses", format!("{pauses} of 200 ms and more; slow start again after {restarts}"))
    }));
    lines.extend(facts.delayed_acks.as_ref().map(|held| {
        let waits = count(held.waits as f64);
        ("delayed ACKs", format!("{waits} small segments waited for one, {} in all", milliseconds(held.waited_ms)))
    }));
    lines.extend(facts.path_mtu.as_ref().map(|found| {
        let (passed, vanished) = (count(found.passed_bytes as f64), count(found.vanished_bytes as f64));
        ("path MTU", format!("segments of {passed} bytes of payload pass, those of {vanished} vanish"))
    }));
    lines
}

fn round_trips(rtt: &RoundTrips, min: Option<f64>) -> String {
    let source = match rtt.source {
        RttSource::Acknowledgements => "acknowledgements",
        RttSource::Timestamps => "timestamps",
        RttSource::Handshake => "the handshake",
    };
    let [p50, p90, p99, max] = [rtt.p50_ms, rtt.p90_ms, rtt.p99_ms, rtt.max_ms].map(milliseconds);
    let samples = count(rtt.samples as f64);
    let mut text = format!("p50 {p50}, p90 {p90}, p99 {p99}, at most {max} ({samples} by {source})");
    if let Some(min) = min {
        text = format!("at best {}, {text}", milliseconds(min));
        if let Some(loaded) = rtt.loaded_ms {
            text.push_str(&format!("; under load {} above the best", milliseconds((loaded - min).max(0.0))));
        }
        if let Some(wait) = rtt.ack_wait_ms {
            text.push_str(&format!("; acknowledgements wait {} of it", milliseconds(wait)));
        }
    }
    text
}

fn shared_path(shared: &SharedPath) -> String {
    let s = if shared.others == 1 { "" } else { "s" };
    format!(
        "with {} other connection{s} of the same two hosts: together {} of {}, all of it for {} of the time",
        count(shared.others as f64),
        rate(shared.together_bps),
        rate(shared.path_rate_bps),
        percent(shared.full_share)
    )
}

fn initial_window(first: &InitialWindow) -> String {
    let bound = if first.exact { "" } else { "at least " };
    format!("{bound}{} segments ({})", count(first.segments.round()), data(first.bytes as f64))
}

fn slow_start(start: &SlowStart) -> String {
    let why = match start.exit {
        None => "the data ended before it",
        Some(SlowStartExit::Loss) => "ended by a loss",
        Some(SlowStartExit::EcnEcho) => "ended by an ECN echo",
        Some(SlowStartExit::GrowthStopped) => "the flight stopped growing, with data pending",
        Some(SlowStartExit::ReceiveWindow) => "ended by the receiver's window",
        Some(SlowStartExit::Application) => "ended by the program, which had nothing to send",
    };
    let at = start.exit_s.map(|at| format!(", at {at:.3} s")).unwrap_or_default();
    let then = if start.crept { "; the window crept up from there" } else { "" };
    format!("{}; {why}{at}{then}", counted(start.rounds, "round trip"))
}

fn receive_window(window: &ReceiveWindow) -> String {
    let state = match window.state {
        None => String::new(),
        Some(BufferState::Growing) => " · still growing".to_owned(),
        Some(BufferState::Capped) => " · capped: tuned up to its limit, and full".to_owned(),
        Some(BufferState::ReaderSlow) => " · the reader is slow".to_owned(),
        Some(BufferState::Fixed) => " · fixed, and full".to_owned(),
    };
    let bound = match (window.buffer_least_bytes, window.buffer_below_bytes) {
        (Some(least), Some(below)) => {
            format!(" · its scale allows a buffer of {} to {}", data(least as f64), data(below as f64))
        }
        (Some(least), None) => format!(" · its scale allows a buffer of {} and more", data(least as f64)),
        _ => String::new(),
    };
    format!("{} at first, {} at most{state}{bound}", data(window.first_bytes as f64), data(window.max_bytes as f64))
}

fn delivery(delivery: &Delivery) -> String {
    let mut parts = Vec::new();
    parts.extend(delivery.rate_bps.map(|bps| format!("up to {} over a round trip", rate(bps))));
    parts.extend(delivery.capacity_bps.map(|bps| format!("the bottleneck lets {} through", rate(bps))));
    parts.extend(delivery.bdp_bytes.map(|bytes| format!("the path holds {}", data(bytes))));
    parts.join(" · ")
}

fn family(family: &CongestionFamily) -> String {
    let name = match family.name {
        FamilyName::Unknown => return format!("unknown after {} of loss", counted(family.episodes, "episode")),
        FamilyName::Reno => "Reno",
        FamilyName::Cubic => "CUBIC",
        FamilyName::Bbr => "BBR",
    };
    let mut parts = vec![format!("likely {name} ({})", percent(family.confidence))];
    parts.extend(family.window_after.map(|part| {
        format!("{part:.2} of the window is left after a loss, median of {}", count(family.episodes as f64))
    }));
    if family.window_after.is_none() && family.episodes > 0 {
        parts.push(format!(
            "as much in flight after a loss as before, in most of {}",
            counted(family.episodes, "episode")
        ));
    }
    if family.probes > 0 {
        parts.push(format!("{} probes of the round trip", count(family.probes as f64)));
    }
    parts.join(" · ")
}

fn losses(losses: &LossFacts) -> String {
    let by = match losses.class {
        None => "",
        Some(LossClass::Policer) => " by a policer",
        Some(LossClass::Queue) => " by a full queue",
        Some(LossClass::Random) => " by chance",
        Some(LossClass::Mixed) => " by chance and by a full queue",
    };
    let [p50, p80, p90, p99, max] =
        [losses.p50_ms, losses.p80_ms, losses.p90_ms, losses.p99_ms, losses.max_ms].map(milliseconds);
    let (packets, episodes, most) = (losses.packets, losses.episodes, losses.packets_max);
    let (packets, episodes, most) = (counted(packets, "packet"), counted(episodes, "episode"), count(most as f64));
    let tails =
        if losses.tails > 0 { format!(" · {} at the tail", count(losses.tails as f64)) } else { String::new() };
    format!(
        "{packets}{by} in {episodes}, at most {most} in one · lengths p50 {p50}, p80 {p80}, p90 {p90}, p99 {p99}, at most {max}{tails}"
    )
}

fn bursts(bursts: &Bursts) -> String {
    let mut text = format!(
        "at most {} in 1 ms ({}), {} in 0.1 ms ({})",
        data(bursts.peak_1ms_bytes as f64),
        rate(bursts.peak_1ms_bps),
        data(bursts.peak_100us_bytes as f64),
        rate(bursts.peak_100us_bps),
    );
    if let Some(losses) = &bursts.losses {
        text.push_str(&format!(
            " · {} of {} losses came after as much in 1 ms as the top tenth of packets ({} of all packets did)",
            percent(losses.after_largest),
            count(losses.joined as f64),
            percent(losses.by_chance),
        ));
    }
    text
}

fn reordering(found: &Reordering) -> String {
    let late = found.late_ms_max.map(|late| format!(", by {}", milliseconds(late))).unwrap_or_default();
    let (packets, segments) = (count(found.packets as f64), count(found.segments_max as f64));
    format!("{packets} overtaken, by {segments} segments at most{late}")
}
