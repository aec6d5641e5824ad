//! What a path does to packets, against arithmetic: virtual time is exact, so figures are.
//!
//! Needs the lab kernels 6.12 and 6.1, which `./x test` builds first; without them these tests fail and say so.

mod common;

use common::{figure, lab, lab_in, run, table, within};
use std::collections::{BTreeSet, HashMap};
use std::fs;

/// A UDP packet of 1,400 bytes with its UDP, IPv4 and Ethernet headers.
const FRAME: f64 = 1442.0;

#[test]
fn calibration_holds_on_both_kernels() {
    let folder = tempfile::tempdir().expect("a folder");
    // The exit code is 0 only where every expectation is met.
    let args = "lab run calibration --samples off --capture off --kernel 6.1,6.12 --out out";
    let (out, _) = run(folder.path(), &args.split(' ').collect::<Vec<_>>(), 0);
    assert!(out.contains("Expectations: 22 of 22 met"), "{out}");
}

#[test]
fn jitter_has_the_mean_and_the_deviation_it_is_given() {
    let folder = tempfile::tempdir().expect("a folder");
    // Half of all packets one deviation early, half one late.
    let entries = format!("# two values\n{}", "-8192 8192\n".repeat(64));
    fs::write(folder.path().join("two.dist"), entries).expect("written");
    let text = r#"
name = "jitter"
[path]
rtt = "200ms"
[workload]
kind = "udp-train"
size = 100
interval = "1ms"
packets = 20000
[[arm]]
name = "normal"
path.down.jitter = { stddev = "10ms", distribution = "normal", reorder = true }
[[arm]]
name = "pareto"
path.down.jitter = { stddev = "10ms", distribution = "pareto", reorder = true }
[[arm]]
name = "paretonormal"
path.down.jitter = { stddev = "10ms", distribution = "paretonormal", reorder = true }
[[arm]]
name = "uniform"
path.down.jitter = { stddev = "10ms", distribution = "uniform", reorder = true }
[[arm]]
name = "table"
path.down.jitter = { stddev = "10ms", file = "two.dist", reorder = true }
[[arm]]
name = "in order"
path.down.jitter = { stddev = "10ms", reorder = false }
[[arm]]
name = "in order, far apart"
path.down.jitter = { stddev = "10ms", reorder = false }
workload = { interval = "100ms", packets = 5000 }
"#;
    let report = lab_in(folder.path(), text, &["--capture", "off", "--samples", "off"]);
    let uniform = 10.0 / 3f64.sqrt();
    for (arm, stddev) in [
        ("normal", 10.0),
        ("pareto", 10.0),
        ("paretonormal", 10.0),
        ("uniform", uniform),
        ("table", 10.0),
        // Further apart than any delay differs, packets never wait for one another.
        ("in order, far apart", 10.0),
    ] {
        within(figure(&report, arm, "delay_ms.mean"), 100.0, 0.005);
        within(figure(&report, arm, "delay_ms.stddev"), stddev, 0.03);
        assert_eq!(figure(&report, arm, "lost_packets"), 0.0);
        assert_eq!(figure(&report, arm, "reordered_packets") > 0.0, !arm.starts_with("in order"), "{arm}");
    }
    // One that is late holds up those behind it.
    assert_eq!(figure(&report, "in order", "reordered_packets"), 0.0);
    assert!(figure(&report, "in order", "delay_ms.mean") > 105.0);
    within(figure(&report, "uniform", "delay_ms.min"), 90.0, 0.001);
    within(figure(&report, "uniform", "delay_ms.max"), 110.0, 0.001);
    within(figure(&report, "table", "delay_ms.p50"), 90.0, 0.001);
    // A heavy tail: most are early.
    assert!(figure(&report, "pareto", "delay_ms.p50") < 98.0);
}

