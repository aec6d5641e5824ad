//! The tables of `--export`, held against what DuckDB reads of them: the queries of docs/export.md, and counts that the
//! report and the captures know, too.
//!
//! Needs the lab kernel 6.12, python3 with venv, and DuckDB from PyPI; `./x test` installs python3-venv.

mod common;

use common::python::{ask, number, python};
use common::{json, run, within};
use std::fs;

const SWEEP: &str = r#"
name = "sweep"
[path]
rtt = "20ms"
[workload]
kind = "burst"
buffered = "60kB"
rate = "3.4mbit"
total = "60kB"
keyframe = "30kB"
[matrix]
initcwnd = [4, 40]
"path.rate" = ["20mbit", "50mbit"]
"#;

#[test]
fn duckdb_reads_the_tables_and_answers_the_queries_of_the_docs() {
    let Some(python) = python(&["duckdb"]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("s.toml"), SWEEP).expect("written");
    let report = json(folder.path(), &["lab", "run", "s.toml", "--repeat", "2", "--export", "parquet", "--out", "out"]);
    let out = folder.path().join("out");

    let docs = include_str!("../../../docs/export.md");
    let mut queries: Vec<String> =
        docs.split("```sql\n").skip(1).map(|rest| rest.split("```").next().expect("an end").to_owned()).collect();
    assert_eq!(queries.len(), 3);
    for table in ["runs", "flows", "samples", "packets"] {
        queries.push(format!("SELECT count(*), count(DISTINCT (arm, seed)) FROM '{table}.parquet'"));
    }
    queries
        .push("SELECT matrix_initcwnd, matrix_rate, duration_s FROM 'runs.parquet' WHERE seed = 1 LIMIT 1".to_owned());
    // Every byte that was sent is in the packets, and the handshakes say who connected.
    queries
        .push("SELECT sum(len) / 8 FROM 'packets.parquet' WHERE \"end\" = 'server' AND direction = 'down'".to_owned());
    queries.push(
        "SELECT count(*) FROM 'packets.parquet' WHERE flags = 'SYN' AND direction = 'up' AND ack IS NULL".to_owned(),
    );
    queries.push("SELECT max(tcpi_snd_cwnd), min(time_s) FROM 'samples.parquet' WHERE host = 'server'".to_owned());
    let answers = ask(&python, &out, &queries);

    assert_eq!(answers[0].len(), 4, "an answer for each arm: {:?}", answers[0]);
    assert!(answers[1].iter().all(|row| row[0].as_str().is_some_and(|kernel| kernel.starts_with("6.12"))));
    assert_eq!(answers[1].iter().map(|row| number(&row[3])).sum::<f64>(), 8.0, "a sender for each run");
    assert_eq!(answers[2].len(), 4);
    for row in &answers[2] {
        let one_way_ms = number(&row[2]);
        assert!((10.0..40.0).contains(&one_way_ms), "10 ms of delay and what waits in the queue: {row:?}");
    }
    for (table, answer) in ["runs", "flows", "samples", "packets"].iter().zip(&answers[3..7]) {
        assert_eq!(number(&answer[0][1]), 8.0, "{table} has rows of every run");
    }
    assert_eq!((number(&answers[3][0][0]), number(&answers[4][0][0])), (8.0, 16.0), "flows are seen at both ends");
    let row = &answers[7][0];
    assert_eq!((number(&row[0]), row[1].as_str()), (4.0, Some("20mbit")));
    let of_report = number(&report["arms"][0]["metrics"]["duration_s"]["values"][0]);
    within(number(&row[2]), of_report, 1e-12);
    within(number(&answers[8][0][0]), 60_000.0, 0.2);
    assert_eq!(number(&answers[9][0][0]), 16.0, "a SYN of each run at each end");
    assert!(number(&answers[10][0][0]) >= 40.0);
}

#[test]
fn csv_holds_the_same_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("s.toml"), SWEEP).expect("written");
    let args = ["lab", "run", "s.toml", "--export", "csv", "--out", "out", "--capture", "off"];
    run(folder.path(), &args, 0);
    let table = |name: &str| fs::read_to_string(folder.path().join("out").join(name)).expect(name);
    let runs = table("runs.csv");
    let lines: Vec<&str> = runs.lines().collect();
    assert_eq!(lines.len(), 5, "{runs}");
    assert!(
        lines[0].starts_with(
            "scenario,arm,kernel,seed,own_arm,repeat,virtual_s,capture,samples,matrix_initcwnd,matrix_rate,"
        )
    );
    assert!(lines[1].starts_with("sweep,\"initcwnd 4, rate 20mbit\",6.12"), "{}", lines[1]);
    assert_eq!((table("flows.csv").lines().count(), table("packets.csv").lines().count()), (1, 1), "nothing captured");
    assert!(table("samples.csv").lines().count() > 10);
}
