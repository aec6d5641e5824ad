//! `thalweg watch`: this host's sockets as text, JSON and metrics, and its screens in a terminal that tmux emulates.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use thalweg_model::{BurstFlow, BurstFlowSide, BurstSourceKind, BurstsReport, SocketState, WatchReport};

/// A recording of two refreshes: a web server behind its peers' windows, a client, a database of another user.
const RECORDING: &str = include_str!("watch/recording.jsonl");

/// A connection whose reader never reads, and as much written as its windows take; the port of the reader's listener.
fn stuck() -> (u16, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let mut sender = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    let (reader, _) = listener.accept().expect("a connection");
    sender.set_nonblocking(true).expect("set");
    let began = Instant::now();
    // Until nothing has gone for a while.
    let mut last = began;
    while last.elapsed() < Duration::from_millis(300) && began.elapsed() < Duration::from_secs(10) {
        match sender.write(&[7; 1 << 16]) {
            Ok(1..) => last = Instant::now(),
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    (port, sender, reader)
}

#[test]
fn a_reader_that_does_not_read_is_named_without_privilege() {
    let folder = tempfile::tempdir().expect("a folder");
    let (port, _sender, _reader) = stuck();
    let filter = format!("port:{port}");
    let (out, _) = common::run(folder.path(), &["watch", &filter, "--json", "--count", "2", "--interval", "500ms"], 0);
    let reports: Vec<WatchReport> =
        out.lines().map(|line| serde_json::from_str(line).expect("a document a line")).collect();
    assert_eq!(reports.len(), 2);
    let report = &reports[1];
    assert!((0.4..5.0).contains(&report.interval_s) && report.sockets_total >= 2, "{report:?}");
    let sender = report.sockets.iter().find(|row| row.peer.port() == port).expect("the sender's socket");
    let reader = report.sockets.iter().find(|row| row.local.port() == port).expect("the reader's socket");
    let process = sender.process.as_ref().expect("this test's");
    assert_eq!(process.pid, std::process::id());
    let limit = sender.limit.now.expect("it waits");
    assert!(["reader", "receive-window"].contains(&limit.cause.as_str()) && limit.share > 0.5, "{limit:?}");
    assert_eq!(reader.limit.now.map(|now| now.cause.as_str()), Some("reader"), "{reader:?}");
    assert_eq!((sender.send.queued_s, sender.send.zero_window), (None, true), "{sender:?}");
    assert!(sender.send.queued_bytes > 100_000 && reader.receive.unread_bytes > 100_000, "{sender:?} {reader:?}");
    assert!(report.backlog.queued_bytes >= sender.send.queued_bytes);

    let (out, _) =
        common::run(folder.path(), &["watch", &filter, "state:established", "--once", "--interval", "100ms"], 0);
    let line = out.lines().find(|line| line.contains("never")).expect("its line");
    assert!(line.contains(&format!("127.0.0.1:{port}")) && line.contains("established"), "{out}");
    // What was recorded is the same table, whenever it is shown.
    let recorded = folder.path().join("sockets.jsonl");
    std::fs::write(&recorded, serde_json::to_string(report).expect("JSON")).expect("written");
    let (again, _) = common::run(folder.path(), &["watch", "--replay", "sockets.jsonl", "--json"], 0);
    assert_eq!(serde_json::from_str::<WatchReport>(again.trim()).expect("JSON").sockets.len(), 2);
    // Whoever recorded was killed in the middle of a line: the ones before count.
    std::fs::write(&recorded, format!("{}\n{}", again.trim(), &again[..again.len() / 2])).expect("written");
    let (cut, _) = common::run(folder.path(), &["watch", "--replay", "sockets.jsonl", "--json"], 0);
    assert_eq!(cut, again);
}

/// Opens connections to `listener` one after the other; over each pass `bytes`.
fn short_connections(listener: &TcpListener, count: usize, bytes: usize, lasts: Duration) {
    for _ in 0..count {
        let mut client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (mut server, _) = listener.accept().expect("a connection");
        client.write_all(&vec![7; bytes]).expect("written");
        server.read_exact(&mut vec![0; bytes]).expect("read");
        std::thread::sleep(lasts);
    }
}

/// A command that reports as JSON, after its first report.
fn reporting(folder: &Path, args: &[&str]) -> (std::process::Child, impl Iterator<Item = WatchReport> + use<>) {
    let mut command = common::thalweg(folder, &[&["watch", "--json"], args].concat());
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let mut reports =
        lines.map(|line| serde_json::from_str::<WatchReport>(&line.expect("a line")).expect("a document a line"));
    reports.next().expect("a report");
    (child, reports)
}

#[test]
fn connections_that_begin_and_end_between_two_refreshes_are_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let listeners: Vec<TcpListener> = (0..4).map(|_| TcpListener::bind("127.0.0.1:0").expect("a listener")).collect();
    let ports: Vec<String> =
        listeners.iter().map(|one| one.local_addr().expect("an address").port().to_string()).collect();
    let filter = format!("port:{}", ports.join(","));
    let (mut child, reports) = reporting(folder.path(), &[&filter, "--interval", "1s", "--count", "5"]);
    std::thread::scope(|scope| {
        for listener in &listeners {
            scope.spawn(|| short_connections(listener, 50, 10_000, Duration::from_millis(5)));
        }
    });
    let reports: Vec<WatchReport> = reports.collect();
    child.wait().expect("ended");
    let closed: Vec<_> = reports.iter().filter_map(|report| report.closed.as_ref()).collect();
    if closed.is_empty() {
        skipped(&format!("connections that end: {:?}", reports[0].notes));
        return;
    }
    let rows: Vec<_> = closed.iter().flat_map(|closed| &closed.sockets).collect();
    // Each end is one.
    let ids: std::collections::HashSet<u64> = rows.iter().map(|row| row.id).collect();
    assert_eq!((ids.len(), rows.len()), (400, 400));
    assert!(closed.iter().map(|closed| closed.total).sum::<u64>() >= 400);
    assert!(closed.iter().all(|closed| closed.missed == 0), "{:?}", reports.last().map(|report| &report.notes));
    assert!(rows.iter().all(|row| row.state == SocketState::Closed && row.rtt.smoothed_ms.is_some()));
    let sent: u64 = rows.iter().map(|row| row.send.bytes).sum();
    let received: u64 = rows.iter().map(|row| row.receive.bytes).sum();
    // Each end counts its SYN and its FIN as a byte.
    let bytes = 2_000_000..=2_000_800;
    assert!(bytes.contains(&sent) && bytes.contains(&received), "{sent} {received}");
    let moved: f64 = reports
        .iter()
        .flat_map(|report| {
            let rows = report.sockets.iter().chain(report.closed.iter().flat_map(|closed| &closed.sockets));
            rows.map(|row| row.send.rate_bps * report.interval_s / 8.0)
        })
        .sum();
    assert!((moved - sent as f64).abs() < 1.0, "rates add up to {moved}, not {sent}");
}

#[test]
fn what_the_kernel_could_not_report_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let (mut child, mut reports) = reporting(folder.path(), &["--interval", "300ms"]);
    let signal = |name: &str| Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill");
    // While it stands still its buffer, of 13,000 to 15,000 reports, gets 24,000.
    signal("-STOP");
    short_connections(&listener, 12_000, 1, Duration::ZERO);
    // The kernel reports them from a work queue (`sock_diag_broadcast_destroy`), on a busy machine some time later.
    std::thread::sleep(Duration::from_secs(1));
    signal("-CONT");
    let (mut total, mut missed) = (0, 0);
    while total + missed < 24_000 {
        let report = reports.next().expect("a report");
        let Some(closed) = report.closed else {
            skipped(&format!("connections that end: {:?}", report.notes));
            missed = 1;
            break;
        };
        total += closed.total;
        missed += closed.missed;
        assert!(closed.sockets.len() <= 10_000);
        let is_said = report.notes.iter().any(|note| note.contains("net.core.rmem_max"));
        assert_eq!(is_said, closed.missed > 0, "{:?}", report.notes);
    }
    signal("-INT");
    child.wait().expect("ended");
    assert!(missed > 0, "{total} were reported, {missed} missed");
}

