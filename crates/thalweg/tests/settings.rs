//! What a host's settings do: disciplines that mark, route attributes and socket options, as figures.
//!
//! Needs the lab kernels 6.12 and 6.1, which `./x test` builds first; without them these tests fail and say so.

mod common;

use common::{figure, lab, lab_in, run, table, within};
use std::fs;

#[test]
fn disciplines_mark_and_keep_the_queue_short() {
    let text = r#"
name = "aqm"
[path]
rtt = "20ms"
rate = "20mbit"
queue = "200 packets"
ecn = true
[server]
sysctl."net.ipv4.tcp_ecn" = 1
[client]
sysctl."net.ipv4.tcp_ecn" = 1
[workload]
kind = "mixed"
[[workload.part]]
name = "bulk"
kind = "stream"
seconds = "8s"
[[workload.part]]
name = "ask"
kind = "rr"
request = 100
response = 100
seconds = "5s"
start = "2s"
[[arm]]
name = "fifo"
[[arm]]
name = "red"
path.discipline = { kind = "red", min = "20KB", max = "60KB", probability = "10%" }
[[arm]]
name = "codel"
path.discipline = "codel"
[[arm]]
name = "fq_codel"
path.discipline = "fq_codel"
[[arm]]
name = "pie"
path.discipline = "pie"
[[arm]]
name = "cake"
path.discipline = "cake"
"#;
    for kernel in ["6.12", "6.1"] {
        let report = lab(text, &["--kernel", kernel]);
        let fifo = figure(&report, "fifo", "ask.latency_ms.p50");
        assert!(fifo > 100.0 && figure(&report, "fifo", "bulk.retransmits") > 0.0);
        for (arm, most) in [("red", 60.0), ("codel", 35.0), ("fq_codel", 23.0), ("pie", 45.0), ("cake", 23.0)] {
            assert!(figure(&report, arm, "marked_packets.down_bottleneck") > 0.0, "{arm}");
            assert_eq!(figure(&report, arm, "bulk.retransmits"), 0.0, "{arm}");
            let latency = figure(&report, arm, "ask.latency_ms.p50");
            assert!((20.0..most).contains(&latency), "{arm} {kernel}: {latency}");
            // All of it is used: 1,448 bytes of 1,514, less what the slow start and a mark leave.
            // RED, which marks by chance from its shortest queue on, marked once more on one kernel.
            let spread = if arm == "red" { 0.03 } else { 0.02 };
            within(figure(&report, arm, "bulk.goodput_steady_bps"), 20e6 * 1448.0 / 1514.0, spread);
        }
    }
}

#[test]
fn cake_drops_acknowledgements_that_later_ones_make_needless() {
    let text = r#"
name = "ack-filter"
[path]
rtt = "40ms"
[path.down]
rate = "100mbit"
queue = "1MB"
[path.up]
rate = "1mbit"
queue = "1MB"
[workload]
kind = "stream"
seconds = "5s"
[[arm]]
name = "off"
path.up.discipline = "cake"
[[arm]]
name = "on"
path.up.discipline = { kind = "cake", ack_filter = true }
[[arm]]
name = "aggressive"
path.up.discipline = { kind = "cake", ack_filter = "aggressive" }
"#;
    let report = lab(text, &["--kernel", "6.12"]);
    let goodput = |arm| figure(&report, arm, "goodput_steady_bps");
    let dropped = |arm| figure(&report, arm, "dropped_packets.up_bottleneck");
    // An acknowledgement of 66 bytes for two segments needs 2.7 Mb/s of the way back: unfiltered it holds the way there.
    assert!(goodput("off") < 40e6, "{}", goodput("off"));
    for arm in ["on", "aggressive"] {
        within(goodput(arm), 100e6 * 1448.0 / 1514.0, 0.01);
        assert!(dropped(arm) > 20.0 * dropped("off"), "{}", dropped(arm));
    }
}

