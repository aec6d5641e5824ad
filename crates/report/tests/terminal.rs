//! What a terminal shows, to the character: at 100 columns and at 60, without colour and with it.

mod common;

use thalweg_model::{ArmReport, Code, Metric, Metrics, Verdict};
use thalweg_report::figures::leading;
use thalweg_report::html::{Page, page};
use thalweg_report::many::Many;
use thalweg_report::terminal;

#[test]
fn lab_at_100_and_60_columns() {
    insta::assert_snapshot!("lab_100", plain(terminal::lab(&common::lab(), false, 100, false), 100));
    insta::assert_snapshot!("lab_live_100", plain(terminal::lab(&common::live(), false, 100, false), 100));
    insta::assert_snapshot!("lab_60", plain(terminal::lab(&common::lab(), false, 60, false), 60));
}

#[test]
fn a_lab_with_repeats_and_many_figures() {
    insta::assert_snapshot!("repeats_100", plain(terminal::lab(&common::repeats(), false, 100, false), 100));
    insta::assert_snapshot!("repeats_60", plain(terminal::lab(&common::repeats(), false, 60, false), 60));
}

/// Three captures with the sample's connection, the second twice as long, and one that cannot be read.
#[test]
fn many_captures_are_one_page() {
    let mut many = Many::default();
    let mut sample = common::diagnose().captures.remove(0);
    // The sample's connection was reset as well; here it is slow only.
    sample.flows.iter_mut().filter_map(|flow| flow.life.as_mut()).for_each(|life| life.failure = None);
    for (name, factor) in [("day/a.pcap", 1.0), ("day/b.pcap", 2.0), ("day/c.pcap", 0.5)] {
        let mut capture = sample.clone();
        capture.file = name.to_owned();
        for flow in &mut capture.flows {
            flow.phase_s *= factor;
            // What failed is listed apart.
            flow.life.iter_mut().for_each(|life| life.failure = None);
        }
        many.add(&capture, capture.flows.len() as u64);
    }
    many.unread("day/d.pcap", "day/d.pcap is not a pcap or pcapng capture: it looks like text");
    assert_eq!((many.captures, many.unread.len()), (3, 1));
    let (code, total) = many.causes()[0];
    let slow = sample.flows.iter().filter(|flow| flow.verdict.code() == code).count() as u64;
    assert_eq!((total.captures, total.connections), (3, 3 * slow));
    assert_eq!(total.worst.file, "day/b.pcap", "the longest loses most");
    assert!(many.worst().windows(2).all(|pair| pair[0].lost_s >= pair[1].lost_s), "ranked across captures");
    let text = plain(terminal::diagnose_many(&many, 20, 100, false), 100);
    for heading in ["Time lost, by cause", "Hosts that lose most", "Worst connections"] {
        assert!(text.contains(heading), "{heading}\n{text}");
    }
    assert!(text.contains("3 captures") && text.contains("1 capture could not"), "{text}");
    assert!(text.contains("day/d.pcap"), "{text}");
    let reasons: std::collections::HashSet<String> =
        sample.flows.iter().flat_map(|flow| flow.remedies.iter().map(|remedy| remedy.reason.clone())).collect();
    for reason in &reasons {
        let begin: String = reason.chars().take(30).collect();
        assert!(text.matches(begin.as_str()).count() <= 1, "a remedy is there once: {begin}\n{text}");
    }
    plain(terminal::diagnose_many(&many, 20, 60, false), 60);
    assert!(text.lines().count() < 80, "{} lines", text.lines().count());
    let html = page(&Page { title: "day".to_owned(), many: Some(&many), ..Page::default() });
    assert!(html.contains("Worst connections") && html.contains("day/b.pcap") && html.contains("day/d.pcap"));
}

/// Nothing arrived of one connection: it has no data phase, and no gain.
#[test]
fn a_black_hole_in_which_nothing_arrives_costs_its_silence() {
    let mut capture = common::diagnose().captures.remove(0);
    let mut dead = capture.flows.remove(0);
    (dead.phase_s, dead.other_direction) = (0.0, None);
    let hole = common::causes::all().into_iter().find(|cause| cause.code() == Code::PathMtuBlackHole);
    dead.verdict = Verdict::new(hole.expect("one of each is there"), 1.0, None);
    let life = dead.life.as_mut().expect("the sample has one");
    (life.failure, life.verdict_share) = (None, 0.75);
    let all_s = life.phases.total_s();
    capture.flows = vec![dead];
    let mut many = Many::default();
    many.add(&capture, 1);
    let causes = many.causes();
    let [(Code::PathMtuBlackHole, total)] = causes[..] else { panic!("{causes:?}") };
    assert!((total.lost_s - 0.75 * all_s).abs() < 1e-9 && total.connections == 1, "{total:?}");
    assert_eq!((many.fine, many.worst().len(), many.hosts().len()), (0, 1, 2));
}

#[test]
fn runs_compared() {
    insta::assert_snapshot!("compare_100", plain(terminal::compare(&common::compared(), 100, false), 100));
}