#[test]
fn metrics_are_served_at_loopback() {
    let folder = tempfile::tempdir().expect("a folder");
    let (port, _sender, _reader) = stuck();
    let mut command =
        common::thalweg(folder.path(), &["watch", "--prometheus", "[::ffff:127.0.0.1]:0", "--interval", "200ms"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut note = String::new();
    BufReader::new(child.stderr.take().expect("stderr")).read_line(&mut note).expect("a note");
    let address = note.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect("an address").to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{note}");
    let get = |path: &str| {
        let mut stream = TcpStream::connect(&address).expect("a connection");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    };
    let began = Instant::now();
    let is_counted = |text: &str| text.contains("thalweg_tcp_zero_window_seconds_total{");
    while !is_counted(&get("/metrics")) {
        assert!(began.elapsed() < Duration::from_secs(10), "{}", get("/metrics"));
        std::thread::sleep(Duration::from_millis(100));
    }
    let metrics = get("/metrics");
    let other = get("/");
    Command::new("kill").arg(child.id().to_string()).status().expect("kill");
    child.wait().expect("ended");
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n") && other.starts_with("HTTP/1.1 404 "), "{other}");
    let (_, body) = metrics.split_once("\r\n\r\n").expect("a body");
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect("a value");
        assert!(name.starts_with("thalweg_tcp_") && value.parse::<f64>().is_ok(), "{line}");
    }
    for name in [
        "retransmitted_segments_total",
        "closed_connections_total",
        "rtt_seconds_bucket",
        "limited_seconds_total",
        "send_queue_bytes",
    ] {
        assert!(body.contains(&format!("thalweg_tcp_{name}{{process=")), "{name}: {body}");
    }
    assert!(!body.contains(&port.to_string()), "no series for each connection");
}

#[test]
fn wrong_words_have_one_error_and_a_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("bad.jsonl"), "{\"schema\":\"thalweg.lab/1\"}\n").expect("written");
    std::fs::write(folder.path().join("cut.parquet"), "PAR1 and no more").expect("written");
    for (args, error, hint) in [
        (vec!["prot:443"], "a filter has no 'prot'", "did you mean 'port'?"),
        (vec!["state:listenn"], "'listenn' is no state", "known: syn-sent"),
        (vec!["--sort", "rtts"], "there is no such column", "did you mean 'rtt'?"),
        (vec!["--interval", "1ms"], "the shortest interval is 100ms", ""),
        (vec!["--replay", "none.jsonl"], "cannot open none.jsonl", ""),
        (vec!["--replay", "cut.parquet"], "cannot replay cut.parquet", "--bursts --record"),
        (vec!["--bursts", "lo", "--record", "bins.csv"], "'bins.csv' is no name", ".parquet"),
        (vec!["--bursts", "lo", "--flows", "65"], "65 is not in 0..=64", ""),
        (vec!["--bursts", "lo", "--burst-source", "xdp"], "invalid value 'xdp'", "af-packet"),
        (vec!["--burst-source", "tcx"], "--bursts <INTERFACE>", ""),
        (vec!["--once", "--flows", "3"], "are for the traffic of an interface", "--bursts"),
        (vec!["--once", "--html", "page.html"], "are for the traffic of an interface", "--bursts"),
        (vec!["--replay", "bad.jsonl", "--once"], "bad.jsonl, line 1", "thalweg watch --json"),
    ] {
        let (out, err) = common::run(folder.path(), &[&["watch"], args.as_slice()].concat(), 2);
        assert!(out.is_empty() && err.contains(error) && err.contains(hint), "{err}");
    }
}

