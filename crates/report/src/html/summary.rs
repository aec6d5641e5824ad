//! The top of the page, without a script: the cause, before and after, what to set; and the frame of the plots.

use super::ArmPlots;
use super::escape::escape;
use super::findings::{self, commands};
use crate::figures::{Better, Figure, caution, elapsed, percent, times};
use thalweg_model::{ArmReport, Change, DiagnosisLine, FixReport, LabReport, Limits, Setting};

/// The line below the title: what was run, and on what.
pub(super) fn about(lab: &LabReport) -> String {
    let runs = if lab.repeats > 1 {
        format!("{} repeats from seed {}", lab.repeats, lab.seed)
    } else {
        format!("seed {}", lab.seed)
    };
    let time = if lab.engine == "live" { "real" } else { &lab.engine };
    let took = format!("{} of {time} time in {}", elapsed(lab.virtual_s), elapsed(lab.wall_s));
    let faults: String = lab.arms.iter().flat_map(not_as_asked_for).collect();
    format!(
        "<p>{}</p>{faults}<p class=\"faint\">{} · Linux {} · {} engine · {runs} · {}</p>",
        escape(&lab.about),
        escape(&lab.scenario),
        escape(&lab.kernel),
        escape(&lab.engine),
        escape(&took)
    )
}

/// What was not as asked for in an arm's runs in real time.
fn not_as_asked_for(arm: &ArmReport) -> Option<String> {
    let live = arm.live.as_ref()?;
    let faults = [&live.verdict.faults[..], &live.skipped[..]].concat();
    let caution = || format!("<p class=\"caution\">{}: {}</p>", escape(&arm.name), escape(&faults.join("; ")));
    (!faults.is_empty()).then(caution)
}

/// The fix: cause, before and after, settings, what it would not help.
pub(super) fn fix(fix: &FixReport) -> String {
    let mut html = String::from("<section class=\"answer\" aria-label=\"The answer\">");
    html.push_str(&format!("<p class=\"claim\">{}</p>", escape(&fix.cause.claim)));
    html.push_str(&format!("<p class=\"faint\">{}</p>", verdict_facts(&fix.cause)));
    html.push_str(&before_after(fix));
    html.push_str("</section>\n");
    if let Some(remedy) = &fix.remedy {
        html.push_str("<section><h2>What to set</h2><div class=\"scroll\"><table class=\"left\"><thead><tr><th scope=\"col\">where</th><th scope=\"col\">setting</th><th scope=\"col\">from</th><th scope=\"col\">to</th></tr></thead><tbody>");
        for change in &remedy.changes {
            html.push_str(&self::change(change));
        }
        html.push_str(&format!("</tbody></table></div><p>{}</p>", escape(&remedy.reason)));
        if let Some(caution) = caution(remedy) {
            html.push_str(&format!("<p class=\"caution\">{caution}</p>"));
        }
        if !fix.needs.is_empty() {
            let need = |need: &Change| {
                format!("<li>{}: {} {} or more</li>", need.side.as_str(), escape(need.setting.name()), escape(&need.to))
            };
            let needs: String = fix.needs.iter().map(need).collect();
            html.push_str(&format!("<h3>What the gain needs besides</h3><ul>{needs}</ul>"));
        }
        html.push_str("<div class=\"pair\">");
        html.push_str(&commands("Apply", &fix.apply));
        html.push_str(&commands("Undo", &fix.undo));
        html.push_str("</div>");
        if !remedy.wont_help.is_empty() {
            html.push_str(&format!("<h3>What it would not help</h3><p>{}</p>", escape(&remedy.wont_help)));
        }
        if !remedy.notes.is_empty() {
            let notes: String = remedy.notes.iter().map(|note| format!("<p>{}</p>", escape(note))).collect();
            html.push_str(&format!("<h3>What else to know</h3>{notes}"));
        }
        html.push_str("</section>\n");
    }
    html
}

