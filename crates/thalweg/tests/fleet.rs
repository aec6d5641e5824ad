//! The tables of `diagnose --parquet`, and the examples of docs/fleet.md run as they stand there.
//!
//! Needs the lab kernel 6.12, and python3 with venv, which installs DuckDB, pandas and polars from PyPI.

mod common;

use common::python::{ask, number, python};
use common::{lab_in, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Captures of the fleet: copies of three that differ.
const CAPTURES: usize = 300;

fn captures(folder: &Path) {
    let text = r#"
name = "three"
[path]
rtt = "20ms"
rate = "200mbit"
[workload]
kind = "stream"
bytes = "4MB"
[[arm]]
name = "as it is"
[[arm]]
name = "window"
client.socket = { rcvbuf = "64KiB" }
[[arm]]
name = "loss"
path.down.loss = "3%"
"#;
    let report = lab_in(folder, text, &["--capture", "server", "--samples", "off"]);
    fs::create_dir(folder.join("day")).expect("made");
    for n in 0..CAPTURES {
        let from = report["arms"][n % 3]["capture"].as_str().expect("a capture");
        fs::copy(folder.join("out").join(from), folder.join(format!("day/{n:03}.pcapng"))).expect("copied");
    }
}

#[test]
fn a_fleet_of_captures_is_read_by_duckdb_pandas_and_polars() {
    let Some(python) = python(&["duckdb", "pandas", "polars", "pyarrow"]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    captures(folder.path());
    let mut args = vec!["diagnose".to_owned(), "--parquet".to_owned(), "tables".to_owned()];
    args.extend((0..CAPTURES).map(|n| format!("day/{n:03}.pcapng")));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    // 1: problems were found.
    let (_, err) = run(folder.path(), &args, 1);
    assert!(err.contains("tables"), "{err}");
    let tables = folder.path().join("tables");

    let docs = include_str!("../../../docs/fleet.md");
    let blocks = |kind: &str| -> Vec<String> {
        let fence = format!("```{kind}\n");
        docs.split(&fence).skip(1).map(|rest| rest.split("```").next().expect("an end").to_owned()).collect()
    };
    let mut queries = blocks("sql");
    assert_eq!(queries.len(), 3);
    queries.push("SELECT count(*), sum(flows), sum(packets) FROM 'captures.parquet'".to_owned());
    queries.push("SELECT verdict, count(*) FROM 'flows.parquet' GROUP BY ALL".to_owned());
    queries.push("SELECT count(*) FROM 'findings.parquet' WHERE is_verdict".to_owned());
    let host = "regexp_replace(server, ':[0-9]+$', '')";
    assert!(docs.contains(host));
    for (server, address) in [("[fd00::1]:443", "[fd00::1]"), ("10.0.0.2:80", "10.0.0.2")] {
        queries.push(format!("SELECT {} = '{address}'", host.replace("server", &format!("'{server}'"))));
    }
    queries.push("SELECT count(*) FROM 'flows.parquet' WHERE phase_s > 0 AND phase_s <= duration_s".to_owned());
    let answers = ask(&python, &tables, &queries);
    let window = answers[0].iter().find(|row| row[0] == "receive-window").expect("the window costs something");
    assert_eq!((number(&window[1]), number(&window[2])), (100.0, 100.0));
    assert!(number(&window[4]) > 2.0, "64 KiB at 20 ms are a fraction of 200 Mb/s: {window:?}");
    assert!(number(&answers[1][0][2]) > 0.5, "a third of the captures lost 3 %: {:?}", answers[1]);
    assert_eq!(answers[2].len(), 10);
    assert_eq!((number(&answers[3][0][0]), number(&answers[3][0][1])), (300.0, 300.0));
    assert_eq!(answers[4].iter().map(|row| number(&row[1])).sum::<f64>(), 300.0);
    assert_eq!(number(&answers[5][0][0]), 300.0);
    for is_the_address in &answers[6..8] {
        assert_eq!(is_the_address[0][0], true, "{is_the_address:?}");
    }
    assert_eq!(number(&answers[8][0][0]), 300.0);

    let report = json_of_some(folder.path());
    assert_eq!(report["captures"].as_array().map(Vec::len), Some(3));
    fs::write(folder.path().join("report.json"), report.to_string()).expect("written");
    let programs = blocks("python");
    assert_eq!(programs.len(), 2);
    for (program, said) in programs.iter().zip(["receive-window", "seconds_lost"]) {
        assert!(program.lines().filter(|line| !line.is_empty()).count() <= 10, "ten lines:\n{program}");
        let output =
            Command::new(&python).args(["-c", program]).current_dir(folder.path()).output().expect("python starts");
        let (out, err) = common::texts(&output);
        assert!(output.status.success() && out.contains(said), "{program}\n{out}\n{err}");
    }
}

fn json_of_some(folder: &Path) -> Value {
    let (out, _) = run(folder, &["diagnose", "--json", "day/000.pcapng", "day/001.pcapng", "day/002.pcapng"], 1);
    serde_json::from_str(&out).expect("JSON")
}
