//! Comparing on real kernels: matrices, kernels side by side, runs against each other, and runs in parts.
//!
//! Needs the lab kernels 6.12 and 6.1, which `./x test` builds first; without them these tests fail and say so.

mod common;

use common::{figure, json, run, thalweg};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Some losses, so that seeds differ; small, so that it is fast.
const LOSSY: &str = r#"
name = "lossy"
[path]
loss = "1%"
[workload]
kind = "burst"
buffered = "100kB"
rate = "3.4mbit"
total = "100kB"
keyframe = "50kB"
[matrix]
initcwnd = [10, 40]
rtt = ["10ms", "20ms"]
[expect]
"initcwnd 10, rtt 10ms/connect_ms" = "10ms +- 1%"
"initcwnd 40, rtt 20ms/time_to_bytes_ms.100000" = "> 9s"
"#;

fn folder_with(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("s.toml"), text).expect("written");
    folder
}

/// Runs whatever the expectations say.
fn run_any(folder: &Path, args: &[&str]) -> String {
    let output = thalweg(folder, args).output().expect("the program starts");
    assert!(matches!(output.status.code(), Some(0 | 1)), "{:?}", common::texts(&output));
    common::texts(&output).0
}

fn without_wall(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with("\"wall_s\"")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn parts_of_a_run_join_into_the_very_report_one_machine_gives() {
    let folder = folder_with(LOSSY);
    let path = folder.path();
    run_any(path, &["lab", "run", "s.toml", "--repeat", "3", "--seed", "5", "--out", "whole"]);
    for part in ["1/4", "2/4", "3/4", "4/4"] {
        let out = format!("part-{}", &part[..1]);
        run(path, &["lab", "run", "s.toml", "--repeat", "3", "--seed", "5", "--shard", part, "--out", &out], 0);
    }
    let parts = ["part-4", "part-2/report.json", "part-1", "part-3"];
    let joined = run_any(path, &[&["lab", "compare", "--json", "--html", "p.html"][..], &parts].concat());
    let whole = fs::read_to_string(path.join("whole/report.json")).expect("the report");
    assert_eq!(without_wall(&joined), without_wall(&whole));
    assert!(whole.contains("\"values\"") && whole.contains("\"differences\""), "there is something to compare");
    assert!(fs::read_to_string(path.join("p.html")).expect("the page").contains("initcwnd 40, rtt 20ms"));

    let (_, err) = run(path, &["lab", "compare", "part-1", "part-3", "part-4"], 2);
    assert!(err.contains("of 4 parts these are missing: 2") && err.contains("hint:"), "{err}");
    let (_, err) = run(path, &["lab", "compare", "part-1", "whole"], 2);
    assert!(err.contains("is no part of a divided run"), "{err}");
}

#[test]
fn one_run_is_compared_with_another() {
    let folder = folder_with(LOSSY);
    let path = folder.path();
    let arm = ["--arm", "initcwnd 10, rtt 20ms", "--capture", "off"];
    let run_to = |out: &str, more: &[&str]| {
        run_any(path, &[&["lab", "run", "s.toml", "--repeat", "6", "--out", out][..], &arm, more].concat())
    };
    run_to("before", &[]);
    run_to("again", &[]);
    // Every repeat takes several times as long.
    run_to("after", &["--set", "path.rate=500kbit"]);

    let same = json(path, &["lab", "compare", "before", "again", "--fail-worse", "0"]);
    assert_eq!(same["schema"], "thalweg.compare/1");
    assert_eq!(same["arms"][0]["leading"], "time_to_bytes_ms.100000");
    let leading = &same["arms"][0]["metrics"]["time_to_bytes_ms.100000"];
    assert_eq!((&leading["difference"], &leading["pairs"]), (&Value::from(0.0), &Value::from(6)));

    let args = ["lab", "compare", "before", "after", "--fail-worse", "50"];
    let (out, _) = run(path, &args, 1);
    assert!(out.contains("✗ initcwnd 10, rtt 20ms: time to 100 kB is"), "{out}");
    let (out, _) = run(path, &[&args[..], &["--json"]].concat(), 1);
    let worse: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(worse["arms"][0]["failed"], true);
    assert_eq!(worse["arms"][0]["metrics"]["time_to_bytes_ms.100000"]["within_noise"], false);
    assert!(worse["notes"].to_string().contains("path, line"), "the path's settings differ: {}", worse["notes"]);
    run(path, &["lab", "compare", "before", "after", "--fail-worse", "100000%"], 0);
}

#[test]
fn what_is_no_report_is_refused_with_a_hint() {
    let folder = folder_with("[1, 2]");
    let path = folder.path();
    fs::write(path.join("fix.json"), r#"{"schema": "thalweg.fix/1"}"#).expect("written");
    fs::write(path.join("bare.json"), r#"{"schema": "thalweg.lab/1", "arms": 7}"#).expect("written");
    fs::write(path.join("deep.json"), "[".repeat(100_000)).expect("written");
    for (file, says) in [
        ("gone.json", "cannot read the report 'gone.json'"),
        ("s.toml", "it holds several"),
        ("fix.json", "its schema is thalweg.fix/1"),
        ("bare.json", "'bare.json' is no report of lab run"),
        ("deep.json", "it is not JSON"),
    ] {
        let (out, err) = run(path, &["lab", "compare", file, file], 2);
        assert!(out.is_empty() && err.contains(says) && err.contains("hint:"), "{err}");
    }
}

#[test]
fn kernels_are_compared_in_one_table_and_as_junit() {
    let text =
        LOSSY.replace("loss = \"1%\"\n", "").replace("[matrix]\ninitcwnd = [10, 40]\nrtt = [\"10ms\", \"20ms\"]\n", "");
    let (head, _) = text.split_once("[expect]").expect("expectations");
    let text = format!(
        "kernel = [\"6.1\", \"6.12\"]\n{head}[[arm]]\nname = \"a <&>\"\n[expect]\n\"a <&>/connect_ms\" = \"< 1ms\"\n\"a <&>/verdict\" = \"path-rate\"\n"
    );
    let folder = folder_with(&text);
    let path = folder.path();
    let args = ["lab", "run", "s.toml", "first-frame", "--set", "path.rtt=20ms", "--capture", "off"];
    let out = run_any(path, &[&args[..], &["--json", "--junit", "j.xml", "--out", "out"]].concat());
    let reports: Value = serde_json::from_str(&out).expect("JSON");
    let [two, frame] = reports.as_array().expect("one for each scenario").as_slice() else { panic!("{reports}") };
    assert!(two["kernel"].as_str().expect("releases").starts_with("6.1.") && frame["scenario"] == "first-frame");
    let names: Vec<&str> =
        two["arms"].as_array().expect("arms").iter().filter_map(|arm| arm["name"].as_str()).collect();
    assert_eq!(names, ["a <&> · Linux 6.1", "a <&> · Linux 6.12"]);
    assert_eq!(two["arms"][1]["baseline"], "a <&> · Linux 6.1");
    assert!(two["arms"][1]["kernel"].as_str().expect("a release").starts_with("6.12."));
    assert!(two["arms"][1]["differences"]["duration_s"]["difference"].is_number());
    // Each kernel has to meet what is expected; a verdict without a capture is not asked for.
    let expect = two["expect"].as_array().expect("expectations");
    assert_eq!(expect.len(), 2);
    assert_eq!(expect[1]["metric"], "a <&> · Linux 6.12/connect_ms");
    assert!(expect[1]["got"].as_str().expect("a text").ends_with(" ms"), "{}", expect[1]);
    assert!(path.join("out/lossy/report.html").exists() && path.join("out/first-frame/report.json").exists());

    let xml = fs::read_to_string(path.join("j.xml")).expect("the file");
    assert!(xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites"), "{xml}");
    assert_eq!(xml.matches("<testsuite name=\"lossy on Linux 6.1").count(), 2, "{xml}");
    assert!(xml.contains("a &lt;&amp;&gt; · Linux 6.1/connect_ms &lt; 1ms"), "{xml}");
    assert!(xml.contains("message=\"measured 20"), "{xml}");
    let cases = xml.matches("<testcase ").count();
    let tests: usize =
        xml.split("tests=\"").nth(1).and_then(|rest| rest.split('"').next()?.parse().ok()).expect("a count");
    assert_eq!(cases, tests);
}

#[test]
fn an_arm_of_a_matrix_is_chosen_and_a_kernel_is_not_named_twice() {
    let folder = folder_with(LOSSY);
    let path = folder.path();
    let report = json(path, &["lab", "run", "s.toml", "--arm", "initcwnd 40, rtt 10ms", "--out", "out", "--intervals"]);
    assert_eq!(report["arms"].as_array().map(Vec::len), Some(1));
    assert_eq!(report["arms"][0]["settings"]["server"]["route"]["initcwnd"], "40");
    assert_eq!(report["arms"][0]["matrix"]["rtt"], "10ms");
    assert!(figure(&report, "initcwnd 40, rtt 10ms", "connect_ms") < 11.0);
    for (args, says) in [
        (&["--kernel", "6.12,6.12"][..], "is named twice"),
        (&["--shard", "3/2"], "I from 1 to N"),
        (&["--arm", "initcwnd 40"], "no arm named 'initcwnd 40'"),
        (&["--repeat", "50000"], "more than 100000 runs"),
        (&["--set", "path.rtt=1ms"], "the matrix gives it several"),
    ] {
        let (_, err) = run(path, &[&["lab", "run", "s.toml"], args].concat(), 2);
        assert!(err.contains(says), "{err}");
    }
    let (_, err) = run(path, &["fix", "first-frame", "--kernel", "6.1,6.12"], 2);
    assert!(err.contains("fix takes one kernel"), "{err}");
    let (_, err) = run(path, &["lab", "run", "s.toml", "s.toml"], 2);
    assert!(err.contains("two scenarios are named 'lossy'"), "{err}");
    for (file, name) in [("slash.toml", "lossy/x"), ("dash.toml", "lossy-x")] {
        let text = LOSSY.replacen("name = \"lossy\"", &format!("name = \"{name}\""), 1);
        std::fs::write(path.join(file), text).expect("written");
    }
    let (_, err) = run(path, &["lab", "run", "slash.toml", "dash.toml"], 2);
    assert!(err.contains("the scenarios 'lossy/x' and 'lossy-x' would have the same folder"), "{err}");
}
