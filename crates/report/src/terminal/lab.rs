//! An experiment's report: one row for each arm, then why each was no faster.

use super::page::{Entry, Page, Style, columns, shorten, table_columns};
use crate::figures::{Figure, clean, count, data, elapsed, leading, milliseconds, nothing_lost, percent, rate, times};
use thalweg_model::{ArmReport, LabReport, Metric};

/// Widest an arm's name is printed.
const WIDEST_NAME: usize = 36;

/// Outliers named one by one.
const OUTLIERS_SHOWN: usize = 6;

/// Prints what `thalweg lab run` measured: a row for each arm, its verdict, its intervals where they are asked for, and
/// the expectations.
pub fn lab(report: &LabReport, with_intervals: bool, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    header(&mut page, report);
    page.gap();
    arms(&mut page, &report.arms);
    verdicts(&mut page, &report.arms);
    real_time(&mut page, &report.arms);
    if with_intervals {
        report.arms.iter().for_each(|arm| intervals(&mut page, arm));
    }
    expectations(&mut page, report);
    page.finish()
}

fn header(page: &mut Page, report: &LabReport) {
    let name = page.paint(&clean(&report.scenario), Style::Strong);
    page.line(&name);
    page.sentence("", &report.about, Style::Plain);
    let repeats = if report.repeats > 1 {
        format!("seeds {} to {}", report.seed, report.seed + u64::from(report.repeats) - 1)
    } else {
        format!("seed {}", report.seed)
    };
    page.sentence(
        "",
        &format!("Linux {} · {} engine · {repeats} · {}", report.kernel, report.engine, speed(report)),
        Style::Faint,
    );
    if let Some(shard) = &report.shard {
        let all = shard.arms.len() * report.repeats as usize;
        let text = format!(
            "Part {} of {}: {} of {all} runs. thalweg lab compare joins the parts, compares the arms and checks what is expected.",
            shard.index,
            shard.of,
            shard.runs.len()
        );
        page.sentence("", &text, Style::Bad);
    }
}

/// How fast the experiment ran against its own clock.
fn speed(report: &LabReport) -> String {
    let (virtual_s, wall_s) = (elapsed(report.virtual_s), elapsed(report.wall_s));
    let ratio = report.virtual_s / report.wall_s;
    if report.engine == "virtual" && ratio.is_finite() && ratio > 0.0 {
        return format!("{virtual_s} of virtual time in {wall_s} ({} real time)", times(ratio));
    }
    format!("took {wall_s}")
}

/// The table of all arms, with as many figures as fit; one block for each arm where not even three do.
pub(super) fn arms(page: &mut Page, arms: &[ArmReport]) {
    let figures = leading(arms);
    let Some(first) = figures.first() else {
        page.sentence("  ", "No figure was measured.", Style::Plain);
        return;
    };
    let mut shown = figures.len();
    loop {
        let (heading, rows) = layout(arms, &figures[..shown], first);
        if table_columns(&heading, &rows) <= page.width {
            page.table(&heading, &rows, 1);
            break;
        }
        if shown <= 2 {
            blocks(page, arms, &figures, first);
            shown = figures.len();
            break;
        }
        shown -= 1;
    }
    let left_out: Vec<_> = figures[shown..].iter().map(|figure| figure.label.as_str()).collect();
    notes(page, arms, &left_out);
    noise(page, arms, first);
    outliers(page, arms, &figures[..shown]);
}

/// What the table does not show, in one faint line below it.
fn notes(page: &mut Page, arms: &[ArmReport], left_out: &[&str]) {
    let mut notes = Vec::new();
    let varies = |metric: &Metric| matches!(metric, Metric::Summary { min, max, .. } if min != max);
    if arms
        .iter()
        .flat_map(|arm| leading(arms).into_iter().map(move |figure| (arm, figure)))
        .any(|(arm, figure)| figure.of(&arm.metrics).is_some_and(varies))
    {
        notes.push(
            "Medians over the repeats, then least … greatest; ci95 is the median's 95 % confidence interval."
                .to_owned(),
        );
    }
    if nothing_lost(arms) {
        notes.push("Nothing was sent twice.".to_owned());
    }
    if !left_out.is_empty() {
        let them = if left_out.len() == 1 { "it" } else { "them" };
        notes.push(format!("Left out for want of room: {}; --json has {them}.", left_out.join(", ")));
    }
    if !notes.is_empty() {
        page.sentence("  ", &notes.join(" "), Style::Faint);
    }
}

/// Whether a figure differs between repeats, so that there is noise to speak of.
fn arm_varies(arm: &ArmReport, figure: &Figure) -> bool {
    let differs = |ci95: [f64; 2]| ci95[0] != ci95[1];
    arm.differences.get(&figure.name).and_then(|difference| difference.ci95).is_some_and(differs)
}

