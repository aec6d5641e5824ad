//! Several clients, switches, cards, streams of every kind, cross traffic; and that each repeats to the byte.
//!
//! Needs the lab kernel 6.12, which `./x test` builds first; without it these tests fail and say so.

mod common;

use common::{figure, lab, lab_in, table, within};
use std::fs;
use std::path::Path;

/// Payload's part of a full frame on a link: 1,448 of 1,514 bytes.
const PAYLOAD: f64 = 1448.0 / 1514.0;

#[test]
fn clients_share_a_path_or_have_one_each() {
    let report = lab(
        r#"
name = "clients"
[path]
rtt = "20ms"
rate = "20mbit"
[workload]
kind = "stream"
seconds = "5s"
[topology]
clients = 4
[[arm]]
name = "shared"
path = { queue = "100KB", discipline = "fq_codel" }
[[arm]]
name = "own"
topology.kind = "own"
[[arm]]
name = "nic"
topology = { clients = 1, nic = { rate = "10mbit", packets = 50 } }
path.rate = "1gbit"
"#,
        &[],
    );
    within(figure(&report, "shared", "goodput_steady_bps"), 20e6 * PAYLOAD, 0.005);
    within(figure(&report, "shared", "fairness"), 1.0, 0.001);
    within(figure(&report, "own", "goodput_steady_bps"), 4.0 * 20e6 * PAYLOAD, 0.005);
    for each in ["min", "max"] {
        within(figure(&report, "own", &format!("flow_goodput_bps.{each}")), 20e6 * PAYLOAD, 0.02);
    }
    within(figure(&report, "nic", "goodput_steady_bps"), 10e6 * PAYLOAD, 0.005);
}

#[test]
fn a_switch_holds_what_its_buffer_holds_shared_or_for_each_port() {
    let report = lab(
        r#"
name = "switch"
[path]
rtt = "200us"
[topology]
kind = "switch"
clients = 4
nic = false
rate = "100mbit"
buffer = "128KB"
[workload]
kind = "udp-train"
size = 1400
interval = "0"
packets = 100
[[arm]]
name = "all to one"
workload.direction = "up"
[[arm]]
name = "one to all, shared"
[[arm]]
name = "one to all, own"
topology.shared = false
"#,
        &[],
    );
    // 88 packets of 1,442 bytes; one at 100 Mb/s takes 115 µs, in which a few more find room.
    for (arm, port, ports) in [
        ("all to one", "up_port", 1.0),
        ("one to all, shared", "down_port", 1.0),
        ("one to all, own", "down_port", 4.0),
    ] {
        assert_eq!(figure(&report, arm, &format!("queue_max_bytes.{port}")), ports * 88.0 * 1442.0, "{arm}");
        let came = figure(&report, arm, "received_packets");
        assert!((ports * 88.0..ports * 88.0 + 8.0).contains(&came), "{arm}: {came}");
        assert_eq!(figure(&report, arm, &format!("dropped_packets.{port}")), 400.0 - came);
    }
}

#[test]
fn offloads_show_large_frames_and_wire_size_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"
name = "offloads"
[path]
rtt = "20ms"
[workload]
kind = "stream"
bytes = "2MB"
[[arm]]
name = "wire-size"
[[arm]]
name = "offloads"
path.offloads = true
"#;
    lab_in(folder.path(), text, &["--samples", "off", "--export", "csv"]);
    let packets = table(folder.path(), "packets");
    let longest = |arm: &str| {
        let of = packets.iter().filter(|line| line["arm"] == arm && line["end"] == "server");
        of.filter_map(|line| line["len"].parse::<u32>().ok()).max().expect("packets")
    };
    assert_eq!(longest("wire-size"), 1448);
    assert!(longest("offloads") >= 10 * 1448, "{}", longest("offloads"));
}

#[test]
fn streams_are_parallel_paced_bounded_and_from_files() {
    let folder = tempfile::tempdir().expect("a folder");
    // Of this machine's files; those below /tmp are not to be seen in the lab, and this checkout may be there.
    let file = Path::new("/bin/sh").canonicalize().expect("a shell");
    let size = fs::metadata(&file).expect("a shell").len() as f64;
    let text = format!(
        r#"
name = "streams"
[path]
rtt = "20ms"
[path.down]
rate = "4mbit"
[workload]
kind = "stream"
seconds = "5s"
[[arm]]
name = "parallel"
workload.parallel = 4
[[arm]]
name = "paced"
workload.pace = "2mbit"
[[arm]]
name = "backlog"
workload.pace = "8mbit"
[[arm]]
name = "bounded"
workload = {{ pace = "8mbit", backlog = "100KB" }}
[[arm]]
name = "file"
path.down.rate = "100mbit"
workload.file = "{}"
"#,
        file.display()
    );
    let report = lab_in(folder.path(), &text, &["--capture", "off", "--samples", "off"]);
    within(figure(&report, "parallel", "goodput_steady_bps"), 4e6 * PAYLOAD, 0.01);
    let mean = figure(&report, "parallel", "flow_goodput_bps.mean");
    within(4.0 * mean, figure(&report, "parallel", "goodput_bps"), 1e-9);
    within(figure(&report, "paced", "goodput_steady_bps"), 2e6, 0.005);
    assert!(figure(&report, "paced", "age_ms.max") < 40.0);
    // Twice what the path takes: in five seconds 2.5 MB are left, in the program and the socket.
    assert!(figure(&report, "backlog", "backlog_end_bytes") > 1.5e6);
    assert_eq!(figure(&report, "backlog", "dropped_bytes"), 0.0);
    assert_eq!(figure(&report, "bounded", "backlog_max_bytes"), 1e5);
    assert!(figure(&report, "bounded", "dropped_bytes") > 1.5e6);
    assert_eq!(figure(&report, "file", "bytes"), size);
}

