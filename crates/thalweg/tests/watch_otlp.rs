//! `thalweg watch --otlp`: what a collector gets, read as the specification has it, and what happens without one.

mod common;

use rustix::net;
use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// A request of an export.
struct Export {
    /// Its first line, then its headers, in lower case.
    head: String,
    body: Value,
}

/// Takes one request and answers it.
fn take(listener: &TcpListener, status: &str, answer: &str) -> Export {
    let (stream, _) = listener.accept().expect("an export");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).expect("a line") > 0, "it ends in its head: {head}");
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let mut body = vec![0; length.trim().parse().expect("a number")];
    reader.read_exact(&mut body).expect("the body");
    let mut stream = reader.into_inner();
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}", answer.len())
        .expect("sent");
    Export { head, body: serde_json::from_slice(&body).expect("JSON") }
}

fn started(folder: &std::path::Path, args: &[&str], variables: &[(&str, &str)]) -> Child {
    let mut command = common::thalweg(folder, &[&["watch", "--interval", "200ms"], args].concat());
    command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

/// Ends it as Ctrl-C does.
fn end(child: &Child) {
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
}

/// Sends megabytes over a connection of this process's until it is dropped.
struct Traffic(std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Traffic {
    fn begin() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let mut sender = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (mut receiver, _) = listener.accept().expect("a connection");
        let ended = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let theirs = std::sync::Arc::clone(&ended);
        std::thread::spawn(move || {
            let mut part = vec![7; 1 << 16];
            while !theirs.load(std::sync::atomic::Ordering::Relaxed) {
                sender.write_all(&part).expect("sent");
                receiver.read_exact(&mut part).expect("received");
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Self(ended)
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// An integer of 64 bits, which JSON has as a text.
fn integer(value: &Value) -> u64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value} is no integer as a text"))
}

/// Every value of a sum by metric and attributes, once all that the specification requires is there.
fn checked(document: &Value) -> HashMap<String, (f64, bool)> {
    let resource = &document["resourceMetrics"][0];
    let keys: Vec<&str> = resource["resource"]["attributes"]
        .as_array()
        .expect("attributes")
        .iter()
        .map(|attribute| {
            assert!(attribute["value"]["stringValue"].as_str().is_some_and(|value| !value.is_empty()), "{attribute}");
            attribute["key"].as_str().expect("a key")
        })
        .collect();
    assert!(["service.name", "host.name"].iter().all(|key| keys.contains(key)), "{keys:?}");
    let scope = &resource["scopeMetrics"][0];
    assert!(scope["scope"]["name"].as_str().is_some_and(|name| !name.is_empty()));
    let mut sums = HashMap::new();
    for metric in scope["metrics"].as_array().expect("metrics") {
        let name = metric["name"].as_str().expect("a name");
        assert!(metric["unit"].as_str().is_some_and(|unit| !unit.is_empty()), "{name}");
        assert!(metric["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}");
        let is_histogram = metric.get("histogram").is_some();
        let data = if is_histogram { &metric["histogram"] } else { &metric["sum"] };
        assert_eq!(data["aggregationTemporality"], 2, "{name} is cumulative");
        for point in data["dataPoints"].as_array().expect("points") {
            let (from, until) = (integer(&point["startTimeUnixNano"]), integer(&point["timeUnixNano"]));
            assert!(from > 1_600_000_000_000_000_000 && until >= from, "{name}: {point}");
            let key = format!("{name}{}", point["attributes"]);
            if is_histogram {
                let buckets: Vec<u64> =
                    point["bucketCounts"].as_array().expect("buckets").iter().map(integer).collect();
                let bounds = point["explicitBounds"].as_array().expect("bounds");
                assert_eq!(buckets.len(), bounds.len() + 1, "{name}");
                assert_eq!(buckets.iter().sum::<u64>(), integer(&point["count"]), "{name}");
                assert!(point["sum"].is_f64(), "{name}");
                sums.insert(key, (integer(&point["count"]) as f64, true));
            } else {
                let value = point["asDouble"].as_f64().unwrap_or_else(|| integer(&point["asInt"]) as f64);
                let is_monotonic = data["isMonotonic"].as_bool().expect("said");
                assert!(sums.insert(key, (value, is_monotonic)).is_none(), "{name}: two points of the same attributes");
            }
        }
    }
    sums
}

#[test]
fn a_collector_gets_cumulative_sums_at_each_refresh() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let _traffic = Traffic::begin();
    let variables = [("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret%21"), ("OTEL_SERVICE_NAME", "edge-7")];
    let child = started(folder.path(), &["--otlp", &endpoint], &variables);
    let exports: Vec<Export> = (0..4).map(|_| take(&listener, "200 OK", "{}")).collect();
    end(&child);
    let output = child.wait_with_output().expect("ended");
    let (out, err) = common::texts(&output);
    assert!(out.is_empty() && err.contains("metrics go to") && !err.contains("s3cret"), "{out}{err}");
    for export in &exports {
        assert!(export.head.starts_with("post /v1/metrics http/1.1\r\n"), "{}", export.head);
        assert!(export.head.contains("content-type: application/json\r\n"), "{}", export.head);
        assert!(export.head.contains("x-key: s3cret!\r\n"), "{}", export.head);
        assert!(export.body.to_string().contains("edge-7"));
    }
    let all: Vec<_> = exports.iter().map(|export| checked(&export.body)).collect();
    for pair in all.windows(2) {
        for (key, (value, is_monotonic)) in &pair[0] {
            let later = pair[1].get(key).map(|(value, _)| *value);
            assert!(!is_monotonic || later.is_some_and(|later| later >= *value), "{key}: {value}, then {later:?}");
        }
    }
    let last = all.last().expect("exports");
    let name = std::fs::read_to_string("/proc/self/comm").expect("a name");
    let is_ours = |key: &str| key.contains(&format!("\"stringValue\":\"{}\"", name.trim_end()));
    let of = |start: &str, part: &str| {
        let found = last.iter().find(|(key, _)| key.starts_with(start) && key.contains(part) && is_ours(key));
        found.unwrap_or_else(|| panic!("no {start} with {part} of ours in {last:?}")).1.0
    };
    // Other tests of this binary have connections too.
    assert!(of("thalweg.tcp.io", "transmit") > 1e5 && of("thalweg.tcp.io", "receive") > 1e5);
    assert!(of("thalweg.tcp.segments.sent", "") > 0.0 && of("thalweg.tcp.rtt", "") > 0.0);
}

#[test]
fn a_collector_that_is_down_is_named_once_and_tried_again() {
    let folder = tempfile::tempdir().expect("a folder");
    // Bound, its port is nobody else's; it refuses until it listens.
    let socket = net::socket(net::AddressFamily::INET, net::SocketType::STREAM, None).expect("a socket");
    net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("bound");
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().expect("an address");
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://who:s3cret@{address}/a")),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "authorization=s3cret".to_owned()),
    ];
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut child = started(folder.path(), &["--json", "--otlp"], &variables);
    // The refreshes go on.
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let began = Instant::now();
    for _ in 0..5 {
        assert!(lines.next().is_some_and(|line| line.is_ok_and(|line| line.contains("thalweg.watch/1"))));
    }
    assert!(began.elapsed() < PATIENCE);
    // A pipe that nobody reads would hold the exports up, too.
    let drained = std::thread::spawn(move || lines.for_each(drop));
    net::listen(&listener, 8).expect("it listens");
    let export = take(&listener, "503 Service Unavailable", "{\"message\":\"too much\"}");
    assert!(export.head.starts_with("post /a/v1/metrics "), "{}", export.head);
    take(&listener, "200 OK", "{\"partialSuccess\":{}}");
    take(&listener, "200 OK", "{\"partialSuccess\":{\"rejectedDataPoints\":\"3\",\"errorMessage\":\"too old\"}}");
    // What it said of that is on stderr by the refresh after the next export.
    take(&listener, "200 OK", "");
    end(&child);
    std::thread::spawn(move || take(&listener, "200 OK", ""));
    let output = child.wait_with_output().expect("ended");
    drained.join().expect("read");
    let (_, err) = common::texts(&output);
    assert!(!err.contains("s3cret"), "{err}");
    let troubles: Vec<&str> = err.lines().filter(|line| line.contains("does not take the metrics")).collect();
    assert!(troubles.first().is_some_and(|line| line.contains(&format!("http://{address}/a/v1/metrics"))), "{err}");
    // One for the time when it was down and refused, and one for what it rejected.
    assert!(troubles.len() <= 2 && !err.contains("503"), "{err}");
}

#[test]
fn wrong_words_about_a_collector_have_one_error_and_a_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    for (args, error) in [
        (vec!["--otlp", "port:443"], "--otlp cannot be used"),
        (vec!["--otlp", "127.0.0.1:4318"], "--otlp cannot be used"),
        (vec!["--bursts", "lo", "--otlp"], "cannot be used with"),
        (vec!["--otlp", "--once"], "cannot be used with"),
    ] {
        let (out, err) = common::run(folder.path(), &[&["watch"], args.as_slice()].concat(), 2);
        assert!(out.is_empty() && err.contains(error), "{err}");
    }
    let mut command = common::thalweg(folder.path(), &["watch", "--otlp", "--count", "1"]);
    let output = command.env("OTEL_EXPORTER_OTLP_HEADERS", "s3cret").output().expect("runs");
    let (_, err) = common::texts(&output);
    assert!(output.status.code() == Some(2) && err.contains("OTEL_EXPORTER_OTLP_HEADERS") && !err.contains("s3cret"));
}
