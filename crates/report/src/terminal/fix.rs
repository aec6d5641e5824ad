//! A fix: the cause, before and after, what to set and how to undo it.

use super::bars;
use super::fitted;
use super::lab;
use super::page::{Entry, Page, Style};
use crate::figures::{Better, Figure, caution, clean, percent, times};
use crate::fit_words;
use thalweg_model::{Change, DiagnosisLine, FixReport, Setting, Side};

/// Prints what `thalweg fix` found, set and proved; `html` is where its page was written, if it was.
pub fn fix(report: &FixReport, html: Option<&str>, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    cause(&mut page, report);
    page.gap();
    outcome(&mut page, report);
    figures(&mut page, report);
    settings(&mut page, report);
    commands(&mut page, "Apply", &report.apply);
    commands(&mut page, "Undo", &report.undo);
    if let Some(remedy) = &report.remedy {
        page.heading("What it would not help");
        page.sentence("  ", &remedy.wont_help, Style::Plain);
        if !remedy.notes.is_empty() {
            page.heading("What else to know");
            page.sentence("  ", &remedy.notes.join(" "), Style::Plain);
        }
    }
    for note in &report.notes {
        page.gap();
        page.sentence("", note, Style::Bad);
    }
    rejected(&mut page, report);
    other_fits(&mut page, report);
    if let Some(capture) = &report.capture {
        fitted::fit(&mut page, capture);
    }
    let heading = if report.capture.is_some() { "What was tried on the fitted path" } else { "What was tried" };
    fitted::search(&mut page, heading, &report.search);
    if let Some(rival) = &report.rival {
        fitted::rival(&mut page, rival);
    }
    proof(&mut page, report);
    if let Some(html) = html {
        page.heading("The plots");
        page.line(&format!("  {}", clean(html)));
    }
    page.finish()
}

fn cause(page: &mut Page, report: &FixReport) {
    page.sentence("", &report.cause.claim, Style::Strong);
    let DiagnosisLine { code, share, .. } = report.cause;
    let mut facts = vec![code.to_string(), format!("{} of {}", percent(share), crate::facts::whole(code))];
    facts.extend(report.cause.gain.map(|gain| format!("{} to gain", times(gain))));
    facts.extend(report.proof.as_ref().map(|proof| format!("{} on Linux {}", proof.scenario, proof.kernel)));
    if let Some(capture) = &report.capture {
        facts.push(format!("connection {} of {}, {} – {}", capture.flow, capture.file, capture.client, capture.server));
    }
    page.sentence("", &facts.join(" · "), Style::Faint);
    for line in &report.also {
        page.sentence("  also  ", &format!("{} {}: {}", line.code, percent(line.share), line.claim), Style::Plain);
    }
}

/// The figures of each part and topic, where there are several.
fn figures(page: &mut Page, report: &FixReport) {
    if report.figures.len() < 2 {
        return;
    }
    page.gap();
    let heading = ["figure", "before", "after"].map(str::to_owned);
    let rows: Vec<Vec<Entry>> = report
        .figures
        .iter()
        .map(|one| {
            let figure = Figure::named(&one.metric);
            let better = figure.times_better(one.after, one.before).is_none_or(|times| times >= 1.0);
            let style = if better { Style::Good } else { Style::Bad };
            let label = Entry::new(clean(&figure.label), Style::Plain);
            vec![label, Entry::new(figure.print(one.before), Style::Plain), Entry::new(figure.print(one.after), style)]
        })
        .collect();
    page.table(&heading, &rows, 1);
}

fn outcome(page: &mut Page, report: &FixReport) {
    let figure = Figure::named(&report.metric);
    let before = figure.print(report.before);
    let Some(after) = report.after else {
        let why = match report.remedy {
            Some(_) => "The remedy was not run: nothing is proven.",
            None if report.notes.is_empty() && report.rejected.is_empty() => {
                "No setting of these hosts makes it better."
            }
            None => "",
        };
        let text = format!("{before} as found ({}). {why}", figure.in_words());
        page.sentence("  ", &text, Style::Plain);
        return;
    };
    let (printed, good) = (figure.print(after), report.ratio.is_none_or(|ratio| ratio >= 1.0));
    let printed = report.ratio.map_or(printed.clone(), |ratio| format!("{printed}  {}", times(ratio)));
    let style = if good { Style::Good } else { Style::Bad };
    bars::compare(page, &[("before", report.before, before, Style::Faint), ("after", after, printed, style)]);
    let better = match figure.better {
        Better::More => "; more is better",
        Better::Less => "; less is better",
        Better::Neither => "",
    };
    page.sentence("  ", &format!("{}{better}", figure.in_words()), Style::Faint);
}

fn settings(page: &mut Page, report: &FixReport) {
    let Some(remedy) = &report.remedy else { return };
    page.heading("What to set");
    for side in [Side::Client, Side::Server] {
        let changes: Vec<_> = remedy.changes.iter().filter(|change| change.side == side).collect();
        if changes.is_empty() {
            continue;
        }
        page.line(if side == Side::Client { "  on the client" } else { "  on the server" });
        for change in changes {
            self::change(page, change);
        }
    }
    page.sentence("  ", &remedy.reason, Style::Plain);
    if let Some(caution) = caution(remedy) {
        page.sentence("  ", caution, Style::Bad);
    }
    if report.needs.is_empty() {
        return;
    }
    page.heading("What the gain needs besides");
    for need in &report.needs {
        let (name, kind) = (need.setting.name(), need.side.as_str());
        page.line(&format!("  {kind}  {} {} or more", page.paint(&clean(name), Style::Strong), clean(&need.to)));
    }
}

fn change(page: &mut Page, change: &Change) {
    let (kind, name) = match &change.setting {
        Setting::Sysctl(name) => ("sysctl", name),
        Setting::Route(name) => ("route", name),
        Setting::Socket(name) => ("socket option", name),
    };
    let name = page.paint(&clean(name), Style::Strong);
    page.line(&format!("    {kind} {name}"));
    if let Some(from) = &change.from {
        page.sentence("      from  ", from, Style::Plain);
    }
    page.sentence("      to    ", &change.to, Style::Good);
}

/// Commands stand at the start of their line's text and are never wrapped, so that they can be pasted.
fn commands(page: &mut Page, heading: &str, commands: &[String]) {
    if commands.is_empty() {
        return;
    }
    page.heading(heading);
    for command in commands {
        page.line(&format!("  {}", clean(command)));
    }
}

/// What would be better where nobody else uses the path.
fn rejected(page: &mut Page, report: &FixReport) {
    if report.rejected.is_empty() {
        return;
    }
    page.heading("Better, but not accepted");
    for one in &report.rejected {
        page.sentence("  ", &fit_words::rejected(one), Style::Bad);
        for command in &one.apply {
            page.line(&format!("    {}", clean(command)));
        }
    }
}

/// What else the path may be, and what is to be set then.
fn other_fits(page: &mut Page, report: &FixReport) {
    for other in &report.other_fits {
        page.heading("The path may be another");
        page.sentence("  ", &fit_words::other_fit(other, report), Style::Bad);
        for command in fit_words::other_commands(other, report) {
            page.line(&format!("    {}", clean(command)));
        }
    }
}

fn proof(page: &mut Page, report: &FixReport) {
    if let Some(proof) = &report.proof {
        page.heading("The proof");
        lab::arms(page, &proof.arms);
    }
}
