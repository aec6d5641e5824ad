//! What each threshold of `infer` decides: how many verdicts change without it, over the rules' scenarios, a hundred transfers of the labelled
//! set, connections that share a path, and paths whose rate and delay vary.
//!
//! A threshold is taken away by setting it to 0, which lets everything pass that has to reach it, and to more than anything reaches. For each,
//! `infer` is built again, in a copy of the sources; that takes hours:
//!
//!     cargo test --release -p thalweg --test thresholds -- --ignored --nocapture
//!
//! which rewrites the table in docs/thresholds.md. `THALWEG_THRESHOLDS=estimate/view.rs` tries those of one file, and writes nothing.
//! Needs the lab kernels 6.12 and 6.1.

mod common;
mod labelled;
mod shared;

use labelled::{CAPTURES, Case, Draw, case};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Captures that are longer, in bytes, are left out: some of the labelled set have gigabytes, and most have less than a tenth of this.
const CAPTURE_MAX: u64 = 8_000_000;

/// A threshold, in a file below `crates/infer/src`.
struct Threshold {
    file: String,
    name: String,
    value: String,
    /// Its definition up to the value.
    head: String,
    /// More than anything reaches.
    largest: &'static str,
}

#[test]
#[ignore = "hours; its result is in docs/thresholds.md"]
#[expect(clippy::print_stdout, reason = "the progress of hours")]
fn each_threshold_decides_verdicts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().expect("a folder");
    let captures = captures(folder.path());
    let copy = folder.path().join("copy");
    copy_tree(&root.join("crates"), &copy.join("crates"));
    copy_tree(&root.join("docs"), &copy.join("docs"));
    for file in ["Cargo.toml", "Cargo.lock"] {
        fs::copy(root.join(file), copy.join(file)).expect("copied");
    }
    let only = std::env::var("THALWEG_THRESHOLDS").ok();
    let before = verdicts(&copy, &captures).expect("the sources as they are");
    let mut rows = Vec::new();
    for threshold in thresholds(&copy).iter().filter(|one| only.as_ref().is_none_or(|only| one.file == *only)) {
        let path = copy.join("crates/infer/src").join(&threshold.file);
        let source = fs::read_to_string(&path).expect("the source");
        let changed = ["0 as _", threshold.largest].map(|value| {
            let defined = format!("{}{};", threshold.head, threshold.value);
            let other = source.replacen(&defined, &format!("{}{value};", threshold.head), 1);
            fs::write(&path, other).expect("written");
            verdicts(&copy, &captures)
                .map_or_else(|| "stops".to_owned(), |after| differing(&before, &after).to_string())
        });
        fs::write(&path, &source).expect("written");
        let Threshold { file, name, value, .. } = threshold;
        let row = format!("| `{file}` | `{name}` | {value} | {} | {} |", changed[0], changed[1]);
        println!("{row}");
        rows.push(row);
    }
    if only.is_none() {
        write(&root.join("docs/thresholds.md"), &rows.join("\n"));
    }
}

/// Captures of the rules' scenarios, and of transfers of the labelled set.
fn captures(folder: &Path) -> Vec<PathBuf> {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules");
    let files = fs::read_dir(rules).expect("the rules").flatten().map(|file| file.path());
    let mut args = vec!["lab", "run", "--kernel", "6.12", "--samples", "off", "--out", "rules", "-q"];
    let files: Vec<String> = files.map(|file| file.display().to_string()).collect();
    args.extend(files.iter().map(String::as_str));
    common::json(folder, &args);
    let cases: Vec<Case> = (0..100).map(case).collect();
    labelled::run(folder, &cases, &CAPTURES);
    for (name, mean_mbit, spread, step_ms) in TRACES {
        fs::write(folder.join(format!("{name}.trace")), trace(mean_mbit, spread, step_ms)).expect("written");
    }
    let shared = shared::cases().into_iter().map(|case| (case.name.clone(), case.text));
    let scenarios: Vec<(String, String)> = shared.chain(many()).chain(varied()).collect();
    let mut args = vec!["lab", "run", "--kernel", "6.12", "--samples", "off", "--out", "others", "-q"];
    let files: Vec<String> = scenarios.iter().map(|(name, _)| format!("{name}.toml")).collect();
    for (file, (_, text)) in files.iter().zip(&scenarios) {
        fs::write(folder.join(file), text).expect("written");
        args.push(file);
    }
    common::json(folder, &args);
    let mut found = Vec::new();
    for out in ["rules", "out", "others"].map(|name| folder.join(name)) {
        let runs = fs::read_dir(out).expect("results").flatten().flat_map(|run| fs::read_dir(run.path()));
        found.extend(runs.flatten().flatten().map(|file| file.path()));
    }
    let is_short = |file: &PathBuf| fs::metadata(file).is_ok_and(|data| data.len() < CAPTURE_MAX);
    found.retain(|file| file.extension().is_some_and(|extension| extension == "pcapng") && is_short(file));
    found.sort();
    found
}

