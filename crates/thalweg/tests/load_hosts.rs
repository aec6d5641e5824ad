//! `thalweg load udp-train`, `topics` and the token of `thalweg load serve`: exact in the lab, live behind a path, and against strangers.

mod common;

use common::{can_make_paths, figure, json, run, texts, thalweg, within};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;
use std::time::{Duration, Instant};

const TOKEN: &str = "8c1f0d6be20b4f29a3f7";

/// Runs clients in the lab, with a server at the other end: `rest` are figures and arms.
fn in_the_lab(client: &str, rest: &str) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        r#"name = "x"
[path]
rtt = "20ms"
[workload]
kind = "command"
server = "{{thalweg}} load serve --listen 0.0.0.0 --token-file token"
port = 5201
client = "{{thalweg}} load {client} --token-file token --json"
[workload.files]
token = "{TOKEN}"
[workload.figures]
{rest}"#
    );
    fs::write(folder.path().join("x.toml"), text).expect("written");
    json(folder.path(), &["lab", "run", "x.toml", "--capture", "off", "--samples", "off"])
}

/// The lab's clocks are exact, and its packets are sent at one moment.
#[test]
fn trains_find_the_rate_and_the_buffer_exactly_in_the_lab() {
    let report = in_the_lab(
        "udp-train {server}",
        r#"rate_bps = '"rate":\s*\{\s*"bps":\s*([0-9.e]+)'
buffer_bytes = '"buffer":\s*\{\s*"bytes":\s*([0-9]+)'
buffer_packets = '"high_bytes":\s*[0-9]+,\s*"packets":\s*([0-9]+)'
[[arm]]
name = "up"
path = { rate = "100mbit", queue = "128KB" }
[[arm]]
name = "down"
path = { rate = "100mbit", queue = "128KB" }
workload.client = "{thalweg} load udp-train {server} -R --token-file token --json"
[[arm]]
name = "switch"
path.rtt = "0.235ms"
topology = { kind = "switch", rate = "1gbit", buffer = "128KB", overhead = 24, nic = false }
workload.client = "{thalweg} load udp-train {server} --overhead 24 --token-file token --json"
"#,
    );
    for arm in ["up", "down"] {
        within(figure(&report, arm, "rate_bps"), 100e6, 0.001);
        // 88 frames fit; one is being sent, and the shaper's first burst is another.
        assert!((88.0..=90.0).contains(&figure(&report, arm, "buffer_packets")), "{arm}");
        within(figure(&report, arm, "buffer_bytes"), 128_000.0, 0.025);
    }
    within(figure(&report, "switch", "rate_bps"), 1e9, 0.002);
    // The lab's own train finds as many (scenarios/udp-buffer.toml).
    assert_eq!(figure(&report, "switch", "buffer_packets"), 88.0);
}

/// A path that loses packets and is never full: no buffer is made up.
#[test]
fn random_losses_make_no_buffer() {
    let report = in_the_lab(
        "udp-train {server} --packets 1024 --trains 5",
        r#"scattered_bps = '"finding":\s*"scattered-losses",\s*"rate":\s*\{\s*"bps":\s*([0-9.e]+)'
[[arm]]
name = "lossy"
path = { rate = "100mbit", queue = "4MB", loss = "3%" }
"#,
    );
    // The loss is behind the queue, so the arrivals are fewer than what left it.
    within(figure(&report, "lossy", "scattered_bps"), 97e6, 0.02);
}

