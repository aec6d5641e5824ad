//! Several connections on one path: of those that use it up together none is told to gain, and of those that random loss holds each is.
//!
//! Needs the lab kernel 6.12, which `./x test` builds first; without it this test fails and says so.

#![allow(clippy::print_stdout)]

mod common;
mod shared;

use common::{diagnosed, two_at_a_time};
use serde_json::Value;
use shared::{Case, cases};
use std::collections::BTreeMap;
use std::path::Path;

/// The connections with data that the capture of a run shows.
fn flows(folder: &Path, case: &Case) -> Vec<Value> {
    let (_, found) = diagnosed(folder, &case.name, &case.text, &["--samples", "off"]);
    let flows = found["captures"][0]["flows"].as_array().expect("flows");
    flows.iter().filter(|flow| flow["bytes_down"].as_u64() > Some(100_000)).cloned().collect()
}

#[test]
fn connections_that_use_a_path_up_together_are_told_so_and_others_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut counts: BTreeMap<(&str, String), u32> = BTreeMap::new();
    let (mut wrong, mut errors) = (Vec::new(), Vec::new());
    let judged = two_at_a_time(cases(), |case| (flows(folder.path(), &case), case));
    for (flows, case) in judged {
        let kind = ["full", "lossy", "held"].into_iter().find(|kind| case.name.starts_with(kind)).expect("a kind");
        let full = kind == "full";
        for flow in flows {
            let code = flow["verdict"]["code"].as_str().expect("a code").to_owned();
            let findings = flow["findings"].as_array().expect("findings");
            for on in findings.iter().map(|finding| &finding["depends_on"]).filter(|on| !on.is_null()) {
                let is_told = *on == code || findings.iter().any(|finding| finding["code"] == *on);
                assert!(is_told, "{}: a finding depends on {on}, which is not told", case.name);
            }
            let (gain, shared) = (flow["verdict"]["gain"].as_f64(), &flow["facts"]["shared_path"]);
            let right = match &*code {
                "path-rate" => full,
                // A queue that holds less than a round trip's data is empty at times.
                "congestion-loss" => full && gain < Some(1.3),
                "random-loss" => kind == "lossy",
                "receive-window" => kind == "held",
                _ => false,
            };
            if !right {
                wrong.push(format!("{} {}: {code} {gain:?} {shared}", case.name, flow["vantage"]));
            }
            if let Some(rate) = shared["path_rate_bps"].as_f64().filter(|_| full) {
                errors.push((rate / case.rate - 1.0).abs());
            }
            *counts.entry((kind, code)).or_default() += 1;
        }
    }
    println!("{counts:?}\n{}", wrong.join("\n"));
    let judged: u32 = counts.values().sum();
    assert!(judged >= 200, "connections with data: {judged}");
    // Of those that jitter holds apart a program's pause is told once in a while.
    assert!(wrong.len() * 50 <= judged as usize, "{} of {judged} are wrong", wrong.len());
    for kind in ["lossy", "held"] {
        assert!(!counts.contains_key(&(kind, "path-rate".to_owned())), "{counts:?}");
    }
    errors.sort_by(f64::total_cmp);
    let [middle, most] = [errors.len() / 2, errors.len() * 95 / 100].map(|at| errors[at]);
    println!(
        "the path's rate, told by {} connections: off by {middle:.3} in the middle, {most:.3} of 19 in 20",
        errors.len()
    );
    assert!(errors.len() >= 120 && middle < 0.02 && most < 0.05, "{} rates, {middle} {most}", errors.len());
}
