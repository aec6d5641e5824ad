//! The page's tables: the figures of every arm, and the expectations.

use super::escape::escape;
use crate::figures::{Figure, leading, nothing_lost, percent, times};
use thalweg_model::{ArmReport, LabReport, Metric};

/// The experiment: a row for each arm with its figures, verdict and settings, then the expectations.
pub(super) fn lab(lab: &LabReport) -> String {
    let figures = leading(&lab.arms);
    let mut html = String::from(
        "<section><h2>The arms</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"The arms\"><table class=\"arms-table\"><thead><tr><th scope=\"col\">arm, and why it is no faster</th>",
    );
    for (place, figure) in figures.iter().enumerate() {
        html.push_str(&format!("<th scope=\"col\">{}</th>", escape(&figure.label)));
        if place == 0 && lab.arms.len() > 1 {
            html.push_str("<th scope=\"col\">ratio</th>");
        }
    }
    html.push_str("</tr></thead><tbody>");
    let scale = figures.first().map_or((0.0, 0.0), |figure| scale(lab, figure));
    for arm in &lab.arms {
        html.push_str(&row(lab, arm, &figures, scale));
    }
    html.push_str("</tbody></table></div>");
    html.push_str(&outliers(lab, &figures));
    if nothing_lost(&lab.arms) {
        html.push_str("<p class=\"faint\">Nothing was sent twice in any arm.</p>");
    }
    html.push_str(&expectations(lab));
    html.push_str(&settings(lab));
    html.push_str("</section>\n");
    html
}

/// The leading figure's ratio to the baseline's, with the interval of the paired differences.
fn ratio(arm: &ArmReport, figure: &Figure) -> String {
    let difference = arm.differences.get(&figure.name);
    let change = difference.and_then(|change| figure.times_better(change.ratio?, 1.0).map(|ratio| (change, ratio)));
    let Some((change, ratio)) = change else {
        let text = if arm.baseline.is_none() { "1×" } else { "–" };
        return format!("<td class=\"faint\">{text}</td>");
    };
    let noise = change.within_noise == Some(true) && change.ci95.is_some_and(|[low, high]| low != high);
    let class = match ratio {
        _ if noise => "faint",
        ratio if ratio >= 1.05 => "good",
        ratio if ratio <= 0.95 => "bad",
        _ => "faint",
    };
    let mark = if noise { "≈ " } else { "" };
    let interval = change.ci95.filter(|[low, high]| low != high).map(|[low, high]| {
        format!("<small>{}<br>ci95 {}</small>", signed(figure, change.difference), figure.print_range(low, high))
    });
    format!("<td class=\"{class}\">{mark}{}{}</td>", times(ratio), interval.unwrap_or_default())
}

fn signed(figure: &Figure, value: f64) -> String {
    format!("{}{}", if value > 0.0 { "+" } else { "" }, figure.print(value))
}

/// Every repeat of the leading figure as a dot, all arms on one scale; outliers are drawn hollow and named.
fn dots(arm: &ArmReport, figure: &Figure, scale: (f64, f64)) -> String {
    let values = figure.of(&arm.metrics).map(Metric::values).unwrap_or_default();
    if values.len() < 2 || scale.0 >= scale.1 {
        return String::new();
    }
    let x = |value: f64| 4.0 + (value - scale.0) / (scale.1 - scale.0) * 152.0;
    let out: Vec<_> = arm.outliers.iter().filter(|outlier| outlier.metric == figure.name).collect();
    let is_out = |value: f64| out.iter().any(|outlier| outlier.value == value);
    let mut svg = format!(
        "<svg class=\"dots\" viewBox=\"0 0 160 12\" role=\"img\" aria-label=\"{} repeats from {}\">",
        values.len(),
        escape(&figure.print_range(
            values.iter().copied().fold(f64::INFINITY, f64::min),
            values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        ))
    );
    for value in values.iter().filter(|value| !is_out(**value)).take(DOTS_MAX) {
        svg.push_str(&format!("<circle cx=\"{:.1}\" cy=\"6\" r=\"2.5\"/>", x(*value)));
    }
    for outlier in out {
        svg.push_str(&format!(
            "<circle class=\"out\" cx=\"{:.1}\" cy=\"6\" r=\"3\"><title>seed {}: {}</title></circle>",
            x(outlier.value),
            outlier.seed,
            escape(&figure.print(outlier.value))
        ));
    }
    svg.push_str("</svg>");
    svg
}

