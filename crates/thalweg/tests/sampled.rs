//! Verdicts by what the sender's kernel says of its socket ten times a second, as `diagnose --live` asks it, on the labelled set.
//!
//! A part of it is judged in every test run; all of a range, the development range or one that nothing was learned from, by
//!
//!     THALWEG_LABELLED=held-out cargo test --release -p thalweg --test sampled -- --nocapture
//!
//! which prints the table of docs/verdicts.md. `THALWEG_LABELLED_FOLDER` keeps the samples. Needs the lab kernels 6.12 and 6.1.

mod common;
mod labelled;

use labelled::{Case, SAMPLES, asked, case, contradicts, run};
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use thalweg_infer::socket::{Sample, Sampled, diagnose};
use thalweg_model::{Code, Vantage};

/// Seeds to measure by.
const HELD_OUT: Range<u64> = 1_500_000..1_500_550;
/// Of the development range, what every test run judges.
const EVERY: usize = 7;
/// `TCP_ESTABLISHED`, include/net/tcp_states.h.
const ESTABLISHED: u64 = 1;

/// Causes that a socket does not tell from what they bring about: the verdict must say where to capture.
const IN_DOUBT: [(&str, &[&str]); 2] =
    [("policer", &["random-loss", "congestion-loss"]), ("path-mtu-black-hole", &["retransmission-timeout"])];

/// What a run's hosts asked of their sockets, of each host's each connection.
fn connections(path: &Path) -> Vec<Vec<Sample>> {
    let text = fs::read_to_string(path).expect("samples");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<&str>>());
    let names = lines.next().expect("names");
    let mut all: BTreeMap<(&str, &str), Vec<Sample>> = BTreeMap::new();
    for cells in lines {
        let value = |name: &str| names.iter().position(|other| *other == name).map(|at| cells[at]);
        let field = |name: &str| value(name).and_then(|value| value.parse().ok()).unwrap_or(0);
        if field("tcpi_state") == ESTABLISHED {
            let sample = Sample::of(cells[0].parse().expect("a time"), field, 0);
            all.entry((cells[1], cells[2])).or_default().push(sample);
        }
    }
    all.into_values().collect()
}

/// Those of the connection that carried the transfer, at its sender: or would have, had any of it come.
fn main_of(connections: Vec<Vec<Sample>>) -> Vec<Sample> {
    let carried = |samples: &Vec<Sample>| samples.last().map(|last| last.bytes_acked + last.in_flight * last.segment);
    connections.into_iter().max_by_key(carried).unwrap_or_default()
}

/// A connection between the same two hosts as the others.
fn sampled(id: u64, samples: Vec<Sample>) -> Sampled {
    let [local, remote] =
        [(1, 443), (2, 40_000 + id as u16)].map(|(host, port)| SocketAddr::from(([10, 0, 0, host], port)));
    Sampled { id, local, remote, samples }
}

#[test]
#[expect(clippy::print_stdout, reason = "the table is what is asked for")]
fn sockets_tell_what_holds_a_transfer() {
    let asked = asked(HELD_OUT, EVERY);
    let folder = &asked.folder;
    // Programs of their own have sockets of their own, which the lab does not ask.
    let cases: Vec<Case> =
        asked.seeds.iter().copied().map(case).filter(|case| !case.made.text.contains("kind = \"command\"")).collect();
    run(folder, &cases, &SAMPLES);
    let mut table: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    let (mut right, mut doubtful, mut all, mut short, mut refused) = (0, 0, 0, 0, 0);
    for case in &cases {
        if contradicts(folder, case) {
            refused += 1;
            continue;
        }
        let one = [sampled(0, main_of(connections(&SAMPLES.path(folder, case))))];
        // Of a short one its end is in the samples of neither host, or in the receiver's only.
        let Some(flow) = diagnose(&one).pop().filter(|flow| flow.vantage == Vantage::Sender) else {
            short += 1;
            assert!(one[0].samples.len() < 6, "{}: {one:?}", case.name);
            continue;
        };
        assert!((flow.limits.total() - 1.0).abs() < 1e-6, "{}: {:?}", case.name, flow.limits);
        let (code, made) = (flow.verdict.code().as_str(), case.made.sender);
        let says_so = flow.verdict.evidence().iter().any(|fact| fact.text.contains("capture at the sender"));
        let in_doubt = IN_DOUBT.iter().any(|(cause, told)| *cause == made && told.contains(&code)) && says_so;
        all += 1;
        if code == made {
            right += 1;
        } else if in_doubt {
            doubtful += 1;
        } else {
            println!("{}: {code} {:?} {:?}", case.name, flow.verdict.gain, flow.limits);
        }
        let cell = if in_doubt { format!("({code})") } else { code.to_owned() };
        *table.entry(case.cause).or_default().entry(cell).or_default() += 1;
    }
    println!("| made | verdicts |\n|---|---|");
    for (cause, codes) in table {
        let mut cells: Vec<(usize, String)> = codes.into_iter().map(|(code, count)| (count, code)).collect();
        cells.sort_by(|a, b| b.cmp(a));
        let cells: Vec<String> = cells.iter().map(|(count, code)| format!("{code} {count}")).collect();
        println!("| {cause} | {} |", cells.join(", "));
    }
    println!(
        "{all} verdicts: {right} right, {doubtful} in doubt; {short} too short to be sampled twice, {refused} refused"
    );
    let part = f64::from(right + doubtful) / f64::from(all.max(1));
    assert!(all >= 40 && part >= if asked.range.is_some() { 0.95 } else { 0.9 }, "{part}");
}

