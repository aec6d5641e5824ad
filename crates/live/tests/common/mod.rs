//! Paths for tests: each test runs in a process that is root of namespaces of its own.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;
use thalweg_live::{Asked, Carriers, End, Family, LivePath, far, near};
use thalweg_model::{Path, PathDirection};
use thalweg_units::Seed;

const INSIDE: &str = "THALWEG_TEST_INSIDE";

/// Runs `act` where this process may make namespaces and TUN devices; says aloud where it may not.
pub(crate) fn inside(test: &str, act: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return act();
    }
    if let Err(why) = possible() {
        use std::io::Write;
        let _ = writeln!(io::stderr(), "SKIPPED: {test}: {why}");
        return;
    }
    let own = std::env::current_exe().expect("this test");
    let is_root = std::fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("\nUid:\t0\t"));
    let mut command = if is_root { Command::new(&own) } else { Command::new("unshare") };
    if !is_root {
        command.args(["--user", "--map-root-user", "--net"]).arg(&own);
    }
    command.args(["--exact", test, "--nocapture"]).env(INSIDE, "1").stdin(Stdio::null());
    let output = command.output().expect("this test runs again");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn possible() -> Result<(), &'static str> {
    let unshared = Command::new("unshare").args(["--user", "--map-root-user", "--net", "true"]).output();
    let unshared = unshared.is_ok_and(|output| output.status.success());
    let tun = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    match (unshared, tun) {
        (false, _) => Err("user namespaces are closed, or there is no unshare(1)"),
        (_, Err(_)) => Err("/dev/net/tun is absent or closed to this user"),
        _ => Ok(()),
    }
}

/// A path with both directions alike, which reaches nothing else.
pub(crate) fn start(direction: &PathDirection) -> LivePath {
    start_on(direction, &Carriers::default())
}

/// The same, carried by threads that carry other paths, too.
pub(crate) fn start_on(direction: &PathDirection, carriers: &Carriers) -> LivePath {
    let path = Path { down: direction.clone(), up: direction.clone(), ..Path::default() };
    start_path(path, carriers)
}

/// A path that reaches nothing else.
pub(crate) fn start_path(path: Path, carriers: &Carriers) -> LivePath {
    let asked =
        Asked { path, seed: Seed::new(1), world: false, publish: Vec::new(), expose: Vec::new(), has_server: true };
    LivePath::start(&asked, None, carriers).expect("a path")
}

/// A UDP socket at an end, to which the other end's is connected.
pub(crate) fn udp(path: &LivePath, end: End, family: Family, port: u16) -> UdpSocket {
    let (own, other) = ends(end, family);
    let socket = path.within(end, move || UdpSocket::bind((own, port))).expect("bound");
    socket.connect((other, port)).expect("connected");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("set");
    socket
}

/// A TCP connection over the path: the near end's, which opened it, and the far end's.
pub(crate) fn tcp(path: &LivePath, family: Family) -> (TcpStream, TcpStream) {
    let listener = path.within(End::Far, move || TcpListener::bind((far(family), 0))).expect("bound");
    let to: SocketAddr = listener.local_addr().expect("bound");
    let client = path.within(End::Near, move || TcpStream::connect(to)).expect("connected");
    (client, listener.accept().expect("accepted").0)
}

fn ends(end: End, family: Family) -> (IpAddr, IpAddr) {
    match end {
        End::Near => (near(family), far(family)),
        End::Far => (far(family), near(family)),
    }
}