#[test]
fn correlated_jitter_has_the_spread_of_any_and_changes_more_slowly() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"
name = "correlated"
[path]
rtt = "200ms"
[workload]
kind = "udp-train"
size = 100
interval = "1ms"
packets = 30000
[[arm]]
name = "none"
path.down.jitter = { stddev = "10ms", reorder = true }
[[arm]]
name = "half"
path.down.jitter = { stddev = "10ms", correlation = "50%", reorder = true }
[[arm]]
name = "most"
path.down.jitter = { stddev = "10ms", correlation = "90%", reorder = true }
[[arm]]
name = "uniform"
path.down.jitter = { stddev = "10ms", distribution = "uniform", correlation = "90%", reorder = true }
[[arm]]
name = "pareto, and loss"
path.down.jitter = { stddev = "10ms", distribution = "pareto", correlation = "50%", reorder = true }
path.down.loss = "10%"
path.down.duplicate = "1%"
[[arm]]
name = "in order"
path.down.jitter = { stddev = "2ms", correlation = "99.9%" }
[[arm]]
name = "twice as far from 15 s on"
path.down.jitter = { stddev = "10ms", correlation = "90%", reorder = true }
[[arm.path.down.step]]
at = "15s"
delay = "200ms"
"#;
    let args = ["--capture", "off", "--samples", "off", "--kernel", "6.1,6.12"];
    let report = lab_in(folder.path(), text, &args);
    let arms = |name: &str| ["6.1", "6.12"].map(|kernel| format!("{name} · Linux {kernel}"));
    for (name, stddev, correlation) in [("none", 10.0, 0.0), ("half", 10.0, 0.5), ("most", 10.0, 0.9)] {
        for arm in arms(name) {
            within(figure(&report, &arm, "delay_ms.mean"), 100.0, 0.01);
            within(figure(&report, &arm, "delay_ms.stddev"), stddev, 0.03);
            // The mean distance of two normal variables that are so correlated.
            let change = 2.0 * stddev * ((1.0 - correlation) / std::f64::consts::PI).sqrt();
            within(figure(&report, &arm, "ipdv_ms.mean"), change, 0.02);
            assert_eq!(figure(&report, &arm, "lost_packets"), 0.0);
        }
    }
    for arm in arms("uniform") {
        within(figure(&report, &arm, "delay_ms.stddev"), 10.0 / 3f64.sqrt(), 0.03);
        assert!(figure(&report, &arm, "delay_ms.min") >= 90.0 && figure(&report, &arm, "delay_ms.max") < 110.1);
    }
    for arm in arms("pareto, and loss") {
        within(figure(&report, &arm, "delay_ms.mean"), 100.0, 0.01);
        within(figure(&report, &arm, "delay_ms.stddev"), 10.0, 0.05);
        within(figure(&report, &arm, "loss"), 0.10, 0.05);
        // Both copies of one in a hundred arrive if neither is lost; four standard deviations of 243 are a quarter.
        within(figure(&report, &arm, "duplicate_packets"), 30_000.0 * 0.01 * 0.9 * 0.9, 0.25);
    }
    for arm in arms("in order") {
        assert_eq!(figure(&report, &arm, "reordered_packets"), 0.0);
        assert!(figure(&report, &arm, "ipdv_ms.mean") < 0.2);
    }
    for arm in arms("twice as far from 15 s on") {
        within(figure(&report, &arm, "delay_ms.mean"), 150.0, 0.01);
    }
}