#[test]
fn short_bins_of_an_interface_count_every_packet() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = ["watch", "--bursts", "lo", "--port-rate", "1mbit", "--port-buffer", "10kB", "--json", "--count", "10"];
    let files = ["--record", "bins.parquet", "--html", "bins.html", "--flows", "64"];
    let mut command = common::thalweg(folder.path(), &[&args[..], &["--interval", "200ms"], &files].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let at = receiver.local_addr().expect("an address");
    // From its first report on it counts.
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let Some(Ok(first)) = lines.next() else {
        let output = child.wait_with_output().expect("ended");
        let (_, err) = common::texts(&output);
        assert!(output.status.code() == Some(3) && err.contains("CAP_NET_RAW"), "{err}");
        skipped("packets were not counted: this needs CAP_NET_RAW");
        return;
    };
    for _ in 0..500 {
        sender.send_to(&[7; 1_000], at).expect("sent");
    }
    let reports: Vec<BurstsReport> = std::iter::once(Ok(first))
        .chain(lines)
        .map(|line| serde_json::from_str(&line.expect("a line")).expect("a document a line"))
        .collect();
    child.wait().expect("ended");
    assert_eq!(reports.len(), 10);
    // Other tests use the interface too.
    for direction in [|report: &BurstsReport| report.sent.clone(), |report: &BurstsReport| report.received.clone()] {
        let all: Vec<_> = reports.iter().map(direction).collect();
        let packets: u64 = all.iter().map(|direction| direction.packets).sum();
        let bytes: u64 = all.iter().map(|direction| direction.bytes).sum();
        assert!(packets >= 500 && bytes >= 500 * 1_028, "{packets} packets, {bytes} bytes");
        assert!(all.iter().any(|direction| direction.port.is_some_and(|port| port.overflows > 0)), "{all:?}");
        let fullest = |place: usize| all.iter().map(|direction| direction.bins[place].max_bps).fold(0.0, f64::max);
        assert!(fullest(0) >= fullest(1) && fullest(1) >= fullest(2) && fullest(2) > 0.0, "{all:?}");
    }
    let page = std::fs::read_to_string(folder.path().join("bins.html")).expect("a page");
    assert!(page.contains("<h2>sent</h2>") && page.contains("image/png") && page.contains("overflowed in"), "{page}");
    let from = sender.local_addr().expect("an address");
    assert!(page.contains(&format!("<h2>udp {from} {at}, sent</h2>")), "{page}");
    what_was_recorded_is_replayed(folder.path(), &reports, (from, at));
}

