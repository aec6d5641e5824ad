//! Verdicts on the labelled set where its captures are taken otherwise: by other programs, on other hosts, in part. What the lab varies is the path
//! and the hosts; what captures of strangers vary is this.
//!
//!     THALWEG_LABELLED=development cargo test --release -p thalweg --test taken_otherwise -- --nocapture
//!
//! takes five minutes, and prints what each way makes of each verdict. Needs the lab kernels 6.12 and 6.1.

mod common;
mod labelled;
mod taken;

use common::two_at_a_time;
use labelled::{CAPTURES, Case, Tally, asked, case, contradicts, diagnosed, run, transfer};
use serde_json::Value;
use std::fs;
use std::ops::Range;
use std::path::Path;
use taken::{WAYS, Way, write};

/// A range that nothing was tuned by.
const HELD_OUT: Range<u64> = 7_100_000..7_100_100;
/// Of the development range, what every test run judges.
const EVERY: usize = 19;
/// Captures that are longer, in bytes, are left out: a few have hundreds of megabytes.
const CAPTURE_MAX: u64 = 12_000_000;

fn code(flows: &[Value], vantage: &str) -> String {
    transfer(flows, vantage).map_or("no flow", |flow| flow["verdict"]["code"].as_str().expect("a code")).to_owned()
}

fn taken_as(folder: &Path, way: &Way, case: &Case) -> Vec<Value> {
    let capture = folder.join(format!("{}-taken.pcapng", case.name));
    write(&CAPTURES.path(folder, case), way, &capture);
    let flows = diagnosed(folder, &capture);
    fs::remove_file(capture).expect("removed");
    flows
}

#[test]
#[expect(clippy::print_stdout, reason = "the tables are what is asked for")]
fn verdicts_are_the_same_however_the_capture_is_taken() {
    let asked = asked(HELD_OUT, EVERY);
    let folder = &asked.folder;
    let cases: Vec<Case> = asked.seeds.iter().copied().map(case).collect();
    run(folder, &cases, &CAPTURES);
    let is_short = |case: &&Case| fs::metadata(CAPTURES.path(folder, case)).is_ok_and(|file| file.len() <= CAPTURE_MAX);
    let judged: Vec<&Case> = cases.iter().filter(|case| !contradicts(folder, case)).filter(is_short).collect();
    let (mut plain, mut failed) = (Vec::new(), Vec::new());
    for way in &WAYS {
        let found = two_at_a_time(judged.clone(), |case| (case, taken_as(folder, way, case)));
        if plain.is_empty() {
            plain.clone_from(&found);
        }
        let mut tally = Tally::default();
        found.iter().for_each(|(case, flows)| tally.count_both(case, flows));
        for ((case, before), (_, after)) in plain.iter().zip(&found) {
            for vantage in ["sender", "receiver"] {
                let (before, after) = (code(before, vantage), code(after, vantage));
                if before != after {
                    println!("{}: {} at the {vantage}: {before} => {after}", way.name, case.name);
                }
            }
        }
        for (vantage, wrong) in ["sender", "receiver"].into_iter().zip(way.wrong) {
            let (right, all) = tally.right_of(vantage);
            println!("{}: right from the {vantage} {right} of {all}", way.name);
            // Of a range one in twenty, where nothing is lost that a verdict needs.
            let most = if asked.range.is_none() { Some(wrong) } else { (wrong == 0).then_some(all / 20) };
            if most.is_some_and(|most| all - right > most) {
                failed.push(format!(
                    "{} from the {vantage}: {} of {all} are wrong: {:#?}",
                    way.name,
                    all - right,
                    tally.wrong
                ));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
