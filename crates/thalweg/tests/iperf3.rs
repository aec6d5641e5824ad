//! `thalweg load stream` and `thalweg load serve` with iperf3 at the other end, and with each other.

mod common;

use common::{json, run, texts, thalweg, within};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// `thalweg load serve --json` at a port of its own, and the documents it prints.
struct Server {
    child: Child,
    port: String,
    reports: Receiver<Value>,
}

impl Server {
    fn start(folder: &Path, args: &[&str]) -> Self {
        let args = [&["load", "serve", "--port", "0", "--json"], args].concat();
        let mut child =
            thalweg(folder, &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let (sender, reports) = channel();
        let out = BufReader::new(child.stdout.take().expect("stdout"));
        spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).expect("JSON"));
            }
        });
        let mut err = BufReader::new(child.stderr.take().expect("stderr"));
        let mut line = String::new();
        err.read_line(&mut line).expect("a line");
        let port = line.split(&[':', ',']).nth(1).unwrap_or_else(|| panic!("no port in '{line}'")).to_owned();
        spawn(move || err.read_to_end(&mut Vec::new()));
        Self { child, port, reports }
    }

    fn report(&self) -> Value {
        self.reports.recv_timeout(Duration::from_secs(10)).expect("the server's report")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `iperf3 -s` at a port of its own.
struct Iperf3 {
    child: Child,
    port: String,
}

impl Iperf3 {
    fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
        let port = free.to_string();
        let mut command = Command::new("iperf3");
        command.args(["-s", "-B", "127.0.0.1", "-p", &port]).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("iperf3 starts");
        let deadline = Instant::now() + Duration::from_secs(10);
        // What it is asked with is a client that goes away.
        while TcpStream::connect(("127.0.0.1", free)).is_err() {
            assert!(Instant::now() < deadline, "iperf3 does not listen");
            sleep(Duration::from_millis(20));
        }
        sleep(Duration::from_millis(100));
        Self { child, port }
    }
}

impl Drop for Iperf3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs iperf3's client; returns its document, with the figures of both ends.
fn iperf3(port: &str, args: &str) -> Value {
    let mut command = Command::new("timeout");
    command.args(["20", "iperf3", "-J", "-c", "127.0.0.1", "-p", port]).args(args.split_whitespace());
    let (out, err) = texts(&command.output().expect("iperf3 starts"));
    let document: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args}: {error}\n{out}\n{err}"));
    assert_eq!(document.get("error"), None, "{args}: {document}");
    document
}

fn bytes(value: &Value) -> f64 {
    value["bytes"].as_f64().unwrap_or_else(|| panic!("no bytes in {value}"))
}

/// The sum of a direction.
fn sum<'a>(report: &'a Value, way: &str) -> &'a Value {
    let sums = report["sums"].as_array().expect("sums");
    sums.iter().find(|sum| sum["way"] == way).unwrap_or_else(|| panic!("no sum '{way}' in {report}"))
}

/// Both ends' bytes of a direction.
fn both(report: &Value, way: &str) -> (f64, f64) {
    let sum = sum(report, way);
    (bytes(&sum["sent"]), bytes(&sum["received"]))
}

#[test]
fn iperf3s_client_is_served_and_both_count_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), &[]);
    for args in ["", "-R", "-P 8", "-P 8 -R", "-w 128K", "-C reno", "-N -S 32 -Z", "-M 1000 -T title --extra-data x"] {
        let client = iperf3(&server.port, &format!("-n 20M {args}"));
        let report = server.report();
        assert_eq!((&report["failure"], &report["role"]), (&Value::Null, &Value::from("server")), "{args}: {report}");
        let way = if args.contains("-R") { "down" } else { "up" };
        let streams = if args.contains("-P") { 8 } else { 1 };
        assert_eq!(report["streams"].as_array().map(Vec::len), Some(streams), "{args}");
        let (sent, received) = both(&report, way);
        assert_eq!(
            (sent, received),
            (bytes(&client["end"]["sum_sent"]), bytes(&client["end"]["sum_received"])),
            "{args}"
        );
        // Blocks of 128 KiB that are on their way when iperf3's client has enough are not counted by it.
        assert!((20.0 * 1_048_576.0..22.0 * 1_048_576.0).contains(&sent), "{args}: {sent}");
        assert!(received <= sent && received > sent - streams as f64 * 131_072.0, "{args}: {received} of {sent}");
        match args {
            "-w 128K" => assert_eq!(report["test"]["window_bytes"], 131_072),
            "-C reno" => assert_eq!(report["test"]["congestion"], "reno"),
            "-R" => assert!(report["intervals"][0]["tcp"]["cwnd_bytes"].as_u64() > Some(0), "{report}"),
            "-M 1000 -T title --extra-data x" => {
                assert_eq!((&report["title"], &report["extra_data"]), (&"title".into(), &"x".into()));
            }
            _ => {}
        }
    }
}

