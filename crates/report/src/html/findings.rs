//! What was found in a connection, each fact with the number of its pin in the plots, and what mends it.

use super::ArmPlots;
use super::escape::escape;
use crate::figures::{caution, count, percent};
use thalweg_model::{Evidence, Remedy};

/// Packet numbers printed with a fact.
const PACKETS: usize = 8;

/// The times of an arm's pins, in the order of their numbers, from 1: of each fact that has a time.
pub(super) fn pins(arm: &ArmPlots) -> impl Iterator<Item = f64> {
    arm.findings.iter().flat_map(|finding| finding.verdict.evidence()).filter_map(|fact| pin(&fact))
}

fn pin(fact: &Evidence) -> Option<f64> {
    fact.time_s.filter(|time| time.is_finite() && *time >= 0.0)
}

/// The facts of the verdict, whose claim stands above, and the other findings with theirs.
pub(super) fn found(arm: &ArmPlots) -> String {
    let mut html = String::new();
    let mut number = 0;
    for (place, finding) in arm.findings.iter().enumerate() {
        if place > 0 {
            let follows = finding.depends_on.map(|code| format!(" (follows from <code>{code}</code>)"));
            html.push_str(&format!(
                "<p class=\"also\"><code>{}</code> · {}{} {}</p>",
                finding.code(),
                percent(finding.verdict.share),
                follows.unwrap_or_default(),
                escape(&finding.verdict.claim())
            ));
        }
        let facts: String = finding.verdict.evidence().iter().map(|fact| self::fact(fact, &mut number)).collect();
        if !facts.is_empty() {
            html.push_str(&format!("<ul class=\"evidence\">{facts}</ul>"));
        }
    }
    html
}

fn fact(fact: &Evidence, number: &mut u32) -> String {
    let mut html = String::from("<li>");
    if let Some(time) = pin(fact) {
        *number += 1;
        html.push_str(&format!(
            "<button type=\"button\" class=\"pin\" data-time=\"{time}\" title=\"at {time:.6} s\">{number}</button>"
        ));
    }
    html.push_str(&escape(&fact.text));
    if !fact.packets.is_empty() {
        let mut numbers: Vec<_> = fact.packets.iter().take(PACKETS).map(u64::to_string).collect();
        if fact.packets.len() > PACKETS {
            numbers.push(format!("… {} in all", count(fact.packets.len() as f64)));
        }
        let noun = if fact.packets.len() == 1 { "packet" } else { "packets" };
        html.push_str(&format!(" <span class=\"faint\">({noun} {})</span>", numbers.join(", ")));
    }
    html + "</li>"
}

/// What mends it, each way by itself.
pub(super) fn remedies(remedies: &[Remedy]) -> String {
    let one = |remedy: &Remedy| {
        let mut html = format!("<div class=\"way\"><p>{}</p>", escape(&remedy.reason));
        html.push_str(&commands("Set", &remedy.commands));
        if let Some(kernels) = &remedy.kernels {
            html.push_str(&format!("<p class=\"faint\">For {}.</p>", escape(&kernels.to_string())));
        }
        if let Some(caution) = caution(remedy) {
            html.push_str(&format!("<p class=\"caution\">{caution}</p>"));
        }
        if !remedy.wont_help.is_empty() {
            html.push_str(&format!("<p class=\"faint\">Would not help: {}</p>", escape(&remedy.wont_help)));
        }
        for note in &remedy.notes {
            html.push_str(&format!("<p class=\"faint\">Note: {}</p>", escape(note)));
        }
        html + "</div>"
    };
    if remedies.is_empty() {
        return String::new();
    }
    let ways: String = remedies.iter().map(one).collect();
    format!("<details class=\"facts\" open><summary>What to set</summary>{ways}</details>")
}

/// Commands to copy, below a heading.
pub(super) fn commands(heading: &str, commands: &[String]) -> String {
    if commands.is_empty() {
        return String::new();
    }
    let lines: Vec<_> = commands.iter().map(|command| escape(command)).collect();
    format!(
        "<div class=\"commands\"><h3>{heading}</h3><pre tabindex=\"0\"><code>{}</code></pre></div>",
        lines.join("\n")
    )
}
