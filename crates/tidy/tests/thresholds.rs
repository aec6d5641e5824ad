//! Every constant of `infer` says where its value is from: an RFC, a kernel's symbol, a paper, that it bounds memory or work, a test that
//! fails with another value, or the measurement of docs/thresholds.md.

use std::collections::{HashMap, HashSet};
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

/// Thresholds that have none of these yet: neither a test nor a capture of docs/thresholds.md fails without them. Each needs a source, or goes.
const WITHOUT_SOURCE: [(&str, &str); 45] = [
    ("diagnosis/rules/send_buffer.rs", "MIN_SEGMENTS"),
    ("estimate/busy_bottleneck.rs", "MIN_QUEUED_SHARE"),
    ("estimate/busy_bottleneck.rs", "MIN_OPEN_SHARE"),
    ("estimate/busy_bottleneck.rs", "MAX_STEP_PART"),
    ("estimate/loss_origin.rs", "MIN_RANK_STEEPNESS_SHARED"),
    ("estimate/loss_origin.rs", "MIN_LOSSES_SHARED"),
    ("estimate/loss_origin.rs", "MIN_LOSSES_AGAINST_QUEUE"),
    ("estimate/loss_origin.rs", "STANDING_QUEUE_PART"),
    ("estimate/queue_direction.rs", "MAX_CLOCK_ERROR"),
    ("estimate/queue_direction.rs", "MIN_VIEWS"),
    ("estimate/receive_buffer.rs", "MIN_SMALL_WINDOW_SHARE"),
    ("estimate/receive_buffer.rs", "MIN_FULL_WINDOWS"),
    ("estimate/round_trips.rs", "MIN_EVEN_PART"),
    ("estimate/round_trips.rs", "MIN_BUNCHED_RATIO"),
    ("estimate/sliding_min.rs", "MIN_RISE_JITTERS"),
    ("flow/facts.rs", "MIN_CLASS_SHARE"),
    ("hash.rs", "ODD"),
    ("observe/packet_trains.rs", "MIN_BLURRED_RATIO"),
    ("observe/packet_trains.rs", "MIN_BLURRED_TOP_RATIO"),
    ("observe/short_trains.rs", "BUNCH_PART"),
    ("observe/short_trains.rs", "FIRST_SEGMENTS"),
    ("shared_path/aggregate_rate.rs", "MIN_BINS"),
    ("shared_path/aggregate_rate.rs", "MIN_BYTES"),
    ("shared_path/mod.rs", "MIN_OTHERS_PART"),
    ("shared_path/mod.rs", "FULL_RATE_PART"),
    ("shared_path/mod.rs", "AGREEMENT_PART"),
    ("shared_path/mod.rs", "ROUND_TRIPS_PER_SPAN"),
    ("shared_path/mod.rs", "HIGHEST_QUANTILE"),
    ("shared_path/mod.rs", "STEADY_SPREAD"),
    ("shared_path/mod.rs", "STEADY_CONNECTIONS_MAX"),
    ("shared_path/mod.rs", "CORRELATED_PART"),
    ("shared_path/verdict.rs", "FULL_SHARE"),
    ("shared_path/verdict.rs", "MIN_PART_OF_EQUAL_SHARE"),
    ("shared_path/verdict.rs", "MIN_QUEUED_RTT_RATIO"),
    ("socket/causes.rs", "FULL_PATH_SHARE"),
    ("socket/causes.rs", "MIN_GAIN_BESIDE_A_FULL_PATH"),
    ("socket/causes.rs", "MIN_OVERSHOT_PACKETS"),
    ("socket/causes.rs", "OVERSHOT_PART"),
    ("socket/partition.rs", "MIN_QUEUED_DEVIATIONS"),
    ("socket/partition.rs", "MIN_GROWTH"),
    ("tcp/sender/limit_state.rs", "MAX_SEND_DELAY_NS"),
    ("tcp/sender/send_pauses.rs", "MIN_PAUSE_BY_TIMESTAMPS_NS"),
    ("tcp/signals/mod.rs", "ECN"),
    ("tcp/tap_position.rs", "MIN_END_RATIO"),
    ("tcp/tap_position.rs", "FLOOR_NS"),
];

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

/// By file and name: whether docs/thresholds.md says that verdicts change without it.
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
    let mut open: HashSet<(String, String)> =
        WITHOUT_SOURCE.map(|(place, name)| (place.to_owned(), name.to_owned())).into();
    for (file, text) in sources(&root().join("crates/infer/src")) {
        if file.ends_with("tests.rs") || file == "testing.rs" {
            continue;
        }
        for Constant { place, name, comment } in constants(&file, &text) {
            let cited = SOURCES.iter().any(|source| comment.contains(source)) || names_a_test(&comment);
            let key = (place.clone(), name.clone());
            match (cited || measured.get(&key).copied().unwrap_or(false), open.remove(&key)) {
                (false, false) => faults.push(format!("{place}: {name} has no source")),
                (true, true) => faults.push(format!("{place}: {name} has a source: take it off WITHOUT_SOURCE")),
                _ => {}
            }
            if name.split('_').any(|word| QUANTITIES.contains(&word)) {
                faults.push(format!("{place}: {name} says how much, and not of what"));
            }
        }
    }
    faults.extend(
        open.iter().map(|(place, name)| format!("{place}: there is no {name} any more: take it off WITHOUT_SOURCE")),
    );
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
