//! The report of a path in real time, as JSON and in the terminal.

#[path = "common/schema_check.rs"]
mod schema_check;

use schema_check::{holds, validator};
use serde_json::Value;
use thalweg_model::{LateMicros, LiveDirection, LiveHost, LiveHostsReport, LivePathReport, Metric, Path, PathVerdict};

const SCHEMA: &str = include_str!("../../../docs/schema/thalweg.path-1.json");

fn sample() -> LivePathReport {
    let direction = |packets: u64| LiveDirection {
        arrived_packets: packets + 12,
        arrived_bytes: (packets + 12) * 1_500,
        departed_packets: packets,
        departed_bytes: packets * 1_500,
        rate_bps: packets as f64 * 1_200.0,
        dropped_packets: [("queue_full".to_owned(), 10), ("random_loss".to_owned(), 2)].into(),
        duplicated_packets: 0,
        corrupted_packets: 0,
        marked_packets: 0,
        queue_packets: 3,
        queue_bytes: 4_500,
        queue_max_bytes: 151_400,
        late_us: LateMicros { p50: 21.2, p99: 73.0, max: 412.0 },
        lost_by_emulator: 0,
    };
    LivePathReport {
        schema: "thalweg.path/1".to_owned(),
        id: 4711,
        command: vec!["curl".to_owned(), "-O".to_owned(), "http://server/file".to_owned()],
        path: Path::default(),
        wall_s: 10.0,
        down: direction(80_000),
        up: direction(20_000),
        cpu_s: 0.6,
        cpu_s_per_gb: Some(4.0),
        verdict: PathVerdict { faithful: true, faults: Vec::new() },
        exit_code: Some(0),
    }
}

#[test]
fn the_document_is_as_its_schema_says_and_nothing_else_is() {
    let document: Value = serde_json::to_value(sample()).expect("JSON");
    holds(&validator(SCHEMA), &document, &["", "/down", "/up", "/down/late_us", "/verdict"]);
    let read: LivePathReport = serde_json::from_value(document).expect("read back");
    assert_eq!(read, sample());
}

#[test]
fn the_terminal_shows_what_it_did() {
    insta::assert_snapshot!(thalweg_report::terminal::live_path(&sample()));
    let faults = vec!["down: the emulator lost 3 frames that nobody asked it to lose".to_owned()];
    let verdict = PathVerdict { faithful: false, faults };
    let report = LivePathReport { verdict, ..sample() };
    assert!(
        thalweg_report::terminal::live_path(&report).contains("not as asked for: down: the emulator lost 3 frames")
    );
}

#[test]
fn hosts_that_are_up_are_listed_with_what_is_between_them() {
    let host = |name: &str, last: u8| LiveHost { name: name.to_owned(), address: [10, 0, last, 1].into() };
    let ports = [("down_port", 12), ("up_port", 0)].map(|(name, count)| (name.to_owned(), Metric::Count(count)));
    let report = LiveHostsReport {
        schema: "thalweg.hosts/1".to_owned(),
        id: 4711,
        name: "car-plan, cubic".to_owned(),
        hosts: vec![host("server", 1), host("client", 3)],
        between: vec!["switch: emulator, 2 ports of 1gbit, 128KiB for all of them".to_owned()],
        wall_s: 61.2,
        figures: [("dropped_packets".to_owned(), Metric::Group(ports.into()))].into(),
        skipped: Vec::new(),
        verdict: PathVerdict { faithful: false, faults: vec!["switch: late".to_owned()] },
    };
    let schema = include_str!("../../../docs/schema/thalweg.hosts-1.json");
    holds(&validator(schema), &serde_json::to_value(&report).expect("JSON"), &["", "/verdict"]);
    assert_eq!(
        thalweg_report::terminal::live_hosts(&report),
        "4711          61 s  2 hosts of car-plan, cubic\n  server      10.0.1.1\n  client      10.0.3.1\n  \
         switch: emulator, 2 ports of 1gbit, 128KiB for all of them\n  packets dropped: down port 12\n  \
         not as asked for: switch: late"
    );
}