#[test]
fn each_source_tells_flows_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    for (source, kind) in [
        ("tcx", BurstSourceKind::Tcx),
        ("clsact", BurstSourceKind::Clsact),
        ("af-packet", BurstSourceKind::AfPacket),
        ("auto", BurstSourceKind::Tcx),
    ] {
        let args = ["watch", "--bursts", "lo", "--burst-source", source, "--flows", "64", "--json", "--count", "8"];
        let mut command = common::thalweg(folder.path(), &[&args[..], &["--interval", "200ms"]].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let [from, to] = [&sender, &receiver].map(|socket| socket.local_addr().expect("an address"));
        let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        let Some(Ok(_)) = lines.next() else {
            let output = child.wait_with_output().expect("ended");
            let (_, err) = common::texts(&output);
            assert!(output.status.code() == Some(3) && err.contains("hint:"), "{err}");
            skipped(&format!("flows were not told apart by {source}: {}", err.lines().next().unwrap_or_default()));
            continue;
        };
        for _ in 0..300 {
            sender.send_to(&[7; 972], to).expect("sent");
        }
        let reports: Vec<BurstsReport> =
            lines.map(|line| serde_json::from_str(&line.expect("a line")).expect("a document a line")).collect();
        child.wait().expect("ended");
        if source != "auto" {
            assert!(reports.iter().all(|report| report.source.kind == kind && report.source.reason.is_none()));
        }
        let sum = |local, peer, side: fn(&BurstFlow) -> &BurstFlowSide| -> (u64, u64) {
            let rows = reports.iter().flat_map(|report| &report.flows);
            let rows = rows.filter(|flow| flow.ends.is_some_and(|ends| (ends.local, ends.peer) == (local, peer)));
            rows.map(side).fold((0, 0), |sum, side| (sum.0 + side.packets, sum.1 + side.bytes))
        };
        // Each packet leaves one socket and arrives at the other.
        assert_eq!(sum(from, to, |flow| &flow.sent), (300, 300_000), "{source}");
        assert_eq!(sum(to, from, |flow| &flow.received), (300, 300_000), "{source}");
        for report in &reports {
            let of_flows: u64 = report.flows.iter().map(|flow| flow.sent.bytes).sum();
            assert_eq!(of_flows, report.sent.bytes, "{source}: the rows are all of it");
        }
    }
}

