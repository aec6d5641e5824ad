//! The schemas of `docs/schema` against what `--json` prints: they take every document and no other.

mod common;

use jsonschema::Validator;
use serde::Serialize;
use serde_json::{Value, json};
use thalweg_report::json;

#[test]
fn each_schema_takes_its_documents() {
    assert_taken(&lab_schema(), &common::lab());
    assert_taken(&lab_schema(), &common::repeats());
    assert_taken(&lab_schema(), &common::noisy());
    assert_taken(&lab_schema(), &common::part());
    assert_taken(&lab_schema(), &common::live());
    assert_taken(&diagnose_schema(), &common::diagnose());
    assert_taken(&fix_schema(), &common::fix());
    assert_taken(&fix_schema(), &common::fixed_capture());
    assert_taken(&fix_schema(), &thalweg_model::FixReport { proof: None, ..common::fixed_capture() });
    assert_taken(&schema(COMPARE), &common::compared());
    assert_taken(&schema(WATCH), &common::watch::report());
    assert_taken(&schema(BURSTS), &common::watch::bursts());
    let unmended = thalweg_model::FixReport { remedy: None, after: None, ratio: None, ..common::fix() };
    assert_taken(&fix_schema(), &unmended);
}

#[test]
fn each_schema_takes_no_document_of_another_kind() {
    assert!(!lab_schema().is_valid(&document(&common::fix())));
    assert!(!fix_schema().is_valid(&document(&common::diagnose())));
    assert!(!diagnose_schema().is_valid(&document(&common::lab())));
    let mut later = document(&common::lab());
    later["schema"] = json!("thalweg.lab/2");
    assert!(!lab_schema().is_valid(&later), "another version");
}

/// Takes one field after another out of a document, at every depth, and adds one to every object.
#[test]
fn a_missing_or_an_unknown_field_is_refused_wherever_it_is() {
    // What the types leave out when empty, and so may be missing.
    let optional = [
        "interface",
        "intervals",
        "policer",
        "tap_duplicates",
        "missed_bytes",
        "other_direction",
        "life",
        "reset",
        "usual_ttl",
        "ip_ids",
        "too_soon",
        "silence",
        "failure",
        "application",
        "lookup",
        "tls",
        "handshake_ms",
        "version",
        "server_name",
        "offered",
        "chosen",
        "waits",
        "p50_ms",
        "p90_ms",
        "max_ms",
        "requests",
        "method",
        "target",
        "host",
        "status",
        "wait_ms",
        "transfer_ms",
        "ecn",
        "negotiated",
        "fast_open",
        "accepted",
        "multipath",
        "agreed",
        "keep_alives",
        "nagle_side",
        "commands",
        "notes",
        "kernels",
        "reordering",
        "late_ms_max",
        "rtt",
        "loaded_ms",
        "timestamps_min_ms",
        "ack_wait_ms",
        "receive_window",
        "state",
        "buffer_least_bytes",
        "buffer_below_bytes",
        "initial_window",
        "slow_start",
        "exit",
        "exit_s",
        "shared_path",
        "delivery",
        "rate_bps",
        "capacity_bps",
        "bdp_bytes",
        "flight_max_bytes",
        "losses",
        "class",
        "bursts",
        "idle_restarts",
        "delayed_acks",
        "path_mtu",
        "congestion_control",
        "window_after",
        "packets",
        "time_s",
        "depends_on",
        "weight",
        "matrix",
        "differences",
        "outliers",
        "live",
        "shard",
        "needs",
        "rejected",
        "other_fits",
        "closed",
    ];
    let mut live = common::live();
    // Figures may have any name.
    live.arms.iter_mut().for_each(|arm| drop(arm.metrics.remove("cpu_s")));
    for (schema, document) in [
        (lab_schema(), document(&common::lab())),
        (lab_schema(), document(&common::noisy())),
        (lab_schema(), document(&common::part())),
        (lab_schema(), document(&live)),
        (schema(COMPARE), document(&common::compared())),
        (schema(WATCH), document(&common::watch::report())),
        (schema(BURSTS), document(&common::watch::bursts())),
        (diagnose_schema(), document(&common::diagnose())),
        (fix_schema(), document(&common::fix())),
        (fix_schema(), document(&common::fixed_capture())),
    ] {
        let mut objects = Vec::new();
        walk(&document, String::new(), &mut objects);
        // Of causes by `each_cause_has_a_shape`: which keys one may lack depends on the cause.
        objects.retain(|place| !(place.starts_with("/captures") && place.contains("/cause")));
        assert!(objects.len() >= 6, "the sample has parts to look at");
        for place in objects {
            // Maps of free keys take any; everything else has a fixed set.
            let free = ["/sysctl", "/route", "/socket", "/metrics", "/matrix", "/differences", "/time_to_bytes_ms"]
                .iter()
                .any(|map| place.ends_with(map));
            if free {
                continue;
            }
            let mut changed = document.clone();
            object(&mut changed, &place).insert("unknown_field".to_owned(), json!(1));
            assert!(!schema.is_valid(&changed), "takes an unknown field at {place}");
            let keys: Vec<String> = object(&mut document.clone(), &place).keys().cloned().collect();
            for key in keys
                .iter()
                // A report may expect nothing, a part always says what the whole expects.
                .filter(|key| *key != "expect" || place.ends_with("/shard"))
                .filter(|key| !optional.contains(&key.as_str()) || is_needed(key, &place))
                .filter(|key| *key != "from" || !place.ends_with("/kernels"))
            {
                let mut changed = document.clone();
                object(&mut changed, &place).remove(key);
                assert!(!schema.is_valid(&changed), "does not miss {place}/{key}");
            }
        }
    }
}