#[test]
fn packets_are_lost_doubled_damaged_and_overtaken_as_often_as_asked() {
    let text = r#"
name = "fates"
[path]
rtt = "20ms"
[workload]
kind = "udp-train"
size = 100
interval = "1ms"
packets = 20000
[[arm]]
name = "correlated loss"
path.down.loss = { model = "random", probability = "10%", correlation = "25%" }
[[arm]]
name = "duplicate"
path.down.duplicate = "5%"
[[arm]]
name = "corrupt"
path.down.corrupt = "5%"
[[arm]]
name = "reorder"
path.down.reorder = "5%"
[[arm]]
name = "every fifth"
path.down.reorder = { probability = "100%", gap = 5 }
"#;
    let report = lab(text, &[]);
    within(figure(&report, "correlated loss", "loss"), correlated(0.10, 0.25), 0.15);
    let spread = 3.1 * (20_000.0f64 * 0.05 * 0.95).sqrt();
    let close = |got: f64, wanted: f64| assert!((got - wanted).abs() < spread, "{got} is not {wanted} ± {spread}");
    close(figure(&report, "duplicate", "duplicate_packets"), 1000.0);
    assert_eq!(figure(&report, "duplicate", "lost_packets"), 0.0);
    // One bit of the frame is flipped; checksums find all but those in the sender's MAC address.
    close(figure(&report, "corrupt", "lost_packets"), 1000.0 * (1.0 - 6.0 / 142.0));
    // Those that skip the 10 ms of delay.
    close(20_000.0 * (1.0 - figure(&report, "reorder", "delay_ms.mean") / 10.0), 1000.0);
    within(figure(&report, "every fifth", "delay_ms.mean"), 8.0, 0.001);
}

/// Which part of packets netem loses whose chance follows the one before: a random number is mixed with the last one, and a
/// packet is lost where the mixture is below the probability. Source: net/sched/sch_netem.c, `get_crandom`.
fn correlated(probability: f64, correlation: f64) -> f64 {
    let (mut last, mut lost, mut state) = (0.5, 0, 1u64);
    for _ in 0..2_000_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        last = (state >> 11) as f64 / (1u64 << 53) as f64 * (1.0 - correlation) + last * correlation;
        lost += u32::from(last < probability);
    }
    f64::from(lost) / 2_000_000.0
}

#[test]
fn tcp_mends_what_the_path_does_to_it() {
    let text = r#"
name = "tcp"
[path]
rtt = "20ms"
[workload]
kind = "stream"
bytes = "2MB"
[[arm]]
name = "corrupt"
path.down.corrupt = "0.5%"
[[arm]]
name = "duplicate"
path.down.duplicate = "5%"
[[arm]]
name = "reorder"
path.down.reorder = "1%"
"#;
    for kernel in ["6.12", "6.1"] {
        let report = lab(text, &["--kernel", kernel]);
        for arm in ["corrupt", "duplicate", "reorder"] {
            assert_eq!(figure(&report, arm, "bytes"), 2e6);
            assert_eq!(figure(&report, arm, "dropped_packets.down_propagation"), 0.0);
        }
        assert!(figure(&report, "corrupt", "retransmits") >= 2.0);
        assert_eq!(figure(&report, "duplicate", "retransmits"), 0.0);
        // Packets that skip the delay of their direction halve the least round trip.
        within(figure(&report, "reorder", "min_rtt_ms"), 10.0, 0.01);
    }
}

#[test]
fn a_list_of_losses_hits_exactly_its_segments() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"
name = "list"
[path]
rtt = "20ms"
[path.down]
loss = { model = "list", segments = [3, 17, 40] }
[workload]
kind = "stream"
bytes = "200kB"
"#;
    for kernel in ["6.12", "6.1"] {
        let report = lab_in(folder.path(), text, &["--kernel", kernel, "--samples", "off", "--export", "csv"]);
        assert_eq!(figure(&report, "as given", "dropped_packets.down_propagation"), 3.0);
        let packets = table(folder.path(), "packets");
        let data = |end: &str| -> Vec<&str> {
            let from_server = |line: &&HashMap<String, String>| line["end"] == end && line["len"] != "0";
            packets.iter().filter(from_server).map(|line| line["seq"].as_str()).collect()
        };
        let (sent, mut came) = (data("server"), data("client"));
        assert_eq!(sent.len(), came.len() + 3, "{kernel}");
        // What is sent again is what was lost, if more than once, as RACK may do.
        let again: BTreeSet<&str> =
            sent.iter().enumerate().filter(|(at, seq)| sent[..*at].contains(seq)).map(|(_, seq)| *seq).collect();
        assert_eq!(again, BTreeSet::from([sent[2], sent[16], sent[39]]), "{kernel}");
        let distinct: BTreeSet<&str> = sent.iter().copied().collect();
        assert_eq!(figure(&report, "as given", "retransmits"), (sent.len() - distinct.len()) as f64, "{kernel}");
        // Those that came are those that were sent, in their order, without the listed ones.
        for (at, seq) in (1..).zip(sent) {
            if [3, 17, 40].contains(&at) {
                assert_ne!(came.first(), Some(&seq), "segment {at} came");
            } else {
                assert_eq!(came.remove(0), seq, "segment {at}");
            }
        }
        fs::remove_dir_all(folder.path().join("out")).expect("removed");
    }
}

