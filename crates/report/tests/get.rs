//! The report of a download, as JSON and in the terminal.

#[path = "common/schema_check.rs"]
mod schema_check;

use schema_check::{holds, validator};
use serde_json::Value;
use thalweg_model::{GetChecksum, GetConnection, GetLimit, GetLimitShare, GetRanges, GetReport};

const SCHEMA: &str = include_str!("../../../docs/schema/thalweg.get-1.json");

fn sample() -> GetReport {
    GetReport {
        schema: "thalweg.get/1",
        url: "https://example.org/image.iso".to_owned(),
        final_url: Some("https://mirror.example/image.iso".to_owned()),
        file: Some("./image.iso".to_owned()),
        bytes: 4_000_000_000,
        resumed_bytes: 0,
        wall_s: 12.3,
        goodput_bps: 2.6e9,
        goodput_steady_bps: Some(2.87e9),
        protocol: "HTTP/1.1",
        proxy: false,
        ranges: GetRanges { most: 16, last: 7, needed: Some(7), possible: true },
        connection: GetConnection {
            min_rtt_ms: 35.7,
            window_bytes: 2_650_000,
            window_allows_bps: 593.8e6,
            out_of_order_segments: 0,
        },
        limits: vec![
            GetLimitShare { limit: GetLimit::Path, share: 0.9 },
            GetLimitShare { limit: GetLimit::ReceiveWindow, share: 0.1 },
        ],
        retries: 0,
        restarts: 0,
        checksum: Some(GetChecksum { value: "sha256:00".to_owned(), by: "user" }),
    }
}

#[test]
fn the_document_is_as_its_schema_says_and_nothing_else_is() {
    let schema = validator(SCHEMA);
    for limit in GetLimit::ALL {
        let limits = vec![GetLimitShare { limit, share: 1.0 }];
        let document = serde_json::to_value(GetReport { limits, ..sample() }).expect("JSON");
        assert!(schema.is_valid(&document), "{limit:?}");
        assert_eq!(document["limits"][0]["limit"], limit.as_str());
    }
    let none = GetReport { final_url: None, file: None, goodput_steady_bps: None, checksum: None, ..sample() };
    assert!(schema.is_valid(&serde_json::to_value(none).expect("JSON")));
    let document: Value = serde_json::to_value(sample()).expect("JSON");
    holds(&schema, &document, &["", "/ranges", "/connection", "/limits/0", "/checksum"]);
}

#[test]
fn the_terminal_names_the_limit_and_what_the_ranges_were_for() {
    let text = thalweg_report::terminal::get(&sample(), None, 100, false);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("The path limited the download"), "{text}");
    assert!(text.contains("594 Mb/s"), "{text}");
    assert!(text.contains("up to 16 ranges, 7 at the end"), "{text}");
}