#[test]
fn iperf3s_client_is_served_over_udp() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), &[]);
    for args in ["", "-R", "-P 4", "--udp-counters-64bit", "--bidir"] {
        let client = iperf3(&server.port, &format!("-u -b 16M -n 400K -l 1000 {args}"));
        let report = server.report();
        assert_eq!(report["failure"], Value::Null, "{args}: {report}");
        for (way, sent) in
            [("up", "sum_sent"), ("down", if args == "--bidir" { "sum_sent_bidir_reverse" } else { "sum_sent" })]
        {
            let expected = if args == "-R" { way == "down" } else { way == "up" || args == "--bidir" };
            if expected {
                let sum = sum(&report, way);
                let packets = sum["udp"]["packets"].as_f64().expect("packets");
                assert_eq!(bytes(&sum["sent"]), bytes(&client["end"][sent]), "{args}: {sum}");
                // The last ones may come behind the end.
                within(packets, 410.0, 0.05);
            }
        }
    }
}

#[test]
fn several_clients_are_served_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), &[]);
    let clients = [
        "-t 1 -b 20M",
        "-t 1 -b 20M -R -P 2",
        "-t 1 --bidir -b 20M",
        "-t 1 -u -b 2M -l 1000",
        "-t 1 -u -b 2M -l 1000 -R",
        "-t 1 -u -b 2M -l 1000 -P 3",
    ];
    let begun = Instant::now();
    let threads = clients.map(|args| {
        let port = server.port.clone();
        spawn(move || iperf3(&port, args))
    });
    let documents = threads.map(|thread| thread.join().expect("served"));
    assert!(begun.elapsed() < Duration::from_secs(6), "one after the other: {:?}", begun.elapsed());
    for (document, args) in documents.iter().zip(clients) {
        let streams = document["end"]["streams"].as_array().expect("streams").len();
        let expected = if args.contains("bidir") || args.contains("-P 2") {
            2
        } else if args.contains("-P 3") {
            3
        } else {
            1
        };
        assert_eq!(streams, expected, "{args}");
        assert!(bytes(&document["end"]["sum_sent"]) > 100_000.0, "{args}: {document}");
    }
    let reports = clients.map(|_| server.report());
    assert!(reports.iter().all(|report| report["failure"] == Value::Null), "{reports:?}");
}

/// Runs it with `--json` once the server has ended the test before: it answers a moment after the client has gone.
fn json_when_free(folder: &Path, args: &[&str]) -> Value {
    let begin = Instant::now();
    loop {
        let output = thalweg(folder, &[args, &["--json"]].concat()).output().expect("the program starts");
        let (out, err) = texts(&output);
        if err.contains("busy with another test") && begin.elapsed() < Duration::from_secs(10) {
            sleep(Duration::from_millis(20));
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{args:?}: {err}");
        return serde_json::from_str(&out).expect("JSON");
    }
}

#[test]
fn iperf3s_server_serves_this_client_and_both_count_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Iperf3::start();
    for args in [
        "-n 20MB",
        "-n 20MB -R",
        "-n 20MB -P 8",
        "-n 20MB -P 8 -R",
        "-n 20MB -w 128KiB",
        "-n 20MB -C reno",
        "-n 20MB -M 1000",
        "-t 1 --both -b 50Mb/s",
        "-t 1 -O 1 -b 50Mb/s",
        "-u -n 400kB -b 16Mb/s -l 1000",
        "-u -n 400kB -b 16Mb/s -l 1000 -R",
        "-u -t 1 --both -b 16Mb/s -l 1000",
    ] {
        let args: Vec<&str> =
            ["load", "stream", "127.0.0.1", "-p", &server.port].into_iter().chain(args.split(' ')).collect();
        let report = json_when_free(folder.path(), &args);
        let has = |arg: &str| args.contains(&arg);
        let ways: &[&str] = if has("--both") {
            &["up", "down"]
        } else if has("-R") {
            &["down"]
        } else {
            &["up"]
        };
        assert_eq!(report["sums"].as_array().map(Vec::len), Some(ways.len()), "{args:?}");
        for way in ways {
            let (sent, received) = both(&report, way);
            // iperf3's server counts nothing that it reads after the end: at most what its receive buffers hold. It sends whole blocks.
            // After -O each end begins to count by its own timer.
            let most = if has("-O") { 1.5 } else { 1.1 };
            assert!(received > 0.5 * sent && received <= most * sent, "{args:?}: {received} of {sent}");
            if has("-n") && *way == "up" {
                assert_eq!(sent, if has("-u") { 400_000.0 } else { 20_000_000.0 }, "{args:?}");
            }
            if has("-u") {
                assert_eq!(sum(&report, way)["udp"]["lost"], 0, "{args:?}: {report}");
            } else if *way == "up" {
                let tcp = &report["sums"][0]["tcp"];
                assert!(tcp["cwnd_max_bytes"].as_u64() > Some(0) && tcp["limits"].is_object(), "{args:?}: {tcp}");
            }
        }
        assert!(report["cpu"]["peer"]["total_percent"].is_number(), "{args:?}");
        if has("-C") {
            let names = (&report["test"]["congestion"], &report["test"]["peer_congestion"]);
            assert_eq!(names, (&"reno".into(), &"reno".into()));
        }
    }
}

