//! What `thalweg watch` costs on a host with 20,000 TCP sockets, and on one with 1,000 short connections a second: each figure that docs/watch.md gives.
//!
//! Two processes hold 5,000 loopback connections each, since a process may have 20,000 descriptors. Processor time is that of the program's
//! process, user and system, as /proc counts it, over a minute of one refresh a second in a terminal of 132 by 40.
#![allow(clippy::print_stdout)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PAIRS: usize = 5_000;
const PROCESSES: usize = 2;
const WARM_UP: Duration = Duration::from_secs(3);
const MEASURED: Duration = Duration::from_secs(60);
/// What /proc counts processor time in, a second; `USER_HZ` is 100 on every architecture.
const TICKS_PER_S: f64 = 100.0;
/// How many pairs of each process move data, ten times a second.
const ACTIVE: &str = "THALWEG_BENCH_ACTIVE";
/// How many connections a process opens and closes a second.
const SHORT: &str = "THALWEG_BENCH_SHORT";
const SHORT_PER_S: u32 = 1_000;

fn main() {
    if let Ok(active) = std::env::var(ACTIVE) {
        return hold(active.parse().expect("a number"));
    }
    if let Ok(rate) = std::env::var(SHORT) {
        return open_and_close(rate.parse().expect("a number"));
    }
    println!(
        "{:<34} {:>10} {:>10} {:>12} {:>12}",
        "20,000 sockets, of which", "wall s", "CPU s", "of a core", "first look"
    );
    for active in [0, 500, PAIRS] {
        let title = format!("{} move data", active * 2 * PROCESSES);
        with_processes(PROCESSES, ACTIVE, &active.to_string(), &title, "20,0");
    }
    let title = format!("none, {SHORT_PER_S} connections a second");
    with_processes(1, SHORT, &SHORT_PER_S.to_string(), &title, " closed, ");
}

/// Prints what the program costs while so many processes do what the variable says; its screen has to show `wanted`.
fn with_processes(count: usize, variable: &str, value: &str, title: &str, wanted: &str) {
    let own = std::env::current_exe().expect("this program");
    let start = |_| {
        let mut command = Command::new(&own);
        command.env(variable, value).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started")
    };
    let mut holders: Vec<Child> = (0..count).map(start).collect();
    for holder in &mut holders {
        let mut line = String::new();
        BufReader::new(holder.stdout.take().expect("stdout")).read_line(&mut line).expect("ready");
    }
    let folder = std::env::temp_dir().join(format!("thalweg-bench-{}", std::process::id()));
    let (first_s, wall_s, cpu_s) = measure(&folder.with_extension("tmux"), wanted);
    for mut holder in holders {
        drop(holder.stdin.take());
        holder.wait().expect("ended");
    }
    println!("{title:<34} {wall_s:>10.1} {cpu_s:>10.2} {:>11.1}% {first_s:>10.2} s", cpu_s / wall_s * 100.0);
}

/// Opens so many connections a second, each of 1,000 bytes, and closes each at once, until stdin closes.
fn open_and_close(rate: u32) {
    let mut listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    println!("ready");
    let ended = std::thread::spawn(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let (began, mut opened) = (Instant::now(), 0);
    while !ended.is_finished() {
        // A port has 28,000 others to be connected from, and each stays in TIME_WAIT for a minute.
        if opened % 10_000 == 9_999 {
            listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        }
        let mut near = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (mut far, _) = listener.accept().expect("a connection");
        near.write_all(&[7; 1_000]).expect("written");
        far.read_exact(&mut [0; 1_000]).expect("read");
        opened += 1;
        let due = Duration::from_secs(1) * opened / rate;
        std::thread::sleep(due.saturating_sub(began.elapsed()));
    }
}

/// Holds connections until stdin closes.
fn hold(active: usize) {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).expect("descriptors");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let at = listener.local_addr().expect("an address");
    let mut pairs: Vec<(TcpStream, TcpStream)> = (0..PAIRS)
        .map(|_| (TcpStream::connect(at).expect("a connection"), listener.accept().expect("a connection").0))
        .collect();
    println!("ready");
    let ended = std::thread::spawn(|| std::io::stdin().read_to_end(&mut Vec::new()));
    while !ended.is_finished() {
        for (near, far) in &mut pairs[..active] {
            near.write_all(&[7; 1_000]).expect("written");
            far.read_exact(&mut [0; 1_000]).expect("read");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Seconds of processor time until the first look is over, then wall and processor time of a minute.
fn measure(socket: &Path, wanted: &str) -> (f64, f64, f64) {
    let tmux = |args: &[&str]| {
        let output = Command::new("tmux").arg("-S").arg(socket).args(args).output().expect("tmux");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let program = env!("CARGO_BIN_EXE_thalweg");
    let format = ["-P", "-F", "#{pane_pid}"];
    let size = ["-x", "132", "-y", "40"];
    let start = [&["-u", "-f", "/dev/null", "new-session", "-d"], &format[..], &size[..], &[program, "watch"]].concat();
    let pid = tmux(&start).trim().to_owned();
    std::thread::sleep(WARM_UP);
    let screen = tmux(&["capture-pane", "-p"]);
    assert!(screen.contains(wanted), "no '{wanted}' on the screen: {screen}");
    let (first_s, began) = (cpu_s(&pid), Instant::now());
    std::thread::sleep(MEASURED);
    let (wall_s, spent_s) = (began.elapsed().as_secs_f64(), cpu_s(&pid) - first_s);
    tmux(&["kill-server"]);
    (first_s, wall_s, spent_s)
}

fn cpu_s(pid: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).map(|n| n.parse::<u64>().expect("a number")).sum();
    ticks as f64 / TICKS_PER_S
}
