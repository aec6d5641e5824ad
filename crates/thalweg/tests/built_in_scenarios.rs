//! Every built-in scenario on a real kernel meets the expectations that it takes from its field report.
//!
//! Needs the lab kernels 6.12 and 6.1, which `./x test` builds first; without them this fails and says so.

mod common;

use common::{json, texts, thalweg, two_at_a_time};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Those that another test runs in full, and fails where one misses what it expects.
const ELSEWHERE: [(&str, &str); 3] = [
    ("calibration", include_str!("paths.rs")),
    ("edge-first-frame", include_str!("edge_first_frame.rs")),
    ("tail-loss", include_str!("retransmissions.rs")),
];

#[test]
fn every_built_in_scenario_keeps_what_it_expects() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = json(folder.path(), &["lab", "list"]);
    let mut names: Vec<String> =
        list["scenarios"].as_array().expect("scenarios").iter().map(|one| text(&one["name"])).collect();
    assert!(names.len() >= 20, "{names:?}");
    for (name, test) in ELSEWHERE {
        let run = format!("lab run {name} --samples off");
        assert!(test.replace("\", \"", " ").contains(&run), "{run} is in no other test");
        names.retain(|one| one != name);
    }

    // Each run has as many guests as there are processors: two runs at a time fill the gaps at their ends.
    let missed = two_at_a_time(names, |name| misses(folder.path(), &name)).concat();
    assert!(missed.is_empty(), "expectations missed:\n{}", missed.join("\n"));
}

/// Runs a scenario and says which expectations it missed, or what else went wrong.
fn misses(folder: &Path, name: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR")))
        .expect("every built-in scenario is a file");
    // Verdicts and lost segments are told from packets; nothing else needs them.
    let capture = if text.contains("/verdict\"") || text.contains("/loss_episode") { "both" } else { "off" };
    let args = ["lab", "run", name, "--capture", capture, "--samples", "off", "--out", name, "--json"];
    let output = thalweg(folder, &args).output().expect("the program starts");
    let (out, err) = texts(&output);
    let report: Value = match serde_json::from_str(&out) {
        Ok(report) => report,
        Err(_) => return vec![format!("{name}: no report, exit code {:?}: {err}", output.status.code())],
    };
    // Captures are large.
    fs::remove_dir_all(folder.join(name)).expect("the run's folder");
    let lines = report["expect"].as_array().cloned().unwrap_or_default();
    if lines.is_empty() {
        return vec![format!("{name}: expects nothing")];
    }
    let missed: Vec<String> = lines
        .iter()
        .filter(|line| line["met"] != true)
        .map(|line| format!("{name}: {} {}, measured {}", line["metric"], line["wanted"], line["got"]))
        .collect();
    assert_eq!(output.status.code(), Some(i32::from(!missed.is_empty())), "{name}: {err}");
    missed
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