/// The record has what the reports counted, but for the bin that the last one cut.
fn what_was_recorded_is_replayed(folder: &Path, reports: &[BurstsReport], flow: (SocketAddr, SocketAddr)) {
    let replay = ["watch", "--replay", "bins.parquet", "--flows", "64"];
    let (out, _) = common::run(folder, &[&replay[..], &["--json", "--html", "again.html"]].concat(), 0);
    let again: Vec<BurstsReport> = out.lines().map(|line| serde_json::from_str(line).expect("a document")).collect();
    let bytes = |reports: &[BurstsReport]| reports.iter().map(|report| report.sent.bytes).sum::<u64>();
    let (live, replayed) = (bytes(reports), bytes(&again));
    assert!(replayed <= live && replayed >= 500 * 1_028, "{replayed} of {live}");
    assert!(again.iter().all(|report| report.interface == "lo" && report.sent.port.is_none()), "{out}");
    let page = std::fs::read_to_string(folder.join("again.html")).expect("a page");
    assert!(page.contains("image/png") && !page.contains("overflowed in"), "{page}");
    assert!(page.contains(&format!("<h2>udp {} {}, sent</h2>", flow.0, flow.1)), "{page}");
    let rows = again.iter().flat_map(|report| &report.flows);
    let rows: Vec<&BurstFlow> =
        rows.filter(|row| row.ends.is_some_and(|ends| (ends.local, ends.peer) == flow)).collect();
    let sum = |of: fn(&BurstFlowSide) -> u64| rows.iter().map(|row| of(&row.sent)).sum::<u64>();
    assert_eq!((sum(|side| side.packets), sum(|side| side.bytes)), (500, 500 * 1_028));
    assert!(rows.iter().all(|row| row.resent.is_none()) && again.iter().all(|report| report.resent.is_none()));
    let (out, _) = common::run(folder, &["watch", "--replay", "bins.parquet", "--flows", "0", "--json", "--once"], 0);
    assert!(serde_json::from_str::<BurstsReport>(&out).expect("a document").flows.is_empty());
    let port = ["--port-rate", "1mbit", "--port-buffer", "10kB"];
    let (out, _) = common::run(folder, &[&replay[..], &port].concat(), 0);
    assert!(out.contains("overflow it"), "{out}");
}

fn skipped(why: &str) {
    #[expect(clippy::print_stderr, reason = "a skipped check must not be silent")]
    {
        eprintln!("SKIPPED: {why}");
    }
}

/// A terminal with a program in it.
struct Terminal<'a> {
    socket: &'a Path,
}

