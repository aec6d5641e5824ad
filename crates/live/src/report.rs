//! What a path did, as a report.

use crate::direction::{Lost, Progress};
use crate::lateness::Lateness;
use crate::per_way::PerWay;
use crate::switch_wire::SwitchProgress;
use thalweg_model::{LateMicros, LiveDirection, LivePathReport, Path, PathDirection, PathVerdict, Way};
use thalweg_path::DropReason;
use thalweg_units::Span;

const SCHEMA: &str = "thalweg.path/1";
/// Lateness that a path without delay may have: four times the spacing of departures, which the emulator adds by itself.
const LATE_MAX: Span = Span::from_micros(100);
/// Part of a direction's delay that 99 of 100 packets may be late by.
const LATE_PART_MAX: f64 = 0.01;
/// Bytes below which processor time says nothing about a gigabyte.
const CARRIED_MIN_BYTES: u64 = 1_000_000;

/// The report of a path that began as `path` and has this `progress`, with the changes since; `cpu` is processor time of the emulator.
pub fn report(id: u32, command: &[String], path: &Path, progress: &PerWay<Progress>, cpu: Span) -> LivePathReport {
    let carried = progress.down.counters.departed.bytes.get() + progress.up.counters.departed.bytes.get();
    LivePathReport {
        schema: SCHEMA.to_owned(),
        id,
        command: command.to_vec(),
        path: Path {
            down: PathDirection::clone(&progress.down.asked),
            up: PathDirection::clone(&progress.up.asked),
            ..path.clone()
        },
        wall_s: progress.down.at.as_secs_f64(),
        down: direction(&progress.down),
        up: direction(&progress.up),
        cpu_s: cpu.as_secs_f64(),
        cpu_s_per_gb: (carried >= CARRIED_MIN_BYTES).then(|| cpu.as_secs_f64() / (carried as f64 / 1e9)),
        verdict: verdict(progress),
        exit_code: None,
    }
}

/// Whether a path with this `progress` was as asked for. Of a delay that was changed the shortest one counts.
pub fn verdict(progress: &PerWay<Progress>) -> PathVerdict {
    let mut faults = Vec::new();
    for (way, Progress { counters, shortest_delay, lateness, lost, .. }) in
        [(Way::Down, &progress.down), (Way::Up, &progress.up)]
    {
        faults.extend(losses(way.as_str(), *lost, counters.dropped(DropReason::PathFull).packets));
        faults.extend(late(way, *shortest_delay, lateness));
    }
    PathVerdict { faithful: faults.is_empty(), faults }
}

/// Whether a switch with this `progress`, whose clients are behind `path`, was as asked for.
pub fn switch_verdict(path: &Path, progress: &SwitchProgress) -> PathVerdict {
    let SwitchProgress { wires, lateness, lost, .. } = progress;
    let full = [&wires.down, &wires.up].map(|counters| counters.dropped(DropReason::PathFull).packets);
    let mut faults = losses("switch", *lost, full.iter().sum());
    faults.extend(late(Way::Down, path.down.delay, &lateness.down));
    faults.extend(late(Way::Up, path.up.delay, &lateness.up));
    PathVerdict { faithful: faults.is_empty(), faults }
}

fn direction(progress: &Progress) -> LiveDirection {
    let Progress { at, counters, queued, queue_peak, lateness, lost, .. } = progress;
    let micros = |span: Span| span.as_nanos() as f64 / 1e3;
    let dropped =
        DropReason::ALL.into_iter().map(|reason| (reason.name().to_owned(), counters.dropped(reason).packets));
    LiveDirection {
        arrived_packets: counters.arrived.packets,
        arrived_bytes: counters.arrived.bytes.get(),
        departed_packets: counters.departed.packets,
        departed_bytes: counters.departed.bytes.get(),
        rate_bps: counters.departed.bytes.get() as f64 * 8.0 / at.as_secs_f64().max(1e-9),
        dropped_packets: dropped.filter(|(_, packets)| *packets > 0).collect(),
        duplicated_packets: counters.duplicated.packets,
        corrupted_packets: counters.corrupted.packets,
        marked_packets: counters.marked.packets,
        queue_packets: queued.packets,
        queue_bytes: queued.bytes.get(),
        queue_max_bytes: queue_peak.1.get(),
        late_us: LateMicros {
            p50: micros(lateness.quantile(0.5)),
            p99: micros(lateness.quantile(0.99)),
            max: micros(lateness.max()),
        },
        lost_by_emulator: lost.in_all(),
    }
}

/// What was lost that nobody asked to lose, on a direction or in a switch; `full` packets of it as it held as many as it can.
fn losses(place: &str, lost: Lost, full: u64) -> Vec<String> {
    let reasons = [
        (lost.unread, "it was too slow to read them"),
        (lost.refused, "the kernel refused them at the far end"),
        (lost.overflow, "it holds 1 GiB at most"),
        (full, "it holds 4,194,304 packets at most"),
    ];
    let found = reasons.into_iter().filter(|(frames, _)| *frames > 0);
    found
        .map(|(frames, why)| format!("{place}: the emulator lost {frames} frames that nobody asked it to lose: {why}"))
        .collect()
}

/// Whether departures were later than a path of this `delay` may be.
fn late(way: Way, delay: Span, lateness: &Lateness) -> Option<String> {
    let late = lateness.quantile(0.99);
    let most = LATE_MAX.max(Span::from_secs_f64(delay.as_secs_f64() * LATE_PART_MAX));
    let (way, micros, allowed) = (way.as_str(), late.as_micros(), most.as_micros());
    (late > most).then(|| {
        format!("{way}: one packet in a hundred was more than {micros} µs late; up to {allowed} µs is as asked for")
    })
}
