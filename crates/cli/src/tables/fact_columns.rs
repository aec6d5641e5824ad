//! The facts of a connection as columns of its row; null is what the capture does not show.

use thalweg_model::Facts;
use thalweg_report::tables::{Column, Kind, Value};

type Of = for<'a> fn(&'a Facts) -> Value<'a>;

/// Name, kind, and what of the facts stands there.
const COLUMNS: [(&str, Kind, Of); 65] = {
    use Kind::{Count, Flag, Number, Text};
    [
        ("tap_duplicates", Count, |f| f.tap_duplicates.into()),
        ("missed_bytes", Count, |f| f.missed_bytes.into()),
        ("ecn_negotiated", Flag, |f| f.ecn.and_then(|ecn| ecn.negotiated).into()),
        ("ecn_capable", Count, |f| f.ecn.map(|ecn| ecn.capable).into()),
        ("ecn_marked", Count, |f| f.ecn.map(|ecn| ecn.marked).into()),
        ("ecn_echoes", Count, |f| f.ecn.map(|ecn| ecn.echoes).into()),
        ("ecn_reductions", Count, |f| f.ecn.map(|ecn| ecn.reductions).into()),
        ("fast_open_accepted", Flag, |f| f.fast_open.as_ref().and_then(|open| open.accepted).into()),
        ("multipath", Text, |f| f.multipath.map(|multipath| multipath.kind.as_str()).into()),
        ("keep_alives", Count, |f| f.keep_alives.as_ref().map(|probes| probes.client + probes.server).into()),
        ("window_probes", Count, |f| f.keep_alives.as_ref().map(|probes| probes.window_probes).into()),
        ("probes_answered", Count, |f| f.keep_alives.as_ref().map(|probes| probes.answers).into()),
        ("reordered", Count, |f| f.reordering.as_ref().map(|r| r.packets).into()),
        ("reordered_segments_max", Count, |f| f.reordering.as_ref().map(|r| r.segments_max).into()),
        ("reordered_late_ms_max", Number, |f| f.reordering.as_ref().and_then(|r| r.late_ms_max).into()),
        ("rtt_source", Text, |f| f.rtt.as_ref().map(|rtt| rtt.source.as_str()).into()),
        ("rtt_samples", Count, |f| f.rtt.as_ref().map(|rtt| rtt.samples).into()),
        ("rtt_p50_ms", Number, |f| f.rtt.as_ref().map(|rtt| rtt.p50_ms).into()),
        ("rtt_p90_ms", Number, |f| f.rtt.as_ref().map(|rtt| rtt.p90_ms).into()),
        ("rtt_p99_ms", Number, |f| f.rtt.as_ref().map(|rtt| rtt.p99_ms).into()),
        ("rtt_max_ms", Number, |f| f.rtt.as_ref().map(|rtt| rtt.max_ms).into()),
        ("rtt_loaded_ms", Number, |f| f.rtt.as_ref().and_then(|rtt| rtt.loaded_ms).into()),
        ("rtt_ack_wait_ms", Number, |f| f.rtt.as_ref().and_then(|rtt| rtt.ack_wait_ms).into()),
        ("rtt_timestamps_min_ms", Number, |f| f.rtt.as_ref().and_then(|rtt| rtt.timestamps_min_ms).into()),
        ("window_first_bytes", Count, |f| f.receive_window.as_ref().map(|w| w.first_bytes).into()),
        ("window_max_bytes", Count, |f| f.receive_window.as_ref().map(|w| w.max_bytes).into()),
        ("receive_buffer", Text, |f| {
            f.receive_window.as_ref().and_then(|w| w.state).map(|state| state.as_str()).into()
        }),
        ("receive_buffer_least_bytes", Count, |f| f.receive_window.as_ref().and_then(|w| w.buffer_least_bytes).into()),
        ("receive_buffer_below_bytes", Count, |f| f.receive_window.as_ref().and_then(|w| w.buffer_below_bytes).into()),
        ("initial_window_bytes", Count, |f| f.initial_window.map(|first| first.bytes).into()),
        ("initial_window_exact", Flag, |f| f.initial_window.map(|first| first.exact).into()),
        ("slow_start_rounds", Count, |f| f.slow_start.map(|start| start.rounds).into()),
        ("slow_start_exit", Text, |f| f.slow_start.and_then(|start| start.exit).map(|exit| exit.as_str()).into()),
        ("slow_start_exit_s", Number, |f| f.slow_start.and_then(|start| start.exit_s).into()),
        ("slow_start_crept", Flag, |f| f.slow_start.map(|start| start.crept).into()),
        ("shared_others", Count, |f| f.shared_path.as_ref().map(|shared| shared.others).into()),
        ("shared_together_bps", Number, |f| f.shared_path.as_ref().map(|shared| shared.together_bps).into()),
        ("shared_path_rate_bps", Number, |f| f.shared_path.as_ref().map(|shared| shared.path_rate_bps).into()),
        ("shared_full_share", Number, |f| f.shared_path.as_ref().map(|shared| shared.full_share).into()),
        ("delivery_rate_bps", Number, |f| f.delivery.and_then(|delivery| delivery.rate_bps).into()),
        ("capacity_bps", Number, |f| f.delivery.and_then(|delivery| delivery.capacity_bps).into()),
        ("bdp_bytes", Number, |f| f.delivery.and_then(|delivery| delivery.bdp_bytes).into()),
        ("flight_max_bytes", Count, |f| f.flight_max_bytes.into()),
        ("loss_class", Text, |f| f.losses.as_ref().and_then(|l| l.class).map(|class| class.as_str()).into()),
        ("loss_episodes", Count, |f| f.losses.as_ref().map(|l| l.episodes).into()),
        ("lost_packets", Count, |f| f.losses.as_ref().map(|l| l.packets).into()),
        ("loss_p50_ms", Number, |f| f.losses.as_ref().map(|l| l.p50_ms).into()),
        ("loss_p80_ms", Number, |f| f.losses.as_ref().map(|l| l.p80_ms).into()),
        ("loss_p90_ms", Number, |f| f.losses.as_ref().map(|l| l.p90_ms).into()),
        ("loss_p99_ms", Number, |f| f.losses.as_ref().map(|l| l.p99_ms).into()),
        ("loss_max_ms", Number, |f| f.losses.as_ref().map(|l| l.max_ms).into()),
        ("tail_losses", Count, |f| f.losses.as_ref().map(|l| l.tails).into()),
        ("peak_1ms_bytes", Count, |f| f.bursts.as_ref().map(|b| b.peak_1ms_bytes).into()),
        ("peak_100us_bytes", Count, |f| f.bursts.as_ref().map(|b| b.peak_100us_bytes).into()),
        ("losses_after_largest", Number, |f| f.bursts.as_ref().and_then(|b| b.losses).map(|l| l.after_largest).into()),
        ("losses_by_chance", Number, |f| f.bursts.as_ref().and_then(|b| b.losses).map(|l| l.by_chance).into()),
        ("pauses", Count, |f| f.idle_restarts.as_ref().map(|idle| idle.pauses).into()),
        ("idle_restarts", Count, |f| f.idle_restarts.as_ref().map(|idle| idle.restarts).into()),
        ("delayed_ack_waits", Count, |f| f.delayed_acks.map(|held| held.waits).into()),
        ("delayed_ack_ms", Number, |f| f.delayed_acks.map(|held| held.waited_ms).into()),
        ("path_mtu_passed_bytes", Count, |f| f.path_mtu.map(|found| found.passed_bytes).into()),
        ("path_mtu_vanished_bytes", Count, |f| f.path_mtu.map(|found| found.vanished_bytes).into()),
        ("congestion_control", Text, |f| f.congestion_control.map(|family| family.name.as_str()).into()),
        ("congestion_control_confidence", Number, |f| f.congestion_control.map(|family| family.confidence).into()),
        ("window_after_loss", Number, |f| f.congestion_control.and_then(|family| family.window_after).into()),
    ]
};

/// The columns.
pub(crate) fn columns() -> impl Iterator<Item = Column> {
    COLUMNS.iter().map(|(name, kind, _)| Column::new(*name, *kind))
}

/// The values of a connection's row.
pub(crate) fn values(facts: &Facts) -> impl Iterator<Item = Value<'_>> {
    COLUMNS.iter().map(move |(_, _, of)| of(facts))
}
