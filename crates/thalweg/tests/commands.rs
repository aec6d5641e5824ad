//! Users' own programs inside the lab, and what our workloads measure held against what nginx, curl and iperf3 do.

mod common;

use common::{figure, json, run, within};
use std::path::Path;

/// Whether all of these programs are there. In continuous integration they have to be.
fn has(programs: &[&str]) -> bool {
    let folders = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let missing: Vec<_> =
        programs.iter().filter(|name| !folders.iter().any(|folder| Path::new(folder).join(name).exists())).collect();
    if missing.is_empty() {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "not installed: {missing:?}");
    let said = format!("SKIPPED: {missing:?} not installed: apt-get install nginx-light curl iperf3\n");
    std::io::Write::write_all(&mut std::io::stderr(), said.as_bytes()).expect("stderr");
    false
}

fn scenario(folder: &Path, text: &str) {
    std::fs::write(folder.join("x.toml"), text).expect("written");
}

const NGINX: &str = r#"
daemon off;
user root;
pid {folder}/nginx.pid;
events {}
http {
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server { listen 80; root {folder}; }
}
"#;

#[test]
fn curl_on_nginx_takes_as_long_as_a_crr_of_the_same_sizes() {
    if !has(&["nginx", "curl"]) {
        return;
    }
    let temp = tempfile::tempdir().expect("a folder");
    // No loss: each would lose other packets than the other.
    let path = "[path]\nrtt = \"100ms\"\nrate = \"100mbit\"\n";
    for size in [100, 300_000] {
        let page = "x".repeat(size);
        let own = format!(
            r#"name = "curl"
{path}[workload]
kind = "command"
server = "nginx -p {{folder}} -c nginx.conf -e stderr"
port = 80
client = ["curl", "-sS", "-o", "/dev/null", "-w", "total=%{{time_total}} request=%{{size_request}} header=%{{size_header}}\\n", "http://{{server}}/page"]
times = 30
[workload.figures]
total_s = "total=([0-9.]+)"
request_bytes = "request=([0-9]+)"
header_bytes = "header=([0-9]+)"
[workload.files]
page = "{page}"
"nginx.conf" = '''{NGINX}'''
"#
        );
        scenario(temp.path(), &own);
        let report = json(temp.path(), &["lab", "run", "x.toml", "--out", "curl", "--capture", "off"]);
        let arm = report["arms"][0]["name"].as_str().expect("a name").to_owned();
        assert_eq!((figure(&report, &arm, "runs"), figure(&report, &arm, "client_exit")), (30.0, 0.0));
        let curl_ms = figure(&report, &arm, "total_s.mean") * 1e3;
        let request = figure(&report, &arm, "request_bytes.max");
        let response = figure(&report, &arm, "header_bytes.max") + size as f64;

        let ours = format!(
            "name = \"crr\"\n{path}[workload]\nkind = \"crr\"\ntransactions = 30\nrequest = {request}\nresponse = {response}\n"
        );
        scenario(temp.path(), &ours);
        let report = json(temp.path(), &["lab", "run", "x.toml", "--out", "crr", "--capture", "off"]);
        within(figure(&report, &arm, "latency_ms.mean"), curl_ms, 0.02);
    }
}

#[test]
fn iperf3_measures_the_goodput_that_our_stream_has() {
    if !has(&["iperf3"]) {
        return;
    }
    let temp = tempfile::tempdir().expect("a folder");
    let path = "[path]\nrtt = \"20ms\"\nrate = \"50mbit\"\nqueue = \"300 packets\"\n";
    let theirs = format!(
        r#"name = "iperf3"
{path}[workload]
kind = "command"
server = "iperf3 -s -1"
port = 5201
client = "iperf3 -c {{server}} -R -n 8000000 -J"
[workload.figures]
goodput_bps = '"sum_received":\s*\{{[^}}]*"bits_per_second":\s*([0-9.e+]+)'
"#
    );
    scenario(temp.path(), &theirs);
    let report =
        json(temp.path(), &["lab", "run", "x.toml", "--out", "iperf3", "--capture", "server", "--samples", "off"]);
    let arm = report["arms"][0]["name"].as_str().expect("a name").to_owned();
    assert_eq!(figure(&report, &arm, "server_exit"), 0.0);
    let iperf3_bps = figure(&report, &arm, "goodput_bps");
    // Of its two connections the one with the data, not the idle one with its control messages.
    assert_eq!(report["arms"][0]["diagnosis"][0]["code"], "path-rate", "{}", report["arms"][0]["diagnosis"]);

    let ours = format!("name = \"stream\"\n{path}[workload]\nkind = \"stream\"\nbytes = 8000000\n");
    scenario(temp.path(), &ours);
    let report =
        json(temp.path(), &["lab", "run", "x.toml", "--out", "stream", "--capture", "off", "--samples", "off"]);
    // iperf3's receiver counts from the server's word that it begins, which its first data follows.
    let seconds = figure(&report, &arm, "duration_s") - figure(&report, &arm, "first_byte_ms") / 1e3;
    within(figure(&report, &arm, "bytes") * 8.0 / seconds, iperf3_bps, 0.02);
}