/// A stream of ten seconds.
const STREAM: &str = "kind = \"stream\"\nseconds = \"10s\"";

/// Paths whose rate varies: mean rate in Mb/s, the factor by which it is larger or smaller at most, and how long it stays, in milliseconds.
const TRACES: [(&str, f64, f64, f64); 3] =
    [("slow", 8.0, 3.0, 200.0), ("fast", 30.0, 3.0, 50.0), ("wide", 10.0, 5.0, 500.0)];

/// Milliseconds at which a packet of 1,500 bytes leaves, for twelve seconds.
fn trace(mean_mbit: f64, spread: f64, step_ms: f64) -> String {
    let mut draw = Draw::new(7);
    let (mut at_ms, mut changes_at_ms, mut mbit) = (0.0, 0.0, mean_mbit);
    let mut lines = String::new();
    while at_ms < 12_000.0 {
        if at_ms >= changes_at_ms {
            (mbit, changes_at_ms) = (draw.spread(mean_mbit / spread, mean_mbit * spread), at_ms + step_ms);
        }
        at_ms += 12.0 / mbit;
        lines.push_str(&format!("{}\n", at_ms as u64 + 1));
    }
    lines
}

fn scenario(name: &str, path: &str, workload: &str, control: &str, rest: &str) -> (String, String) {
    let text = format!(
        "name = \"{name}\"\n[path]\n{path}\n[workload]\n{workload}\n[server.socket]\ncongestion = \"{control}\"\n{rest}"
    );
    (name.to_owned(), text)
}

/// Twelve and twenty-four connections on one path.
fn many() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for count in [12, 24] {
        let workload = format!("kind = \"stream\"\nparallel = {count}\nseconds = \"6s\"");
        for control in ["cubic", "bbr"] {
            let path = "rtt = \"30ms\"\nrate = \"20mbit\"\nqueue = \"100 packets\"";
            all.push(scenario(&format!("many-full-{count}-{control}"), path, &workload, control, ""));
        }
        for jitter in ["", "jitter = \"2ms\"\n"] {
            let name = format!("many-lossy-{count}-{}", if jitter.is_empty() { "even" } else { "jitter" });
            let path = format!("rtt = \"60ms\"\nrate = \"500mbit\"\nqueue = \"5000 packets\"\nloss = \"2%\"\n{jitter}");
            all.push(scenario(&name, &path, &workload, "cubic", ""));
        }
        let path = "rtt = \"80ms\"\nrate = \"500mbit\"\nqueue = \"5000 packets\"\nloss = \"0.01%\"";
        let rest = "[client.socket]\nrcvbuf = \"60kB\"\n";
        all.push(scenario(&format!("many-held-{count}"), path, &workload, "cubic", rest));
    }
    all
}

/// Paths whose rate or delay varies, and data both ways.
fn varied() -> Vec<(String, String)> {
    const JITTER: &str = "jitter = { stddev = \"5ms\", distribution = \"normal\", reorder = false }";
    let part = |name: &str, rest: &str| {
        format!("[[workload.part]]\nname = \"{name}\"\nkind = \"stream\"\n{rest}seconds = \"10s\"\n")
    };
    let both = format!("kind = \"mixed\"\n{}{}", part("down", ""), part("up", "direction = \"up\"\n"));
    let mut all = Vec::new();
    for control in ["cubic", "bbr"] {
        let mut add = |name: String, path: String, workload: &str| {
            all.push(scenario(&format!("varied-{name}-{control}"), &path, workload, control, ""));
        };
        for (trace, ..) in TRACES {
            for queue in [200, 2000] {
                let path =
                    format!("rtt = \"40ms\"\n[path.down]\ntrace = \"{trace}.trace\"\nqueue = \"{queue} packets\"");
                add(format!("trace-{trace}-{queue}"), path, STREAM);
            }
        }
        for loss in ["", "loss = \"1%\"\n"] {
            for (rtt, rate, queue) in [("40ms", "50mbit", 400), ("20ms", "300mbit", 3000)] {
                let path = format!("rtt = \"{rtt}\"\nrate = \"{rate}\"\nqueue = \"{queue} packets\"\n{loss}{JITTER}");
                add(format!("jitter-{rate}{}", if loss.is_empty() { "" } else { "-loss" }), path, STREAM);
            }
        }
        for queue in [50, 500] {
            let path = format!("rtt = \"40ms\"\nrate = \"20mbit\"\nqueue = \"{queue} packets\"");
            add(format!("both-{queue}"), path, &both);
            let path = format!("rtt = \"40ms\"\nrate = \"50mbit\"\nqueue = \"{queue} packets\"");
            let up = format!("[path.up]\nrate = \"2mbit\"\nqueue = \"{queue} packets\"");
            add(format!("slow-up-{queue}"), format!("{path}\n{up}"), &both);
        }
        let down = "rtt = \"30ms\"\n[path.down]\nrate = \"20mbit\"";
        let steps = "step = [{ at = \"4s\", rate = \"5mbit\" }, { at = \"7s\", rate = \"15mbit\" }]";
        add("rates".to_owned(), format!("{down}\nqueue = \"300 packets\"\n{steps}"), STREAM);
        let delay = "step = [{ at = \"4s\", delay = \"60ms\" }]";
        add("delays".to_owned(), format!("{down}\nqueue = \"100 packets\"\n{delay}"), STREAM);
    }
    all
}

