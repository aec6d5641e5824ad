//! `thalweg path up`, `exec` and `down`: hosts that stay up, as a user has them.

mod common;

use common::{can_make_paths, run, thalweg};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A car: no workload, as hosts alone are asked for.
const CAR: &str = "name = \"car\"\n[path]\ndelay = \"2ms\"\n[topology]\nkind = \"switch\"\nclients = 3\n\
                   rate = \"100mbit\"\nbuffer = \"128KiB\"\n[server.sysctl]\n\"net.ipv4.tcp_sack\" = 0\n";

/// Hosts, which are taken down at the end, however a test ends.
struct Hosts<'a> {
    folder: &'a Path,
    id: String,
}

impl<'a> Hosts<'a> {
    fn up(folder: &'a Path, args: &[&str]) -> (Self, Value) {
        let (out, _) = run(folder, &[&["path", "up", "--json"], args].concat(), 0);
        let report: Value = serde_json::from_str(&out).expect("JSON");
        (Self { folder, id: report["id"].to_string() }, report)
    }

    fn exec(&self, host: &str, command: &[&str], code: i32) -> (String, String) {
        run(self.folder, &[&["path", "exec", &self.id, host, "--"], command].concat(), code)
    }

    fn is_there(&self) -> bool {
        fs::read(format!("/proc/{}/cmdline", self.id)).is_ok_and(|line| !line.is_empty())
    }
}

impl Drop for Hosts<'_> {
    fn drop(&mut self) {
        if self.is_there() {
            let _ = thalweg(self.folder, &["path", "down", &self.id]).output();
        }
    }
}

fn car(folder: &Path) -> String {
    let file = folder.join("car.toml");
    fs::write(&file, CAR).expect("written");
    file.to_str().expect("text").to_owned()
}

#[test]
fn hosts_on_a_switch_reach_each_other_and_are_gone_when_taken_down() {
    if !can_make_paths("hosts_on_a_switch_reach_each_other_and_are_gone_when_taken_down") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (hosts, report) = Hosts::up(folder.path(), &[&car(folder.path())]);
    let names: Vec<&str> =
        report["hosts"].as_array().expect("hosts").iter().filter_map(|h| h["name"].as_str()).collect();
    assert_eq!((names, &report["name"]), (vec!["server", "client", "client2", "client3"], &"car".into()));

    // From one client to another: over the switch and both clients' wires, 4 ms each way.
    let serve = "import socket; s = socket.create_server(('', 81)); print('up', flush=True); c = s.accept()[0]; c.sendall(c.recv(9)[::-1])";
    let mut serving = thalweg(folder.path(), &["path", "exec", &hosts.id, "client3", "--", "python3", "-c", serve])
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let ask = "import socket, time\nbegan = time.time()\nwhile True:\n  try: c = socket.create_connection(('client3', 81)); break\n  except OSError: assert time.time() - began < 20\n  time.sleep(0.02)\nbegan = time.time(); c.sendall(b'123456789'); print(c.recv(9).decode(), time.time() - began >= 0.008)";
    let (out, _) = hosts.exec("client", &["python3", "-c", ask], 0);
    assert_eq!(out, "987654321 True\n");
    assert!(serving.wait().expect("ended").success());

    let (out, _) = hosts.exec("server", &["cat", "/proc/sys/net/ipv4/tcp_sack"], 0);
    assert_eq!(out, "0\n", "the server's own settings");
    let (out, _) = hosts.exec("client2", &["sh", "-c", "cat /proc/sys/net/ipv4/tcp_sack; exit 9"], 9);
    assert_eq!(out, "1\n");
    let (_, err) = run(folder.path(), &["path", "exec", &hosts.id, "client4", "--", "true"], 2);
    assert!(err.contains("no host 'client4' among server, client, client2, client3"), "{err}");
    let (_, err) = run(folder.path(), &["path", "set", &hosts.id, "loss", "5%"], 2);
    assert!(err.contains("on a switch"), "{err}");

    // What runs there ends with the hosts.
    let mut sleeping =
        thalweg(folder.path(), &["path", "exec", &hosts.id, "client", "--", "sh", "-c", "echo up; sleep 600"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(sleeping.stdout.as_mut().expect("piped")), &mut line)
        .expect("a line");
    run(folder.path(), &["path", "down", &hosts.id], 0);
    assert!(!hosts.is_there());
    assert_eq!(sleeping.wait().expect("ended").code(), Some(143));
    let (_, err) = run(folder.path(), &["path", "down", &hosts.id], 2);
    assert!(err.contains("no path"), "{err}");
}

#[test]
fn paths_of_hosts_change_and_a_kill_leaves_nothing() {
    if !can_make_paths("paths_of_hosts_change_and_a_kill_leaves_nothing") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (hosts, _) = Hosts::up(folder.path(), &["first-frame", "--arm", "cubic 40"]);
    let (out, _) = hosts.exec("server", &["cat", "/proc/sys/net/ipv4/tcp_wmem"], 0);
    assert_eq!(out.split_whitespace().last(), Some("4194304"), "the kernel's own default: {out}");
    run(folder.path(), &["path", "set", &hosts.id, "delay", "3ms"], 0);
    let (out, _) = run(folder.path(), &["path", "list", "--json"], 0);
    let list: Value = serde_json::from_str(&out).expect("JSON");
    let id: u32 = hosts.id.parse().expect("a number");
    let is_own = |one: &&Value| one["id"] == id;
    let found = list["hosts"].as_array().and_then(|all| all.iter().find(is_own)).expect("listed");
    assert_eq!(
        (&found["name"], &found["between"][0]),
        (&"first-frame, cubic 40".into(), &"down: emulator, delay 3ms".into())
    );

    let mut sleeping = thalweg(folder.path(), &["path", "exec", &hosts.id, "client", "--", "sleep", "600"])
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    let keeper = rustix::process::Pid::from_raw(id.cast_signed()).expect("a process");
    rustix::process::kill_process(keeper, rustix::process::Signal::KILL).expect("killed");
    let began = Instant::now();
    let code = loop {
        if let Some(status) = sleeping.try_wait().expect("asked") {
            break status.code();
        }
        assert!(began.elapsed() < Duration::from_secs(20), "its program is still there");
        std::thread::sleep(Duration::from_millis(20));
    };
    // Where the program had not begun yet, there was no host to enter.
    assert!(matches!(code, Some(143 | 2)), "{code:?}");
}

#[test]
fn hosts_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, err) = run(
        folder.path(),
        &["path", "up", "first-frame", "--set", "path.down.discipline=cake", "--set", "path.down.rate=1mbit"],
        2,
    );
    assert!(err.contains("CAKE") && err.contains("hint:"), "{err}");
    let (_, err) = run(folder.path(), &["path", "up", "first-frame", "--arm", "cubic 11"], 2);
    assert!(err.contains("no arm named 'cubic 11'"), "{err}");
    // A number that no process has.
    let (_, err) = run(folder.path(), &["path", "exec", "4194305", "client", "--", "true"], 2);
    assert!(err.contains("no path 4194305 runs") && err.contains("hint:"), "{err}");
}
