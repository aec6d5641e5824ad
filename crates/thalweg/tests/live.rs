//! `thalweg diagnose --live`: packets of a network namespace, and sockets without privilege.

mod common;

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PAYLOAD: usize = 200_000;

/// Moves data over loopback for a while: a burst, a pause, and again. Gives the port of the side that sends.
fn traffic(during: Duration) -> (u16, thread::JoinHandle<u64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let worker = thread::spawn(move || {
        // Whoever watches must have begun.
        thread::sleep(Duration::from_millis(500));
        let mut client = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        let (mut server, _) = listener.accept().expect("a connection");
        let reader = thread::spawn(move || {
            let mut sum = 0;
            let mut buffer = vec![0; 1 << 16];
            while let Ok(read @ 1..) = client.read(&mut buffer) {
                sum += read as u64;
            }
            sum
        });
        let begun = Instant::now();
        while begun.elapsed() < during {
            server.write_all(&vec![7; PAYLOAD]).expect("written");
            thread::sleep(Duration::from_millis(40));
        }
        drop(server);
        reader.join().expect("read")
    });
    (port, worker)
}

fn flows(watching: Child) -> (Value, Vec<Value>) {
    let output = watching.wait_with_output().expect("an end");
    let (out, err) = common::texts(&output);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{out}{err}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    let flows = report["captures"][0]["flows"].as_array().expect("flows").clone();
    (report, flows)
}

#[test]
fn sockets_are_watched_without_privilege() {
    let folder = tempfile::tempdir().expect("a folder");
    let (port, worker) = traffic(Duration::from_millis(1_500));
    let filter = format!("src port {port}");
    let mut command =
        common::thalweg(folder.path(), &["diagnose", "--live", &filter, "--sockets", "--for", "1500ms", "--json"]);
    let watching = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let (report, flows) = flows(watching);
    worker.join().expect("traffic");
    assert_eq!(report["captures"][0]["file"], "live");
    let sender = flows.iter().find(|flow| flow["vantage"] == "sender").expect("the sender's socket");
    assert!(sender["bytes_up"].as_u64().max(sender["bytes_down"].as_u64()) >= Some(PAYLOAD as u64), "{sender}");
    assert_eq!(sender["verdict"]["code"], "application", "{sender}");
    assert!(flows.iter().any(|flow| flow["vantage"] == "receiver"), "{flows:?}");
}

#[test]
fn packets_are_watched_and_ctrl_c_reports() {
    let folder = tempfile::tempdir().expect("a folder");
    let (port, worker) = traffic(Duration::from_millis(1_000));
    let filter = format!("port {port}");
    let mut command = common::thalweg(folder.path(), &["diagnose", "--live", &filter, "--interface", "lo", "--json"]);
    let mut watching = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let sent = worker.join().expect("traffic");
    if let Some(status) = watching.try_wait().expect("its state") {
        assert_eq!(status.code(), Some(3), "without CAP_NET_RAW it ends at once");
        skipped("packets were not captured: this needs CAP_NET_RAW");
        return;
    }
    let status = std::process::Command::new("kill").arg("-INT").arg(watching.id().to_string()).status().expect("kill");
    assert!(status.success());
    let (report, flows) = flows(watching);
    assert_eq!((report["captures"][0]["file"].as_str(), flows.len()), (Some("live"), 1), "{report}");
    assert_eq!(flows[0]["bytes_down"].as_u64(), Some(sent), "{report}");
    assert_eq!(flows[0]["verdict"]["code"], "application", "{report}");
}

/// By the number of this process, whose connection is in the middle when the capture begins.
#[test]
fn fix_takes_what_it_captured_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, worker) = traffic(Duration::from_millis(2_500));
    thread::sleep(Duration::from_millis(800));
    let pid = std::process::id().to_string();
    let output = common::thalweg(folder.path(), &["fix", "--live", &pid, "--for", "1s", "--out", "r", "--json"])
        .output()
        .expect("the program starts");
    worker.join().expect("traffic");
    let (out, err) = common::texts(&output);
    if output.status.code() == Some(3) && err.contains("CAP_NET_RAW") {
        return skipped("packets were not captured: this needs CAP_NET_RAW");
    }
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(report["cause"]["code"], "application", "{report}");
    let (out, _) = common::run(folder.path(), &["diagnose", "r/live.pcapng", "--json"], 0);
    let diagnosed: Value = serde_json::from_str(&out).expect("JSON");
    let flows = diagnosed["captures"][0]["flows"].as_array().expect("flows");
    assert!(flows.iter().any(|flow| flow["verdict"]["code"] == "application"), "{out}");
    let (_, err) = common::run(folder.path(), &["fix", "--live", "4000000000", "--for", "1s"], 2);
    assert!(err.contains("has no connection") && err.contains("hint:"), "{err}");
}

#[test]
fn without_the_capability_it_says_how_to_get_it() {
    let folder = tempfile::tempdir().expect("a folder");
    if std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) != 0) {
        skipped("the loss of CAP_NET_RAW was not tried: this needs root");
        return;
    }
    // The program where nobody may read it, in a folder that nobody may enter, would not start at all.
    let open = std::env::temp_dir().join(format!("thalweg-live-{}", std::process::id()));
    std::fs::copy(env!("CARGO_BIN_EXE_thalweg"), &open).expect("a copy");
    let mut command = std::process::Command::new(&open);
    command.args(["diagnose", "--live", "--interface", "lo", "--for", "1s"]).current_dir("/").uid(65_534).gid(65_534);
    let output = command.output().expect("the program starts");
    std::fs::remove_file(&open).expect("removed");
    let (_, err) = common::texts(&output);
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("CAP_NET_RAW") && err.contains("setcap cap_net_raw+ep") && err.contains("sudo"), "{err}");
    drop(folder);
}

#[test]
fn a_wrong_filter_is_shown_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, err) = common::run(folder.path(), &["diagnose", "x.pcap", "--filter", "port 80 and hots 10.0.0.1"], 2);
    assert!(err.contains("\n              ^") && err.contains("did you mean 'host'?"), "{err}");
}

fn skipped(why: &str) {
    #[expect(clippy::print_stderr, reason = "a skipped check must not be silent")]
    {
        eprintln!("SKIPPED: {why}");
    }
}
