//! Captures of the lab, as tshark reads them: connections, handshakes and retransmissions.
//!
//! Needs the lab kernel 6.12 and tshark.

mod common;

use common::{json, texts, thalweg};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Scenarios of `rules/` whose captures are read: with losses, without options, with delayed ACKs, with late packets.
const SCENARIOS: [&str; 5] =
    ["random-loss", "window-scaling-missing", "delayed-ack", "retransmission-timeout", "reordering"];

/// tshark's fields, each of every packet.
const FIELDS: [&str; 8] = [
    "tcp.stream",
    "tcp.flags.syn",
    "tcp.flags.ack",
    "tcp.options.mss_val",
    "tcp.options.wscale.shift",
    "tcp.options.sack_perm",
    "tcp.analysis.retransmission",
    "tcp.analysis.out_of_order",
];

/// A connection: MSS, window scale and SACK of the SYN and of the SYN-ACK, and retransmissions.
#[derive(Debug, Default, PartialEq, Eq)]
struct Facts {
    mss: [Option<u64>; 2],
    wscale: [Option<u64>; 2],
    sack: [bool; 2],
    again: u64,
}

fn of_tshark(capture: &Path) -> Vec<Facts> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args(["-Y", "tcp", "-T", "fields", "-E", "occurrence=f"]);
    command.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let output = command.output().expect("tshark runs");
    let (text, err) = texts(&output);
    assert!(output.status.success(), "{err}");
    let mut found: BTreeMap<u64, Facts> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let is = |at: usize| ["1", "True"].contains(&fields[at]);
        let facts = found.entry(fields[0].parse().expect("a stream")).or_default();
        if is(1) {
            let side = usize::from(is(2));
            facts.mss[side] = fields[3].parse().ok();
            facts.wscale[side] = fields[4].parse().ok();
            facts.sack[side] = !fields[5].is_empty();
        } else {
            facts.again += u64::from(!fields[6].is_empty() || !fields[7].is_empty());
        }
    }
    // SACK holds where both ends offer it.
    let both = |facts: Facts| Facts { sack: [facts.sack[0] && facts.sack[1]; 2], ..facts };
    found.into_values().map(both).collect()
}

fn of_thalweg(folder: &Path, capture: &Path) -> Vec<Facts> {
    let capture = capture.to_str().expect("text");
    let (text, err) = texts(&thalweg(folder, &["diagnose", capture, "--json"]).output().expect("the program starts"));
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{capture}: {error}: {err}"));
    let mut flows = report["captures"][0]["flows"].as_array().expect("flows").clone();
    flows.sort_by_key(|flow| flow["id"].as_u64());
    let facts = |flow: &Value| {
        let handshake = &flow["handshake"];
        let both = ["client", "server"].map(|end| (format!("mss_{end}"), format!("wscale_{end}")));
        let sack = handshake["sack"] == true;
        Facts {
            mss: [handshake[&both[0].0].as_u64(), handshake[&both[1].0].as_u64()],
            wscale: [handshake[&both[0].1].as_u64(), handshake[&both[1].1].as_u64()],
            sack: [sack, sack],
            again: flow["retransmits"]["total"].as_u64().expect("a count"),
        }
    };
    flows.iter().map(facts).collect()
}

#[test]
fn tshark_reads_the_same_from_captures_of_the_lab() {
    if Command::new("tshark").arg("--version").output().is_err() {
        // The test's own output is not shown where it passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: tshark is not installed, so nothing was compared with it");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut args =
        vec!["lab", "run", "--kernel", "6.12", "--samples", "off", "--capture", "server", "--out", "out", "-q"];
    let files = SCENARIOS.map(|name| format!("{name}.toml"));
    for file in &files {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules").join(file);
        fs::copy(&from, folder.join(file)).expect("a scenario");
    }
    args.extend(files.iter().map(String::as_str));
    json(folder, &args);
    let mut again = 0;
    for name in SCENARIOS {
        let capture = folder.join(format!("out/{name}/0-as-given.pcapng"));
        let (theirs, ours) = (of_tshark(&capture), of_thalweg(folder, &capture));
        assert!(!theirs.is_empty() && theirs == ours, "{name}\ntshark:  {theirs:?}\nthalweg: {ours:?}");
        again += ours.iter().map(|facts| facts.again).sum::<u64>();
    }
    assert!(again > 20, "{again} packets sent again");
}