#[test]
fn a_program_that_fails_is_told_of_with_the_end_of_its_log() {
    let temp = tempfile::tempdir().expect("a folder");
    let text = r##"name = "fails"
[workload]
kind = "command"
client = "./probe {server} {client}"
times = 2
timeout = "30s"
figures = { answer = "answer=([0-9]+)", lost = "lost=([0-9]+)" }
[server]
socket = { congestion = "bbr" }
[workload.files]
probe = """#!/bin/sh
echo "answer=42 of $1 at $2 in $(pwd)"
echo "it broke" >&2
sleep 1.5
exit 3
"""
"##;
    scenario(temp.path(), text);
    let (out, err) = run(temp.path(), &["lab", "run", "x.toml", "--out", "out", "--json"], 1);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let arm = report["arms"][0]["name"].as_str().expect("a name").to_owned();
    for (name, wanted) in [("client_exit", 3.0), ("runs", 2.0), ("failed_runs", 2.0), ("answer.p50", 42.0)] {
        assert_eq!(figure(&report, &arm, name), wanted, "{name}");
    }
    within(figure(&report, &arm, "duration_s.p50"), 1.5, 0.001);
    for said in [
        "the client's program ended in run 1 of 2, with exit code 3; its log ends with:",
        "it broke",
        "the figure 'lost' is nowhere in the client's output",
        "socket options are for the lab's own workloads",
    ] {
        assert!(err.contains(said), "'{said}' is not in:\n{err}");
    }
    let log = common::files(&temp.path().join("out"))
        .into_iter()
        .find(|path| path.to_string_lossy().ends_with(".client.log"));
    let log = std::fs::read_to_string(temp.path().join("out").join(log.expect("a log"))).expect("read");
    assert_eq!(log, "answer=42 of 10.0.1.1 at 10.0.3.1 in /tmp/thalweg\nit broke\n".repeat(2));

    let ended = text.replace("sleep 1.5", "sleep 100").replace("times = 2", "times = 1");
    scenario(temp.path(), &ended);
    let (out, err) = run(temp.path(), &["lab", "run", "x.toml", "--out", "ended", "--json"], 1);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert!(err.contains("the client's program still ran after 30s"), "{err}");
    for (name, wanted) in [("client_exit", 124.0), ("runs", 0.0), ("failed_runs", 1.0)] {
        assert_eq!(figure(&report, &arm, name), wanted, "{name}");
    }
    assert!((30.0..33.0).contains(&report["virtual_s"].as_f64().expect("seconds")), "{report}");

    // In the second run, after one that succeeded: the failed run is not among those that ended by themselves.
    let second = text.replace("sleep 1.5\nexit 3", "[ -e done ] && sleep 100\ntouch done");
    scenario(temp.path(), &format!("{second}\n[expect]\n\"{arm}/failed_runs\" = \"1 +- 0%\"\n"));
    let (out, err) = run(temp.path(), &["lab", "run", "x.toml", "--out", "second", "--json"], 0);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert!(err.contains("the client's program still ran after 30s, in run 2 of 2"), "{err}");
    for (name, wanted) in [("client_exit", 124.0), ("runs", 1.0), ("failed_runs", 1.0)] {
        assert_eq!(figure(&report, &arm, name), wanted, "{name}");
    }
}

#[test]
fn a_program_that_is_not_there_and_a_server_that_does_not_listen_are_errors() {
    let temp = tempfile::tempdir().expect("a folder");
    scenario(temp.path(), "name = \"x\"\n[workload]\nkind = \"command\"\nclient = \"no-such-program\"\n");
    let (_, err) = run(temp.path(), &["lab", "run", "x.toml", "--out", "out"], 3);
    assert!(err.contains("cannot start 'no-such-program' on the client: there is no such program"), "{err}");

    let text = r#"name = "x"
[workload]
kind = "command"
server = ["sh", "-c", "echo no luck; exit 4"]
port = 80
client = "true"
"#;
    scenario(temp.path(), text);
    let (_, err) = run(temp.path(), &["lab", "run", "x.toml", "--out", "out"], 3);
    let wanted = "cannot wait for the server's program to listen on port 80: it ended before, with exit code 4";
    assert!(err.contains(wanted) && err.contains("no luck"), "{err}");
    assert!(
        common::files(temp.path()).iter().all(|path| !path.starts_with("out/0")),
        "something is left of a failed run"
    );
}