#[test]
fn both_ends_of_our_own_agree_to_the_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), &[]);
    std::fs::write(folder.path().join("file"), vec![7; 3_000_001]).expect("written");
    for args in [
        "-t 1 -b 100Mb/s",
        "-t 1 -b 100Mb/s --both -P 2",
        "-t 1 -R",
        "-n 30MB",
        "-n 30MB -R -P 3",
        "-F file",
        "-u -t 1 -b 20Mb/s -l 1200 --both",
    ] {
        let args: Vec<&str> =
            ["load", "stream", "127.0.0.1", "-p", &server.port].into_iter().chain(args.split(' ')).collect();
        let (client, server) = (json(folder.path(), &args), server.report());
        assert_eq!((&client["failure"], &server["failure"]), (&Value::Null, &Value::Null), "{client}\n{server}");
        for sum in client["sums"].as_array().expect("sums") {
            let way = sum["way"].as_str().expect("a way");
            let (sent, received) = both(&client, way);
            assert_eq!(both(&server, way), (sent, received), "{args:?}");
            assert_eq!(sent, received, "{args:?}: {sum}");
            let rows = client["intervals"].as_array().expect("rows").iter();
            let rows: f64 = rows.filter(|row| row["way"] == way && row["stream"].is_null()).map(bytes).sum();
            assert_eq!(rows, if way == "up" { sent } else { received }, "{args:?}");
        }
        match args.last() {
            Some(&"file") => assert_eq!(both(&client, "up").0, 3_000_001.0),
            Some(&"100Mb/s") => {
                within(client["sums"][0]["received"]["rate_bps"].as_f64().expect("a rate"), 100e6, 0.2);
                let verdict = &client["sums"][0]["tcp"]["verdict"];
                assert_eq!(verdict["code"], "pacing-rate", "the rate that was asked for: {verdict}");
            }
            _ => {}
        }
    }
    let args = ["load", "stream", "127.0.0.1", "-p", &server.port, "-n", "5MB", "-P", "2"];
    let (text, _) = run(folder.path(), &args, 0);
    for part in
        ["TCP to 127.0.0.1", "2 streams", "cwnd", "limited by", "5.00 MB", "CPU        client", "congestion client"]
    {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
}

