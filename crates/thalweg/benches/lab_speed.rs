//! How fast the lab is, and how much memory a guest takes: each figure that docs/speed.md gives.
//!
//! Everything runs one guest at a time, five times after a first run that is measured for memory only; the thousand
//! arms run once, two at a time.
#![allow(clippy::print_stdout)]

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const ROUNDS: usize = 5;
const CRR: &str = "name = \"crr\"\n[path]\nrtt = \"100ms\"\n[workload]\nkind = \"crr\"\nrequest = 1000\nresponse = 300000\ntransactions = 300\n";
const BULK: &str = "name = \"bulk\"\n[path]\nrtt = \"35ms\"\nrate = \"3gbit\"\nqueue = \"10000 packets\"\n[workload]\nkind = \"stream\"\nseconds = \"10s\"\n[client.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 33554432\"\n[server.sysctl]\n\"net.ipv4.tcp_wmem\" = \"4096 16384 67108864\"\n";
/// What /proc counts processor time in, a second; `USER_HZ` is 100 on every architecture the lab runs on.
const TICKS_PER_S: f64 = 100.0;
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What one run of the program took.
#[derive(Default)]
struct Taken {
    virtual_s: f64,
    wall_s: f64,
    cpu_s: f64,
    guest_mib: f64,
}

fn main() {
    // cargo bench passes --bench; there is nothing to choose from.
    let folder = std::env::temp_dir().join(format!("thalweg-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("crr.toml"), CRR).expect("written");
    fs::write(folder.join("bulk.toml"), BULK).expect("written");
    let off = ["--capture", "off", "--samples", "off"];
    println!(
        "{:<52} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "", "virtual s", "best s", "median s", "virt/s", "CPU s", "virt/CPU", "guest MiB"
    );
    for (title, scenario, more, rounds) in [
        ("crr, 300 × 300 KB at 100 ms, nothing recorded", vec!["crr.toml"], &off[..], ROUNDS),
        ("crr, 300 × 300 KB at 100 ms, capture and samples", vec!["crr.toml"], &[], ROUNDS),
        ("stream, 10 s of 3 Gb/s at 35 ms, nothing recorded", vec!["bulk.toml"], &off[..], ROUNDS),
        ("stream, 10 s of 3 Gb/s at 35 ms, capture and samples", vec!["bulk.toml"], &[], ROUNDS),
        ("slow-download, window raised, all recorded", vec!["slow-download", "--arm", "window raised"], &[], 1),
        ("long-fat, bbr and large buffers, all recorded", vec!["long-fat", "--arm", "bbr, large buffers"], &[], 1),
        ("burst, one first-frame arm of 1 MB, all recorded", vec!["first-frame", "--arm", "cubic 10"], &[], ROUNDS),
    ] {
        let all: Vec<&str> = ["--jobs", "1"].into_iter().chain(scenario).chain(more.iter().copied()).collect();
        let guest_mib = run(&folder, &all, true).guest_mib;
        let mut runs: Vec<Taken> = (0..rounds).map(|_| run(&folder, &all, false)).collect();
        let median = |runs: &mut [Taken], of: fn(&Taken) -> f64| {
            runs.sort_by(|a, b| of(a).total_cmp(&of(b)));
            of(&runs[runs.len() / 2])
        };
        let cpu_s = median(&mut runs, |run| run.cpu_s);
        let wall_s = median(&mut runs, |run| run.wall_s);
        let Taken { virtual_s, wall_s: best_s, .. } = runs[0];
        println!(
            "{title:<52} {virtual_s:>9.1} {best_s:>9.2} {wall_s:>9.2} {:>9.1} {cpu_s:>9.2} {:>9.1} {guest_mib:>9.0}",
            virtual_s / wall_s,
            virtual_s / cpu_s
        );
    }
    let many = ["first-frame", "--arm", "cubic 10", "--repeat", "1000", "--jobs", "2"];
    let Taken { wall_s, cpu_s, .. } = run(&folder, &many, false);
    println!(
        "1,000 first-frame arms of 1 MB, two at a time, all recorded: {wall_s:.0} s, {cpu_s:.0} s of processor time"
    );
    fs::remove_dir_all(folder).expect("removed");
}

/// Runs the program once; looking at its memory slows it down, so its time counts only where that is not asked for.
fn run(folder: &Path, arguments: &[&str], memory: bool) -> Taken {
    let out = folder.join("out");
    let before = children_cpu_s();
    let child = Command::new(env!("CARGO_BIN_EXE_thalweg"))
        .args(["lab", "run", "--json", "--out"])
        .arg(&out)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let (pid, mut taken) = (child.id(), Taken::default());
    let output = std::thread::scope(|scope| {
        let ended = scope.spawn(move || child.wait_with_output().expect("the program ends"));
        while memory && !ended.is_finished() {
            taken.guest_mib = children_of(pid).into_iter().map(tree_mib).fold(taken.guest_mib, f64::max);
            std::thread::sleep(LOOK_EVERY);
        }
        ended.join().expect("the output is read")
    });
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    fs::remove_dir_all(out).expect("removed");
    let number = |name: &str| report[name].as_f64().expect("a number");
    Taken { virtual_s: number("virtual_s"), wall_s: number("wall_s"), cpu_s: children_cpu_s() - before, ..taken }
}

/// Processor time, user's and system's, of all children that ended and all theirs.
///
/// Source: proc_pid_stat(5), fields 16 and 17; the second field may hold spaces, and ends with the last parenthesis.
fn children_cpu_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("/proc");
    let fields = stat.rsplit(')').next().expect("fields").split_whitespace();
    fields.skip(13).take(2).map(|ticks| ticks.parse::<f64>().expect("ticks")).sum::<f64>() / TICKS_PER_S
}

/// Children of all threads of a process; none once it has gone.
fn children_of(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

/// Resident memory of a process and all it started, pages of shared files included, each page counted once.
fn tree_mib(pid: u32) -> f64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let own = rollup.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    own.unwrap_or(0.0) / 1024.0 + children_of(pid).into_iter().map(tree_mib).sum::<f64>()
}
