//! Messages at fixed periods: latencies that arithmetic gives, and what late ones had to wait for.

mod common;

use common::{figure, json, within};

/// A quiet topic of one segment each, on a path that drops the segments listed.
fn scenario(drop: &str, size: &str, period: &str) -> String {
    format!(
        r#"name = "x"
[path]
rtt = "40ms"
rate = "10mbit"
[path.down]
{drop}
[server]
socket = {{ nodelay = true }}
[workload]
kind = "topics"
seconds = "10s"
[[workload.topic]]
name = "state"
period = "{period}"
size = "{size}"
deadline = "30ms"
[[workload.topic]]
name = "back"
publisher = "client"
period = "1s"
phase = "500ms"
size = {{ distribution = "uniform", min = 10, max = 1000 }}
"#
    )
}

#[test]
fn latencies_are_those_of_the_path() {
    let temp = tempfile::tempdir().expect("a folder");
    std::fs::write(temp.path().join("x.toml"), scenario("", "1000B", "100ms")).expect("written");
    let report = json(temp.path(), &["lab", "run", "x.toml", "--out", "out"]);
    let of = |name: &str| figure(&report, "as given", name);
    assert_eq!((of("messages"), of("topics.state.messages"), of("topics.back.messages")), (110.0, 100.0, 10.0));
    assert_eq!(of("topics.state.bytes"), 100_000.0);
    // 1000 bytes with headers of Ethernet, IP and TCP with timestamps at 10 Mb/s, then half a round trip.
    let wanted_ms = (1000.0 + 14.0 + 20.0 + 32.0) * 8.0 / 10_000.0 + 20.0;
    within(of("topics.state.latency_ms.p50"), wanted_ms, 0.001);
    within(of("topics.state.latency_ms.max"), wanted_ms, 0.001);
    assert_eq!((of("missed_deadlines"), of("late_messages"), of("retransmits")), (0.0, 0.0, 0.0));
    let again = json(temp.path(), &["lab", "run", "x.toml", "--out", "again"]);
    assert_eq!(report["arms"][0]["metrics"], again["arms"][0]["metrics"]);
}

#[test]
fn a_late_message_is_laid_to_its_retransmission() {
    let temp = tempfile::tempdir().expect("a folder");
    // One segment every 500 ms: nothing follows within two round trips, so a probe repeats the 3rd. Of a message of six
    // segments the second is missed by those after it.
    for (drop, size, period, kind) in [
        ("loss = { model = \"list\", segments = [3] }", "1000B", "500ms", "tlp"),
        ("loss = { model = \"list\", segments = [8] }", "8688B", "500ms", "fast"),
    ] {
        std::fs::write(temp.path().join("x.toml"), scenario(drop, size, period)).expect("written");
        let report = json(temp.path(), &["lab", "run", "x.toml", "--out", kind]);
        let of = |name: &str| figure(&report, "as given", name);
        assert_eq!(of("topics.state.late_messages"), 1.0, "{kind}: {report}");
        assert_eq!(of(&format!("topics.state.late_by_retransmission.{kind}")), 1.0, "{kind}: {report}");
        assert_eq!(of("topics.back.late_messages"), 0.0);
    }
}

#[test]
fn what_a_socket_does_not_take_waits_in_the_publisher() {
    let temp = tempfile::tempdir().expect("a folder");
    let text = scenario("", "200kB", "100ms") + "[server.sysctl]\n\"net.ipv4.tcp_wmem\" = \"4096 16384 262144\"\n";
    std::fs::write(temp.path().join("x.toml"), text).expect("written");
    let report = json(temp.path(), &["lab", "run", "x.toml", "--out", "out"]);
    let of = |name: &str| figure(&report, "as given", name);
    // 16 Mb/s are published and at most 10 leave, for 10 s.
    assert!((7.5e6..9e6).contains(&of("topics.state.backlog_max_bytes")), "{report}");
    assert_eq!(of("topics.state.bytes"), 20e6);
    // The last is published after 9.9 s, and 20 MB take 16.7 s at 1448 bytes of 1514.
    within(of("topics.state.latency_ms.max"), 6_850.0, 0.02);
    assert!(of("topics.state.missed_deadlines") > 90.0);
}
