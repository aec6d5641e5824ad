//! `thalweg diagnose` of folders, and of one connection by itself.
//!
//! Needs the lab kernel 6.12.

mod common;

use common::{lab_in, run};
use std::fs;
use std::path::Path;

/// A capture with losses, at `day/lossy.pcapng` in the folder, beside what is no capture.
fn lossy(folder: &Path) {
    let text = r#"
name = "lossy"
[path]
rtt = "20ms"
rate = "50mbit"
down.loss = "2%"
[workload]
kind = "stream"
bytes = "3MB"
"#;
    let report = lab_in(folder, text, &["--capture", "server", "--samples", "off"]);
    let from = report["arms"][0]["capture"].as_str().expect("a capture");
    fs::create_dir_all(folder.join("day/below")).expect("made");
    fs::copy(folder.join("out").join(from), folder.join("day/lossy.pcapng")).expect("copied");
    fs::copy(folder.join("out").join(from), folder.join("day/below/again.pcapng")).expect("copied");
    fs::write(folder.join("day/note.txt"), "no capture").expect("written");
}

#[test]
fn folders_are_read_and_one_flow_is_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    lossy(folder);
    let (out, _) = run(folder, &["diagnose", "--json", "day"], 1);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let files: Vec<&str> =
        report["captures"].as_array().expect("captures").iter().filter_map(|c| c["file"].as_str()).collect();
    assert_eq!(files, ["day/below/again.pcapng", "day/lossy.pcapng"]);

    let (out, _) = run(folder, &["diagnose", "day/lossy.pcapng", "--flow", "0"], 1);
    assert!(out.lines().any(|line| line.trim_start().starts_with("flight ▁")), "{out}");
    assert!(out.lines().any(|line| line.trim_start().starts_with("window ")), "{out}");
    let (_, err) = run(folder, &["diagnose", "day/lossy.pcapng", "--flow", "7"], 2);
    assert!(err.contains("no connection #7"), "{err}");

    fs::write(folder.join("day/broken.pcap"), "no capture either").expect("written");
    let (out, err) = run(folder, &["diagnose", "--json", "day"], 2);
    let rest: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(rest["captures"], report["captures"], "the others are told all the same");
    assert!(err.contains("broken.pcap"), "{err}");
}