#[test]
fn intervals_are_shown_when_asked_for() {
    let text = plain(terminal::lab(&common::lab(), true, 100, false), 100);
    assert!(text.contains("Intervals of as found"), "{text}");
    assert!(text.contains("0.00 – 1.00") && text.contains("448 Mb/s"), "{text}");
}

#[test]
fn noise_is_marked_and_outliers_are_named() {
    let text = plain(terminal::lab(&common::noisy(), false, 100, false), 100);
    assert!(text.contains("≈ 1.01×"), "{text}");
    assert!(text.contains("≈ is within noise"), "{text}");
    assert!(text.contains("Outliers, counted like the others: cubic 40, to 1 MB, seed 4: 2,214 ms."), "{text}");
}

#[test]
fn a_part_says_that_it_is_one() {
    let text = plain(terminal::lab(&common::part(), false, 100, false), 100);
    assert!(text.contains("Part 2 of 3: 1 of 2 runs."), "{text}");
}

#[test]
fn fix_at_100_and_60_columns() {
    let html = Some("out/report.html");
    insta::assert_snapshot!("fix_100", plain(terminal::fix(&common::fix(), html, 100, false), 100));
    // Commands stay whole to be pasted; nothing else may be wider.
    insta::assert_snapshot!(
        "fix_of_a_capture_100",
        plain(terminal::fix(&common::fixed_capture(), html, 100, false), 100)
    );
    let narrow = terminal::fix(&common::fix(), html, 60, false);
    let rest: String =
        narrow.lines().filter(|line| !line.contains("sysctl -w")).map(|line| format!("{line}\n")).collect();
    plain(rest, 60);
    insta::assert_snapshot!("fix_60", narrow);
}

#[test]
fn a_fix_that_found_no_remedy() {
    let mut fix = common::fix();
    (fix.remedy, fix.after, fix.ratio) = (None, None, None);
    (fix.apply, fix.undo) = (vec![], vec![]);
    fix.proof.as_mut().expect("a proof").arms.truncate(1);
    insta::assert_snapshot!("fix_without_remedy", plain(terminal::fix(&fix, None, 100, false), 100));
}

#[test]
fn diagnose_at_100_and_60_columns() {
    insta::assert_snapshot!("diagnose_100", plain(terminal::diagnose(&common::diagnose(), 100, false), 100));
    insta::assert_snapshot!("diagnose_60", plain(terminal::diagnose(&common::diagnose(), 60, false), 60));
}

#[test]
fn one_connection_seen_on_two_interfaces_is_told_once() {
    let mut report = common::diagnose();
    let flows = &mut report.captures[0].flows;
    flows[1] = flows[0].clone();
    (flows[1].id, flows[1].interface) = (4, Some("client".to_owned()));
    flows[1].start += 0.018;
    let text = terminal::diagnose(&report, 100, false);
    assert_eq!(text.matches("filled the window to within one segment").count(), 1, "{text}");
    assert!(text.contains("the same connection, seen on client: receive-window 90 %"), "{text}");
}

#[test]
fn colour_is_there_when_asked_for_and_changes_no_character() {
    for (colored, plain) in [
        (terminal::lab(&common::lab(), false, 100, true), terminal::lab(&common::lab(), false, 100, false)),
        (terminal::fix(&common::fix(), None, 100, true), terminal::fix(&common::fix(), None, 100, false)),
    ] {
        assert!(colored.contains('\x1b'));
        assert_eq!(stripped(&colored), plain);
    }
    // Bars differ, as without colour each limit has a glyph of its own.
    let colored = terminal::diagnose(&common::diagnose(), 100, true);
    assert!(colored.contains("\x1b[1m"));
    assert!(!stripped(&colored).contains('\x1b'), "an escape of the capture's got through");
}

/// The text, after a look that it has no escape code and nothing wider than `width`.
fn plain(text: String, width: usize) -> String {
    assert!(!text.contains('\x1b'), "an escape code without colour: {text}");
    // Commands are not wrapped, so that they can be pasted.
    for line in text.lines().filter(|line| !line.trim_start().starts_with("sysctl ")) {
        assert!(line.chars().count() <= width, "wider than {width}: {line}");
    }
    text
}

/// The text without its colours (`ESC [ … m`).
fn stripped(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    let text = parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest));
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn arms_are_compared_by_a_goodput_that_all_of_them_have() {
    let arm = |steady: bool| {
        let mut arm = common::arm("a", 2e6, 1e6, common::cause());
        if !steady {
            arm.metrics.remove("goodput_steady_bps");
        }
        arm
    };
    let part = |steady: bool| {
        let mut part = arm(steady);
        part.metrics = Metrics::from([("bulk".to_owned(), Metric::Group(std::mem::take(&mut part.metrics)))]);
        part
    };
    let first = |arms: &[ArmReport]| leading(arms)[0].name.clone();
    assert_eq!(first(&[arm(true), arm(true)]), "goodput_steady_bps");
    assert_eq!(first(&[arm(true), arm(false)]), "goodput_bps");
    assert_eq!(first(&[part(true), part(false)]), "bulk.goodput_bps");
}
