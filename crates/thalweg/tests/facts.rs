//! The facts of connections, held against what the lab's kernel counted, or against arithmetic on the path that made them.
//!
//! Needs the lab kernel 6.12, which `./x test` builds first; without it these tests fail and say so.

mod common;

use common::{lab_in, thalweg};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// Runs a scenario and gives, for each arm, its name, its kernels' counters, and the flow at the sender's and at the receiver's tap.
fn flows(folder: &Path, scenario: &str) -> Vec<(String, Value, [Value; 2])> {
    let report = lab_in(folder, scenario, &["--kernel", "6.12", "--samples", "off"]);
    let arms = report["arms"].as_array().expect("arms").iter().map(|arm| {
        let capture = format!("out/{}", arm["capture"].as_str().expect("a capture"));
        // It exits with 1 where there is something to gain.
        let output = thalweg(folder, &["diagnose", &capture, "--json"]).output().expect("the program starts");
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let flows = document["captures"][0]["flows"].as_array().expect("flows");
        let at = |end: &str| flows.iter().find(|flow| flow["interface"] == end).expect("a flow at each end").clone();
        (
            arm["name"].as_str().expect("a name").to_owned(),
            arm["metrics"]["kernel"].clone(),
            [at("server"), at("client")],
        )
    });
    arms.collect()
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {value}"))
}

fn near(value: &Value, path: &str, wanted: f64, part: f64) {
    let found = number(value, path);
    assert!((found / wanted - 1.0).abs() <= part, "{path} is {found}, not within {part} of {wanted}: {value}");
}

const ONE: &str = r#"
name = "facts"
about = "each arm has what its name says"
[path]
rtt = "40ms"
rate = "100mbit"
queue = "2000 packets"
[workload]
kind = "stream"
seconds = "4s"
[[arm]]
name = "capped"
client.sysctl."net.ipv4.tcp_rmem" = "4096 131072 524288"
[[arm]]
name = "fixed"
client.socket.rcvbuf = "100kB"
[[arm]]
name = "initial window"
server.route.initcwnd = 24
[[arm]]
name = "ecn"
client.sysctl."net.ipv4.tcp_ecn" = 1
server.sysctl."net.ipv4.tcp_ecn" = 1
path.down.loss = "0.2%"
path.down.ecn = true
[[arm]]
name = "reordered"
path.down.jitter = { stddev = "1ms", distribution = "normal", reorder = true }
[[arm]]
name = "outages"
path.rate = "20mbit"
client.sysctl."net.ipv4.tcp_rmem" = "4096 131072 400000"
"#;