/// The lab's own topics, and the same ones by this program: one file predicts and measures.
#[test]
fn topics_in_the_lab_are_as_late_as_the_labs_own() {
    const TOPICS: &str = r#"
seconds = "2s"
[[workload.topic]]
name = "map"
publisher = "client"
subscribers = ["server"]
period = "50ms"
size = "60KB"
[[workload.topic]]
name = "plan"
publisher = "server"
period = "20ms"
phase = "7ms"
size = "4KB"
"#;
    let path = "[path]\nrate = \"100mbit\"\nrtt = \"20ms\"\n";
    let own = format!(
        "name = \"x\"\n{path}[workload]\nkind = \"topics\"{TOPICS}[client]\nsocket = {{ nodelay = true }}\n[server]\nsocket = {{ nodelay = true }}\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("own.toml"), &own).expect("written");
    let predicted = json(folder.path(), &["lab", "run", "own.toml", "--capture", "off", "--samples", "off"]);
    let text = format!(
        r#"name = "y"
{path}
[workload]
kind = "command"
server = "{{thalweg}} load serve --listen 0.0.0.0 --token-file token"
port = 5201
client = "{{thalweg}} load topics {{server}} own.toml --deadline 1s --token-file token --json"
[workload.files]
token = "{TOKEN}"
"own.toml" = '''{own}'''
[workload.figures]
map_p50_ms = '"name":\s*"map"[^}}]*"p50":\s*([0-9.]+)'
map_max_ms = '"name":\s*"map"[^}}]*"max":\s*([0-9.]+)'
plan_p50_ms = '"name":\s*"plan"[^}}]*"p50":\s*([0-9.]+)'
uncertainty_ms = '"uncertainty_ms":\s*([0-9.]+)'
"#
    );
    fs::write(folder.path().join("y.toml"), text).expect("written");
    let measured = json(folder.path(), &["lab", "run", "y.toml", "--capture", "off", "--samples", "off"]);
    let arm = |report: &Value| report["arms"][0]["name"].as_str().expect("a name").to_owned();
    let predicted = |path: &str| figure(&predicted, &arm(&predicted), path);
    let measured = |path: &str| figure(&measured, &arm(&measured), path);
    within(measured("map_p50_ms"), predicted("topics.map.latency_ms.p50"), 0.01);
    within(measured("map_max_ms"), predicted("topics.map.latency_ms.max"), 0.03);
    within(measured("plan_p50_ms"), predicted("topics.plan.latency_ms.p50"), 0.01);
    within(measured("uncertainty_ms"), 10.0, 0.01);
}

/// Runs a client behind a live path, with a server at its far end, until its document `holds`. A path whose own verdict is that it was not what was
/// asked for proves nothing: after three of them the test is skipped.
fn behind(test: &str, path: &str, client: &str, holds: impl Fn(&Value) -> bool) {
    if !can_make_paths(test) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = env!("CARGO_BIN_EXE_thalweg");
    let server = format!("{program} load serve -q --listen 0.0.0.0");
    let own = format!("{program} load {client} --json > own.json");
    let mut args = vec!["path", "--isolated", "-q", "--json", "--server", &server];
    args.extend(path.split_whitespace());
    args.extend(["--", "sh", "-c", &own]);
    for _ in 0..3 {
        let output = thalweg(folder.path(), &args).env("THALWEG_LOAD_TOKEN", TOKEN).output().expect("started");
        let (out, err) = texts(&output);
        let own = fs::read_to_string(folder.path().join("own.json")).expect("the client's document");
        let own: Value = serde_json::from_str(&own).unwrap_or_else(|error| panic!("{client}: {error}\n{own}\n{err}"));
        let path: Value = serde_json::from_str(&out).expect("the path's document");
        if holds(&own) {
            return;
        }
        assert!(path["verdict"]["faithful"] != true, "{own}");
    }
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: this host is too busy to hold a path");
}

#[test]
fn a_live_path_has_the_rate_and_the_buffer_that_were_set() {
    const TEST: &str = "a_live_path_has_the_rate_and_the_buffer_that_were_set";
    let near = |value: &Value, wanted: f64, part: f64| {
        value.as_f64().is_some_and(|value| (value / wanted - 1.0).abs() <= part)
    };
    behind(TEST, "--rtt 10ms --rate 100mbit --queue 128KB", "udp-train server", |report| {
        report["finding"] == "full-buffer"
            && near(&report["rate"]["bps"], 100e6, 0.02)
            && near(&report["buffer"]["bytes"], 128_000.0, 0.05)
    });
}

#[test]
fn topics_through_a_live_path_are_late_by_its_delay() {
    const TEST: &str = "topics_through_a_live_path_are_late_by_its_delay";
    // One segment: a host whose default is BBR paces, and goes on to after -C.
    let topics = "topics server --period 20ms --size 1KB -P 2 -t 1s -R --deadline 1s -C reno";
    behind(TEST, "--rtt 30ms", topics, |report| {
        let is_late_by_it = |topic: &Value| {
            assert_eq!((&topic["messages"], &topic["lost"], &topic["way"]), (&50.into(), &0.into(), &"down".into()));
            assert_eq!(topic["connection"]["congestion"], "reno");
            assert!(topic["connection"]["min_rtt_ms"].as_f64() >= Some(29.9), "{topic}");
            topic["latency_ms"]["p50"].as_f64().is_some_and(|p50| (14.5..17.0).contains(&p50))
        };
        report["topics"].as_array().expect("topics").iter().all(is_late_by_it)
    });
}

/// `thalweg load serve` at a port of its own, and the lines it notes.
struct Server {
    child: Child,
    port: String,
    notes: Receiver<String>,
}

impl Server {
    fn start(folder: &Path, args: &[&str]) -> Self {
        let args = [&["load", "serve", "--port", "0"], args].concat();
        let mut child = thalweg(folder, &args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let (sender, notes) = channel();
        let err = BufReader::new(child.stderr.take().expect("stderr"));
        spawn(move || err.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut server = Self { child, port: String::new(), notes };
        let line = server.notes.recv_timeout(Duration::from_secs(10)).expect("a line");
        line.split(&[':', ',']).nth(1).expect("a port").clone_into(&mut server.port);
        server
    }

    /// Waits for a note that holds this.
    fn notes(&self, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut seen = Vec::new();
        while let Ok(line) = self.notes.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if line.contains(text) {
                return;
            }
            seen.push(line);
        }
        panic!("no '{text}' in {seen:?}");
    }

    /// A control connection that has said its cookie, and what the server said then.
    fn connect(&self) -> (TcpStream, String) {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.port)).expect("connected");
        let mut cookie = *b"thalweg.ctl1.........................";
        cookie[36] = 0;
        stream.write_all(&cookie).expect("sent");
        let mut hello = String::new();
        BufReader::new(stream.try_clone().expect("another handle")).read_line(&mut hello).expect("a line");
        (stream, hello)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn strangers_are_refused_in_a_sentence_and_the_server_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("token"), format!("{TOKEN}\n")).expect("written");
    fs::write(folder.path().join("other"), "8c1f0d6be20b4f29a3f8").expect("written");
    fs::write(folder.path().join("short"), "secret").expect("written");
    let server = Server::start(folder.path(), &["--token-file", "token"]);
    let client = |words: &str, code: i32| {
        let mut args = vec!["load"];
        args.extend(words.split_whitespace());
        args.extend(["--port", &server.port]);
        run(folder.path(), &args, code)
    };
    let serves = || drop(client("topics 127.0.0.1 -t 50ms --period 10ms --token-file token --deadline 10s", 0));
    serves();
    server.notes("1 tests of topics");

    for verb in ["udp-train 127.0.0.1", "topics 127.0.0.1"] {
        let (_, err) = client(verb, 2);
        assert!(err.contains("the server asks for a token\n\nhint: ") && err.contains("--token-file"), "{err}");
        let (_, err) = client(&format!("{verb} --token-file other"), 2);
        assert!(err.contains("the token is not the server's\n\nhint: "), "{err}");
        server.notes("the token is not the server's");
    }
    for verb in ["stream 127.0.0.1 -t 1", "crr 127.0.0.1 -t 1s", "rr 127.0.0.1 -t 1s"] {
        let (_, err) = client(verb, 2);
        assert!(err.contains("it asks for authentication\n\nhint: ") && err.contains("--token-file"), "{err}");
        server.notes("the client has not proved the token");
    }
    // iperf3's own client, which knows no token.
    let iperf3 =
        Command::new("timeout").args(["20", "iperf3", "-c", "127.0.0.1", "-t", "1", "-p", &server.port]).output();
    let (out, err) = texts(&iperf3.expect("iperf3 starts"));
    assert!(format!("{out}{err}").contains("test authorization failed"), "{out}{err}");
    server.notes("the client has not proved the token");
    client("stream 127.0.0.1 -n 1MB --token-file token", 0);
    client("crr 127.0.0.1 -t 100ms --token-file token", 0);
    let (_, err) = client("topics 127.0.0.1 --token-file short", 2);
    assert!(err.contains("16 to 1024 printable") && err.contains("openssl rand"), "{err}");
    let (_, err) = client("topics 127.0.0.1 --token-file none", 2);
    assert!(err.contains("cannot read the token file 'none'"), "{err}");
    let (_, err) = client("topics 127.0.0.1 -C none --token-file token", 3);
    assert!(err.contains("TCP_CONGESTION"), "{err}");
    let (_, err) = client("topics 127.0.0.1 -R -C none --token-file token", 3);
    assert!(err.contains("the server refuses: ") && err.contains("TCP_CONGESTION"), "{err}");
    let (_, err) = client("topics 127.0.0.1 --period 1us --token-file token", 2);
    assert!(err.contains("'period' is out of range") && err.contains("hint: "), "{err}");

    // Neither protocol.
    let mut stranger = TcpStream::connect(format!("127.0.0.1:{}", server.port)).expect("connected");
    stranger.write_all(b"GET / HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\n\r\n").expect("sent");
    server.notes("neither iperf3's protocol");
    // A line without an end, garbage, and a message that is not expected.
    for (sent, note) in [
        (vec![b'{'; 70_000], "a line is longer than 65536 bytes"),
        (b"no message".to_vec(), "a line is no message"),
        (b"{\"type\":\"sent\"}\n".to_vec(), "a message was not expected"),
        (b"{\"type\":\"prove\",\"challenge\":\"0\",\"proof\":\"\"}\n".to_vec(), "'challenge' is out of range"),
    ] {
        let (mut stream, hello) = server.connect();
        assert!(hello.contains("\"token\":true") && !hello.contains(TOKEN), "{hello}");
        stream.write_all(&sent).expect("sent");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        drop(stream);
        assert!(answer.is_empty() || answer.contains("\"refuse\""), "{answer}");
        server.notes(note);
    }
    // One that vanishes before it proved anything, and one in the middle of a test.
    drop(server.connect());
    server.notes("the client closed the control connection");
    let args = ["load", "topics", "127.0.0.1", "-t", "60s", "--token-file", "token", "--port", &server.port];
    let mut child = thalweg(folder.path(), &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
    std::thread::sleep(Duration::from_millis(500));
    child.kill().expect("killed");
    child.wait().expect("ended");
    server.notes("topic 0 broke");
    serves();
    server.notes("1 tests of topics");
}

#[test]
fn nobody_listens_beyond_loopback_without_a_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, err) = run(folder.path(), &["load", "serve", "--listen", "0.0.0.0", "--port", "0"], 2);
    assert!(err.contains("without a token, whoever reaches 0.0.0.0") && err.contains("hint: openssl"), "{err}");
    // Without a token this host's own clients are served, as before. 127.0.0.1 mapped into IPv6 is loopback, too.
    let server = Server::start(folder.path(), &["--listen", "::ffff:127.0.0.1"]);
    run(folder.path(), &["load", "udp-train", "127.0.0.1", "-p", &server.port, "--trains", "1"], 0);
    server.notes("UDP trains");
    let args =
        ["load", "topics", "127.0.0.1", "topics-meet", "-t", "200ms", "-p", &server.port, "--json", "--as", "client2"];
    let report: Value = serde_json::from_str(&run(folder.path(), &args, 0).0).expect("JSON");
    let topics = report["topics"].as_array().expect("topics");
    assert_eq!((topics.len(), &topics[0]["name"], &topics[0]["deadline"]), (1, &"camera".into(), &"100ms".into()));
    assert!(report["notes"][0].as_str().is_some_and(|note| note.starts_with("2 topics")), "{report}");
    let (_, err) = run(folder.path(), &["load", "topics", "127.0.0.1", "slow-download"], 2);
    assert!(err.contains("no workload of kind \"topics\"") && err.contains("hint: "), "{err}");
    let (_, err) = run(folder.path(), &["load", "topics", "127.0.0.1", "topics-meet", "--as", "client4"], 2);
    assert!(err.contains("no topic between client4 and server"), "{err}");
}

