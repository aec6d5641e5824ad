//! `thalweg fix CAPTURE`: a path fitted to a capture, a remedy proven on it, and honest refusals.
//!
//! Needs the lab kernel 6.12, which `./x test` builds first.

mod common;

use common::{json, lab_in, run, texts, thalweg, within};
use serde_json::Value;
use std::fs;
use thalweg_units::Bytes;

const SMALL_WINDOW: &str = r#"
name = "small-window"
[path]
rtt = "40ms"
[path.down]
rate = "50mbit"
queue = "300KB"
[workload]
kind = "stream"
bytes = "6MB"
[client.sysctl]
"net.ipv4.tcp_rmem" = "4096 65536 150000"
"#;

/// The value of a fitted parameter.
fn parameter(fix: &Value, key: &str) -> String {
    let list = fix["capture"]["models"][0]["parameters"].as_array().expect("parameters");
    let one = list.iter().find(|one| one["key"] == key).unwrap_or_else(|| panic!("no {key} in {list:?}"));
    one["value"].as_str().expect("text").to_owned()
}

#[test]
fn a_receive_window_is_fitted_at_the_receiver_mended_and_bundled() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    lab_in(path, SMALL_WINDOW, &["--capture", "client", "--kernel", "6.12"]);
    let capture = "out/0-as-given.pcapng";
    let fix = json(path, &["fix", capture, "--kernel", "6.12", "--bundle", "bundle", "--out", "fix"]);
    assert_eq!(fix["cause"]["code"], "receive-window");
    let model = &fix["capture"]["models"][0];
    assert_eq!(model["accepted"], true, "{model:#}");
    let rtt: thalweg_units::Span = parameter(&fix, "path.rtt").parse().expect("a time");
    within(rtt.as_millis_f64(), 40.0, 0.02);
    let rate: thalweg_units::Rate = parameter(&fix, "path.down.rate").parse().expect("a rate");
    // A window this small shows the rate in short trains only.
    within(rate.bits_per_second() as f64, 50e6, 0.15);
    let changes = fix["remedy"]["changes"].as_array().expect("changes");
    assert!(changes.iter().any(|change| change["setting"]["sysctl"] == "net.ipv4.tcp_rmem"), "{changes:?}");
    // 50 Mb/s of frames carry 47.8 Mb/s of payload; a window of some 60 KB over 40 ms carries 12.
    assert!(fix["ratio"].as_f64().expect("a ratio") > 2.0, "{}", fix["ratio"]);
    // Chance has no part in it: each seed gives the same run, and what is measured is varied instead.
    assert_eq!((&model["seeds"], &fix["proof"]["repeats"]), (&17.into(), &1.into()));
    assert_eq!(fix["search"][0]["corners"].as_array().map(Vec::len), Some(6), "rate, round trip and queue, both ways");

    // The bundle reproduces it, and holds nothing of the capture.
    run(path, &["lab", "run", "bundle/fitted.toml", "--kernel", "6.12", "--out", "again", "-q"], 0);
    let synthetic =
        thalweg(path, &["diagnose", "bundle/synthetic.pcapng", "--json"]).output().expect("the program starts");
    let synthetic: Value = serde_json::from_str(&texts(&synthetic).0).expect("JSON");
    assert_eq!(synthetic["captures"][0]["flows"][0]["verdict"]["code"], "receive-window");
    for name in ["fitted.toml", "fix.json"] {
        let text = fs::read_to_string(path.join("bundle").join(name)).expect(name);
        for secret in [&fix["capture"]["client"], &fix["capture"]["server"], &fix["capture"]["file"]] {
            let secret = secret.as_str().expect("text");
            let address = secret.rsplit_once(':').map_or(secret, |(address, _)| address);
            assert!(!text.contains(address), "{name} holds {address}");
        }
    }
    let (_, err) = run(path, &["fix", capture, "--kernel", "6.12", "--bundle", "bundle"], 2);
    assert!(err.contains("is not empty") && err.contains("hint:"), "{err}");
}

#[test]
fn what_cannot_be_fitted_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let short = SMALL_WINDOW.replace("6MB", "60KB");
    lab_in(path, &short, &["--capture", "server", "--kernel", "6.12"]);
    let capture = "out/0-as-given.pcapng";
    let (text, _) = run(path, &["fix", capture, "--json", "--out", "fix"], 1);
    let fix: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(fix["proof"], Value::Null);
    assert!(fix["notes"][0].as_str().expect("a note").contains("too short"), "{}", fix["notes"]);

    let (_, err) = run(path, &["fix", capture, "--flow", "7"], 2);
    assert!(err.contains("has no connection number 7") && err.contains("hint:"), "{err}");
    fs::write(path.join("noise.bin"), [0u8; 512]).expect("written");
    let (_, err) = run(path, &["fix", "noise.bin"], 2);
    assert!(err.contains("hint:") && err.contains("capture"), "{err}");
    let (_, err) = run(path, &["fix", "first-frame", "--flow", "1"], 2);
    assert!(err.contains("are for captures") && err.contains("hint:"), "{err}");
    let (_, err) = run(path, &["fix", capture, "--set", "path.rtt=1ms"], 2);
    assert!(err.contains("--set changes a scenario") && err.contains("hint:"), "{err}");
}

