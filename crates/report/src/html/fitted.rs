//! What was fitted to a capture, searched and weighed, as sections of the page.

use super::escape::escape;
use super::findings::commands;
use crate::figures::{percent, times};
use crate::fit_words::{self, rival as rival_sentence, value as fit_value};
use thalweg_model::{Candidate, CaptureFit, FixReport, Rejected};

/// The sections, in the order of the chain: notes, what was rejected, what else fits, the fit, the search, the rival.
pub(super) fn sections(fix: &FixReport) -> String {
    let mut html: String = fix.notes.iter().map(|note| format!("<p class=\"caution\">{}</p>", escape(note))).collect();
    if !fix.rejected.is_empty() {
        let sets: String = fix.rejected.iter().map(rejected).collect();
        html.push_str(&format!("<section><h2>Better, but not accepted</h2>{sets}</section>\n"));
    }
    for other in &fix.other_fits {
        html.push_str(&format!(
            "<section><h2>The path may be another</h2><p class=\"caution\">{}</p>{}</section>\n",
            escape(&fit_words::other_fit(other, fix)),
            commands("Apply", fit_words::other_commands(other, fix))
        ));
    }
    html.extend(fix.capture.as_deref().map(fit));
    if !fix.search.is_empty() {
        let heading = if fix.capture.is_some() { "What was tried on the fitted path" } else { "What was tried" };
        html.push_str(&search(heading, &fix.search));
    }
    if let Some(rival) = &fix.rival {
        let class = if rival.accepted { "" } else { " class=\"caution\"" };
        html.push_str(&format!(
            "<section><h2>Beside a CUBIC flow</h2><p{class}>{}</p></section>\n",
            escape(&rival_sentence(rival))
        ));
    }
    html
}

fn rejected(one: &Rejected) -> String {
    format!("<p class=\"caution\">{}</p>{}", escape(&fit_words::rejected(one)), commands("Apply", &one.apply))
}

fn fit(capture: &CaptureFit) -> String {
    let mut html = String::new();
    for model in &capture.models {
        let state = if model.accepted { "accepted" } else { "not accepted" };
        html.push_str(&format!(
            "<section><h2>The fit: {}</h2><p>{state}; {} runs, {} with the capture's verdict.</p>",
            escape(&model.name),
            model.seeds,
            percent(model.same_verdict)
        ));
        html.push_str(&table(
            &["parameter", "value", "origin"],
            model.parameters.iter().map(|one| {
                [escape(&one.key), format!("<code>{}</code>", escape(&one.value)), one.origin.as_str().to_owned()]
                    .to_vec()
            }),
        ));
        html.push_str(&table(
            &["figure", "capture", "lab", "accepted"],
            model.checks.iter().map(|check| {
                let class = if check.inside { "good" } else { "bad" };
                let print = |value: f64| escape(&fit_value(&check.figure, value));
                [
                    escape(&check.figure),
                    format!("<b class=\"{class}\">{}</b>", print(check.capture)),
                    print(check.median),
                    format!("{} to {}", print(check.least.max(0.0)), print(check.most)),
                ]
                .to_vec()
            }),
        ));
        html.push_str("</section>\n");
    }
    if let Some(scenario) = &capture.scenario {
        html.push_str(&format!(
            "<section><h2>The fitted scenario</h2><pre tabindex=\"0\"><code>{}</code></pre></section>\n",
            escape(scenario)
        ));
    }
    html
}

fn search(heading: &str, search: &[Candidate]) -> String {
    let rows = search.iter().map(|candidate| {
        let corners: Vec<String> = candidate
            .corners
            .iter()
            .map(|corner| format!("{} × {}: {}", corner.parameter, corner.factor, times(corner.ratio)))
            .collect();
        let rounds: Vec<String> = candidate.ratios.iter().map(|ratio| times(*ratio)).collect();
        [escape(&candidate.name), rounds.join(", "), escape(&corners.join("; "))].to_vec()
    });
    let table = table(&["candidate", "better, by round", "where the path differs"], rows);
    format!("<section><h2>{heading}</h2>{table}</section>\n")
}

/// A table of cells that are HTML.
fn table(heading: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let heading: String = heading.iter().map(|text| format!("<th scope=\"col\">{text}</th>")).collect();
    let rows: String = rows
        .map(|row| format!("<tr>{}</tr>", row.iter().map(|cell| format!("<td>{cell}</td>")).collect::<String>()))
        .collect();
    format!(
        "<div class=\"scroll\"><table class=\"left\"><thead><tr>{heading}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
}
