//! What `diagnose` says to set, set: the lab makes each cause, its capture alone gives the remedy, and with it the transfer must be
//! as fast as the diagnosis said it would be.
//!
//! Needs the lab kernel 6.12, which `./x test` builds first; without it this test fails and says so.

#![allow(clippy::print_stdout)]

mod common;

use common::{json, texts, thalweg, two_at_a_time};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A transfer with a cause that a setting mends.
struct Case {
    cause: &'static str,
    text: String,
    /// Which of the remedies, and what it sets: the first setting's side, kind and name.
    remedy: (usize, [&'static str; 3]),
    /// The figure that says how fast it is, and whether more of it is better.
    figure: (&'static str, bool),
    /// How many times better it must become, by the arithmetic of what was made.
    gain: (f64, f64),
    /// That over the gain which the diagnosis told, where it told one.
    told: (f64, f64),
}

const PATH: &str = "[path]\nrtt = \"40ms\"\nrate = \"200mbit\"\nqueue = \"3000 packets\"\n";
const STREAM: &str = "[workload]\nkind = \"stream\"\nseconds = \"6s\"\n";
const RATE: (&str, bool) = ("/goodput_bps", true);
/// What is told is what happens.
const NEAR: (f64, f64) = (0.75, 1.25);

fn case(cause: &'static str, remedy: [&'static str; 3], gain: (f64, f64), lines: &str) -> Case {
    Case { cause, text: format!("{PATH}{lines}"), remedy: (0, remedy), figure: RATE, gain, told: NEAR }
}

fn cases() -> Vec<Case> {
    let small = "[client.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 524288\"\n";
    let unscaled = "[client.sysctl]\n\"net.ipv4.tcp_window_scaling\" = 0\n";
    let clamped = "[workload]\nkind = \"mixed\"\n[[workload.part]]\nname = \"first\"\nstart = \"0s\"\nkind = \"crr\"\nrequest = 100\nresponse = 100\ntransactions = 1\n\
                   [[workload.part]]\nname = \"bulk\"\nstart = \"1s\"\nkind = \"stream\"\nseconds = \"5s\"\n[server.route]\ncwnd = 200\n";
    let paused = "[workload]\nkind = \"topics\"\nseconds = \"20s\"\n[[workload.topic]]\nname = \"t\"\nperiod = \"2s\"\nsize = \"500kB\"\n";
    vec![
        // 331 kB of window where the path holds 991.
        case("receive-window", ["client", "sysctl", "net.ipv4.tcp_rmem"], (2.5, 3.1), &format!("{STREAM}{small}")),
        case("window-scaling-missing", ["client", "sysctl", "net.ipv4.tcp_window_scaling"], (10.0, 15.0), &format!("{STREAM}{unscaled}")),
        Case {
            text: format!(
                "[path]\nrtt = \"40ms\"\nrate = \"500mbit\"\nqueue = \"5000 packets\"\n{STREAM}[server.sysctl]\n\"net.ipv4.tcp_wmem\" = \"4096 16384 524288\"\n\
                 [client.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 33554432\"\n"
            ),
            // The program's pauses between its writes are the buffer's, too, and told beside it.
            told: (0.75, 1.75),
            ..case("send-buffer", ["server", "sysctl", "net.ipv4.tcp_wmem"], (4.0, 8.0), "")
        },
        // 1 MB in rounds of 10, 20, 40, … or of 40, 80, …: two of seven are saved; without all of them one would be left.
        Case {
            text: "[path]\nrtt = \"100ms\"\nrate = \"1gbit\"\n[workload]\nkind = \"crr\"\nrequest = 1000\nresponse = 1000000\ntransactions = 2\n".to_owned(),
            figure: ("/latency_ms/p50", false),
            told: (0.2, 1.0),
            ..case("initial-window", ["server", "route", "initcwnd"], (1.25, 1.4), "")
        },
        // Delays that vary by an eighth of the round trip end CUBIC's slow start at a fifth of what the path holds.
        Case {
            text: "[path]\nrtt = \"80ms\"\nrate = \"200mbit\"\nqueue = \"3000 packets\"\njitter = { stddev = \"10ms\", distribution = \"normal\", reorder = false }\n\
                   [workload]\nkind = \"stream\"\nseconds = \"10s\"\n[client.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 67108864\"\n\
                   [server.sysctl]\n\"net.ipv4.tcp_wmem\" = \"4096 65536 67108864\"\n"
                .to_owned(),
            ..case("initial-window", ["server", "sysctl", "net.ipv4.tcp_congestion_control"], (2.0, 2.8), "")
        },
        // Losses end trains of packets, from which the path's rate is read: it is more than is told.
        Case {
            told: (0.75, 2.0),
            ..case("random-loss", ["server", "sysctl", "net.ipv4.tcp_congestion_control"], (8.0, 15.0), &format!("{STREAM}[path.down]\nloss = \"0.3%\"\n"))
        },
        Case {
            text: format!("[path]\nrtt = \"80ms\"\nrate = \"100mbit\"\nqueue = \"20 packets\"\n{}", STREAM.replace("6s", "15s")),
            ..case("congestion-loss", ["server", "sysctl", "net.ipv4.tcp_congestion_control"], (3.0, 4.4), "")
        },
        Case { figure: ("/bulk/goodput_bps", true), ..case("congestion-window-clamp", ["server", "route", "cwnd"], (2.5, 3.5), clamped) },
        Case { figure: ("/latency_ms/p50", false), ..case("idle-restart", ["server", "sysctl", "net.ipv4.tcp_slow_start_after_idle"], (2.5, 4.5), paused) },
        // The first way is the program's own; its second is the other host's.
        Case {
            text: format!("[path]\nrtt = \"10ms\"\nrate = \"100mbit\"\n{ASKS}"),
            remedy: (1, ["server", "route", "quickack"]),
            figure: ("/duration_s", false),
            ..case("delayed-ack", ["", "", ""], (2.5, 3.5), "")
        },
        // One answer of 1400 bytes in thirty is lost: 200 ms and a round trip, or three ticks of 4 ms.
        Case {
            text: "[path]\nrtt = \"0.5ms\"\nrate = \"1gbit\"\n[path.down]\nloss = \"3%\"\n[workload]\nkind = \"rr\"\nrequest = 64\nresponse = 1400\ntransactions = 500\n".to_owned(),
            figure: ("/transactions_per_s", true),
            // A timer that fires sooner still takes a while: told is the rate without any silence.
            told: (0.4, 1.0),
            ..case("retransmission-timeout", ["server", "route", "rto_min"], (4.0, 9.0), "")
        },
        // Nothing arrives, and then all that the line takes.
        Case { remedy: (1, ["server", "route", "mtu"]), ..case("path-mtu-black-hole", ["", "", ""], (1e3, f64::INFINITY), &format!("{STREAM}[path.down]\nblack_hole = 1400\n")) },
        case("path-mtu-black-hole", ["server", "sysctl", "net.ipv4.tcp_mtu_probing"], (1e3, f64::INFINITY), &format!("{STREAM}[path.down]\nblack_hole = 1400\n")),
        Case {
            told: (0.75, 2.0),
            ..case("reordering", ["server", "sysctl", "net.ipv4.tcp_congestion_control"], (3.0, 6.0), &format!("{STREAM}[path.down]\nreorder = \"1%\"\n"))
        },
        Case {
            remedy: (1, ["server", "sysctl", "net.ipv4.tcp_recovery"]),
            ..case("reordering", ["", "", ""], (3.0, 6.0), &format!("{STREAM}[path.down]\nreorder = \"1%\"\n"))
        },
        // The rate is the contract's either way; what is lost is not.
        Case {
            figure: ("/retransmits", false),
            // What is told is of the rate, which stays what the policer lets through.
            told: (0.0, f64::INFINITY),
            ..case("policer", ["server", "socket", "max_pacing_rate"], (10.0, f64::INFINITY), &format!("{STREAM}[path.down]\npolicer = {{ rate = \"20mbit\", burst = \"100kB\" }}\n"))
        },
    ]
}

/// Runs it with changes laid over it; gives the report's one arm.
fn made(folder: &Path, text: &str, changes: &[String]) -> Value {
    fs::write(folder.join("s.toml"), format!("name = \"s\"\n{text}")).expect("written");
    let set = changes.iter().flat_map(|change| ["--set", change]);
    let run = ["lab", "run", "s.toml", "--kernel", "6.12", "--samples", "off", "--out", "out", "-q"];
    json(folder, &run.into_iter().chain(set).collect::<Vec<_>>())["arms"][0].clone()
}

/// The connection with most data, as its sender's end shows it.
fn diagnosed(folder: &Path, arm: &Value) -> Value {
    let capture = format!("out/{}", arm["capture"].as_str().expect("a capture"));
    let output = thalweg(folder, &["diagnose", &capture, "--json"]).output().expect("the program starts");
    let (found, err) = texts(&output);
    let found: Value = serde_json::from_str(&found).unwrap_or_else(|error| panic!("{error}: {err}"));
    let flows = found["captures"][0]["flows"].as_array().expect("flows").iter();
    let sender = flows.filter(|flow| flow["vantage"] == "sender");
    sender.max_by_key(|flow| flow["bytes_down"].as_u64()).expect("a flow seen by its sender").clone()
}

/// A change as `--set` takes it; a setting that is left to the kernel goes from the text.
fn set(text: &mut String, change: &Value) -> Option<String> {
    let (kind, name) = change["setting"].as_object().and_then(|setting| setting.iter().next()).expect("a setting");
    let (side, name) = (change["side"].as_str().expect("a side"), name.as_str().expect("a name"));
    let to = match (name, change["to"].as_str().expect("a value")) {
        ("quickack", _) => "true",
        (_, "auto") => {
            *text = text.lines().filter(|line| !line.starts_with(&format!("{name} ="))).collect::<Vec<_>>().join("\n");
            return None;
        }
        (_, to) => to,
    };
    let quoted = if kind == "sysctl" { format!("\"{name}\"") } else { name.to_owned() };
    Some(format!("{side}.{kind}.{quoted}={to}"))
}

/// What is wrong with a case's remedy.
fn fault(case: &Case) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let before = made(folder, &case.text, &[]);
    let flow = diagnosed(folder, &before);
    let (cause, gain) = (&flow["verdict"]["code"], flow["verdict"]["gain"].as_f64());
    if *cause != case.cause {
        return Some(format!("the verdict is {cause}"));
    }
    let (place, [side, kind, name]) = case.remedy;
    let remedy = &flow["remedies"][place];
    let first = &remedy["changes"][0];
    if remedy["code"] != case.cause || first["side"] != side || first["setting"][kind] != name {
        return Some(format!("the remedy is {remedy}"));
    }
    let commands = remedy["commands"].as_array().map_or(0, Vec::len);
    let for_other = if side == "client" || name == "quickack" { "other-side" } else { "" };
    let is_for_other = remedy["applicability"] == "other-side";
    if commands != remedy["changes"].as_array().map_or(0, Vec::len) || is_for_other == for_other.is_empty() {
        return Some(format!("{remedy}"));
    }
    let mut text = case.text.clone();
    let changes: Vec<String> =
        remedy["changes"].as_array()?.iter().filter_map(|change| set(&mut text, change)).collect();
    let after = made(folder, &text, &changes);
    let (figure, more) = case.figure;
    let value = |arm: &Value| {
        let value = arm["metrics"].pointer(figure).and_then(Value::as_f64);
        value.unwrap_or_else(|| panic!("no {figure} in {}", arm["metrics"]))
    };
    // Nothing sent again, or nothing delivered, counts as one.
    let value = |arm: &Value| Some(value(arm)).filter(|value| *value > 0.0).unwrap_or(1.0);
    let ratio = if more { value(&after) / value(&before) } else { value(&before) / value(&after) };
    let within = |range: (f64, f64), value: f64| range.0 <= value && value <= range.1;
    let kept = gain.is_none_or(|gain| within(case.told, ratio / gain));
    let told = gain.map_or("–".to_owned(), |gain| format!("{gain:.2}"));
    let (before, after) = (value(&before), value(&after));
    println!("| `{}` | {} {before:.4} | {after:.4} | {ratio:.2} | {told} |", case.cause, &figure[1..]);
    let found = format!("{ratio:.2} times better, told {told}, expected {:?}", case.gain);
    (!within(case.gain, ratio) || !kept).then_some(found)
}

#[test]
fn remedies_give_what_the_diagnosis_told() {
    let faults = two_at_a_time(cases(), |case| fault(&case).map(|fault| format!("{}: {fault}", case.cause)));
    let faults: Vec<String> = faults.into_iter().flatten().collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

const ASKS: &str = r#"[workload]
kind = "command"
server = "python3 server.py"
client = "python3 client.py {server}"
port = 7000
[workload.files]
"server.py" = '''
import socket
l = socket.socket(); l.bind(('0.0.0.0', 7000)); l.listen(8)
c, _ = l.accept()
while True:
    missing = 700
    while missing > 0:
        got = len(c.recv(missing))
        if got == 0: raise SystemExit
        missing -= got
    c.sendall(b'r' * 200)
'''
"client.py" = '''
import socket, sys
s = socket.create_connection((sys.argv[1], 7000))
for _ in range(30):
    s.sendall(b'h' * 200); s.sendall(b'b' * 500)
    missing = 200
    while missing > 0: missing -= len(s.recv(missing))
s.close()
'''
"#;
