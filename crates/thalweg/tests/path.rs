//! `thalweg path`: programs behind a path, as a user runs them.

mod common;

use common::{can_make_paths, run, texts, thalweg};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Names of the network namespaces that processes are in.
fn namespaces() -> BTreeSet<String> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let links = processes.filter_map(|process| fs::read_link(process.path().join("ns/net")).ok());
    links.map(|link| link.display().to_string()).collect()
}

/// Processes whose command line holds this.
fn processes_with(text: &str) -> usize {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(text)).count()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts it, and waits until its program has written a line.
fn started(mut command: Command) -> (Child, String) {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("started");
    let mut line = String::new();
    let out = child.stdout.as_mut().expect("piped");
    BufReader::new(out).read_line(&mut line).expect("a line");
    (child, line)
}

#[test]
fn the_exit_code_is_the_programs_and_the_report_is_json() {
    if !can_make_paths("the_exit_code_is_the_programs_and_the_report_is_json") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // Nobody listens there: a reset comes back.
    let script = "(exec 3<>/dev/tcp/server/9) 2>/dev/null; echo seen; exit 9";
    let args = ["path", "--rtt", "20ms", "--isolated", "--json", "--", "bash", "-c", script];
    let (out, err) = run(folder.path(), &args, 9);
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&report["schema"], &report["exit_code"]), (&"thalweg.path/1".into(), &9.into()));
    assert!(err.contains("seen"), "{err}");
    // One for each of the server's addresses, and one back.
    let departed = |way: &str| report[way]["departed_packets"].as_u64();
    assert!(departed("up") >= Some(1) && departed("up") == departed("down"), "{report}");
    let delay = &report["path"]["up"]["delay"];
    assert_eq!(delay, &report["path"]["down"]["delay"]);
    let (_, err) = run(folder.path(), &["path", "--", "/no/such/program"], 127);
    assert!(err.contains("/no/such/program") && err.contains("hint:"), "{err}");
    let (_, err) = run(folder.path(), &["path", "--down", "discipline=cake,rate=1mbit", "--", "true"], 2);
    assert!(err.contains("CAKE") && err.contains("hint:"), "{err}");
    run(folder.path(), &["path", "--loss", "7", "--", "true"], 2);
    run(folder.path(), &["path", "set", "loss", "much"], 2);
}

#[test]
fn a_program_reaches_this_host_and_is_reached() {
    if !can_make_paths("a_program_reaches_this_host_and_is_reached") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let port = listener.local_addr().expect("bound").port();
    let serving = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut connection, _) = listener.accept().expect("accepted");
            connection.write_all(b"hello from outside\n").expect("sent");
        }
    });
    // As any port of this host's loopback, and by another port.
    let script = format!("exec 3<>/dev/tcp/server/{port}; cat <&3; exec 4<>/dev/tcp/server/81; cat <&4");
    let expose = format!("81=127.0.0.1:{port}");
    let args = ["path", "--delay", "5ms", "--loss", "1%", "--expose", &expose, "-q", "--", "bash", "-c", &script];
    let (out, _) = run(folder.path(), &args, 0);
    assert_eq!(out, "hello from outside\nhello from outside\n");
    serving.join().expect("served");

    let free = TcpListener::bind("127.0.0.1:0").expect("bound").local_addr().expect("bound").port().to_string();
    let python = format!(
        "import socket; s = socket.create_server(('', {free})); print('up', flush=True); c = s.accept()[0]; c.sendall(c.recv(9)[::-1])"
    );
    let args = ["path", "--delay", "5ms", "--publish", &free, "--isolated", "-q", "--", "python3", "-c", &python];
    let (mut child, line) = started(thalweg(folder.path(), &args));
    assert_eq!(line, "up\n");
    let mut connection = TcpStream::connect(format!("127.0.0.1:{free}")).expect("connected");
    connection.write_all(b"123456789").expect("sent");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("received");
    assert_eq!(answer, "987654321");
    assert!(child.wait().expect("ended").success());
}

#[test]
fn what_a_program_sent_before_it_ended_arrives() {
    if !can_make_paths("what_a_program_sent_before_it_ended_arrives") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let port = listener.local_addr().expect("bound").port();
    // To this host: 300 KB take 120 ms, and the program does not wait for them.
    let up = format!("import socket; socket.create_connection(('server', {port})).sendall(bytes(300000))");
    let receiving = std::thread::spawn(move || {
        let mut received = Vec::new();
        listener.accept().expect("accepted").0.read_to_end(&mut received).expect("received");
        received.len()
    });
    run(folder.path(), &["path", "--delay", "30ms", "--rate", "20mbit", "-q", "--", "python3", "-c", &up], 0);
    assert_eq!(receiving.join().expect("received"), 300_000);

    // And by way of a published port.
    let free = TcpListener::bind("127.0.0.1:0").expect("bound").local_addr().expect("bound").port().to_string();
    let down = format!(
        "import socket; s = socket.create_server(('', {free})); print('up', flush=True); c = s.accept()[0]; c.sendall(bytes(300000))"
    );
    let args = [
        "path",
        "--delay",
        "30ms",
        "--rate",
        "20mbit",
        "--publish",
        &free,
        "--isolated",
        "-q",
        "--",
        "python3",
        "-c",
        &down,
    ];
    let (mut child, line) = started(thalweg(folder.path(), &args));
    assert_eq!(line, "up\n");
    let mut received = Vec::new();
    let mut connection = TcpStream::connect(format!("127.0.0.1:{free}")).expect("connected");
    connection.read_to_end(&mut received).expect("received");
    assert_eq!(received.len(), 300_000);
    assert!(child.wait().expect("ended").success());
}

