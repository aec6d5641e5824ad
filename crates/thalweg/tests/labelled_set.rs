//! Verdicts on the labelled set, hundreds of transfers drawn at random whose limiter arithmetic gives, judged from both ends.
//!
//! A part of it is judged in every test run. All of it, a range of seeds that nothing was tuned by and that leaves 500 transfers when those
//! that contradict their label's arithmetic are out, by
//!
//!     THALWEG_LABELLED=held-out cargo test --release -p thalweg --test labelled_set -- --nocapture
//!
//! which rewrites the tables in docs/verdicts.md and takes some minutes. `1600000..1600550` judges another range, `development` the one to
//! work with. With `THALWEG_LABELLED_LIVE=offloads`, or `=1`, they run in real time on this host's kernel, with and without merged packets: a
//! hundred take ten to fifteen minutes. `THALWEG_LABELLED_CONTROL=bbr` has them sent by another congestion control, where a cause does not name one
//! (BBR knows no idle restart, builds no long queue, and a small part of random losses does not hold it: those labels are not its own). Captures are kept in
//! `THALWEG_LABELLED_FOLDER`, if that is set, one for each engine, and only what is missing there is run. Needs the lab kernels 6.12 and 6.1.

mod common;
mod labelled;

use labelled::{CAPTURES, Case, asked, case, causes, judge, run};
use std::ops::Range;
use std::path::Path;

/// Seeds to measure by.
const HELD_OUT: Range<u64> = 1_300_000..1_300_550;
/// Of the development range, what every test run judges.
const EVERY: usize = 9;

#[test]
#[expect(clippy::print_stdout, reason = "the tables are what is asked for")]
fn verdicts_on_the_labelled_set_are_right() {
    let asked = asked(HELD_OUT, EVERY);
    let folder = &asked.folder;
    let control = std::env::var("THALWEG_LABELLED_CONTROL").ok();
    let sent = |case: Case| if let Some(control) = &control { case.with(control) } else { case };
    let cases: Vec<Case> = asked.seeds.iter().copied().map(case).map(sent).collect();
    run(folder, &cases, &CAPTURES);
    let tally = judge(folder, &cases);
    println!("{}\n{}", tally.markdown(), tally.wrong.join("\n"));
    println!("refused: {}", tally.refused.join(" "));
    if asked.range.as_deref() == Some("held-out") {
        write(&tally.markdown());
    }
    // Of a few dozen, one more or less is two percent: what is right of 95 % is that to within two standard deviations, 6 %.
    let least = if asked.range.is_some() { [0.98, 0.95] } else { [0.93, 0.93] };
    for (vantage, least) in ["sender", "receiver"].into_iter().zip(least) {
        assert!(tally.right(vantage) >= least, "right from the {vantage}: {}", tally.right(vantage));
    }
    assert!(tally.false_findings() <= 0.01, "false findings on healthy flows: {}", tally.false_findings());
}

/// BBR paces what a bound lets out: its flight stands still behind a buffer as it does at a clamp, and stays a burst below a receive window.
#[test]
fn what_is_paced_behind_a_buffer_is_no_clamp() {
    let seeds = [8_000_005, 8_000_024, 8_000_105, 8_000_121, 8_000_202, 8_000_220];
    let cases: Vec<Case> = seeds.into_iter().map(|seed| case(seed).with("bbr")).collect();
    are_right(&cases);
}

/// BBR takes what is read for the path's rate and paces at it, so that a small window is hardly ever full, and data leaves when no acknowledgement came.
#[test]
fn what_is_paced_at_a_readers_rate_is_the_readers() {
    let cases = [6, 20, 60].into_iter().flat_map(|rtt_ms| {
        [40, 200].map(|mbit| {
            let path = format!("[path]\nrate = \"{mbit}mbit\"\nrtt = \"{rtt_ms}ms\"\n");
            let name = format!("reader-{rtt_ms}ms-{mbit}mbit");
            Case { name, cause: "reader", kernel: "6.12", made: causes::reads(&path, 26e6, 20) }.with("bbr")
        })
    });
    let cases: Vec<Case> = cases.collect();
    are_right(&cases);
}

/// Every one of them is judged right, at both ends.
fn are_right(cases: &[Case]) {
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), cases, &CAPTURES);
    let tally = judge(folder.path(), cases);
    assert!(tally.wrong.is_empty() && tally.refused.is_empty(), "{:#?} {:?}", tally.wrong, tally.refused);
}

/// Puts the tables between their marks in docs/verdicts.md.
fn write(tables: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/verdicts.md");
    let text = std::fs::read_to_string(&path).expect("docs/verdicts.md");
    let (begin, end) = ("<!-- tables: begin -->\n", "<!-- tables: end -->");
    let (before, rest) = text.split_once(begin).expect("the first mark");
    let (_, after) = rest.split_once(end).expect("the second mark");
    std::fs::write(&path, format!("{before}{begin}\n{tables}\n{end}{after}")).expect("written");
}
