//! Verdicts on labelled transfers: the lab makes each with a cause that is known, and both ends' captures must name it.
//!
//! Needs the lab kernel 6.12, which `./x test` builds first; without it these tests fail and say so.

mod common;

use common::{diagnosed, two_at_a_time};
use serde_json::Value;
use std::path::Path;
use thalweg_units::Rate;

/// A transfer whose cause is known by how it was made.
struct Case {
    name: &'static str,
    path: &'static str,
    workload: &'static str,
    settings: &'static str,
    /// What a capture at the sender shows.
    sender: &'static str,
    /// What one at the receiver may show, where it can be told from there.
    receiver: &'static [&'static str],
}

const FAST: &str = "rtt = \"40ms\"\nrate = \"500mbit\"\nqueue = \"5000 packets\"";
const STREAM: &str = "kind = \"stream\"\nseconds = \"10s\"";
const EXCEEDED: &str = "rtt = \"24ms\"\nrate = \"242mbit\"\nqueue = \"1000 packets\"";
const SMALL_SENDER: &str = "[server.sysctl]\n\"net.ipv4.tcp_wmem\" = \"4096 16384 361443\"\n[client.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 33554432\"";
const BUFFERED_BBR: &str = "[server]\nsysctl.\"net.ipv4.tcp_congestion_control\" = \"bbr\"\nsocket = { sndbuf = \"128KiB\", force = true }\n[client.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 16777216\"";
const MARKED: &str = "[server.sysctl]\n\"net.ipv4.tcp_ecn\" = 1\n[client.sysctl]\n\"net.ipv4.tcp_ecn\" = 1";
const VARIES: &str = "rtt = \"50ms\"\nrate = \"9mbit\"\nqueue = \"600 packets\"\n[[path.down.step]]\nat = \"0.7s\"\nrate = \"2mbit\"\n[[path.down.step]]\nat = \"1.5s\"\nrate = \"8mbit\"\n[[path.down.step]]\nat = \"2.2s\"\nrate = \"3mbit\"\n[[path.down.step]]\nat = \"3s\"\nrate = \"1mbit\"\n[[path.down.step]]\nat = \"3.8s\"\nrate = \"6mbit\"\n[[path.down.step]]\nat = \"4.5s\"\nrate = \"2mbit\"\n[[path.down.step]]\nat = \"5.2s\"\nrate = \"9mbit\"\n[[path.down.step]]\nat = \"6s\"\nrate = \"4mbit\"\n[[path.down.step]]\nat = \"6.8s\"\nrate = \"1mbit\"\n[[path.down.step]]\nat = \"7.5s\"\nrate = \"5mbit\"\n[[path.down.step]]\nat = \"8.2s\"\nrate = \"3mbit\"\n[[path.down.step]]\nat = \"9s\"\nrate = \"7mbit\"";
const JITTERS: &str = "rtt = \"40ms\"\nrate = \"30mbit\"\nqueue = \"200 packets\"\njitter = { stddev = \"5ms\", distribution = \"normal\", reorder = false }";
const ROOM_THAT_JITTERS: &str = "rtt = \"40ms\"\nrate = \"200mbit\"\nqueue = \"3000 packets\"\njitter = { stddev = \"5ms\", distribution = \"normal\", reorder = false }";
const LARGE_RECEIVER: &str = "[client.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 33554432\"\n";