/// The least and the greatest repeat of a figure over all arms.
fn scale(lab: &LabReport, figure: &Figure) -> (f64, f64) {
    let values = lab.arms.iter().filter_map(|arm| figure.of(&arm.metrics)).flat_map(Metric::values);
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

fn outliers(lab: &LabReport, figures: &[Figure]) -> String {
    let mut outliers = Vec::new();
    for arm in &lab.arms {
        for outlier in &arm.outliers {
            if let Some(figure) = figures.iter().find(|figure| figure.name == outlier.metric) {
                let value = figure.print(outlier.value);
                outliers.push(escape(&format!("{}, {}, seed {}: {value}", arm.name, figure.label, outlier.seed)));
            }
        }
    }
    if outliers.is_empty() {
        return String::new();
    }
    format!("<p class=\"faint\">Outliers, counted like the others: {}.</p>", outliers.join("; "))
}

/// Dots drawn for an arm: more would be a bar.
const DOTS_MAX: usize = 1000;

fn row(lab: &LabReport, arm: &ArmReport, figures: &[Figure], scale: (f64, f64)) -> String {
    // Below the name, not in a column of its own: the widest table must not push the answer out of sight.
    let verdict = arm
        .diagnosis
        .first()
        .map(|line| format!("<small><code>{}</code> {}</small>", line.code, percent(line.share)))
        .unwrap_or_default();
    let dots = figures.first().map(|figure| dots(arm, figure, scale)).unwrap_or_default();
    let mut html = format!("<tr><th scope=\"row\">{}{verdict}{dots}</th>", escape(&arm.name));
    for (place, figure) in figures.iter().enumerate() {
        html.push_str(&format!("<td>{}</td>", value(figure, figure.of(&arm.metrics))));
        if place == 0 && lab.arms.len() > 1 {
            html.push_str(&ratio(arm, figure));
        }
    }
    html.push_str("</tr>");
    html
}

fn value(figure: &Figure, metric: Option<&Metric>) -> String {
    match metric {
        Some(Metric::Summary { median, min, max, ci95, .. }) if min != max => format!(
            "{}<small>{}<br>ci95 {}</small>",
            figure.print(*median),
            figure.print_range(*min, *max),
            figure.print_range(ci95[0], ci95[1])
        ),
        Some(metric) => metric.value().map_or("–".to_owned(), |value| figure.print(value)),
        None => "–".to_owned(),
    }
}

fn expectations(lab: &LabReport) -> String {
    if lab.expect.is_empty() {
        return String::new();
    }
    let lines: String = lab
        .expect
        .iter()
        .map(|outcome| {
            let (class, mark) = if outcome.met { ("good", "✓") } else { ("bad", "✗") };
            let (metric, wanted, got) = (escape(&outcome.metric), escape(&outcome.wanted), escape(&outcome.got));
            format!("<li><span class=\"{class}\">{mark}</span> {metric} {wanted}, measured <b>{got}</b></li>")
        })
        .collect();
    format!("<h3>Expectations</h3><ul class=\"plain\">{lines}</ul>")
}

/// The settings as the kernel read them back, folded away.
fn settings(lab: &LabReport) -> String {
    let mut html = String::new();
    for arm in &lab.arms {
        let mut lines = Vec::new();
        for (side, host) in [("client", &arm.settings.client), ("server", &arm.settings.server)] {
            for (kind, map) in [("sysctl", &host.sysctl), ("route", &host.route), ("socket", &host.socket)] {
                lines.extend(map.iter().map(|(name, value)| format!("{side} {kind} {name} = {value}")));
            }
        }
        lines.extend(arm.settings.path.iter().map(|line| format!("path {line}")));
        if lines.is_empty() {
            continue;
        }
        let lines: Vec<_> = lines.iter().map(|line| escape(line)).collect();
        let name = escape(&arm.name);
        html.push_str(&format!("<h3>{name}</h3><pre>{}</pre>", lines.join("\n")));
    }
    if html.is_empty() {
        return html;
    }
    format!("<details><summary>Settings of each arm, as its kernel read them back</summary>{html}</details>")
}
