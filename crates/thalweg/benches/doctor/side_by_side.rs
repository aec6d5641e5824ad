//! The doctor beside the programs people use for this, one after the other on the same file.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs of each, of which the one with least processor time counts: everything that disturbs a run adds to it.
const RUNS: usize = 3;

/// Programs and what they are called with; `FILE` is the capture. The first is the floor: reading, without looking.
const OTHERS: [&[&str]; 5] = [
    &["tcpdump", "-r", "FILE", "-w", "/dev/null"],
    &["tcptrace", "-n", "FILE"],
    &["tcptrace", "-l", "-r", "-W", "-n", "FILE"],
    &["tshark", "-q", "-z", "conv,tcp", "-r", "FILE"],
    // Its own analysis of TCP, which the one before leaves out.
    &["tshark", "-T", "fields", "-e", "tcp.analysis.retransmission", "-e", "tcp.analysis.ack_rtt", "-r", "FILE"],
];
/// Ours, the first of which the others are compared with. As JSON every connection is judged, kept and written.
const OURS: [&[&str]; 3] =
    [&["diagnose", "--jobs", "1", "FILE"], &["diagnose", "--jobs", "1", "--json", "FILE"], &["diagnose", "FILE"]];

/// What a run took.
struct Took {
    wall_s: f64,
    cpu_s: f64,
    peak_kib: f64,
}

/// Times all of them on the file and prints a table.
pub(crate) fn compare(file: &Path) {
    let bytes = fs::metadata(file).expect("a capture").len() as f64;
    // Once without being timed: afterwards the file is in the page cache for everyone.
    let first = Command::new(OURS_PATH).args(named(OURS[0], file)).output().expect("the program starts");
    let packets = packets(&String::from_utf8_lossy(&first.stdout));
    println!(
        "\n{}: {:.0} MB, {packets:.0} packets\n",
        file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        bytes / 1e6
    );
    println!("| command | wall | CPU | packets/s | GB/s | peak memory | × CPU of ours |");
    println!("|---|---|---|---|---|---|---|");
    let mut ours = None;
    let all = OURS.iter().map(|args| (OURS_PATH, "thalweg", *args));
    for (program, name, args) in all.chain(OTHERS.iter().map(|args| (args[0], args[0], &args[1..]))) {
        let Some(took) = time(program, &named(args, file)) else {
            println!("| `{name}` | **NOT MEASURED: {name} is not installed, or /usr/bin/time is not** | | | | | |");
            continue;
        };
        let own = *ours.get_or_insert(took.cpu_s);
        println!(
            "| `{name} {}` | {:.2} s | {:.2} s | {:.2} M | {:.2} | {:.0} MB | {:.1} |",
            args.join(" ").replace("FILE", "F"),
            took.wall_s,
            took.cpu_s,
            packets / took.wall_s / 1e6,
            bytes / took.wall_s / 1e9,
            took.peak_kib * 1_024.0 / 1e6,
            took.cpu_s / own
        );
    }
}

const OURS_PATH: &str = env!("CARGO_BIN_EXE_thalweg");

fn named(args: &[&str], file: &Path) -> Vec<String> {
    args.iter().map(|arg| if *arg == "FILE" { file.display().to_string() } else { (*arg).to_owned() }).collect()
}

/// The number in "1,200,000 packets".
fn packets(text: &str) -> f64 {
    let before = text.split(" packet").next().unwrap_or_default();
    let digits = before.rsplit(['\n', ' ']).next().unwrap_or_default().replace(',', "");
    digits.parse().expect("the program says how many packets there are")
}

/// The run that took the least processor time; `None` where the program, or `time`, is not there.
fn time(program: &str, args: &[String]) -> Option<Took> {
    let mut best: Option<Took> = None;
    for _ in 0..RUNS {
        let output = Command::new("/usr/bin/time")
            .args(["-f", "THALWEG_TIME %e %U %S %M", program])
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .ok()?;
        // 1 is what ours says of a problem that was found.
        if !matches!(output.status.code(), Some(0 | 1)) {
            return None;
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = said.lines().find_map(|line| line.strip_prefix("THALWEG_TIME "))?;
        let numbers: Vec<f64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [wall_s, user_s, system_s, peak_kib] = numbers[..] else { return None };
        let took = Took { wall_s, cpu_s: user_s + system_s, peak_kib };
        if best.as_ref().is_none_or(|best| took.cpu_s < best.cpu_s) {
            best = Some(took);
        }
    }
    best
}