#[rustfmt::skip]
const CASES: [Case; 45] = [
    Case { name: "receive-window", path: FAST, workload: STREAM,
        settings: "[client.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 1048576\"",
        sender: "receive-window", receiver: &["receive-window"] },
    Case { name: "receive-window-fixed", path: FAST, workload: STREAM,
        settings: "[client.socket]\nrcvbuf = \"300kB\"\nforce = true",
        sender: "receive-window", receiver: &["receive-window"] },
    Case { name: "upload", path: FAST, workload: "kind = \"stream\"\ndirection = \"up\"\nseconds = \"5s\"",
        settings: "[server.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 1048576\"",
        sender: "receive-window", receiver: &["receive-window"] },
    Case { name: "window-scaling-missing", path: FAST, workload: STREAM,
        settings: "[client.sysctl]\n\"net.ipv4.tcp_window_scaling\" = 0",
        sender: "window-scaling-missing", receiver: &["window-scaling-missing"] },
    Case { name: "window-scaling-missing-server", path: FAST, workload: STREAM,
        settings: "[server.sysctl]\n\"net.ipv4.tcp_window_scaling\" = 0",
        sender: "window-scaling-missing", receiver: &["window-scaling-missing"] },
    Case { name: "send-buffer", path: FAST, workload: STREAM,
        settings: "[server.sysctl]\n\"net.ipv4.tcp_wmem\" = \"4096 16384 524288\"\n[client.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 33554432\"",
        sender: "send-buffer", receiver: &["send-buffer"] },
    Case { name: "send-buffer-fixed", path: FAST, workload: STREAM,
        settings: "[server.socket]\nsndbuf = \"200kB\"\n[client.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 33554432\"",
        sender: "send-buffer", receiver: &["send-buffer", "application"] },
    // Linux lets its program write up to six times as much at once, and wait all the longer.
    Case { name: "send-buffer-exceeded", path: EXCEEDED, workload: STREAM, settings: SMALL_SENDER,
        sender: "send-buffer", receiver: &["send-buffer"] },
    // Small enough that its program writes as often as acknowledgements come: no pause shows.
    Case { name: "send-buffer-small", path: "rtt = \"20ms\"\nrate = \"1gbit\"\nqueue = \"5000 packets\"", workload: STREAM,
        settings: "[server.socket]\nsndbuf = \"100kB\"\n[client.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 33554432\"",
        sender: "send-buffer", receiver: &["send-buffer", "application"] },
    // Without timestamps the receiver sees no round trip of data, and that all comes evenly tells the queue.
    Case { name: "path-rate-without-timestamps", path: "rtt = \"24ms\"\nrate = \"50mbit\"\nqueue = \"78 packets\"", workload: STREAM,
        settings: "[server.socket]\ncongestion = \"bbr\"\n[client.sysctl]\n\"net.ipv4.tcp_timestamps\" = 0",
        sender: "path-rate", receiver: &["path-rate"] },
    // BBR paces what the program writes, so acknowledgements come meanwhile and its pauses begin and end with nearly as much in flight.
    Case { name: "send-buffer-paced", path: "rtt = \"20ms\"\nrate = \"300mbit\"\nqueue = \"20ms\"", workload: STREAM,
        settings: BUFFERED_BBR, sender: "send-buffer", receiver: &["send-buffer", "congestion-window-clamp"] },
    Case { name: "send-buffer-paced-far", path: "rtt = \"60ms\"\nrate = \"300mbit\"\nqueue = \"60ms\"", workload: STREAM,
        settings: BUFFERED_BBR, sender: "send-buffer", receiver: &["send-buffer"] },
    // Acknowledgements come in clumps, and what is in flight when one wakes the program is less than its level by as much.
    Case { name: "send-buffer-jitters", path: ROOM_THAT_JITTERS, workload: STREAM, settings: SMALL_SENDER,
        sender: "send-buffer", receiver: &["send-buffer", "application"] },
    Case { name: "receive-window-jitters", path: ROOM_THAT_JITTERS, workload: STREAM,
        settings: "[client.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 524288\"", sender: "receive-window", receiver: &["receive-window"] },
    // At the receiver the kernel's gathering shows as often as the buffer's pauses, and takes less time.
    Case { name: "send-buffer-gathers", path: "rtt = \"72.9ms\"\nrate = \"44.4mbit\"\nqueue = \"574KB\"", workload: STREAM,
        settings: "[server.sysctl]\n\"net.ipv4.tcp_wmem\" = \"4096 16384 96758\"", sender: "send-buffer", receiver: &["send-buffer"] },
    // Written again when little is left in flight, which timestamps of a millisecond blur as much.
    Case { name: "send-buffer-small", path: "rtt = \"60.1ms\"\nrate = \"72.5mbit\"\nqueue = \"241KB\"", workload: STREAM,
        settings: "[server.sysctl]\n\"net.ipv4.tcp_wmem\" = \"4096 16384 40000\"", sender: "send-buffer", receiver: &["send-buffer"] },
    // A flight of 17 segments: trains of 16 span the gap behind it and come at the mean rate, which is not the path's.
    Case { name: "send-buffer-of-one-train", path: "rtt = \"20.1ms\"\nrate = \"72.5mbit\"\nqueue = \"241KB\"",
        workload: "kind = \"stream\"\nseconds = \"30s\"",
        settings: "[server.sysctl]\n\"net.ipv4.tcp_wmem\" = \"4096 16384 37831\"\n[server.route]\ncwnd = 17",
        sender: "send-buffer", receiver: &["send-buffer"] },
    // Both as Linux has them: the window is full too, at times, and the buffer holds more than is in flight.
    Case { name: "send-buffer-default", path: "rtt = \"80ms\"\nrate = \"1gbit\"\nqueue = \"2000 packets\"", workload: STREAM,
        settings: "", sender: "send-buffer", receiver: &["send-buffer"] },
    // Full, but larger than what the path holds.
    Case { name: "send-buffer-harmless", path: "rtt = \"20ms\"\nrate = \"50mbit\"\nqueue = \"1000 packets\"", workload: STREAM,
        settings: "[server.socket]\nsndbuf = \"300kB\"\nforce = true", sender: "path-rate", receiver: &["path-rate"] },
    Case { name: "initial-window", path: "rtt = \"100ms\"\nrate = \"1gbit\"",
        workload: "kind = \"crr\"\nrequest = 1000\nresponse = 300000\ntransactions = 5", settings: "",
        sender: "initial-window", receiver: &["initial-window"] },
    Case { name: "random-loss", path: "rtt = \"50ms\"\nrate = \"200mbit\"\nqueue = \"2000 packets\"\nloss = \"0.2%\"",
        workload: STREAM, settings: "", sender: "random-loss", receiver: &["random-loss"] },
    Case { name: "random-loss-high", path: "rtt = \"50ms\"\nrate = \"200mbit\"\nqueue = \"2000 packets\"\nloss = \"1%\"",
        workload: STREAM, settings: "", sender: "random-loss", receiver: &["random-loss"] },
    // What closes a gap is acknowledged all at once, and duplicates alone tell what came before.
    Case { name: "random-loss-no-sack", path: "rtt = \"11ms\"\nrate = \"39mbit\"\nqueue = \"100 packets\"\nloss = \"1.3%\"",
        workload: STREAM, settings: "[server.sysctl]\n\"net.ipv4.tcp_sack\" = 0",
        sender: "random-loss", receiver: &["random-loss"] },
    // BBR is not held down by it: the path's rate is.
    Case { name: "random-loss-bbr", path: "rtt = \"50ms\"\nrate = \"200mbit\"\nqueue = \"2000 packets\"\nloss = \"1%\"",
        workload: STREAM, settings: "[server.socket]\ncongestion = \"bbr\"",
        sender: "path-rate", receiver: &["path-rate"] },
    Case { name: "congestion-loss", path: "rtt = \"80ms\"\nrate = \"100mbit\"\nqueue = \"20 packets\"",
        workload: STREAM, settings: "", sender: "congestion-loss", receiver: &["congestion-loss"] },
    Case { name: "congestion-loss-mild", path: "rtt = \"40ms\"\nrate = \"100mbit\"\nqueue = \"60 packets\"",
        workload: STREAM, settings: "", sender: "congestion-loss", receiver: &["congestion-loss"] },
    // Round trips vary by as much as the queue would delay them, so that none shows: that proves no policer, nor chance.
    Case { name: "congestion-loss-jitters", path: "rtt = \"40ms\"\nrate = \"50mbit\"\nqueue = \"30 packets\"\njitter = { stddev = \"2ms\", distribution = \"normal\", reorder = false }",
        workload: STREAM, settings: "", sender: "congestion-loss", receiver: &["congestion-loss", "random-loss"] },
    // Nothing is lost: marks cut the window.
    Case { name: "marks-random", path: "rtt = \"50ms\"\nrate = \"100mbit\"\nqueue = \"1000 packets\"\nloss = \"0.5%\"\necn = true",
        workload: STREAM, settings: MARKED, sender: "congestion-loss", receiver: &["congestion-loss"] },
    Case { name: "marks-red", path: "rtt = \"80ms\"\nrate = \"100mbit\"\nqueue = \"1000 packets\"\necn = true\ndiscipline = { kind = \"red\", min = \"15KB\", max = \"60KB\", probability = \"10%\" }",
        workload: STREAM, settings: MARKED, sender: "congestion-loss", receiver: &["congestion-loss"] },
    // Never idle, and never as fast for long: radio.
    Case { name: "path-rate-varies", path: VARIES, workload: STREAM, settings: "", sender: "path-rate", receiver: &["path-rate"] },
    Case { name: "path-rate-varies-bbr", path: VARIES, workload: STREAM, settings: "[server.socket]\ncongestion = \"bbr\"",
        sender: "path-rate", receiver: &["path-rate"] },
    // Slower by a fifth of its time, and full all the while.
    Case { name: "path-rate-steps", path: "rtt = \"40ms\"\nrate = \"50mbit\"\nqueue = \"60 packets\"\n[[path.down.step]]\nat = \"5s\"\nrate = \"10mbit\"",
        workload: STREAM, settings: "", sender: "path-rate", receiver: &["path-rate"] },
    Case { name: "path-rate-steps-deep", path: "rtt = \"40ms\"\nrate = \"20mbit\"\nqueue = \"400 packets\"\n[[path.down.step]]\nat = \"5s\"\nrate = \"5mbit\"",
        workload: STREAM, settings: "", sender: "path-rate", receiver: &["path-rate"] },
    Case { name: "path-rate-steps-up", path: "rtt = \"40ms\"\nrate = \"10mbit\"\nqueue = \"400 packets\"\n[[path.down.step]]\nat = \"5s\"\nrate = \"50mbit\"",
        workload: STREAM, settings: LARGE_RECEIVER, sender: "path-rate", receiver: &["path-rate"] },
    // Delays that vary by a quarter of the round trip bunch packets up, which come faster then than the path lets them.
    Case { name: "path-rate-jitters", path: JITTERS, workload: STREAM, settings: "", sender: "path-rate", receiver: &["path-rate"] },
    Case { name: "path-rate-jitters-bbr", path: JITTERS, workload: STREAM, settings: "[server.socket]\ncongestion = \"bbr\"",
        sender: "path-rate", receiver: &["path-rate"] },
    // Acknowledgements wait behind the data of the other way, and come in bunches. Both queues are full but for a few losses.
    Case { name: "both-ways", path: "rtt = \"30ms\"\nrate = \"20mbit\"\nqueue = \"100 packets\"",
        workload: "kind = \"mixed\"\n[[workload.part]]\nname = \"down\"\nkind = \"stream\"\nseconds = \"10s\"\n[[workload.part]]\nname = \"up\"\nkind = \"stream\"\ndirection = \"up\"\nseconds = \"10s\"",
        settings: "", sender: "path-rate", receiver: &["path-rate", "bufferbloat"] },
    Case { name: "path-rate", path: "rtt = \"20ms\"\nrate = \"50mbit\"\nqueue = \"200 packets\"",
        workload: STREAM, settings: "", sender: "path-rate", receiver: &["path-rate", "nothing-to-gain"] },
    Case { name: "path-rate-bloat", path: "rtt = \"20ms\"\nrate = \"20mbit\"\nqueue = \"1000 packets\"",
        workload: STREAM, settings: "", sender: "path-rate", receiver: &["path-rate"] },
    Case { name: "path-rate-bbr", path: "rtt = \"40ms\"\nrate = \"100mbit\"\nqueue = \"1000 packets\"",
        workload: STREAM, settings: "[server.socket]\ncongestion = \"bbr\"",
        sender: "path-rate", receiver: &["path-rate"] },
    // Losses in bursts; the last goes on to the end, so nothing that the timer sends then gets to the receiver.
    Case { name: "timer-stream", path: "rtt = \"20ms\"\nrate = \"100mbit\"\nqueue = \"500 packets\"\nloss = { model = \"gilbert-elliott\", p = \"0.2%\", r = \"2%\", h = \"0%\", k = \"100%\" }",
        workload: STREAM, settings: "",
        sender: "vanished-peer", receiver: &["random-loss"] },
    Case { name: "application", path: "rtt = \"40ms\"\nrate = \"100mbit\"",
        workload: "kind = \"burst\"\nbuffered = \"100kB\"\nrate = \"4mbit\"\ntotal = \"5MB\"\nkeyframe = \"50kB\"", settings: "",
        sender: "application", receiver: &["application"] },
    // What it writes while the window grows is no burst: it writes as much all the time.
    Case { name: "application-even", path: "rtt = \"112ms\"\nrate = \"105mbit\"\nqueue = \"1000 packets\"",
        workload: "kind = \"stream\"\nseconds = \"5s\"\npace = \"21mbit\"", settings: "",
        sender: "application", receiver: &["application", "nothing-to-gain"] },
    // The timer's period is not the round trip, so bursts and acknowledgements meet by chance only.
    Case { name: "application-long", path: "rtt = \"70ms\"\nrate = \"100mbit\"",
        workload: "kind = \"burst\"\nbuffered = \"100kB\"\nrate = \"8mbit\"\ntotal = \"5MB\"\nkeyframe = \"50kB\"", settings: "",
        sender: "application", receiver: &["application"] },
    // A large buffer of the sender, and of the receiver: nothing but the path is left.
    Case { name: "buffers-large", path: "rtt = \"40ms\"\nrate = \"100mbit\"\nqueue = \"1000 packets\"",
        workload: STREAM, settings: LARGE_RECEIVER, sender: "path-rate", receiver: &["path-rate"] },
];