impl<'a> Terminal<'a> {
    fn start(socket: &'a Path, command: &[&str]) -> Self {
        let own = Self { socket };
        let size = ["-x", "132", "-y", "24"];
        let begun = own.tmux(&[&["-u", "-f", "/dev/null", "new-session", "-d"], &size[..], command].concat());
        assert!(begun.status.success(), "{begun:?}");
        own
    }

    fn tmux(&self, args: &[&str]) -> std::process::Output {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(self.socket).args(args).env("TERM", "xterm-256color").env_remove("TMUX");
        tmux.output().expect("tmux, which ./x test installs")
    }

    fn keys(&self, keys: &[&str]) {
        assert!(self.tmux(&[&["send-keys"], keys].concat()).status.success());
    }

    /// The screen, as soon as it has this text.
    fn screen(&self, with: &str) -> String {
        let began = Instant::now();
        loop {
            let text = String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p"]).stdout).into_owned();
            if text.contains(with) {
                return text;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "no '{with}' on the screen:\n{text}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Terminal<'_> {
    /// Closes the terminal under its program, which has to end.
    fn hang_up(self) {
        let pid =
            String::from_utf8_lossy(&self.tmux(&["display-message", "-p", "#{pane_pid}"]).stdout).trim().to_owned();
        assert!(pid.parse::<u32>().is_ok(), "{pid}");
        let is_running = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
        };
        assert!(is_running());
        drop(self);
        let began = Instant::now();
        while is_running() {
            assert!(began.elapsed() < Duration::from_secs(10), "{pid} goes on without a terminal");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn the_screens_of_a_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = folder.path().join("sockets.jsonl");
    std::fs::write(&recording, RECORDING).expect("written");
    let file = recording.display().to_string();
    let socket = folder.path().join("tmux");
    let terminal = Terminal::start(&socket, &[env!("CARGO_BIN_EXE_thalweg"), "watch", "--replay", &file]);
    // The second refresh stays.
    let mut screens = vec![terminal.screen("sending 184 Mb/s")];
    terminal.keys(&["Tab"]);
    screens.push(terminal.screen("columns: send"));
    terminal.keys(&["Down", "Down", "Home"]);
    terminal.keys(&["Enter"]);
    screens.push(terminal.screen("verdict"));
    terminal.keys(&["Escape"]);
    terminal.screen("columns: send");
    terminal.keys(&["/", "cause:receive-windw", "Enter"]);
    screens.push(terminal.screen("did you mean 'receive-window'?"));
    terminal.keys(&["BSpace", "ow", "Enter"]);
    screens.push(terminal.screen("1 of 3 sockets"));
    terminal.keys(&["?"]);
    screens.push(terminal.screen("any key goes back"));
    insta::assert_snapshot!(screens.join("\n----\n"));
    terminal.hang_up();
}

#[test]
fn a_live_screen_shows_a_socket_and_ends_by_a_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let (port, _sender, _reader) = stuck();
    let socket = folder.path().join("tmux");
    let filter = format!("peer-port:{port}");
    let terminal = Terminal::start(&socket, &[env!("CARGO_BIN_EXE_thalweg"), "watch", &filter, "--interval", "200ms"]);
    let list = terminal.screen("never");
    assert!(
        list.contains(&format!("127.0.0.1:{port}")) && list.contains(&format!("filter: peer-port:{port}")),
        "{list}"
    );
    terminal.keys(&["Enter"]);
    // The doctor's verdict, from samples while it was shown.
    let detail = terminal.screen("in flight");
    assert!(detail.contains(&std::process::id().to_string()) && detail.contains("verdict"), "{detail}");
    terminal.screen("verdict  re");
    terminal.keys(&["q"]);
    let began = Instant::now();
    // With its only window the server ends too.
    while terminal.tmux(&["list-sessions"]).status.success() {
        assert!(began.elapsed() < Duration::from_secs(10), "it did not end");
        std::thread::sleep(Duration::from_millis(50));
    }
}