/// Every threshold that is a number.
fn thresholds(copy: &Path) -> Vec<Threshold> {
    let folder = copy.join("crates/infer/src");
    let mut found = Vec::new();
    for part in ["diagnosis", "estimate", "flow", "observe", "shared_path", "socket", "tcp"] {
        let mut open = vec![folder.join(part)];
        while let Some(at) = open.pop() {
            if at.is_dir() {
                open.extend(fs::read_dir(at).expect("a folder").flatten().map(|entry| entry.path()));
                continue;
            }
            let file = at.strip_prefix(&folder).expect("below it").display().to_string();
            let source = fs::read_to_string(&at).expect("text");
            let lines = source.split("#[cfg(test)]\nmod").next().unwrap_or_default().lines();
            found.extend(lines.filter_map(|line| threshold(&file, line)).filter(|_| !file.ends_with("tests.rs")));
        }
    }
    found.sort_by(|a, b| (&a.file, &a.name).cmp(&(&b.file, &b.name)));
    assert!(found.len() > 100, "the thresholds were not found");
    found
}

/// The threshold that a line defines.
fn threshold(file: &str, line: &str) -> Option<Threshold> {
    let (head, value) = line.split_once(" = ")?;
    let (before, kind) = head.split_once(": ")?;
    let name = before.strip_prefix("const ").or_else(|| before.split_once(" const ").map(|(_, name)| name))?;
    let largest = match kind {
        "f64" => "1e17",
        "u64" => "1 << 56",
        "u32" => "1 << 31",
        "usize" => "1 << 20",
        _ => return None,
    };
    let value = value.strip_suffix(';')?.to_owned();
    Some(Threshold { file: file.to_owned(), name: name.to_owned(), value, head: format!("{head} = "), largest })
}

/// The verdicts of each capture; `None` if the sources do not compile, or the analysis does not end.
fn verdicts(copy: &Path, captures: &[PathBuf]) -> Option<BTreeMap<String, String>> {
    let target = copy.join("target");
    let build = ["build", "--release", "--quiet", "--offline", "-p", "thalweg-infer", "--example", "verdicts"];
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(build).current_dir(copy).env("CARGO_TARGET_DIR", &target).env("CARGO_PROFILE_RELEASE_LTO", "off");
    let built = cargo.env("CARGO_INCREMENTAL", "1").env("RUSTFLAGS", "--cap-lints=allow").output().expect("cargo");
    if !built.status.success() {
        return None;
    }
    let program = target.join("release/examples/verdicts");
    let output = Command::new("timeout").arg("120").arg(program).args(captures).output().expect("timeout (coreutils)");
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).expect("text").lines() {
        let (name, verdict) = line.split_once('\t').expect("a line of the example");
        found.entry(name.to_owned()).or_default().push_str(verdict);
    }
    output.status.success().then_some(found)
}

/// Captures whose verdicts differ.
fn differing(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> usize {
    before.iter().filter(|(name, verdicts)| after.get(*name) != Some(verdicts)).count()
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_tree(&path, &to);
        } else {
            fs::copy(path, to).expect("copied");
        }
    }
}

/// Puts the table between its marks.
fn write(page: &Path, rows: &str) {
    let text = fs::read_to_string(page).expect("docs/thresholds.md");
    let (begin, end) = ("<!-- table: begin -->\n", "<!-- table: end -->");
    let (before, rest) = text.split_once(begin).expect("the first mark");
    let (_, after) = rest.split_once(end).expect("the second mark");
    let head = "| file | threshold | value | changed at 0 | changed at most |\n|---|---|---|---|---|";
    fs::write(page, format!("{before}{begin}\n{head}\n{rows}\n\n{end}{after}")).expect("written");
}