/// Runs it and gives the kernel's figures and the diagnosis of the capture.
fn made(folder: &Path, case: &Case, args: &[&str]) -> (Value, Value) {
    let text = format!("name = \"v\"\n[path]\n{}\n[workload]\n{}\n{}\n", case.path, case.workload, case.settings);
    let (report, found) = diagnosed(folder, case.name, &text, args);
    (report["arms"][0]["metrics"].clone(), found)
}

/// The rate of a path where it is fastest, in bits per second.
fn rate_of(path: &str) -> f64 {
    let rates = path.lines().filter_map(|line| line.strip_prefix("rate = \"")?.strip_suffix('"'));
    let rate = |rate: &str| rate.parse::<Rate>().expect("a rate that scenarios take").bits_per_second();
    rates.map(rate).max().expect("a rate") as f64
}

/// What is wrong with a diagnosis.
fn faults(case: &Case, metrics: &Value, found: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let flows = found["captures"][0]["flows"].as_array().expect("flows");
    for vantage in ["sender", "receiver"] {
        if !flows.iter().any(|flow| flow["vantage"] == vantage) {
            faults.push(format!("{}: no flow seen from the {vantage}", case.name));
        }
    }
    for flow in flows {
        let code = flow["verdict"]["code"].as_str().expect("a code");
        let right = match flow["vantage"].as_str() {
            Some("sender") => code == case.sender,
            Some("receiver") => case.receiver.contains(&code),
            _ => false,
        };
        let limits = flow["limits"].as_object().expect("limits");
        if !right {
            faults.push(format!("{}: {} says {code}: {limits:?}", case.name, flow["vantage"]));
        }
        let total: f64 = limits.values().filter_map(Value::as_f64).sum();
        if (total - 1.0).abs() > 1e-9 {
            faults.push(format!("{}: {} limits add to {total}", case.name, flow["vantage"]));
        }
        // No path delivers more than it can; rates of trains are told in steps of 9 %, and a round trip may hold one bunch more.
        let capacity = flow["measured"]["capacity_bps"].as_f64().unwrap_or(0.0);
        let most = if case.name == "both-ways" { 1.25 } else { 1.1 };
        if capacity > most * rate_of(case.path) {
            faults.push(format!("{}: {} tells a capacity of {capacity}", case.name, flow["vantage"]));
        }
        let from_afar = code == "application" && flow["vantage"] == "receiver";
        let evidence = flow["verdict"]["evidence"].to_string();
        // The timestamps may prove it there; a case whose cause is another must be in doubt.
        let is_sure = case.sender == "application" && evidence.contains("timestamps show");
        if from_afar && !is_sure && !evidence.contains("capture at the sender") {
            faults.push(format!("{}: the receiver's view is not called in doubt", case.name));
        }
        if case.sender == "receive-window" && flow["vantage"] == "sender" {
            let figure = |name: &str| metrics[name].as_f64().unwrap_or_else(|| panic!("{name} in {metrics}"));
            let truth = figure("rwnd_limited_ms") / figure("busy_ms");
            let share = limits["receive_window"].as_f64().expect("a share");
            if (share - truth).abs() > 0.05 {
                faults.push(format!("{}: receive_window {share:.3}, the kernel counts {truth:.3}", case.name));
            }
        }
    }
    faults
}

