//! Each rule against two transfers of the lab's: one that has what the rule is about, and one that is like it and has not.
//!
//! The scenarios are `rules/CODE.toml` and `rules/CODE.not.toml`, for each code that `thalweg explain` lists. They are judged by the
//! captures at both ends. Needs the lab kernel 6.12.

mod common;
#[path = "common/schemas.rs"]
mod schemas;

use common::{json, run, texts, thalweg, two_at_a_time};
use schemas::Schemas;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Sections of an explanation.
const SECTIONS: [&str; 6] = ["What it means", "Why it is slow", "Evidence", "How to confirm", "What to set", "Source"];

/// What these have does not reach the receiver, or not enough of it.
const NOT_AT_THE_RECEIVER: [&str; 3] = ["policer", "path-mtu-black-hole", "vanished-peer"];
/// A request that is lost on its way does not reach the server, which sends the data.
const NOT_AT_THE_SENDER: [&str; 1] = ["request-lost"];

/// No path of the lab has such middleboxes: captures of them are written by hand, in `crates/infer/tests/life/middleboxes.rs`.
const WRITTEN_BY_HAND: [&str; 3] = ["window-scale-ignored", "receiver-drops", "sack-not-translated"];

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules")
}

/// Every code, as `thalweg explain` lists them.
fn codes(folder: &Path) -> Vec<String> {
    let (list, _) = run(folder, &["explain"], 0);
    let codes: Vec<String> =
        list.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    assert!(codes.len() >= 19 && codes.contains(&"receive-window".to_owned()), "{list}");
    codes
}

/// The codes whose fixtures the lab makes.
fn made_codes(folder: &Path) -> Vec<String> {
    codes(folder).into_iter().filter(|code| !WRITTEN_BY_HAND.contains(&code.as_str())).collect()
}

/// The diagnosis of a run's capture.
fn diagnosed(folder: &Path, name: &str) -> Value {
    let capture = format!("out/{}/0-as-given.pcapng", name.replace('.', "-"));
    let output = thalweg(folder, &["diagnose", &capture, "--json"]).output().expect("the program starts");
    let (text, err) = texts(&output);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{capture}: {error}: {err}"))
}

/// What a capture shows from there: the verdict of the connection with most data, and its other findings.
fn found(report: &Value, at_receiver: bool) -> Vec<String> {
    let flows = report["captures"][0]["flows"].as_array().expect("flows").iter();
    let there = flows.filter(|flow| (flow["vantage"] == "receiver") == at_receiver);
    let Some(flow) = there.max_by_key(|flow| flow["bytes_down"].as_u64()) else { return Vec::new() };
    let findings = flow["findings"].as_array().expect("findings").iter();
    let codes = [&flow["verdict"]].into_iter().chain(findings).map(|one| one["code"].as_str().expect("a code"));
    codes.map(str::to_owned).collect()
}

#[test]
fn every_rule_finds_what_it_is_about_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let codes = made_codes(folder);
    let names: Vec<String> = codes.iter().flat_map(|code| [code.clone(), format!("{code}.not")]).collect();
    let mut args = vec!["lab", "run", "--kernel", "6.12", "--samples", "off", "--out", "out", "-q"];
    for name in &names {
        let from = scenarios().join(format!("{name}.toml"));
        let text = fs::read_to_string(&from)
            .unwrap_or_else(|error| panic!("no pair of fixtures: {}: {error}", from.display()));
        fs::write(folder.join(format!("{name}.toml")), text).expect("written");
    }
    let files: Vec<String> = names.iter().map(|name| format!("{name}.toml")).collect();
    args.extend(files.iter().map(String::as_str));
    let mut schemas = Schemas::default();
    json(folder, &args).as_array().expect("reports").iter().for_each(|report| schemas.check(report));
    let mut faults = Vec::new();
    for (name, report) in two_at_a_time(names.iter().collect(), |name| (name, diagnosed(folder, name))) {
        schemas.check(&report);
        let code = name.trim_end_matches(".not");
        for at_receiver in [false, true] {
            let found = found(&report, at_receiver);
            let hidden = if at_receiver { &NOT_AT_THE_RECEIVER[..] } else { &NOT_AT_THE_SENDER[..] };
            let is_not = name.ends_with(".not") || hidden.contains(&code);
            if found.iter().any(|one| one == code) == is_not {
                faults.push(format!("{name}, at the receiver {at_receiver}: {found:?}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_fixture_is_left_of_a_rule_that_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let wanted: BTreeSet<String> = made_codes(folder.path())
        .iter()
        .flat_map(|code| [format!("{code}.toml"), format!("{code}.not.toml")])
        .collect();
    let there = fs::read_dir(scenarios()).expect("the folder").flatten();
    let there: BTreeSet<String> = there.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(there, wanted);
}

#[test]
fn every_code_is_explained_in_six_sections_none_of_them_empty() {
    let folder = tempfile::tempdir().expect("a folder");
    for code in codes(folder.path()) {
        let (text, _) = run(folder.path(), &["explain", &code], 0);
        assert_eq!(text.lines().next(), Some(code.as_str()));
        let mut sections: Vec<(&str, usize)> = Vec::new();
        for line in text.lines().skip(1).filter(|line| !line.trim().is_empty()) {
            match line.strip_prefix("  ") {
                Some(words) => {
                    sections.last_mut().expect("a heading comes first").1 += words.split_whitespace().count()
                }
                None => sections.push((line, 0)),
            }
        }
        let headings: Vec<&str> = sections.iter().map(|(heading, _)| *heading).collect();
        assert_eq!(headings, SECTIONS, "{code}");
        // A word or two would be a heading again.
        assert!(sections.iter().all(|(_, words)| *words >= 3), "{code}: {sections:?}");
    }
}