#[test]
fn a_black_hole_stops_a_stream_unless_the_kernel_probes() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"
name = "hole"
[path]
rtt = "20ms"
black_hole = 1400
[workload]
kind = "stream"
seconds = "6s"
[[arm]]
name = "as found"
[[arm]]
name = "probing"
server.sysctl."net.ipv4.tcp_mtu_probing" = 1
"#;
    let report = lab_in(folder.path(), text, &["--samples", "off", "--export", "csv"]);
    assert_eq!(figure(&report, "as found", "bytes"), 0.0);
    assert!(figure(&report, "as found", "retransmission_timeouts") >= 4.0);
    assert!(figure(&report, "probing", "bytes") > 1e6);
    let longest = |end: &str| {
        let packets = table(folder.path(), "packets");
        let of = packets.iter().filter(|line| line["arm"] == "probing" && line["end"] == end);
        of.filter_map(|line| line["len"].parse::<u32>().ok()).max()
    };
    // The server tries 1,448 bytes, and what comes is what the hole lets through: IPv4, TCP and its timestamps take 52.
    assert_eq!(longest("server"), Some(1448));
    assert!(longest("client").is_some_and(|len| len <= 1400 - 52));
}

#[test]
fn rates_take_what_overhead_says_and_policers_and_buckets_let_go_what_they_hold() {
    let text = r#"
name = "rates"
[path]
rtt = "20ms"
[path.down]
queue = "1MB"
[workload]
kind = "udp-train"
size = 1400
interval = "0"
packets = 500
[[arm]]
name = "policer"
path.down.policer = { rate = "20mbit", burst = "60KB" }
workload = { interval = "280us", packets = 5000 }
[[arm]]
name = "bucket"
path.down = { rate = "10mbit", burst = "100KB" }
[[arm]]
name = "plain"
path.down.rate = "100mbit"
[[arm]]
name = "packets"
path.down = { rate = "100mbit", overhead = 24, queue = "1000 packets" }
[[arm]]
name = "bytes"
path.down = { rate = "100mbit", overhead = 24 }
[[arm]]
name = "cake"
path.down = { rate = "100mbit", overhead = 24, queue = "10MB", discipline = "cake" }
[[arm]]
name = "codel"
path.down = { rate = "100mbit", overhead = 24, queue = "2000 packets", discipline = "codel" }
[[arm]]
name = "held"
path.down = { delay = "100ms", delay_limit = 20 }
workload = { interval = "280us", packets = 5000 }
"#;
    for kernel in ["6.12", "6.1"] {
        let report = lab(text, &["--kernel", kernel]);
        // What passes a policer: its rate for the time there were packets, and the bucket it began with.
        let passed = (20e6 * 4999.0 * 280e-6 / 8.0 + 60e3) / FRAME;
        within(figure(&report, "policer", "received_packets"), passed, 0.002);
        let policed = figure(&report, "policer", "policed_packets.down_bottleneck");
        assert_eq!(policed, figure(&report, "policer", "lost_packets"));
        // 100 KB at once, 69 packets; the others at 10 Mb/s: the last of 500 after (500 − 69.3) of them.
        let last_s = 0.010 + (500.0 * FRAME - 100e3) * 8.0 / 10e6;
        within(figure(&report, "bucket", "duration_s"), last_s, 0.002);
        within(figure(&report, "plain", "drain_bps"), 100e6, 0.001);
        // 100 ms hold 357 of those packets, but may hold 20: after each 20 the delay is full until the first leaves.
        assert_eq!(figure(&report, "held", "received_packets"), 20.0 * (5000.0 * 280e-6 / 0.1_f64).ceil());
        // An IP packet of 1,428 bytes takes 38 more on a wire.
        for arm in ["packets", "bytes", "cake", "codel"] {
            within(figure(&report, arm, "drain_bps"), 100e6 * FRAME / (1428.0 + 38.0), 0.001);
        }
    }
}