#[test]
fn causes_that_are_known_are_named_at_both_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = two_at_a_time(CASES.iter().collect(), |case| {
        let (metrics, found) = made(folder.path(), case, &[]);
        faults(case, &metrics, &found)
    });
    let faults = faults.concat();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Where two transfers against each other keep step, the ACKs of one leave the queue of the other's data back to back. With samples they do not keep
/// step.
#[test]
fn acknowledgements_that_wait_behind_data_show_no_rate() {
    let folder = tempfile::tempdir().expect("a folder");
    let case = CASES.iter().find(|case| case.name == "both-ways").expect("a case");
    let (metrics, found) = made(folder.path(), case, &["--samples", "off"]);
    let faults = faults(case, &metrics, &found);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The gain that a capture at either end tells is what a buffer that tunes itself gives.
#[test]
fn what_a_small_send_buffer_costs_comes_true() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = CASES.iter().find(|case| case.name == "send-buffer-exceeded").expect("a case");
    let freed = Case { name: "freed", settings: LARGE_RECEIVER, ..*small };
    let goodput = |metrics: &Value| metrics["goodput_bps"].as_f64().expect("a goodput");
    let (metrics, found) = made(folder.path(), small, &[]);
    let proven = goodput(&made(folder.path(), &freed, &[]).0) / goodput(&metrics);
    let flows = found["captures"][0]["flows"].as_array().expect("flows");
    assert_eq!(flows.len(), 2, "one for each end");
    for flow in flows {
        let told = flow["verdict"]["gain"].as_f64().expect("a gain");
        assert!((told / proven - 1.0).abs() < 0.1, "{}: told {told}, proven {proven}", flow["vantage"]);
        let buffer = flow["measured"]["send_buffer_bytes"].as_f64().expect("a size");
        assert!((buffer / 361_443.0 - 0.95).abs() < 0.08, "{}: {buffer}", flow["vantage"]);
    }
}

