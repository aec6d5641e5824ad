//! The report of a load, as JSON and in the terminal.

#[path = "common/schema_check.rs"]
mod schema_check;

use schema_check::{holds, validator};
use serde_json::Value;
use thalweg_model::{Held, LoadReport, Percentiles, PlayerCount, Stalls};

const SCHEMA: &str = include_str!("../../../docs/schema/thalweg.load-1.json");

fn sample() -> LoadReport {
    let times =
        |p50: f64| Percentiles { count: 20, p50, p90: p50 * 2.0, p99: p50 * 3.0, p999: p50 * 4.0, max: p50 * 5.0 };
    LoadReport {
        schema: "thalweg.load/1",
        kind: "hls",
        url: "http://127.0.0.1:8080/live/demo.m3u8".to_owned(),
        wall_s: 30.0,
        players: PlayerCount { started: 20, playing: 19 },
        first_frame_ms: Some(times(0.5)),
        playlist_ms: Some(times(12.34)),
        segment_ms: Some(times(120.4)),
        stall_ms: None,
        stalls: Stalls { count: 3, s: 1.5, watched_s: 300.0, part: 0.005 },
        answers: 800,
        connections: 21,
        bytes: 123_400_000,
        rate_bps: 32.9e6,
        failures: [("HTTP 404".to_owned(), 2)].into(),
        expect: vec![Held { text: "first_frame_p99 <= 500ms".to_owned(), found: Some(1.5), holds: true }],
    }
}

#[test]
fn the_document_is_as_its_schema_says_and_nothing_else_is() {
    let document: Value = serde_json::to_value(sample()).expect("JSON");
    holds(&validator(SCHEMA), &document, &["", "/players", "/stalls", "/first_frame_ms", "/expect/0"]);
}

#[test]
fn the_terminal_shows_what_was_met() {
    insta::assert_snapshot!(thalweg_report::terminal::load(&sample(), 80, false));
}
