//! One page that needs no network: the answer in plain HTML, the plots drawn by the script in `web/`.
//!
//! The summary is written here, escaped, and reads without JavaScript. The series are embedded as JSON, and the script
//! puts what it reads from them into text nodes and canvases only: names and claims come from captures.

mod bursts;
mod data;
mod escape;
mod findings;
mod fitted;
mod many;
mod summary;
mod tables;

use crate::facts;
use crate::many::Many;
pub use bursts::bursts_page;
use escape::escape;
use thalweg_model::{DiagnosisLine, Finding, FixReport, Flow, LabReport, Limits, Remedy, Series};

/// What a page shows.
#[derive(Debug, Clone, Default)]
pub struct Page<'a> {
    /// Its title.
    pub title: String,
    /// What to know of the capture as a whole: what was read, how much of it is shown, what was wrong with it.
    pub notes: Vec<String>,
    /// The experiment, where there was one.
    pub lab: Option<&'a LabReport>,
    /// The fix and its proof, where one was sought; its `proof` is shown unless `lab` is given.
    pub fix: Option<&'a FixReport>,
    /// What many captures have in common, where there are many.
    pub many: Option<&'a Many>,
    /// What is plotted: an entry for each arm, or for each connection of a capture.
    pub arms: Vec<ArmPlots>,
}

/// What is plotted of one arm or one connection.
#[derive(Debug, Clone, Default)]
pub struct ArmPlots {
    /// Its name.
    pub name: String,
    /// What is drawn.
    pub series: Series,
    /// Why it was no faster.
    pub verdict: Option<DiagnosisLine>,
    /// Where its time went.
    pub limits: Option<Limits>,
    /// Retransmissions in all, as `series` holds the marks of a part where there are very many.
    pub retransmits: Option<u64>,
    /// What else is known of it: names and texts.
    pub facts: Vec<(&'static str, String)>,
    /// What was found, the verdict first; facts with a time are pinned in the plots.
    pub findings: Vec<Finding>,
    /// What mends it.
    pub remedies: Vec<Remedy>,
}

impl ArmPlots {
    /// The plots of a connection, named as `name`, with the connection's verdict and limits.
    pub fn of_flow(name: impl Into<String>, flow: &Flow, series: Series) -> Self {
        let main = Finding { verdict: flow.verdict.clone(), depends_on: None };
        let mut facts = facts::application::lines(flow);
        facts.extend(facts::lines(flow));
        facts.extend(facts::other_direction(flow).map(|text| ("other way", text)));
        Self {
            name: name.into(),
            series,
            verdict: Some(DiagnosisLine::from(&flow.verdict)),
            limits: Some(flow.limits),
            retransmits: Some(flow.retransmits.total),
            facts,
            findings: [main].into_iter().chain(flow.findings.iter().cloned()).collect(),
            remedies: flow.remedies.clone(),
        }
    }
}

/// Writes the page.
///
/// It loads nothing: style, script and data are in it, and its content security policy forbids everything else.
pub fn page(page: &Page<'_>) -> String {
    let mut body = String::new();
    body.push_str(&format!("<header><h1>{}</h1>", escape(&page.title)));
    let lab = page.lab.or(page.fix.and_then(|fix| fix.proof.as_ref()));
    if let Some(lab) = lab {
        body.push_str(&summary::about(lab));
    }
    if let Some(many) = page.many {
        body.push_str(&many::about(many));
    }
    body.extend(page.notes.iter().map(|note| format!("<p class=\"faint\">{}</p>", escape(note))));
    body.push_str("</header>\n<main>\n");
    if let Some(many) = page.many {
        body.push_str(&many::sections(many));
    }
    if let Some(fix) = page.fix {
        body.push_str(&summary::fix(fix));
        body.push_str(&fitted::sections(fix));
    }
    if let Some(lab) = lab {
        body.push_str(&tables::lab(lab));
    }
    body.push_str(&summary::plots(&page.arms, lab.is_some()));
    body.push_str("</main>\n");
    let mut tail = format!("<script type=\"application/json\" id=\"data\">{}</script>\n", data::embed(&page.arms));
    for script in SCRIPTS {
        tail.push_str(&format!("<script>\n{script}</script>\n"));
    }
    document(&page.title, &body, &tail)
}

/// The whole file around a page's body, and what comes after it.
fn document(title: &str, body: &str, tail: &str) -> String {
    let mut html = String::with_capacity(body.len() + tail.len() + STYLE.len() + 1024);
    html.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.push_str(&format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n"));
    html.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.push_str(
        "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n",
    );
    html.push_str(&format!("<title>{} · Thalweg</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n", escape(title)));
    html.push_str(body);
    html.push_str(tail);
    html.push_str("</body>\n</html>\n");
    html
}

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";
const STYLE: &str = include_str!("../../../../web/report.css");
/// In the order they run: each uses what the ones before it define.
const SCRIPTS: [&str; 4] = [
    include_str!("../../../../web/units.js"),
    include_str!("../../../../web/scale.js"),
    include_str!("../../../../web/plot.js"),
    include_str!("../../../../web/report.js"),
];