#[test]
fn route_attributes_do_what_they_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"
name = "routes"
[path]
rtt = "100ms"
[workload]
kind = "stream"
bytes = "1MB"
[[arm]]
name = "plain"
[[arm]]
name = "cwnd"
server.route.cwnd = 20
[[arm]]
name = "ssthresh"
server = { route = { ssthresh = 40, congctl = "reno" }, sysctl = { "net.ipv4.tcp_no_ssthresh_metrics_save" = 0 } }
[[arm]]
name = "initrwnd"
client.route.initrwnd = 4
workload.bytes = "100kB"
[[arm]]
name = "advmss"
client.route.advmss = 1000
[[arm]]
name = "mtu"
server.route.mtu = 1300
[[arm]]
name = "features"
server.route.features = ["ecn"]
client.route.features = ["ecn"]
path = { rate = "20mbit", discipline = { kind = "red", min = "10KB", max = "30KB", probability = "100%" }, ecn = true }
"#;
    let report = lab_in(folder.path(), text, &["--samples", "off", "--export", "csv"]);
    // 1 MB is 691 segments: 10, 20, 40 … of them a round trip; the connection takes one, and so does the first segment.
    within(figure(&report, "plain", "duration_s"), 0.8, 0.001);
    // Never more than 20 a round trip: 34 more after the first 10.
    assert_eq!(figure(&report, "cwnd", "cwnd_max_packets"), 20.0);
    within(figure(&report, "cwnd", "duration_s"), 0.1 + 0.1 * (1.0 + (681f64 / 20.0).ceil()), 0.002);
    // Slow start ends at 40; from there on it is one more a round trip, some 14 of them.
    within(figure(&report, "ssthresh", "cwnd_packets"), 54.0, 0.04);
    within(figure(&report, "ssthresh", "duration_s"), 1.8, 0.001);
    // 70 segments: not 10, 20 and 40, but 4 first, then 14, 28 and the rest.
    within(figure(&report, "initrwnd", "duration_s"), 0.5, 0.001);
    assert!(figure(&report, "features", "marked_packets.down_bottleneck") > 0.0);
    assert_eq!(figure(&report, "features", "retransmits"), 0.0);
    let packets = table(folder.path(), "packets");
    let longest = |arm: &str| {
        let of = packets.iter().filter(|line| line["arm"] == arm && line["end"] == "client");
        of.filter_map(|line| line["len"].parse::<u32>().ok()).max().expect("packets")
    };
    // The MSS counts no options; timestamps take 12. An MTU counts IPv4 and TCP headers besides.
    assert_eq!((longest("plain"), longest("advmss"), longest("mtu")), (1448, 988, 1248));
}

#[test]
fn acknowledgements_and_timeouts_are_as_the_routes_say() {
    let text = r#"
name = "timers"
[path]
rtt = "10ms"
[path.down]
loss = { model = "list", segments = [7] }
[workload]
kind = "rr"
request = 100
response = 1000
transactions = 10
[server]
sysctl."net.ipv4.tcp_early_retrans" = 0
[[arm]]
name = "rto_min 200ms"
[[arm]]
name = "rto_min 50ms"
server.route.rto_min = "50ms"
"#;
    for kernel in ["6.12", "6.1"] {
        let report = lab(text, &["--kernel", kernel]);
        for (arm, rto_min) in [("rto_min 200ms", 200.0), ("rto_min 50ms", 50.0)] {
            within(figure(&report, arm, "latency_ms.p50"), 10.0, 0.001);
            // The one that was lost waits for the timer, which is the least there is and the round-trip time: ticks of 4 ms.
            let longest = figure(&report, arm, "latency_ms.max") - 20.0;
            assert!((rto_min - 4.0..=rto_min + 8.0).contains(&longest), "{arm} {kernel}: {longest}");
            assert_eq!(figure(&report, arm, "retransmits"), 1.0);
        }
    }
}

#[test]
fn quickack_acknowledges_every_segment() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"
name = "quickack"
[path]
rtt = "20ms"
rate = "20mbit"
queue = "1MB"
[workload]
kind = "stream"
bytes = "2MB"
[[arm]]
name = "usual"
[[arm]]
name = "quickack"
client.route.quickack = true
"#;
    let report = lab_in(folder.path(), text, &["--samples", "off", "--export", "csv"]);
    let packets = table(folder.path(), "packets");
    let share = |arm: &str| {
        assert_eq!(figure(&report, arm, "retransmits"), 0.0);
        let of = |end: &str, data: bool| {
            let from = packets.iter().filter(|line| line["arm"] == arm && line["end"] == end);
            from.filter(|line| (line["len"] != "0") == data).count() as f64
        };
        // Each end's lines are of both directions: what the client has without payload is its own, nearly.
        of("client", false) / of("client", true)
    };
    assert!((0.95..1.05).contains(&share("quickack")), "{}", share("quickack"));
    assert!((0.45..0.65).contains(&share("usual")), "{}", share("usual"));
}

#[test]
fn socket_options_do_what_they_say() {
    let text = r#"
name = "sockets"
[path]
rtt = "100ms"
[workload]
kind = "stream"
bytes = "2MB"
[[arm]]
name = "max_pacing_rate"
server.socket.max_pacing_rate = "8mbit"
workload.bytes = "5MB"
[[arm]]
name = "notsent_lowat"
server.socket.notsent_lowat = "16KB"
path.rate = "4mbit"
workload = { pace = "8mbit", backlog = "50KB" }
[[arm]]
name = "no notsent_lowat"
path.rate = "4mbit"
workload = { pace = "8mbit", backlog = "50KB" }
[[arm]]
name = "user_timeout"
server.socket.user_timeout = "2s"
path.down.step = [{ at = "400ms", loss = "100%" }]
[[arm]]
name = "user_timeout, last data"
server.socket.user_timeout = "2s"
path.down.step = [{ at = "150ms", loss = "100%" }]
workload.bytes = "10KB"
"#;
    let report = lab(text, &[]);
    // TCP paces its payload. Source: net/ipv4/tcp_output.c, `tcp_update_skb_after_send`.
    within(figure(&report, "max_pacing_rate", "goodput_steady_bps"), 8e6, 0.005);
    // What the socket does not take waits in the program, where it is bounded: it is younger when it comes.
    let age = |arm: &str| figure(&report, arm, "age_ms.p50");
    assert!(age("notsent_lowat") < age("no notsent_lowat"), "{} {}", age("notsent_lowat"), age("no notsent_lowat"));
    for arm in ["user_timeout", "user_timeout, last data"] {
        assert_eq!(figure(&report, arm, "broken_connections"), 1.0);
        // Two seconds without an acknowledgement, seen when a retransmission is due.
        let broken = figure(&report, arm, "broken_ms");
        assert!((2100.0..3500.0).contains(&broken), "{arm}: {broken}");
    }
}

