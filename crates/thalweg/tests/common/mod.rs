//! What the tests of the whole program share.
#![allow(dead_code, unreachable_pub, clippy::print_stderr)]

pub mod browser;
pub mod edge;
pub mod python;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

/// The program under test, in `folder`, with temporary files in `folder/tmp`.
pub fn thalweg(folder: &Path, args: &[&str]) -> Command {
    let tmp = folder.join("tmp");
    std::fs::create_dir_all(&tmp).expect("a folder for temporary files");
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.args(args).current_dir(folder).env("TMPDIR", tmp);
    command
}

/// Whether this process may make paths; says aloud if it may not, and which test is skipped for it.
pub fn can_make_paths(test: &str) -> bool {
    let output = Command::new(env!("CARGO_BIN_EXE_thalweg")).args(["path", "--isolated", "--", "true"]).output();
    let output = output.expect("the program starts");
    if output.status.code() == Some(3) {
        let (_, why) = texts(&output);
        eprintln!("SKIPPED: {test}: {}", why.lines().next().unwrap_or_default());
        return false;
    }
    assert!(output.status.success(), "{output:?}");
    true
}

/// Runs it and expects the exit code; returns what it printed.
pub fn run(folder: &Path, args: &[&str], code: i32) -> (String, String) {
    let output = thalweg(folder, args).output().expect("the program starts");
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(code), "thalweg {}\nstdout:\n{out}\nstderr:\n{err}", args.join(" "));
    (out, err)
}

/// Runs it with `--json` and returns the document.
pub fn json(folder: &Path, args: &[&str]) -> Value {
    let (out, err) = run(folder, &[args, &["--json"]].concat(), 0);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("not JSON: {error}\n{out}\n{err}"))
}

/// Runs a scenario's text without recording, plus `args`; returns the report.
pub fn lab(text: &str, args: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    lab_in(folder.path(), text, &[&["--capture", "off", "--samples", "off"], args].concat())
}

/// Runs a scenario's text in a folder, results in `out`; returns the report.
pub fn lab_in(folder: &Path, text: &str, args: &[&str]) -> Value {
    std::fs::write(folder.join("s.toml"), text).expect("written");
    json(folder, &[&["lab", "run", "s.toml", "--out", "out"], args].concat())
}

/// What `work` gives for each item, in their order; two are worked on at a time, the first ones first. A run of one arm has one guest, which
/// keeps one processor busy.
pub fn two_at_a_time<I: Send, R: Send>(items: Vec<I>, work: impl Fn(I) -> R + Sync) -> Vec<R> {
    let left = Mutex::new(items.into_iter().enumerate());
    let next = || left.lock().expect("no panic").next();
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let each = || std::iter::from_fn(next).map(|(at, item)| (at, work(item))).collect::<Vec<_>>();
        let other = scope.spawn(each);
        let mut done = each();
        done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        done
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Runs a scenario's text on kernel 6.12 in a folder and diagnoses its capture; returns both reports and leaves neither run nor capture behind.
pub fn diagnosed(folder: &Path, name: &str, text: &str, args: &[&str]) -> (Value, Value) {
    let file = format!("{name}.toml");
    std::fs::write(folder.join(&file), text).expect("written");
    let run = [&["lab", "run", &file, "--kernel", "6.12", "--out", name, "-q"], args].concat();
    let report = json(folder, &run);
    // Exit 1: a problem was found; 0: none that a setting mends.
    let capture = format!("{name}/0-as-given.pcapng");
    let output = thalweg(folder, &["diagnose", &capture, "--json"]).output().expect("the program starts");
    let (found, err) = texts(&output);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{name}: {err}");
    std::fs::remove_dir_all(folder.join(name)).expect("a folder");
    (report, serde_json::from_str(&found).expect("JSON"))
}

/// The lines of a table that `--export csv` left in `out`, each by its columns' names.
pub fn table(folder: &Path, name: &str) -> Vec<std::collections::HashMap<String, String>> {
    let text = std::fs::read_to_string(folder.join("out").join(format!("{name}.csv"))).expect("the table");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    lines
        .map(|line| names.iter().map(|name| (*name).to_owned()).zip(line.split(',').map(str::to_owned)).collect())
        .collect()
}

/// Both outputs as text.
pub fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// The figure at `path` of an arm.
pub fn figure(report: &Value, arm: &str, path: &str) -> f64 {
    let arms = report["arms"].as_array().expect("arms");
    let found = arms.iter().find(|one| one["name"] == arm).unwrap_or_else(|| panic!("no arm '{arm}'"));
    let value = path.split('.').fold(&found["metrics"], |value, key| &value[key]);
    value.as_f64().unwrap_or_else(|| panic!("no figure {path} in {}", found["metrics"]))
}

/// Panics unless `got` is within `part` of `wanted`.
pub fn within(got: f64, wanted: f64, part: f64) {
    assert!((got / wanted - 1.0).abs() <= part, "{got} is not within {} % of {wanted}", part * 100.0);
}

/// What is in a folder, by relative path.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            } else {
                found.push(path.strip_prefix(folder).expect("inside").to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Processes whose working directory is in `folder`: guests of runs whose temporary files are there.
pub fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().expect("the folder");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let inside = std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder));
        if inside && entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()) {
            let state = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            if !state.contains(") Z ") {
                found.push(state);
            }
        }
    }
    found
}