/// What the marks beside the ratios mean, where there are some or could be.
fn noise(page: &mut Page, arms: &[ArmReport], first: &Figure) {
    let of = |arm: &ArmReport| {
        let difference = arm.differences.get(&first.name).filter(|_| arm_varies(arm, first))?;
        Some(difference.within_noise)
    };
    let marks: Vec<Option<bool>> = arms.iter().filter_map(of).collect();
    let mut notes = Vec::new();
    if marks.contains(&Some(true)) {
        notes.push("≈ is within noise: the interval of the differences, paired by seed, holds 0.");
    }
    if marks.contains(&None) {
        notes.push("Differences over fewer than six repeats may be chance.");
    }
    if !notes.is_empty() {
        page.sentence("  ", &notes.join(" "), Style::Faint);
    }
}

/// The repeats that are far from the others, by their seeds.
fn outliers(page: &mut Page, arms: &[ArmReport], figures: &[Figure]) {
    let mut outliers = Vec::new();
    for arm in arms {
        for figure in figures {
            for outlier in arm.outliers.iter().filter(|outlier| outlier.metric == figure.name) {
                let value = figure.print(outlier.value);
                outliers.push(format!("{}, {}, seed {}: {value}", arm.name, figure.label, outlier.seed));
            }
        }
    }
    if outliers.is_empty() {
        return;
    }
    let more = outliers.len().saturating_sub(OUTLIERS_SHOWN);
    outliers.truncate(OUTLIERS_SHOWN);
    let more = if more > 0 { format!("; and {more} more, in --json") } else { String::new() };
    page.sentence("  ", &format!("Outliers, counted like the others: {}{more}.", outliers.join("; ")), Style::Faint);
}

/// Heading and rows: the name, the leading figure with its ratio to the first arm, then the other figures.
fn layout(arms: &[ArmReport], figures: &[Figure], first: &Figure) -> (Vec<String>, Vec<Vec<Entry>>) {
    let mut heading = vec![String::new()];
    for figure in figures {
        heading.push(figure.label.clone());
        if figure == first && arms.len() > 1 {
            heading.push("ratio".to_owned());
        }
    }
    let rows = arms.iter().map(|arm| {
        let mut row = vec![Entry::new(shorten(&clean(&arm.name), WIDEST_NAME), Style::Plain)];
        for figure in figures {
            let style = if figure == first { Style::Strong } else { Style::Plain };
            row.push(Entry::new(value(figure, figure.of(&arm.metrics), figure == first), style));
            if figure == first && arms.len() > 1 {
                row.push(ratio(arm, first));
            }
        }
        row
    });
    (heading, rows.collect())
}

/// One arm after another, a figure on each line: for terminals no table fits.
fn blocks(page: &mut Page, arms: &[ArmReport], figures: &[Figure], first: &Figure) {
    let label = figures.iter().map(|figure| columns(&figure.label)).max().unwrap_or(0);
    for arm in arms {
        page.gap();
        page.sentence("  ", &arm.name, Style::Strong);
        for figure in figures {
            let text = value(figure, figure.of(&arm.metrics), figure == first);
            let mut text = text
                .split_once('\n')
                .map_or(text.clone(), |(median, spread)| format!("{median}  ({})", spread.replace('\n', "; ")));
            if figure == first && arm.baseline.is_some() {
                text.push_str(&format!("  {}", ratio(arm, first).text));
            }
            page.sentence(&format!("    {:label$}  ", figure.label), &text, Style::Plain);
        }
    }
}

/// A figure's value; over repeats the median, and below it the least and the greatest, and for the figure the arms are
/// compared by the confidence interval.
fn value(figure: &Figure, metric: Option<&Metric>, compared: bool) -> String {
    match metric {
        Some(Metric::Summary { median, min, max, ci95, .. }) => {
            let mut text = figure.print(*median);
            // Where every repeat agrees, the spread says nothing.
            if min != max {
                text.push_str(&format!("\n{}", figure.print_range(*min, *max)));
                if compared {
                    text.push_str(&format!("\nci95 {}", figure.print_range(ci95[0], ci95[1])));
                }
            }
            text
        }
        Some(metric) => metric.value().map_or_else(|| "–".to_owned(), |value| figure.print(value)),
        None => "–".to_owned(),
    }
}