fn before_after(fix: &FixReport) -> String {
    let figure = Figure::named(&fix.metric);
    let Some(after) = fix.after else {
        let why = match fix.remedy {
            Some(_) => "The remedy was not run: nothing is proven.",
            None if fix.notes.is_empty() && fix.rejected.is_empty() => "No setting of these hosts makes it better.",
            None => "",
        };
        return format!("<p><b>{}</b> as found ({}). {why}</p>", figure.print(fix.before), escape(&figure.in_words()));
    };
    let greatest = fix.before.max(after).max(f64::MIN_POSITIVE);
    let row = |name: &str, value: f64, class: &str, note: &str| {
        let share = (value / greatest * 100.0).clamp(0.2, 100.0);
        format!(
            "<div class=\"bar {class}\"><span>{name}</span><span class=\"track\"><i style=\"width:{share:.1}%\"></i></span><b>{}{note}</b></div>",
            figure.print(value)
        )
    };
    let ratio = fix.ratio.map(|ratio| format!(" <em>{}</em>", times(ratio))).unwrap_or_default();
    let better = match figure.better {
        Better::More => "; more is better",
        Better::Less => "; less is better",
        Better::Neither => "",
    };
    format!(
        "<div class=\"bars\">{}{}</div><p class=\"faint\">{}{better}</p>",
        row("before", fix.before, "before", ""),
        row("after", after, "after", &ratio),
        escape(&figure.in_words())
    )
}

fn change(change: &Change) -> String {
    let (kind, name) = match &change.setting {
        Setting::Sysctl(name) => ("sysctl", name),
        Setting::Route(name) => ("route", name),
        Setting::Socket(name) => ("socket option", name),
    };
    let side = change.side.as_str();
    format!(
        "<tr><td>{side}</td><td>{kind} <code>{}</code></td><td><code>{}</code></td><td><code class=\"good\">{}</code></td></tr>",
        escape(name),
        change.from.as_deref().map_or_else(|| "not set".to_owned(), escape),
        escape(&change.to)
    )
}

fn verdict_facts(line: &DiagnosisLine) -> String {
    let gain = line.gain.map(|gain| format!(" · {} to gain", times(gain))).unwrap_or_default();
    format!("<code>{}</code> · {} of {}{gain}", line.code, percent(line.share), crate::facts::whole(line.code))
}

/// The frame of the plots: a section for each arm, which the script fills.
pub(super) fn plots(arms: &[ArmPlots], shared: bool) -> String {
    if arms.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<section class=\"plots\"><h2>Over time</h2>\n<noscript><p>The plots need JavaScript; everything above does not.</p></noscript>\n",
    );
    html.push_str(&format!("<div id=\"controls\" data-shared=\"{shared}\"></div>\n<div class=\"arms\">\n"));
    for (place, arm) in arms.iter().enumerate() {
        html.push_str(&format!("<article class=\"arm\" data-arm=\"{place}\"><h3>{}</h3>", escape(&arm.name)));
        // Both are there even when empty: plots side by side line up because each arm has the same rows.
        html.push_str("<div class=\"why\">");
        if let Some(verdict) = &arm.verdict {
            html.push_str(&format!(
                "<p>{}</p><p class=\"faint\">{}</p>",
                escape(&verdict.claim),
                verdict_facts(verdict)
            ));
        }
        html.push_str(&findings::found(arm));
        html.push_str(&findings::remedies(&arm.remedies));
        html.push_str("</div><div class=\"where\">");
        if let Some(limits) = arm.limits.filter(|limits| limits.total() > 0.0) {
            html.push_str(&self::limits(&limits));
        }
        html.push_str(&facts(&arm.facts));
        html.push_str("</div></article>\n");
    }
    html.push_str("</div></section>\n");
    html
}

/// What else is known of a connection, folded away.
fn facts(lines: &[(&str, String)]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let rows: String =
        lines.iter().map(|(name, text)| format!("<dt>{}</dt><dd>{}</dd>", escape(name), escape(text))).collect();
    format!("<details class=\"facts\"><summary>Facts</summary><dl>{rows}</dl></details>")
}

/// Where the time went, as one bar; the names and percentages stand below it as text.
fn limits(limits: &Limits) -> String {
    let mut parts: Vec<_> = limits.named().into_iter().filter(|(_, share)| *share > 0.0).collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let bar: String = parts
        .iter()
        .map(|(name, share)| format!("<i class=\"l-{name}\" style=\"flex-grow:{share:.5}\"></i>"))
        .collect();
    let names: String = parts
        .iter()
        .map(|(name, share)| {
            format!("<li><i class=\"l-{name}\"></i>{} <b>{}</b></li>", name.replace('_', " "), percent(*share))
        })
        .collect();
    format!(
        "<div class=\"limits\" aria-hidden=\"true\">{bar}</div><ul class=\"limits-names\" aria-label=\"Where the time went\">{names}</ul>"
    )
}