/// What is paced and held by a small buffer comes as evenly as through a path that is full; in 30 s nothing waits in a queue, is lost or marked. From
/// afar it is taken for the program's.
#[test]
fn an_even_rate_without_a_queue_is_no_paths() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "name = \"v\"\n[path]\nrtt = \"69.4ms\"\nrate = \"20.6mbit\"\nqueue = \"148KB\"\n[server.sysctl]\n\
                \"net.ipv4.tcp_wmem\" = \"4096 16384 56370\"\n[server.socket]\nmax_pacing_rate = \"5.1mbit\"\n[workload]\n\
                kind = \"stream\"\nseconds = \"30s\"\n";
    let (_, found) = diagnosed(folder.path(), "even", text, &[]);
    let mut flows = found["captures"][0]["flows"].as_array().expect("flows").iter();
    let there = flows.find(|flow| flow["vantage"] == "sender").expect("a view of the sender");
    assert_eq!(there["verdict"]["code"], "send-buffer", "{}", there["verdict"]);
}

/// An upload fills the queue of a slow uplink, and the download's acknowledgements wait in it; how much faster it is without the upload is told.
#[test]
fn a_download_that_an_upload_holds_down_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = "rtt = \"30ms\"\nqueue = \"100 packets\"\n[path.down]\nrate = \"20mbit\"\n[path.up]\nrate = \"1mbit\"";
    let part = |name: &str| {
        format!("[[workload.part]]\nname = \"{name}\"\nkind = \"stream\"\ndirection = \"{name}\"\nseconds = \"10s\"\n")
    };
    let run = |name: &str, up: &str, parts: &str, settings: &str| {
        let text = format!("name = \"v\"\n[path]\n{path}\n{up}\n[workload]\nkind = \"mixed\"\n{parts}{settings}");
        let (report, found) = diagnosed(folder.path(), name, &text, &[]);
        (report["arms"][0]["metrics"]["down"]["goodput_bps"].as_f64().expect("a goodput"), found)
    };
    let (alone, _) = run("alone", "", &part("down"), "");
    let both = part("down") + &part("up");
    let (held, found) = run("held", "", &both, "");
    let flows = found["captures"][0]["flows"].as_array().expect("flows");
    let down: Vec<&Value> = flows.iter().filter(|flow| flow["direction"] == "down").collect();
    assert_eq!(down.len(), 2, "one for each end");
    for flow in down {
        let (verdict, gain) = (&flow["verdict"], flow["verdict"]["gain"].as_f64().unwrap_or(0.0));
        assert_eq!(verdict["code"], "bufferbloat", "{verdict}");
        let held = flow["goodput_bps"].as_f64().expect("a rate");
        // No more than the upload's end brings, though a transfer so slow may not have shown all that the path lets through.
        let most = 1.1 * alone / held;
        assert!((3.0..most).contains(&gain), "{gain}, and {alone} without the upload, {held} with it");
        let waits = flow["facts"]["rtt"]["ack_wait_ms"].as_f64().expect("a wait");
        assert!(waits > 100.0, "{waits}");
        let change = &flow["remedies"][0]["changes"][0];
        assert_eq!((&change["side"], &change["to"]), (&"client".into(), &"bbr".into()), "{change}");
    }
    // What is advised, at the uploading host and on the path.
    let (paced, _) = run("paced", "", &both, "[client.sysctl]\n\"net.ipv4.tcp_congestion_control\" = \"bbr\"\n");
    let (managed, _) = run("managed", "discipline = { kind = \"fq_codel\" }", &both, "");
    assert!(paced > 3.0 * held && managed > 6.0 * held, "{held}, {paced} with BBR, {managed} with fq_codel");
    let waits = |flow: &Value| !flow["facts"]["rtt"]["ack_wait_ms"].is_null();
    assert!(!flows.iter().any(|flow| flow["direction"] == "up" && waits(flow)), "its own data waits there");
}