/// The leading figure's ratio to the baseline's; `≈` where the difference is within noise.
fn ratio(arm: &ArmReport, figure: &Figure) -> Entry {
    if arm.baseline.is_none() {
        return Entry::new("1×", Style::Faint);
    }
    let Some(difference) = arm.differences.get(&figure.name) else { return Entry::new("–", Style::Faint) };
    match difference.ratio.and_then(|ratio| figure.times_better(ratio, 1.0)) {
        Some(ratio) if difference.within_noise == Some(true) && arm_varies(arm, figure) => {
            Entry::new(format!("≈ {}", times(ratio)), Style::Faint)
        }
        Some(ratio) if ratio >= 1.05 => Entry::new(times(ratio), Style::Good),
        Some(ratio) if ratio <= 0.95 => Entry::new(times(ratio), Style::Bad),
        Some(ratio) => Entry::new(times(ratio), Style::Faint),
        None => Entry::new("–", Style::Faint),
    }
}

/// The one-second intervals of a stream, as iperf3 prints them.
fn intervals(page: &mut Page, arm: &ArmReport) {
    if arm.intervals.is_empty() {
        return;
    }
    page.heading(&format!("Intervals of {}", clean(&arm.name)));
    let heading = ["seconds", "received", "goodput", "retransmits", "cwnd", "RTT"].map(str::to_owned);
    let rows: Vec<Vec<Entry>> = arm
        .intervals
        .iter()
        .map(|one| {
            let cells = [
                format!("{:.2} – {:.2}", one.start_s, one.end_s),
                data(one.bytes as f64),
                rate(one.goodput_bps),
                count(one.retransmits as f64),
                count(f64::from(one.cwnd_packets)),
                milliseconds(one.rtt_ms),
            ];
            cells.into_iter().map(|text| Entry::new(text, Style::Plain)).collect()
        })
        .collect();
    page.table(&heading, &rows, 1);
}

fn verdicts(page: &mut Page, arms: &[ArmReport]) {
    let verdicts: Vec<_> = arms.iter().filter_map(|arm| Some((clean(&arm.name), arm.diagnosis.first()?))).collect();
    if verdicts.is_empty() {
        return;
    }
    page.heading("Why no faster");
    let label = verdicts.iter().map(|(name, _)| columns(name)).max().unwrap_or(0).min(WIDEST_NAME);
    // A name may take a third of the line; beside a longer one the claim would be a thin column.
    let beside = label + 4 <= page.width / 3;
    for (name, line) in verdicts {
        let text = format!("{} {}: {}", line.code, percent(line.share), line.claim);
        if beside {
            page.sentence(&format!("  {:label$}  ", shorten(&name, WIDEST_NAME)), &text, Style::Plain);
        } else {
            page.sentence("  ", &name, Style::Faint);
            page.sentence("    ", &text, Style::Plain);
        }
    }
}

/// How true runs in real time were, and what they cost.
fn real_time(page: &mut Page, arms: &[ArmReport]) {
    let live: Vec<_> = arms.iter().filter_map(|arm| Some((arm, arm.live.as_ref()?))).collect();
    if live.is_empty() {
        return;
    }
    page.heading("In real time");
    for (arm, live) in live {
        let mut text = match live.verdict.faults.as_slice() {
            [] => "as asked for".to_owned(),
            [only] => format!("not as asked for: {only}"),
            [first, others @ ..] => format!("not as asked for: {first}; and {} more, in --json", others.len()),
        };
        let cpu = |part: &str| Metric::named(&arm.metrics, part).and_then(Metric::value);
        if let (Some(programs), Some(path)) = (cpu("cpu_s.programs"), cpu("cpu_s.path")) {
            text.push_str(&format!("; CPU time: programs {}, path {}", elapsed(programs), elapsed(path)));
        }
        page.sentence(&format!("  {}  ", shorten(&clean(&arm.name), WIDEST_NAME)), &text, Style::Plain);
        live.skipped.iter().for_each(|why| page.sentence("    ", &format!("Without a setting: {why}"), Style::Bad));
    }
}

fn expectations(page: &mut Page, report: &LabReport) {
    if report.expect.is_empty() {
        return;
    }
    let met = report.expect.iter().filter(|outcome| outcome.met).count();
    page.heading(&format!("Expectations: {met} of {} met", report.expect.len()));
    for outcome in &report.expect {
        let (mark, style) = if outcome.met { ("✓", Style::Good) } else { ("✗", Style::Bad) };
        let mark = page.paint(mark, style);
        let text = clean(&format!("{} {}, measured {}", outcome.metric, outcome.wanted, outcome.got));
        if columns(&text) + 4 <= page.width {
            page.line(&format!("  {mark} {text}"));
        } else {
            page.line(&format!("  {mark} {}", shorten(&clean(&outcome.metric), page.width - 4)));
            page.sentence("    ", &format!("{}, measured {}", outcome.wanted, outcome.got), Style::Plain);
        }
    }
}
