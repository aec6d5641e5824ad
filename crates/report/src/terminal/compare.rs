//! Runs compared with each other: what else differs, then for each arm its leading figures before and after.

use super::page::{Entry, Page, Style, shorten};
use crate::figures::{Figure, clean, times};
use thalweg_model::{ArmComparison, CompareReport, FigureComparison};

const WIDEST_NAME: usize = 32;
/// Figures that follow the leading one, where an arm has them and they changed.
const OTHERS: [&str; 9] = [
    "transactions_per_s",
    "first_keyframe_ms",
    "goodput_steady_bps",
    "goodput_bps",
    "latency_ms.p50",
    "latency_ms.p99",
    "retransmits",
    "first_byte_ms",
    "duration_s",
];

/// Prints what `thalweg lab compare` found.
pub fn compare(report: &CompareReport, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    for (at, one) in report.reports.iter().enumerate() {
        let seeds = match one.repeats {
            1 => format!("seed {}", one.seed),
            repeats => format!("{repeats} seeds from {}", one.seed),
        };
        let text = format!("{} · {} · Linux {} · {seeds}", clean(&one.file), one.scenario, one.kernel);
        page.sentence(if at == 0 { "before  " } else { "after   " }, &text, Style::Plain);
    }
    if !report.notes.is_empty() {
        page.gap();
        report.notes.iter().for_each(|note| page.sentence("", note, Style::Bad));
    }
    for other in report.reports.iter().skip(1) {
        let arms: Vec<&ArmComparison> = report.arms.iter().filter(|arm| arm.file == other.file).collect();
        if report.reports.len() > 2 {
            page.heading(&clean(&other.file));
        } else {
            page.gap();
        }
        table(&mut page, &arms);
    }
    verdict(&mut page, report);
    page.finish()
}

fn table(page: &mut Page, arms: &[&ArmComparison]) {
    let heading = ["", "", "before", "after", "better", "difference", "ci95"].map(str::to_owned);
    let mut rows = Vec::new();
    for arm in arms {
        let others = OTHERS.iter().map(|name| (*name).to_owned()).filter(|name| Some(name) != arm.leading.as_ref());
        let mut first = true;
        for name in arm.leading.iter().cloned().chain(others) {
            let Some(compared) = arm.metrics.get(&name) else { continue };
            let leads = Some(&name) == arm.leading.as_ref();
            if leads || compared.difference.difference != 0.0 {
                let arm_name = if first { shorten(&clean(&arm.name), WIDEST_NAME) } else { String::new() };
                rows.push(row(arm_name, &Figure::named(&name), compared, leads));
                first = false;
            }
        }
        if first {
            let mut row = vec![Entry::new(shorten(&clean(&arm.name), WIDEST_NAME), Style::Plain)];
            row.push(Entry::new("no figure in common", Style::Faint));
            rows.push(row);
        }
    }
    if rows.is_empty() {
        page.sentence("  ", "No arm is in both.", Style::Plain);
        return;
    }
    page.table(&heading, &rows, 2);
}

fn row(arm: String, figure: &Figure, compared: &FigureComparison, leads: bool) -> Vec<Entry> {
    let FigureComparison { base, value, difference, .. } = compared;
    let noise = difference.within_noise == Some(true) && *value != *base;
    let ratio = difference.ratio.and_then(|ratio| figure.times_better(ratio, 1.0));
    let style = match ratio {
        _ if noise => Style::Faint,
        Some(ratio) if ratio >= 1.05 => Style::Good,
        Some(ratio) if ratio <= 0.95 => Style::Bad,
        _ => Style::Plain,
    };
    let mark = if noise { "≈ " } else { "" };
    let sign = if difference.difference > 0.0 { "+" } else { "" };
    let plain = if leads { Style::Strong } else { Style::Plain };
    vec![
        Entry::new(arm, plain),
        Entry::new(figure.label.clone(), plain),
        Entry::new(figure.print(*base), Style::Plain),
        Entry::new(figure.print(*value), plain),
        Entry::new(ratio.map_or("–".to_owned(), |ratio| format!("{mark}{}", times(ratio))), style),
        Entry::new(format!("{sign}{}", figure.print(difference.difference)), style),
        Entry::new(difference.ci95.map_or("–".to_owned(), |[low, high]| figure.print_range(low, high)), Style::Faint),
    ]
}

fn verdict(page: &mut Page, report: &CompareReport) {
    let all = || report.arms.iter().flat_map(|arm| arm.metrics.values());
    let mut notes = Vec::new();
    if all().any(|compared| compared.difference.within_noise == Some(true) && compared.base != compared.value) {
        notes.push("≈ is within noise: the interval of the differences, paired by seed, holds 0.");
    }
    if all().any(|compared| compared.difference.within_noise.is_none()) {
        notes.push("With fewer than six seeds in common, noise cannot be told from a difference.");
    }
    if !notes.is_empty() {
        page.sentence("  ", &notes.join(" "), Style::Faint);
    }
    for arm in report.arms.iter().filter(|arm| arm.failed) {
        let text = match arm.leading.as_deref() {
            Some(name) => {
                format!(
                    "{}: {} is {:.1} % worse in {}",
                    arm.name,
                    Figure::named(name).in_words(),
                    arm.worse_percent,
                    arm.file
                )
            }
            None => format!("{}: {} has no figure in common with the first report", arm.name, arm.file),
        };
        page.sentence("✗ ", &text, Style::Bad);
    }
}