/// The connections of streams of ten seconds on a path, as their hosts' sockets tell.
fn sampled_run(folder: &Path, path: &str, workload: &str, settings: &str) -> Vec<Sampled> {
    let workload = format!("kind = \"stream\"\nseconds = \"10s\"\n{workload}");
    let text = format!("name = \"sampled\"\n[path]\n{path}\n[workload]\n{workload}\n{settings}\n");
    fs::write(folder.join("sampled.toml"), text).expect("written");
    let run = ["lab", "run", "sampled.toml", "--kernel", "6.12", "--out", "out"];
    common::json(folder, &[&run[..], &SAMPLES.args].concat());
    let found = connections(&folder.join("out").join(SAMPLES.file));
    fs::remove_dir_all(folder.join("out")).expect("removed");
    (0..).zip(found).map(|(id, samples)| sampled(id, samples)).collect()
}

/// Delays that vary make no queue, and what is repaired while a sender paces itself does not hold it.
#[test]
fn jitter_is_no_queue_and_pacing_is_held_by_the_path() {
    const JITTER: &str = "jitter = { stddev = \"5ms\", distribution = \"normal\", reorder = false }";
    const BBR: &str = "[server.socket]\ncongestion = \"bbr\"";
    let folder = tempfile::tempdir().expect("a folder");
    for (rate, rest, settings, code) in [
        ("50mbit", "loss = \"1%\"", BBR, Code::PathRate),
        ("50mbit", JITTER, BBR, Code::PathRate),
        ("50mbit", JITTER, "", Code::PathRate),
        ("50mbit", &format!("loss = \"1%\"\n{JITTER}"), "", Code::RandomLoss),
        ("200mbit", JITTER, "[client.socket]\nrcvbuf = \"200kB\"", Code::ReceiveWindow),
    ] {
        let path = format!("rtt = \"40ms\"\nrate = \"{rate}\"\nqueue = \"400 packets\"\n{rest}");
        let found = diagnose(&sampled_run(folder.path(), &path, "", settings));
        let sender = found.iter().find(|flow| flow.vantage == Vantage::Sender).expect("the sender's");
        assert_eq!(sender.verdict.code(), code, "{path} {settings}: {:?} {:?}", sender.verdict, sender.limits);
    }
}

/// Of those that use a path up together none is told to gain what it could only take from the others; those that random loss holds are.
#[test]
fn sockets_that_share_a_path_are_added_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut wrong = Vec::new();
    let mut all = 0;
    for control in ["cubic", "bbr"] {
        for (path, full) in [
            ("rtt = \"60ms\"\nrate = \"50mbit\"\nqueue = \"200 packets\"", true),
            ("rtt = \"20ms\"\nrate = \"200mbit\"\nqueue = \"150 packets\"", true),
            ("rtt = \"60ms\"\nrate = \"500mbit\"\nqueue = \"5000 packets\"\nloss = \"2%\"", false),
        ] {
            // BBR does not take single losses for a full path.
            if !full && control == "bbr" {
                continue;
            }
            let found = sampled_run(
                folder.path(),
                path,
                "parallel = 5",
                &format!("[server.socket]\ncongestion = \"{control}\""),
            );
            for flow in diagnose(&found).iter().filter(|flow| flow.vantage == Vantage::Sender) {
                all += 1;
                let (code, gain) = (flow.verdict.code(), flow.verdict.gain);
                let right = match code {
                    Code::PathRate => full,
                    Code::CongestionLoss => full && gain.is_some_and(|gain| gain < 1.3),
                    Code::RandomLoss => !full,
                    _ => false,
                };
                if !right {
                    wrong.push(format!(
                        "{control} {path:?}: {code} {gain:?} {:?} {:?}",
                        flow.facts.shared_path, flow.limits
                    ));
                }
            }
        }
    }
    assert!(all >= 25 && wrong.len() * 12 <= all, "{} of {all}:\n{}", wrong.len(), wrong.join("\n"));
}