const CROSS: &str = r#"
name = "cross"
[path]
rtt = "20ms"
rate = "10mbit"
queue = "100 packets"
[workload]
kind = "stream"
seconds = "5s"
[[arm]]
name = "udp"
cross = [{ kind = "udp", rate = "2mbit", flows = 2 }]
[[arm]]
name = "too much"
cross = [{ kind = "udp", rate = "20mbit", start = "1s", end = "3s" }]
[[arm]]
name = "the other way"
cross = [{ kind = "udp", rate = "2mbit", direction = "up" }]
[[arm]]
name = "tcp"
cross = [{ kind = "stream", flows = 3 }]
"#;

#[test]
fn cross_traffic_takes_its_part() {
    let report = lab(CROSS, &[]);
    // Packets of 1,200 bytes: 4 Mb/s of payload are 417 a second, 4.14 Mb/s on the link; the stream has the rest.
    within(figure(&report, "udp", "cross.goodput_bps"), 4e6, 0.03);
    within(figure(&report, "udp", "cross.sent_packets"), 5.02 * 4e6 / 9600.0, 0.002);
    within(figure(&report, "udp", "goodput_steady_bps"), (10e6 - 4e6 * 1242.0 / 1200.0) * PAYLOAD, 0.04);
    // For two seconds twice the rate: half of it is lost, and 4,167 packets are sent.
    within(figure(&report, "too much", "cross.sent_packets"), 2.0 * 20e6 / 9600.0, 0.001);
    within(figure(&report, "too much", "cross.loss"), 0.5, 0.06);
    assert_eq!(figure(&report, "the other way", "cross.lost_packets"), 0.0);
    within(figure(&report, "the other way", "cross.goodput_bps"), 2e6, 0.001);
    within(figure(&report, "the other way", "goodput_steady_bps"), 10e6 * PAYLOAD, 0.05);
    // Four streams share; three of them are the others'.
    let (own, others) = (figure(&report, "tcp", "goodput_bps"), figure(&report, "tcp", "cross.goodput_bps"));
    within(own + others, 10e6 * PAYLOAD, 0.02);
    assert!((2.0..4.5).contains(&(others / own)), "{others} {own}");
}

#[test]
fn parts_of_a_mixture_have_their_figures_under_their_names() {
    let report = lab(
        r#"
name = "mixed"
[path]
rtt = "20ms"
[topology]
clients = 2
[workload]
kind = "mixed"
[[workload.part]]
name = "bulk"
kind = "stream"
bytes = "1MB"
clients = [1]
[[workload.part]]
name = "calls"
kind = "crr"
request = 100
response = 100
transactions = 5
clients = [2]
start = "1s"
"#,
        &[],
    );
    assert_eq!(figure(&report, "as given", "bulk.bytes"), 1e6);
    assert_eq!(figure(&report, "as given", "calls.transactions"), 5.0);
    within(figure(&report, "as given", "calls.latency_ms.max"), 40.0, 0.001);
}

#[test]
fn switches_traces_and_cross_traffic_repeat_to_the_byte() {
    let text = r#"
name = "again"
[path]
rtt = "10ms"
[workload]
kind = "stream"
bytes = "300kB"
[[arm]]
name = "switch"
topology = { kind = "switch", clients = 2, rate = "10mbit", buffer = "20KB" }
workload.direction = "up"
[[arm]]
name = "trace"
path = { trace = [1, 2, 5], loss = "1%" }
[[arm]]
name = "cross"
path = { rate = "10mbit", loss = "1%", jitter = "1ms" }
cross = [{ kind = "udp", rate = "2mbit" }, { kind = "stream" }]
"#;
    let once = || {
        let folder = tempfile::tempdir().expect("a folder");
        let mut report = lab_in(folder.path(), text, &["--samples", "off"]);
        report.as_object_mut().expect("an object").remove("wall_s");
        let captures: Vec<Vec<u8>> = common::files(&folder.path().join("out"))
            .into_iter()
            .filter(|name| name.extension().is_some_and(|kind| kind == "pcapng"))
            .map(|name| fs::read(folder.path().join("out").join(name)).expect("a capture"))
            .collect();
        (report, captures)
    };
    let (first, again) = (once(), once());
    assert_eq!(first.1.len(), 3);
    assert!(first.1.iter().all(|capture| capture.len() > 10_000));
    assert!(first == again, "a repeat differs");
    assert!(figure(&first.0, "switch", "dropped_packets.up_port") > 0.0);
}