/// Whether a key that may be missing elsewhere may not be missing here.
fn is_needed(key: &str, place: &str) -> bool {
    match key {
        "packets" => !place.contains("evidence"),
        "fast_open" => place.ends_with("/handshake"),
        // Shares of the time in `limits`; the bucket's own.
        "receive_window" | "slow_start" => place.ends_with("/limits"),
        "rate_bps" => place.ends_with("/policer"),
        "p50_ms" | "p90_ms" | "max_ms" => !place.ends_with("/waits"),
        "lookup" | "tls" | "version" | "method" | "target" | "host" | "status" | "requests" => {
            !place.contains("/application")
        }
        _ => false,
    }
}

#[test]
fn a_value_of_the_wrong_type_is_refused() {
    for (place, wrong) in [
        ("/arms/0/metrics/goodput_bps", json!("fast")),
        ("/arms/0/metrics/goodput_bps", json!({"median": 1.0, "min": 1.0, "max": 1.0, "ci95": [1.0]})),
        ("/arms/0/intervals/0/bytes", json!(1.5)),
        ("/arms/0/intervals/0/bytes", json!(-1)),
        ("/arms/0/diagnosis/0/code", json!("gremlins")),
        ("/arms/0/settings/client/sysctl", json!(["net.ipv4.tcp_rmem"])),
        ("/engine", json!("imagined")),
        ("/repeats", json!(0)),
    ] {
        let mut changed = document(&common::lab());
        *changed.pointer_mut(place).expect("the sample has it") = wrong.clone();
        assert!(!lab_schema().is_valid(&changed), "takes {wrong} at {place}");
    }
}

#[test]
fn each_cause_has_a_shape() {
    let mut codes = std::collections::BTreeSet::new();
    for cause in common::causes::all() {
        codes.insert(cause.code());
        let mut report = common::diagnose();
        report.captures[0].flows[0].verdict.cause = cause;
        assert_taken(&diagnose_schema(), &report);
        let place = "/captures/0/flows/0/verdict/cause";
        let written = document(&report);
        for key in ["unknown_field", "code"] {
            let mut changed = written.clone();
            let cause = object(&mut changed, place);
            if cause.remove(key).is_none() {
                cause.insert(key.to_owned(), json!(1));
            }
            assert!(!diagnose_schema().is_valid(&changed), "takes {:?} with another {key}", written.pointer(place));
        }
        let flow = &written["captures"][0]["flows"][0];
        let read: thalweg_model::Verdict = serde_json::from_value(flow["verdict"].clone()).expect("a verdict");
        assert_eq!(read, report.captures[0].flows[0].verdict, "read back");
    }
    assert_eq!(codes.len(), thalweg_model::Code::ALL.len(), "{codes:?}");
}

fn assert_taken(schema: &Validator, report: &impl Serialize) {
    let document = document(report);
    let faults: Vec<_> =
        schema.iter_errors(&document).map(|fault| format!("{}: {fault}", fault.instance_path)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The document as `--json` prints it.
fn document(report: &impl Serialize) -> Value {
    serde_json::from_str(&json::to_string(report).expect("a document")).expect("JSON")
}

/// The places of all objects below `value`, as JSON pointers.
fn walk(value: &Value, place: String, objects: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                walk(member, format!("{place}/{key}"), objects);
            }
            objects.push(place);
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                walk(item, format!("{place}/{number}"), objects);
            }
        }
        _ => {}
    }
}

fn object<'a>(document: &'a mut Value, place: &str) -> &'a mut serde_json::Map<String, Value> {
    document.pointer_mut(place).and_then(Value::as_object_mut).expect("the walk found an object there")
}

fn lab_schema() -> Validator {
    schema(LAB)
}

fn diagnose_schema() -> Validator {
    schema(DIAGNOSE)
}

fn fix_schema() -> Validator {
    schema(FIX)
}

fn schema(text: &str) -> Validator {
    let schema = serde_json::from_str(text).expect("the schema is JSON");
    assert!(jsonschema::draft202012::meta::is_valid(&schema), "not a schema of draft 2020-12");
    jsonschema::draft202012::new(&schema).expect("the schema can be used")
}

const COMPARE: &str = include_str!("../../../docs/schema/thalweg.compare-1.json");
const LAB: &str = include_str!("../../../docs/schema/thalweg.lab-1.json");
const DIAGNOSE: &str = include_str!("../../../docs/schema/thalweg.diagnose-1.json");
const BURSTS: &str = include_str!("../../../docs/schema/thalweg.bursts-1.json");
const WATCH: &str = include_str!("../../../docs/schema/thalweg.watch-1.json");
const FIX: &str = include_str!("../../../docs/schema/thalweg.fix-1.json");