/// A name with two addresses, in a mount namespace with an `/etc/hosts` of its own; nobody listens at the first.
#[test]
fn a_name_whose_first_address_refuses_is_reached_at_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("hosts"), "127.0.0.2 twice\n127.0.0.3 twice\n").expect("written");
    fs::write(folder.path().join("token"), TOKEN).expect("written");
    let load =
        |verb: &str| format!("\"$thalweg\" load {verb} twice --port 5999 --token-file token --json > out.{verb}\n");
    let stream = load("stream").replace("--json", "--json -t 1");
    let transactions = ["rr", "crr"].map(|verb| load(verb).replace("--json", "--json -t 200ms")).concat();
    let lines = format!(
        "mount --bind hosts /etc/hosts\nip link set lo up\n\"$thalweg\" load serve --listen 127.0.0.3 --port 5999 --token-file token &\n\
         trap 'kill $!' EXIT\nfor i in 1 2 3 4 5 6 7 8 9 10; do grep -q 0300007F:176F /proc/net/tcp && break; sleep 0.2; done\n{stream}{transactions}{}",
        load("udp-train"),
    );
    let mut command = Command::new("unshare");
    let user: &[&str] = if rustix::process::getuid().is_root() { &[] } else { &["--map-root-user"] };
    command.args(["--net", "--mount"]).args(user).args(["sh", "-euc", &lines]);
    let output = command.env("thalweg", env!("CARGO_BIN_EXE_thalweg")).current_dir(folder.path()).output();
    let (out, err) = texts(&output.expect("unshare (util-linux)"));
    for verb in ["stream", "rr", "crr", "udp-train"] {
        let text = fs::read_to_string(folder.path().join(format!("out.{verb}"))).unwrap_or_default();
        let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{verb}: {error}\n{out}{err}"));
        assert_eq!(report["peer"], "127.0.0.3:5999", "{verb}: {err}");
    }
}