#[test]
fn what_is_no_client_is_refused_and_keeps_nobody_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), &[]);
    let address = format!("127.0.0.1:{}", server.port);
    let next = std::cell::Cell::new(0);
    let cookie = || {
        next.set(next.get() + 1);
        format!("{:a>36}\0", next.get()).into_bytes()
    };
    let speak = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(&address).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("set");
        stream.write_all(bytes).expect("sent");
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    };
    // A connection that says nothing stays there all the while.
    let _silent = TcpStream::connect(&address).expect("connected");
    assert_eq!(speak(b"GET / HTTP/1.1\r\nHost: example\r\n\r\n more than a cookie"), b"");
    assert_eq!(speak(b"short"), b"");
    let refused = |code: u8| [&[9, 0xfe, 0, 0, 0, code, 0, 0, 0, 0][..]].concat();
    let framed = |text: &str| [&cookie()[..], &(text.len() as u32).to_be_bytes(), text.as_bytes()].concat();
    assert_eq!(speak(&[&cookie()[..], &[0xff; 64]].concat()), refused(114));
    assert_eq!(speak(&framed("[1, 2, 3]")), refused(114));
    assert_eq!(speak(&framed(&"[".repeat(5_000))), refused(114));
    assert_eq!(speak(&framed(r#"{"tcp": true, "parallel": 1000}"#)), refused(6));
    assert_eq!(speak(&framed(r#"{"sctp": true}"#)), refused(131));
    let stuck = speak(&framed(r#"{"tcp": true, "time": 1}"#));
    assert_eq!(stuck, [9, 10], "streams are asked for, and the client has gone");
    let client = iperf3(&server.port, "-n 1M");
    assert_eq!(bytes(&client["end"]["sum_received"]), 1_048_576.0);
}

#[test]
fn transactions_share_the_port_with_streams() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), &[]);
    let load = |args: &str| {
        let args = [&["load"], &args.split(' ').collect::<Vec<_>>()[..], &["127.0.0.1", "-p", &server.port]].concat();
        json(folder.path(), &args)
    };
    for (args, request, response) in [
        ("rr -t 500ms", 1, 1),
        ("rr -t 500ms -P 4 --request 100000B --response 70001B", 100_000, 70_001),
        ("crr -t 500ms", 37, 1),
        ("crr -t 500ms -P 4 --request 1000B --response 300kB -C reno", 1_000, 300_000),
    ] {
        let report = load(args);
        let sizes = (report["request_bytes"].as_u64(), report["response_bytes"].as_u64());
        assert_eq!(sizes, (Some(request), Some(response)), "{args}");
        let count = report["transactions"].as_u64().expect("a count");
        assert!(count >= 20, "{args}: {report}");
        assert_eq!(report["failures"], serde_json::json!({}), "{args}");
        let connected = report["connect_ms"]["count"].as_u64().expect("a count");
        let streams = if args.contains("-P 4") { 4 } else { 1 };
        let expected = if args.starts_with("crr") { count..=count + streams } else { streams..=streams };
        assert!(expected.contains(&connected), "{args}: {connected} connections, {count} transactions");
        within(report["transactions_per_s"].as_f64().expect("a rate"), count as f64 / 0.5, 0.2);
    }
    assert_eq!(bytes(&iperf3(&server.port, "-n 1M")["end"]["sum_received"]), 1_048_576.0);
    // iperf3's own server takes it for a client of its own.
    let other = Iperf3::start();
    let (_, err) = run(folder.path(), &["load", "rr", "127.0.0.1", "-p", &other.port, "-t", "1s"], 3);
    assert!(err.contains("it knows no transactions"), "{err}");
    let (_, err) = run(folder.path(), &["load", "crr", "127.0.0.1", "--request", "36B"], 2);
    assert!(err.contains("a request can be from 37"), "{err}");
}

#[test]
fn a_server_ends_by_itself_and_a_client_says_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Server::start(folder.path(), &["--one-off"]);
    iperf3(&server.port, "-n 1M --get-server-output");
    assert!(server.child.wait().expect("it ends").success());
    let port = server.port.clone();
    let (_, err) = run(folder.path(), &["load", "stream", "127.0.0.1", "-p", &port], 3);
    assert!(err.contains(&format!("cannot connect to 127.0.0.1:{port}")) && err.contains("hint: start"), "{err}");
    let mut idle = Server::start(folder.path(), &["--idle-timeout", "300ms"]);
    assert!(idle.child.wait().expect("it ends").success());
    let busy = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = busy.local_addr().expect("an address").port().to_string();
    let (_, err) = run(folder.path(), &["load", "serve", "--port", &port], 3);
    assert!(err.contains("cannot listen at 127.0.0.1"), "{err}");
    spawn(move || {
        let (mut stream, _) = busy.accept().expect("a client");
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        sleep(Duration::from_millis(500));
    });
    let (_, err) = run(folder.path(), &["load", "stream", "127.0.0.1", "-p", &port], 3);
    assert!(err.contains("does not speak iperf3's protocol"), "{err}");
    let (_, err) = run(folder.path(), &["load", "stream", "127.0.0.1", "--file", "nothing"], 2);
    assert!(err.contains("cannot read 'nothing'"), "{err}");
    let (_, err) = run(folder.path(), &["load", "stream", "127.0.0.1", "--udp", "-l", "100000"], 2);
    assert!(err.contains("the datagram's length is out of range"), "{err}");
}
