//! Every constant of `infer` says where its value is from: an RFC, a kernel's symbol, a paper, that it bounds memory or work, a test that
//! fails with another value, or the measurement of docs/thresholds.md.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How a comment cites its source. A link to another constant takes over the source of that one.
const SOURCES: [&str; 14] = [
    "RFC ",
    "Linux",
    "kernel",
    " et al.",
    "ITU-T",
    "glibc",
    "OpenSSL",
    "`tcp_",
    "`TCP_",
    "`TCPI_",
    "`sk_",
    "ounds memory",
    "ounds work",
    "[`",
];

/// Words that say how much, and not of what.
const QUANTITIES: [&str; 11] =
    ["ENOUGH", "FEW", "MANY", "MOST", "MOSTLY", "NEARLY", "SEVERAL", "OFTEN", "ALWAYS", "SAME", "FAR"];

/// A constant, and what is written above it.
struct Constant {
    place: String,
    name: String,
    comment: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root")
}

/// Sources below a folder, with their paths in it.
fn sources(folder: &Path) -> Vec<(String, String)> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(folder).expect("below it").display().to_string();
                found.push((name, fs::read_to_string(&path).expect("text")));
            }
        }
    }
    found.sort();
    found
}

/// The numbers of a file. One that follows another without a comment of its own shares that one's.
fn constants(file: &str, text: &str) -> Vec<Constant> {
    let mut found: Vec<Constant> = Vec::new();
    let (mut comment, mut is_next) = (String::new(), false);
    for line in text.split("#[cfg(test)]\nmod").next().unwrap_or_default().lines().map(str::trim_start) {
        if let Some(text) = line.strip_prefix("/// ") {
            comment = comment + text + " ";
        } else if let Some((name, kind)) = definition(line) {
            let shared = found.last().filter(|_| is_next && comment.is_empty()).map(|last| last.comment.clone());
            if ["f64", "u8", "u16", "i16", "u32", "u64", "usize"].contains(&kind) {
                let comment = shared.unwrap_or_else(|| comment.clone());
                found.push(Constant { place: file.to_owned(), name: name.to_owned(), comment });
            }
            (comment, is_next) = (String::new(), true);
        } else {
            (comment, is_next) = (String::new(), false);
        }
    }
    found
}

/// Name and type of what a line defines.
fn definition(line: &str) -> Option<(&str, &str)> {
    let (before, rest) = line.split_once("const ")?;
    let (name, rest) = rest.split_once(": ")?;
    let is_visibility = before.is_empty() || before.starts_with("pub") && before.ends_with(' ');
    (is_visibility && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
        .then(|| Some((name, rest.split_once(" =")?.0)))?
}

/// By file and name: whether docs/thresholds.md says that verdicts, or other figures of reports, change without it.
fn measured() -> HashMap<(String, String), bool> {
    let page = fs::read_to_string(root().join("docs/thresholds.md")).expect("docs/thresholds.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect());
    cells
        .map(|cells: Vec<&str>| {
            ((cells[0].to_owned(), cells[1].to_owned()), cells[3..].iter().any(|changed| *changed != "0"))
        })
        .collect()
}

#[test]
fn every_threshold_has_a_source() {
    let measured = measured();
    let tests: String = ["crates/infer", "crates/thalweg/tests"]
        .iter()
        .flat_map(|folder| sources(&root().join(folder)))
        .map(|(_, text)| text)
        .collect();
    let names_a_test =
        |comment: &str| comment.split('`').skip(1).step_by(2).any(|name| tests.contains(&format!("fn {name}()")));
    let mut faults = Vec::new();
    for (file, text) in sources(&root().join("crates/infer/src")) {
        if file.ends_with("tests.rs") || file == "testing.rs" {
            continue;
        }
        for Constant { place, name, comment } in constants(&file, &text) {
            let cited = SOURCES.iter().any(|source| comment.contains(source)) || names_a_test(&comment);
            if !cited && !measured.get(&(place.clone(), name.clone())).copied().unwrap_or(false) {
                faults.push(format!("{place}: {name} has no source"));
            }
            if name.split('_').any(|word| QUANTITIES.contains(&word)) {
                faults.push(format!("{place}: {name} says how much, and not of what"));
            }
        }
    }
    assert!(faults.is_empty(), "{} constants:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn measured_thresholds_are_there() {
    let known: Vec<(String, String)> = sources(&root().join("crates/infer/src"))
        .iter()
        .flat_map(|(file, text)| constants(file, text))
        .map(|constant| (constant.place, constant.name))
        .collect();
    for row in measured().keys() {
        assert!(known.contains(row), "docs/thresholds.md has {row:?}, which is no constant any more");
    }
}