/// A transfer of 8 s over a path that loses packets at random, at both ends.
fn through_losses(folder: &Path, control: &str, (loss, rtt_ms, mbit): (&str, u64, u64), settings: &str) -> Vec<Value> {
    let name = format!("{control}-{rtt_ms}-{mbit}-{}-{}", loss.replace(['%', '.'], "_"), settings.len());
    let packets = mbit * (rtt_ms + 20) / 12;
    let text = format!(
        "name = \"v\"\n[path]\nrtt = \"{rtt_ms}ms\"\nrate = \"{mbit}mbit\"\nqueue = \"{packets} packets\"\nloss = \"{loss}\"\n\
         [workload]\nkind = \"stream\"\nseconds = \"8s\"\n[[arm]]\nname = \"as-given\"\nserver.socket.congestion = \"{control}\"\n{settings}"
    );
    let (_, found) = diagnosed(folder, &name, &text, &[]);
    found["captures"][0]["flows"].as_array().expect("flows").clone()
}

fn has(flow: &Value, code: &str) -> bool {
    let findings = flow["findings"].as_array().expect("findings");
    flow["verdict"]["code"] == code || findings.iter().any(|one| one["code"] == code)
}

/// BBR sends at the path's rate through losses and repairs them meanwhile, which costs nothing.
#[test]
fn repair_at_the_paths_rate_is_the_paths() {
    let folder = tempfile::tempdir().expect("a folder");
    for flow in through_losses(folder.path(), "bbr", ("1%", 40, 200), "") {
        let (verdict, limits) = (&flow["verdict"], &flow["limits"]);
        assert_eq!(verdict["code"], "path-rate", "{verdict}");
        assert_eq!(verdict["share"], limits["path_rate"], "the picture shows what the sentence says");
        assert!(limits["path_rate"].as_f64().is_some_and(|share| share > 0.85), "{limits}");
        assert!(!has(&flow, "random-loss"), "{flow}");
    }
}

