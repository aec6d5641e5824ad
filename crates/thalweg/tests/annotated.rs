//! The copy of a capture that `diagnose --pcapng` makes, read by Wireshark's own reader.
//!
//! Needs the lab kernel 6.12 and tshark, which `./x test` installs.

mod common;

use common::{lab_in, run};
use std::fs;
use std::process::Command;

const LOSSY: &str = r#"
name = "lossy"
[path]
rtt = "20ms"
rate = "50mbit"
[workload]
kind = "stream"
bytes = "2MB"
[[arm]]
name = "loss"
path.down.loss = { model = "list", segments = [40, 41, 300, 700] }
"#;

#[test]
fn wireshark_shows_our_findings_at_their_packets() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = lab_in(folder.path(), LOSSY, &["--capture", "server", "--samples", "off"]);
    let capture = folder.path().join("out").join(report["arms"][0]["capture"].as_str().expect("a capture"));
    fs::rename(capture, folder.path().join("in.pcapng")).expect("there");
    let output = common::thalweg(folder.path(), &["diagnose", "in.pcapng", "--json", "--pcapng", "found.pcapng"])
        .output()
        .expect("the program starts");
    let (out, err) = common::texts(&output);
    assert!(err.contains("packets with comments"), "{err}");
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let flow = &report["captures"][0]["flows"][0];
    let mut shown: Vec<(u64, String)> = Vec::new();
    let findings = flow["findings"].as_array().expect("findings").iter().chain([&flow["verdict"]]);
    for evidence in findings.flat_map(|finding| finding["evidence"].as_array().expect("evidence")) {
        let text = evidence["text"].as_str().expect("text");
        let packets = evidence["packets"].as_array().into_iter().flatten();
        shown.extend(packets.map(|packet| (packet.as_u64().expect("a number"), text.to_owned())));
    }
    assert!(!shown.is_empty(), "lost packets are evidence: {flow}");

    let tshark = |args: &[&str]| {
        let output =
            Command::new("tshark").args(args).current_dir(folder.path()).output().expect("tshark is installed");
        assert!(output.status.success(), "tshark {args:?}: {}", common::texts(&output).1);
        common::texts(&output).0
    };
    let all = ["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len", "-e", "tcp.seq", "-r"];
    assert_eq!(tshark(&[&all[..], &["found.pcapng"]].concat()), tshark(&[&all[..], &["in.pcapng"]].concat()));
    let comments = tshark(&[
        "-r",
        "found.pcapng",
        "-Y",
        "frame.comment",
        "-T",
        "fields",
        "-e",
        "frame.number",
        "-e",
        "frame.comment",
    ]);
    // The filters of docs/capture.md: as many packets as the report counts.
    let docs = include_str!("../../../docs/capture.md");
    let filtered = |what: &str| {
        let filter = format!("frame.comment contains \"{what}\"");
        assert!(docs.contains(&format!("`{filter}`")), "docs/capture.md does not have {filter}");
        tshark(&["-r", "found.pcapng", "-Y", &filter]).lines().count() as u64
    };
    let count = |name: &str| flow["retransmits"][name].as_u64().expect(name);
    assert!(count("total") >= 4, "{flow}");
    assert_eq!(filtered("thalweg retransmission"), count("total"));
    assert_eq!(filtered("retransmission (fast"), count("fast"));
    assert_eq!(filtered("retransmission (RTO"), count("rto"));
    assert_eq!(filtered("retransmission (TLP"), count("tlp"));
    assert_eq!(filtered(", spurious)"), count("spurious"));
    assert_eq!(filtered("thalweg zero window"), flow["zero_windows"].as_u64().expect("a count"));
    assert_eq!(filtered("thalweg reset"), 0);
    for (packet, text) in shown {
        let line = comments.lines().find(|line| line.starts_with(&format!("{packet}\t")));
        assert!(line.is_some_and(|line| line.contains(&text)), "packet {packet}: {text}\n{comments}");
    }
}

#[test]
fn what_cannot_be_copied_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(
        folder.path().join("a.pcap"),
        [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0],
    )
    .expect("written");
    for (args, says) in [
        (&["a.pcap", "a.pcap", "--pcapng", "b.pcapng"][..], "copies one capture"),
        (&["-", "--pcapng", "b.pcapng"], "stdin"),
        (&["a.pcap", "--pcapng", "./a.pcap"], "would write over"),
    ] {
        let (_, err) = run(folder.path(), &[&["diagnose"], args].concat(), 2);
        assert!(err.contains(says), "{err}");
    }
    let (_, err) = run(folder.path(), &["diagnose", "a.pcap", "--pcapng", "none/b.pcapng"], 3);
    assert!(err.contains("cannot write"), "{err}");
    let left: Vec<_> = fs::read_dir(folder.path()).expect("read").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 2, "the capture and the folder for temporary files: {left:?}");
}