#[test]
fn a_path_changes_at_the_moment_it_says() {
    let report = lab(
        r#"
name = "steps"
[path]
rtt = "20ms"
[workload]
kind = "udp-train"
size = 1400
interval = "1ms"
packets = 3000
[[arm]]
name = "rate, then delay"
path.down = { rate = "20mbit", queue = "10000 packets", step = [{ at = "1s", rate = "5mbit" }, { at = "2s", delay = "60ms" }] }
[[arm]]
name = "delay"
path.down.step = [{ at = "1s", delay = "60ms" }]
[[arm]]
name = "loss"
path.down.step = [{ at = "1s", loss = "100%" }, { at = "2s", loss = "0%" }]
"#,
        &[],
    );
    // From the first second on each packet takes 2.3072 ms; two are let go at once by the bucket.
    let last_s = 1.002_076 + 1997.0 * FRAME * 8.0 / 5e6 + 0.060;
    within(figure(&report, "rate, then delay", "duration_s"), last_s, 0.0005);
    within(figure(&report, "delay", "delay_ms.mean"), (10.0 + 2.0 * 60.0) / 3.0, 0.002);
    within(figure(&report, "loss", "lost_packets"), 1000.0, 0.002);

    let report = lab(
        r#"
name = "steps"
[path]
rtt = "20ms"
[path.down]
rate = "20mbit"
queue = "20 packets"
step = [{ at = "3s", rate = "5mbit" }]
[workload]
kind = "stream"
seconds = "6s"
"#,
        &[],
    );
    let intervals: Vec<f64> = report["arms"][0]["intervals"]
        .as_array()
        .expect("intervals")
        .iter()
        .map(|one| one["goodput_bps"].as_f64().expect("a number"))
        .collect();
    // 1,448 bytes of payload are 1,514 on the link.
    for (second, rate) in [(1, 20e6), (2, 20e6), (4, 5e6), (5, 5e6)] {
        within(intervals[second], rate * 1448.0 / 1514.0, 0.02);
    }
}

#[test]
fn a_trace_is_replayed_from_a_file_beside_the_scenario() {
    let folder = tempfile::tempdir().expect("a folder");
    // Four packets of 1500 bytes each 10 ms: 4.8 Mb/s of IP packets.
    fs::write(folder.path().join("t.trace"), "2\n4\n4\n10\n").expect("written");
    let text = r#"
name = "trace"
[path]
rtt = "20ms"
[path.down]
trace = "t.trace"
queue = "100 packets"
[workload]
kind = "udp-train"
size = 1472
interval = "1ms"
packets = 1000
[[arm]]
name = "overload"
[[arm]]
name = "one a period"
workload = { interval = "10ms", packets = 100 }
"#;
    let report = lab_in(folder.path(), text, &["--capture", "off", "--samples", "off"]);
    within(figure(&report, "overload", "goodput_bps"), 4.8e6 * 1472.0 / 1500.0, 0.005);
    assert_eq!(figure(&report, "overload", "buffer_packets"), 100.0);
    // Sent as the run begins and every period after: each leaves at the period's next opportunity.
    let delays = ["min", "max"].map(|of| figure(&report, "one a period", &format!("delay_ms.{of}")));
    assert!(delays[0] > 10.0 && delays[1] - delays[0] < 0.01, "{delays:?}");
}