#[test]
fn windows_options_and_losses_are_as_they_were_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut scenario = ONE.to_owned();
    for (begin, length) in [(1_000, 8), (1_500, 8), (2_000, 18), (2_500, 8), (3_000, 8)] {
        for (at, loss) in [(begin, "100%"), (begin + length, "0%")] {
            writeln!(scenario, "[[arm.path.step]]\nat = \"{at}ms\"\nloss = \"{loss}\"").expect("written");
        }
    }
    for (name, kernel, ends) in flows(folder.path(), &scenario) {
        let facts = ends.each_ref().map(|flow| &flow["facts"]);
        for (flow, facts) in ends.iter().zip(facts) {
            near(flow, "/rtt_min_ms", 40.0, if name == "reordered" { 0.2 } else { 0.02 });
            assert!(
                number(facts, "/rtt/p50_ms") >= 40.0 && number(facts, "/rtt/max_ms") >= number(facts, "/rtt/p99_ms")
            );
            assert!(facts.get("multipath").is_none() && facts.get("keep_alives").is_none(), "{name}: {facts}");
        }
        match name.as_str() {
            // Its tcp_rmem has 512 KiB, and core.rmem_max is 208 KiB.
            "capped" | "fixed" => {
                for facts in facts {
                    assert_eq!(facts["receive_window"]["state"], name, "{facts}");
                    let (window, flight) =
                        (number(facts, "/receive_window/max_bytes"), number(facts, "/flight_max_bytes"));
                    // Elsewhere than at the sender flights are placed by round trips.
                    assert!(flight <= 1.05 * window && flight >= 0.98 * window, "{name}: {facts}");
                    assert_eq!(facts["slow_start"]["exit"], "receive-window", "{facts}");
                }
                if name == "capped" {
                    assert_eq!(facts[0]["receive_window"]["buffer_least_bytes"], 512 << 10);
                    assert_eq!(facts[0]["receive_window"]["buffer_below_bytes"], 1 << 20);
                }
            }
            "initial window" => {
                for facts in facts {
                    assert_eq!(
                        (&facts["initial_window"]["exact"], number(facts, "/initial_window/segments")),
                        (&true.into(), 24.0)
                    );
                    // 1500 bytes and Ethernet's header carry 1448.
                    near(facts, "/delivery/capacity_bps", 100e6 * 1448.0 / 1514.0, 0.05);
                }
            }
            "ecn" => {
                for facts in facts {
                    assert_eq!(facts["ecn"]["negotiated"], true);
                    assert!(number(facts, "/ecn/echoes") > 0.0 && number(facts, "/ecn/reductions") > 0.0, "{facts}");
                    assert_eq!(facts["slow_start"]["exit"], "ecn-echo", "{facts}");
                }
                // The path marks behind the sender.
                assert_eq!(number(facts[0], "/ecn/marked"), 0.0);
                assert!(number(facts[1], "/ecn/marked") > 0.0);
                assert!(facts[0].get("losses").is_none(), "marked, not dropped: {}", facts[0]);
            }
            "reordered" => {
                assert!(kernel["server"]["TCPSACKReorder"].as_u64().expect("a counter") > 0);
                for facts in facts {
                    assert!(number(facts, "/reordering/packets") > 0.0, "{facts}");
                    assert!(number(facts, "/reordering/segments_max") >= 1.0, "{facts}");
                }
                // Six times the deviation, twice: netem's normal distribution has no more.
                let late = number(facts[1], "/reordering/late_ms_max");
                assert!(late > 0.5 && late < 12.0, "{late}");
            }
            "outages" => {
                let sent_again = number(&kernel["server"], "/RetransSegs");
                for facts in facts {
                    let losses = &facts["losses"];
                    assert_eq!(losses["episodes"], 5, "{facts}");
                    // A packet takes 0.6 ms at 20 Mb/s: the first and the last of one may be that far within.
                    for (path, wanted) in [("/p50_ms", 8.0), ("/p80_ms", 8.0), ("/max_ms", 18.0)] {
                        assert!((number(losses, path) - wanted).abs() <= 1.5, "{path}: {losses}");
                    }
                    assert!((number(losses, "/packets") - sent_again).abs() <= 2.0, "{sent_again}: {losses}");
                }
            }
            _ => panic!("an arm without a check: {name}"),
        }
    }
}

/// Paths on which each congestion control loses something, or fills a queue.
const PATHS: [&str; 4] = [
    "rtt = \"40ms\"\nrate = \"50mbit\"\nqueue = \"60 packets\"",
    "rtt = \"20ms\"\nrate = \"40mbit\"\nqueue = \"100 packets\"",
    "rtt = \"50ms\"\nrate = \"60mbit\"\nqueue = \"600 packets\"\nloss = \"0.2%\"",
    "rtt = \"30ms\"\nrate = \"30mbit\"\nqueue = \"300 packets\"\nloss = \"0.1%\"",
];

#[test]
fn the_congestion_controls_family_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut scenario = String::from(
        "name = \"families\"\nabout = \"three of them\"\n[path]\nrtt = \"40ms\"\n[workload]\nkind = \"stream\"\nseconds = \"25s\"\n",
    );
    for family in ["cubic", "reno", "bbr"] {
        for (number, path) in PATHS.iter().enumerate() {
            writeln!(scenario, "[[arm]]\nname = \"{family} {number}\"\nserver.socket.congestion = \"{family}\"")
                .expect("written");
            for line in path.lines() {
                writeln!(scenario, "path.{line}").expect("written");
            }
        }
    }
    let (mut right, mut told) = (0, String::new());
    for (name, _, [sender, _]) in flows(folder.path(), &scenario) {
        let found = &sender["facts"]["congestion_control"];
        right += usize::from(found["name"].as_str().is_some_and(|family| name.starts_with(family)));
        writeln!(told, "{name}: {found}").expect("written");
    }
    #[expect(clippy::print_stdout, reason = "the hit rate that the book states")]
    {
        println!("{right} of {}\n{told}", 3 * PATHS.len());
    }
    assert!(right >= 11, "{told}");
}
