//! Tests of joining parts: of runs made up here, as the lab lays them out.

use super::*;
use std::collections::BTreeMap;
use thalweg_model::{Expected, Metric};

fn metrics(arm: usize, repeat: u32) -> Metrics {
    // No two alike, and none that two machines would print differently.
    Metrics::from([("x_ms".to_owned(), Metric::One(0.1 + arm as f64 * 1.7 + f64::from(repeat * repeat) / 3.0))])
}

fn arm(at: usize, metrics: Metrics) -> ArmReport {
    ArmReport {
        name: format!("arm {at}"),
        kernel: "6.12.1".to_owned(),
        matrix: BTreeMap::new(),
        baseline: (at > 0).then(|| "arm 0".to_owned()),
        settings: Default::default(),
        metrics,
        differences: BTreeMap::new(),
        outliers: Vec::new(),
        intervals: Vec::new(),
        diagnosis: Vec::new(),
        capture: Some(format!("{at}.pcapng")),
        samples: None,
        live: None,
    }
}

fn whole(arms: usize, repeats: u32) -> LabReport {
    let each = |at: usize| arm(at, summarize((0..repeats).map(|repeat| metrics(at, repeat)).collect()));
    let mut arms: Vec<ArmReport> = (0..arms).map(each).collect();
    compare_arms(&mut arms, 7);
    LabReport {
        schema: "thalweg.lab/1".to_owned(),
        scenario: "made up".to_owned(),
        about: String::new(),
        kernel: "6.12.1".to_owned(),
        engine: "virtual".to_owned(),
        seed: 7,
        repeats,
        wall_s: 0.0,
        virtual_s: (0..arms.len()).flat_map(|a| (0..repeats).map(move |r| virtual_s(a, r))).sum(),
        expect: vec![Expectation::parse("arm 1/x_ms", "> 1x arm 0", ["arm 1"]).expect("valid").check(&arms)],
        arms,
        failed: Vec::new(),
        shard: None,
    }
}

fn virtual_s(arm: usize, repeat: u32) -> f64 {
    1.0 / (1.0 + arm as f64 + f64::from(repeat))
}

fn part(arms: usize, repeats: u32, index: u32, of: u32) -> (String, LabReport) {
    let all = (0..arms).flat_map(|arm| (0..repeats).map(move |repeat| (arm, repeat)));
    let runs: Vec<RunFigures> = all
        .skip(index as usize - 1)
        .step_by(of as usize)
        .map(|(arm, repeat)| RunFigures {
            arm,
            repeat,
            virtual_s: virtual_s(arm, repeat),
            metrics: metrics(arm, repeat),
        })
        .collect();
    let mut report = whole(arms, repeats);
    report.arms.retain(|arm| runs.iter().any(|run| arm.name == format!("arm {}", run.arm)));
    for arm in &mut report.arms {
        (arm.differences, arm.outliers) = (BTreeMap::new(), Vec::new());
    }
    let expect = vec![Expected { metric: "arm 1/x_ms".to_owned(), wanted: "> 1x arm 0".to_owned() }];
    report.expect = Vec::new();
    let arms = (0..arms).map(|at| format!("arm {at}")).collect();
    report.shard = Some(Shard { index, of, arms, expect, runs });
    (format!("part {index}"), report)
}

#[test]
fn parts_make_the_whole_whatever_their_order() {
    for (arms, repeats, of) in [(3, 5, 2), (3, 5, 4), (2, 1, 2), (2, 1, 3), (4, 6, 7), (2, 2, 4)] {
        let mut parts: Vec<_> = (1..=of).map(|index| part(arms, repeats, index, of)).collect();
        parts.reverse();
        let joined = join(parts).expect("all parts");
        assert_eq!(joined, whole(arms, repeats), "{arms} arms, {repeats} repeats, {of} parts");
    }
}

#[test]
fn what_is_no_whole_is_said() {
    let parts = || vec![part(3, 2, 1, 3), part(3, 2, 2, 3), part(3, 2, 3, 3)];
    let mut missing = parts();
    missing.remove(1);
    assert_eq!(join(missing).expect_err("one is missing").to_string(), "of 3 parts these are missing: 2");
    let mut twice = parts();
    twice[1] = part(3, 2, 1, 3);
    assert!(matches!(join(twice), Err(JoinError::Twice { .. })));
    let mut other = parts();
    other[2].1.seed = 8;
    assert!(join(other).expect_err("another seed").to_string().contains("their seeds differ"));
    let mut whole_one = parts();
    whole_one[0].1.shard = None;
    assert!(matches!(join(whole_one), Err(JoinError::Whole(_))));
    let mut short = parts();
    short[0].1.shard.as_mut().expect("a part").runs.pop();
    assert!(matches!(join(short), Err(JoinError::Damaged { .. })));
    let mut moved = parts();
    moved[0].1.shard.as_mut().expect("a part").runs[0].repeat = 1;
    assert!(matches!(join(moved), Err(JoinError::Damaged { .. })));
}
