//! The page's tables: the figures of every arm, and the expectations.

use super::escape::escape;
use crate::figures::{Figure, leading, nothing_lost, percent, times};
use model::{ArmReport, LabReport, Metric};

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
    for arm in &lab.arms {
        html.push_str(&row(lab, arm, &figures));
    }
    html.push_str("</tbody></table></div>");
    if nothing_lost(&lab.arms) {
        html.push_str("<p class=\"faint\">Nothing was sent twice in any arm.</p>");
    }
    html.push_str(&expectations(lab));
    html.push_str(&settings(lab));
    html.push_str("</section>\n");
    html
}

fn row(lab: &LabReport, arm: &ArmReport, figures: &[Figure]) -> String {
    // Below the name, not in a column of its own: the widest table must not push the answer out of sight.
    let verdict = arm
        .diagnosis
        .first()
        .map(|line| format!("<small><code>{}</code> {}</small>", line.code, percent(line.share)))
        .unwrap_or_default();
    let mut html = format!("<tr><th scope=\"row\">{}{verdict}</th>", escape(&arm.name));
    for (place, figure) in figures.iter().enumerate() {
        html.push_str(&format!("<td>{}</td>", value(figure, figure.of(&arm.metrics))));
        if place == 0 && lab.arms.len() > 1 {
            let of = |arm: &ArmReport| figure.of(&arm.metrics).and_then(Metric::value);
            let ratio =
                lab.arms.first().and_then(of).zip(of(arm)).and_then(|(base, value)| figure.times_better(value, base));
            let class = match ratio {
                Some(ratio) if ratio >= 1.05 => "good",
                Some(ratio) if ratio <= 0.95 => "bad",
                _ => "faint",
            };
            html.push_str(&format!(
                "<td class=\"{class}\">{}</td>",
                ratio.map_or("–".to_owned(), |ratio| if std::ptr::eq(arm, &lab.arms[0]) {
                    "1×".to_owned()
                } else {
                    times(ratio)
                })
            ));
        }
    }
    html.push_str("</tr>");
    html
}

fn value(figure: &Figure, metric: Option<&Metric>) -> String {
    match metric {
        Some(Metric::Summary { median, min, max, ci95 }) if min != max => format!(
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