#[test]
fn a_running_path_is_listed_and_changed_and_its_capture_is_read() {
    if !can_make_paths("a_running_path_is_listed_and_changed_and_its_capture_is_read") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let server = "python3 -u -c \"import socket; s = socket.create_server(('', 7)); c = s.accept()[0]; c.sendall(bytes(300000)); c.close()\"";
    let client = "import socket; print('up', flush=True); input(); c = socket.create_connection(('server', 7)); n = 0\nwhile True:\n d = c.recv(65536)\n if not d: break\n n += len(d)\nassert n == 300000";
    let args =
        ["path", "--isolated", "--server", server, "--capture", "seen.pcapng", "-q", "--", "python3", "-c", client];
    let (mut child, line) = started(thalweg(folder.path(), &args));
    assert_eq!(line, "up\n");
    let id = child.id().to_string();
    let (list, _) = run(folder.path(), &["path", "list"], 0);
    assert!(list.lines().any(|line| line.starts_with(&id)), "{list}");
    let (_, note) = run(folder.path(), &["path", "set", &id, "delay", "60ms"], 0);
    assert!(note.contains("delay is 60ms"), "{note}");
    run(folder.path(), &["path", "set", &id, "loss", "0.1%", "--down"], 0);
    child.stdin.take().expect("piped").write_all(b"\n").expect("written");
    assert!(child.wait().expect("ended").success());
    let output = thalweg(folder.path(), &["diagnose", "seen.pcapng", "--json"]).output().expect("started");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // The server listens at one of its addresses; the other refuses.
    let flows = found["captures"][0]["flows"].as_array().expect("flows");
    assert!(flows.iter().any(|flow| flow["rtt_min_ms"].as_f64() >= Some(120.0)), "{found}");
    let (_, err) = run(folder.path(), &["path", "set", &id, "loss", "1%"], 2);
    assert!(err.contains(&id), "{err}");
}

/// Starts paths with programs that have programs of their own, and kills the command without warning.
fn kill_cycles(count: usize) {
    const MARK: &str = "98765.4321";
    let folder = tempfile::tempdir().expect("a folder");
    let before = namespaces();
    let script = format!("setsid sleep {MARK} & echo up; sleep {MARK}");
    for _ in 0..count {
        let args = ["path", "--delay", "1ms", "-q", "--", "sh", "-c", &script];
        let (mut child, line) = started(thalweg(folder.path(), &args));
        assert_eq!(line, "up\n");
        child.kill().expect("killed");
        child.wait().expect("ended");
        wait_until("no process is left", || processes_with(MARK) == 0);
    }
    wait_until("no namespace is left", || namespaces().is_subset(&before));
    let left: Vec<_> = fs::read_dir(folder.path().join("tmp")).expect("a folder").collect();
    assert!(left.is_empty(), "{left:?}");
    let (list, _) = run(folder.path(), &["path", "list"], 0);
    assert_eq!(list, "");
}

#[test]
fn fifty_kills_leave_nothing() {
    if can_make_paths("fifty_kills_leave_nothing") {
        kill_cycles(50);
    }
}

#[test]
#[ignore = "takes minutes; a shorter run is in docs/live.md"]
fn a_thousand_kills_leave_nothing() {
    if can_make_paths("a_thousand_kills_leave_nothing") {
        kill_cycles(1_000);
    }
}

/// Runs a script as an ordinary user who sees /dev/net/tun with this mode; `None` if this process may not arrange it.
fn as_ordinary_user(folder: &Path, mode: &str, args: &str) -> Option<(i32, String)> {
    let program = folder.join("thalweg");
    fs::copy(env!("CARGO_BIN_EXE_thalweg"), &program).expect("copied");
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("opened");
    let script = format!(
        "mount -t tmpfs none /dev/net && mknod /dev/net/tun c 10 200 && chmod {mode} /dev/net/tun || exit 99
         cd / && exec setpriv --reuid 65534 --regid 65534 --clear-groups {} {args}",
        program.display()
    );
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().ok()?;
    let (out, err) = texts(&output);
    output.status.code().filter(|code| *code != 99 && !err.contains("unshare:")).map(|code| (code, out + &err))
}

#[test]
fn an_ordinary_user_needs_no_privilege() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "path --rtt 10ms -q -- bash -c 'id -u; (exec 3<>/dev/tcp/server/9) 2>/dev/null; ip link set path0 mtu 1400 && ip route'";
    let Some((code, text)) = as_ordinary_user(folder.path(), "666", script) else {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: an_ordinary_user_needs_no_privilege: needs root to become another user"
        );
        return;
    };
    assert!(code == 0 && text.starts_with("65534\n") && text.contains("path0"), "{code} {text}");
    let (code, text) = as_ordinary_user(folder.path(), "600", "path -- true").expect("as before");
    assert!(
        code == 3 && text.contains("Permission denied") && text.contains("chmod 0666 /dev/net/tun"),
        "{code} {text}"
    );
}