/// A small receive window on a path with random loss: BBR takes more from a CUBIC flow there than another CUBIC flow does, and what is left to
/// set is the window. Candidates with BBR are five times as fast or more and must not leave it no place.
#[test]
fn what_is_left_without_a_refused_congestion_control_is_proven() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let scenario = "name = \"both\"\n[path]\nrtt = \"60ms\"\nrate = \"100mbit\"\nqueue = \"750KB\"\nloss = \"0.1%\"\n[workload]\n\
                    kind = \"stream\"\nseconds = \"15s\"\n[client.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 87380 131072\"\n";
    lab_in(path, scenario, &["--capture", "server", "--kernel", "6.12"]);
    let fix = json(path, &["fix", "out/0-as-given.pcapng", "--kernel", "6.12", "--out", "fix"]);
    let changes = fix["remedy"]["changes"].as_array().expect("changes");
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0]["setting"]["sysctl"], "net.ipv4.tcp_rmem");
    assert!(fix["ratio"].as_f64().expect("a ratio") > 1.3, "{}", fix["ratio"]);
    let tried = fix["search"].as_array().expect("what was tried");
    let with_bbr = tried.iter().find(|one| one["name"] == "bbr + tcp_rmem").expect("BBR was tried");
    assert!(with_bbr["ratios"][0].as_f64().expect("a ratio") > 5.0, "{with_bbr}");
    assert_eq!(fix["rejected"][0]["congestion"], "bbr", "{}", fix["rejected"]);
}

/// A queue of 24 packets loses some of every window that is larger, much as chance does. What the second model needs is searched, too.
#[test]
fn another_model_that_fits_is_named_with_its_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let scenario = "name = \"short\"\n[path]\nrtt = \"50ms\"\n[path.down]\nrate = \"50mbit\"\nqueue = \"24 packets\"\n[workload]\n\
                    kind = \"stream\"\nseconds = \"8s\"\n";
    lab_in(path, scenario, &["--capture", "server", "--kernel", "6.12", "--samples", "off"]);
    let fix = json(path, &["fix", "out/0-as-given.pcapng", "--kernel", "6.12", "--own-path", "--out", "fix"]);
    let models = fix["capture"]["models"].as_array().expect("models");
    let accepted = models.iter().filter(|model| model["accepted"] == true).map(|model| &model["name"]);
    assert_eq!(accepted.collect::<Vec<_>>(), ["drop-tail queue", "random loss"]);
    let other = &fix["other_fits"][0];
    assert_eq!((&other["model"], &other["set"]["name"]), (&"random loss".into(), &"bbr".into()));
    let [before, after] = ["before", "after"].map(|key| other[key].as_f64().expect("a rate"));
    assert!(after > before * 2.0, "{before} to {after}");
    assert!(other["apply"][0].as_str().is_some_and(|line| line.contains("bbr")), "{}", other["apply"]);
}

/// The longest round trip is a delayed acknowledgement's and not the queue's, and one episode of losses in slow start decides the goodput of ten seconds:
/// the queue is searched for until the whole fits.
#[test]
fn a_queue_that_no_round_trip_shows_is_searched_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let scenario = "name = \"slow\"\n[path]\nrtt = \"135.3ms\"\nrate = \"35.6mbit\"\nqueue = \"41 packets\"\n[workload]\n\
                    kind = \"stream\"\nseconds = \"30s\"\n";
    lab_in(path, scenario, &["--capture", "server", "--kernel", "6.12", "--samples", "off"]);
    let fix = json(path, &["fix", "out/0-as-given.pcapng", "--kernel", "6.12", "--own-path", "--out", "fix"]);
    let model = &fix["capture"]["models"][0];
    assert_eq!((&model["name"], &model["accepted"]), (&"drop-tail queue".into(), &true.into()), "{model}");
    let queue: Bytes = parameter(&fix, "path.down.queue").parse().expect("a queue");
    assert!((0.9..=1.1).contains(&(queue.get() as f64 / (41.0 * 1514.0))), "{queue}");
    assert!(fix["ratio"].as_f64().is_some_and(|ratio| (2.2..=2.8).contains(&ratio)), "{}", fix["ratio"]);
}

/// A small send buffer lets its data go in bursts that overrun a short queue: losses are what the capture shows, and the buffer is to be mended.
#[test]
fn a_buffer_behind_a_queue_that_its_bursts_overrun_is_raised_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let scenario = "name = \"slow\"\n[path]\nrtt = \"36ms\"\nrate = \"23.2mbit\"\nqueue = \"24 packets\"\n[server.sysctl]\n\
                    \"net.ipv4.tcp_wmem\" = \"4096 16384 32768\"\n[workload]\nkind = \"stream\"\nseconds = \"30s\"\n";
    lab_in(path, scenario, &["--capture", "server", "--kernel", "6.12", "--samples", "off"]);
    let fix = json(path, &["fix", "out/0-as-given.pcapng", "--kernel", "6.12", "--own-path", "--out", "fix"]);
    assert_eq!(fix["cause"]["code"], "congestion-loss");
    let changes = fix["remedy"]["changes"].as_array().expect("changes").iter();
    let mut settings = changes.map(|change| change["setting"]["sysctl"].as_str().expect("a setting"));
    assert!(settings.any(|setting| setting == "net.ipv4.tcp_wmem"), "{}", fix["remedy"]);
    let queue: Bytes = parameter(&fix, "path.down.queue").parse().expect("a queue");
    assert!((0.8..=1.2).contains(&(queue.get() as f64 / (24.0 * 1514.0))), "{queue}");
    assert!(fix["ratio"].as_f64().is_some_and(|ratio| (2.5..=3.3).contains(&ratio)), "{}", fix["ratio"]);
}
