//! What was fitted to a capture, searched and weighed: the sections a fix of a capture has besides.

use super::page::{Entry, Page, Style};
use crate::figures::{clean, percent, times};
use crate::fit_words::{rival as sentence, value};
use thalweg_model::{Candidate, CaptureFit, FitCheck, FittedModel, Origin, Rival};

/// The fitted model: its parameters, and its figures beside the capture's.
pub(super) fn fit(page: &mut Page, capture: &CaptureFit) {
    let Some(model) = capture.models.first() else { return };
    page.heading("The fit");
    let part = capture.first_s.map(|seconds| format!(", its first {seconds} s")).unwrap_or_default();
    let state = if model.accepted { "accepted" } else { "not accepted" };
    let text = format!(
        "{}: {state}. Connection {}{part}, reproduced in {} runs; {} of them have its verdict.",
        model.name,
        capture.flow,
        model.seeds,
        percent(model.same_verdict)
    );
    page.sentence("  ", &text, if model.accepted { Style::Plain } else { Style::Bad });
    parameters(page, model);
    checks(page, &model.checks);
    for other in &capture.models[1..] {
        let text = if other.accepted {
            format!("{} was tried and is accepted, too.", other.name)
        } else {
            format!(
                "{} was tried and not accepted: not reproduced are {}.",
                other.name,
                other.not_reproduced().join(", ")
            )
        };
        page.sentence("  ", &text, Style::Faint);
    }
}

fn parameters(page: &mut Page, model: &FittedModel) {
    let heading = ["parameter", "value", "origin"].map(str::to_owned);
    let rows: Vec<Vec<Entry>> = model
        .parameters
        .iter()
        .map(|one| {
            let style = if one.origin == Origin::Assumed { Style::Faint } else { Style::Plain };
            vec![
                Entry::new(clean(&one.key), Style::Plain),
                Entry::new(clean(&one.value), Style::Strong),
                Entry::new(one.origin.as_str(), style),
            ]
        })
        .collect();
    page.table(&heading, &rows, 3);
}

fn checks(page: &mut Page, checks: &[FitCheck]) {
    page.gap();
    let heading = ["figure", "capture", "lab", "accepted"].map(str::to_owned);
    let rows: Vec<Vec<Entry>> = checks
        .iter()
        .map(|check| {
            let style = if check.inside { Style::Good } else { Style::Bad };
            vec![
                Entry::new(clean(&check.figure), Style::Plain),
                Entry::new(value(&check.figure, check.capture), style),
                Entry::new(value(&check.figure, check.median), Style::Plain),
                Entry::new(
                    format!("{} to {}", value(&check.figure, check.least.max(0.0)), value(&check.figure, check.most)),
                    Style::Faint,
                ),
            ]
        })
        .collect();
    page.table(&heading, &rows, 1);
}

/// What was tried: the ratio in the last round it was in, and in its worst corner.
pub(super) fn search(page: &mut Page, heading: &str, search: &[Candidate]) {
    if search.is_empty() {
        return;
    }
    page.heading(heading);
    let mut columns = ["candidate", "better", "worst corner", "where"].map(str::to_owned).to_vec();
    if search.iter().all(|candidate| candidate.corners.is_empty()) {
        columns.truncate(2);
    }
    let rows: Vec<Vec<Entry>> = search
        .iter()
        .map(|candidate| {
            let worst = candidate.corners.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio));
            let last = candidate.ratios.last().copied();
            let mut row = vec![
                Entry::new(clean(&candidate.name), Style::Plain),
                Entry::new(
                    last.map_or_else(|| "–".to_owned(), times),
                    if last.is_some_and(|last| last >= 1.05) { Style::Good } else { Style::Plain },
                ),
                Entry::new(worst.map_or_else(|| "–".to_owned(), |worst| times(worst.ratio)), Style::Plain),
                Entry::new(
                    worst.map(|worst| format!("{} × {}", worst.parameter, worst.factor)).unwrap_or_default(),
                    Style::Faint,
                ),
            ];
            row.truncate(columns.len());
            row
        })
        .collect();
    page.table(&columns, &rows, 1);
}

/// What the remedy does to a CUBIC flow.
pub(super) fn rival(page: &mut Page, rival: &Rival) {
    page.heading("Beside a CUBIC flow");
    page.sentence("  ", &sentence(rival), if rival.accepted { Style::Plain } else { Style::Bad });
}
