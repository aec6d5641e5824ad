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

/// A capture of raw IP packets: the SYNs of so many connections.
fn syns(connections: u16) -> Vec<u8> {
    let mut file: Vec<u8> =
        [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101].iter().flat_map(|n| n.to_le_bytes()).collect();
    for n in 0..connections {
        let ip = [0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let ports = [40_000 + n, 80].map(u16::to_be_bytes).concat();
        let rest = [0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0];
        file.extend([1_700_000_000 + u32::from(n), 0, 40, 40].iter().flat_map(|n| n.to_le_bytes()));
        file.extend([&ip[..], &ports, &rest].concat());
    }
    file
}

#[test]
fn one_connection_is_told_alone_in_json_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (name, connections) in [("two.pcap", 2), ("one.pcap", 1)] {
        fs::write(folder.join(name), syns(connections)).expect("written");
    }
    let read = |args: &[&str]| -> serde_json::Value {
        let (out, _) = run(folder, &[&["diagnose", "--json"], args].concat(), 0);
        serde_json::from_str(&out).expect("JSON")
    };
    let all = read(&["two.pcap"]);
    let flows = all["captures"][0]["flows"].as_array().expect("flows");
    assert_eq!(flows.len(), 2);
    for id in [0, 1] {
        let alone = read(&["two.pcap", "--flow", &id.to_string()]);
        let told = alone["captures"][0]["flows"].as_array().expect("flows");
        assert_eq!(told.iter().collect::<Vec<_>>(), flows.iter().filter(|flow| flow["id"] == id).collect::<Vec<_>>());
    }
    // Of several captures, those that have it.
    let some = read(&["one.pcap", "two.pcap", "--flow", "1"]);
    assert_eq!(some["captures"].as_array().map(Vec::len), Some(1));
    assert_eq!(some["captures"][0]["file"], "two.pcap");
    let (out, err) = run(folder, &["diagnose", "two.pcap", "--json", "--flow", "99", "--html", "p.html"], 2);
    assert!(out.is_empty() && err.contains("no connection #99"), "{out}{err}");
    assert!(!folder.join("p.html").exists());
}

#[test]
fn folders_are_read_and_one_flow_is_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    lossy(folder);
    let (out, _) = run(folder, &["diagnose", "--json", "day"], 1);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let flow = &report["captures"][1]["flows"][0];
    let number = |name: &str| flow[name].as_f64().expect(name);
    let carried = number("goodput_bps") * number("phase_s") / 8.0;
    assert!((carried / number("bytes_down") - 1.0).abs() < 0.01, "{carried} bytes in the data phase");
    assert!(number("phase_s") > 0.0 && number("phase_s") <= number("duration_s"));
    let files: Vec<&str> =
        report["captures"].as_array().expect("captures").iter().filter_map(|c| c["file"].as_str()).collect();
    assert_eq!(files, ["day/below/again.pcapng", "day/lossy.pcapng"]);

    let (out, _) = run(folder, &["diagnose", "day/lossy.pcapng", "--flow", "0"], 1);
    assert!(out.lines().any(|line| line.trim_start().starts_with("flight ▁")), "{out}");
    assert!(out.lines().any(|line| line.trim_start().starts_with("window ")), "{out}");
    let (_, err) = run(folder, &["diagnose", "day/lossy.pcapng", "--flow", "7"], 2);
    assert!(err.contains("no connection #7"), "{err}");

    let (out, _) = run(folder, &["diagnose", "day", "--html", "day.html"], 1);
    assert!(out.starts_with("2 captures · "), "{out}");
    assert!(out.contains("Time lost, by cause") && out.contains("Worst connections"), "{out}");
    let (each, _) = run(folder, &["diagnose", "day", "--each"], 1);
    assert!(each.starts_with("day/below/again.pcapng\n") && each.contains("\n\nday/lossy.pcapng\n"), "{each}");
    let worst = fs::read_to_string(folder.join("day.html")).expect("a page");
    assert!(worst.contains("Worst connections") && worst.matches("<article").count() == 2, "both are plotted");
    let (out, _) = run(folder, &["diagnose", "day/lossy.pcapng", "--intervals", "100ms"], 1);
    assert!(out.contains("interval") && out.contains("0.10–0.20 s"), "{out}");
    let (out, _) = run(folder, &["diagnose", "day/lossy.pcapng", "--intervals", "100ms", "--json"], 1);
    let divided: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let flow = &divided["captures"][0]["flows"][0];
    let sum = |name: &str| {
        flow["intervals"].as_array().expect("intervals").iter().filter_map(|one| one[name].as_f64()).sum::<f64>()
    };
    assert_eq!(sum("retransmits"), flow["retransmits"]["total"].as_f64().expect("a count"), "{flow}");
    assert!(sum("bytes") > 0.99 * flow["bytes_down"].as_f64().expect("bytes"), "{flow}");

    fs::write(folder.join("day/broken.pcap"), "no capture either").expect("written");
    let (out, err) = run(folder, &["diagnose", "--json", "day"], 2);
    let rest: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(rest["captures"], report["captures"], "the others are told all the same");
    assert!(err.contains("broken.pcap"), "{err}");
    let (out, _) = run(folder, &["diagnose", "day"], 2);
    assert!(out.contains("2 captures") && out.contains("1 capture could not"), "{out}");
}