#[test]
fn a_window_clamp_holds_until_the_kernel_raises_it() {
    let text = r#"
name = "clamp"
[path]
rtt = "100ms"
[workload]
kind = "stream"
bytes = "2MB"
[client]
socket = { window_clamp = "20KB", rcvbuf = "100KB" }
"#;
    // So many whole segments of 1,448 a round trip; before them the connection's round trip and a first one.
    let seconds = |window: f64| 0.2 + 0.1 * (2e6 / ((window / 1448.0).floor() * 1448.0));
    within(figure(&lab(text, &["--kernel", "6.1"]), "as given", "duration_s"), seconds(20_000.0), 0.02);
    // From Linux 6.11 on a packet's real cost sets the clamp anew (net/ipv4/tcp_input.c, `tcp_measure_rcv_mss`); what is left of
    // the clamp is the window's scale, none, that went with it.
    within(figure(&lab(text, &["--kernel", "6.12"]), "as given", "duration_s"), seconds(65_535.0), 0.02);
}

#[test]
fn fast_open_saves_a_round_trip() {
    let text = r#"
name = "open"
[path]
rtt = "100ms"
[workload]
kind = "crr"
request = 100
response = 1000
transactions = 10
[[arm]]
name = "plain"
[[arm]]
name = "fastopen"
client = { sysctl = { "net.ipv4.tcp_fastopen" = 1 }, socket = { fastopen = true } }
server = { sysctl = { "net.ipv4.tcp_fastopen" = 2 }, socket = { fastopen = true } }
[[arm]]
name = "kept"
workload.kind = "rr"
"#;
    for kernel in ["6.12", "6.1"] {
        let report = lab(text, &["--kernel", kernel]);
        within(figure(&report, "plain", "latency_ms.max"), 200.0, 0.001);
        assert_eq!(figure(&report, "plain", "fast_opens"), 0.0);
        // The first gets the cookie, the others use it.
        assert_eq!(figure(&report, "fastopen", "fast_opens"), 9.0);
        within(figure(&report, "fastopen", "latency_ms.max"), 200.0, 0.001);
        within(figure(&report, "fastopen", "latency_ms.p90"), 100.0, 0.001);
        within(figure(&report, "kept", "latency_ms.min"), 100.0, 0.001);
        within(figure(&report, "kept", "latency_ms.max"), 100.0, 0.001);
        within(figure(&report, "kept", "connect_ms.max"), 100.0, 0.001);
    }
}

#[test]
fn forcing_no_buffer_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "name = \"s\"\n[workload]\nkind = \"stream\"\nbytes = \"1MB\"\n[server.socket]\nforce = true\n";
    let note = "server.socket.force has no effect without server.socket.sndbuf or rcvbuf";
    for (more, is_named) in [("", true), ("rcvbuf = \"1MB\"\n", false)] {
        fs::write(folder.path().join("s.toml"), format!("{text}{more}")).expect("written");
        let out = format!("out-{is_named}");
        let (_, err) = run(folder.path(), &["lab", "run", "s.toml", "--out", &out, "--capture", "off"], 0);
        assert_eq!(err.contains(note), is_named, "{err}");
    }
}

#[test]
fn a_setting_a_kernel_lacks_is_refused_before_it_boots() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "name = \"s\"\n[workload]\nkind = \"stream\"\nbytes = \"1MB\"\n";
    for (setting, kernel, why) in [
        ("server.socket.rto_min=5ms", "6.12", "TCP_RTO_MIN_US; Linux 6.15 is the first"),
        ("client.socket.delack_max=5ms", "6.12", "TCP_DELACK_MAX_US; Linux 6.15 is the first"),
        ("server.route.features=tcp_usec_ts", "6.1", "Linux 6.7 is the first"),
        ("client.sysctl.\"net.ipv4.tcp_rto_min_us\"=5000", "6.1", "tcp_rto_min_us; Linux 6.11 is the first"),
    ] {
        fs::write(folder.path().join("s.toml"), text).expect("written");
        let args = ["lab", "run", "s.toml", "--kernel", kernel, "--set", setting];
        let (_, err) = run(folder.path(), &args, 2);
        assert!(err.contains(why), "{setting}: {err}");
        assert!(!folder.path().join("thalweg-runs").exists(), "{setting} made a folder");
    }
}
