//! The report of a path in real time, as JSON and in the terminal.

use serde_json::{Value, json};
use thalweg_model::{LateMicros, LiveDirection, LivePathReport, Path, PathVerdict};

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
    let schema = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    assert!(jsonschema::draft202012::meta::is_valid(&schema), "not a schema of draft 2020-12");
    let schema = jsonschema::draft202012::new(&schema).expect("the schema can be used");
    let document: Value = serde_json::to_value(sample()).expect("JSON");
    assert!(schema.is_valid(&document), "{document}");
    for place in ["", "/down", "/up", "/down/late_us", "/verdict"] {
        let mut more = document.clone();
        more.pointer_mut(place).expect("there")["x"] = json!(1);
        assert!(!schema.is_valid(&more), "takes an unknown field at '{place}'");
        let known: Vec<String> =
            document.pointer(place).and_then(Value::as_object).expect("an object").keys().cloned().collect();
        for key in known {
            let mut less = document.clone();
            less.pointer_mut(place).and_then(Value::as_object_mut).expect("an object").remove(&key);
            assert!(!schema.is_valid(&less), "does not miss '{place}/{key}'");
        }
    }
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