/// What comes out of a queue at an even rate keeps any bucket of that rate at one packet, and whatever is lost meets it nearly empty.
#[test]
fn losses_on_a_full_path_are_no_policers() {
    let folder = tempfile::tempdir().expect("a folder");
    let bbr =
        [("0.05%", 40, 20), ("0.05%", 40, 200), ("0.3%", 120, 20), ("1%", 120, 20), ("3%", 120, 20), ("3%", 40, 20)];
    let paths = bbr.map(|path| ("bbr", path)).into_iter().chain([("cubic", ("0.3%", 10, 20))]).collect();
    for flow in two_at_a_time(paths, |(control, path)| through_losses(folder.path(), control, path, "")).concat() {
        assert_eq!(flow["verdict"]["code"], "path-rate", "{}", flow["verdict"]);
        assert!(!has(&flow, "policer"), "{flow}");
    }
}

/// Who sends with BBR is not told to.
#[test]
fn a_sender_that_keeps_its_window_through_losses_is_not_advised_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let advised = |control: &str, path| {
        let flows = through_losses(folder.path(), control, path, "");
        let flow = flows.iter().find(|flow| flow["vantage"] == "sender").expect("a view of the sender").clone();
        assert_eq!(flow["verdict"]["code"], "random-loss", "{}", flow["verdict"]);
        let family = flow["facts"]["congestion_control"]["name"].as_str().expect("a family").to_owned();
        let changes = flow["remedies"].as_array().expect("remedies").iter().flat_map(|one| one["changes"].as_array());
        (family, changes.flatten().any(|change| change["to"] == "bbr"))
    };
    assert_eq!(advised("bbr", ("3%", 120, 200)), ("bbr".to_owned(), false));
    assert_eq!(advised("cubic", ("0.3%", 40, 200)), ("cubic".to_owned(), true));
}

/// Where BBR sends through losses, what is behind them fills the buffers of both hosts until it is repaired.
#[test]
fn buffers_that_outlast_repair_come_true() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = ("3%", 120, 200);
    let flows = through_losses(folder.path(), "bbr", path, "");
    let flow = flows.iter().find(|flow| flow["vantage"] == "sender").expect("a view of the sender");
    let remedies = flow["remedies"].as_array().expect("remedies").iter();
    let changes: Vec<&Value> = remedies.filter_map(|one| one["changes"].as_array()).flatten().collect();
    let raised = |change: &&Value| {
        let name = change["setting"]["sysctl"].as_str().filter(|name| name.ends_with("mem"))?;
        Some(format!("{}.sysctl.\"{name}\" = {}\n", change["side"].as_str()?, change["to"]))
    };
    let settings: String = changes.iter().filter_map(raised).collect();
    assert_eq!(settings.lines().count(), 2, "{changes:?}");
    let raised = through_losses(folder.path(), "bbr", path, &settings);
    let rate = |flow: &Value| flow["goodput_bps"].as_f64().expect("a rate");
    assert!(rate(&raised[0]) > 1.4 * rate(&flows[0]), "{} to {}: {settings}", rate(&flows[0]), rate(&raised[0]));
}
