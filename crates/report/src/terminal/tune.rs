//! A host's settings in the terminal: traps, notes, differences.

use super::page::{Entry, Page, Style};
use crate::figures::{Figure, times};
use thalweg_model::{Reach, Setting, TuneFinding, TunePlan, TuneShow, Weight};

/// Longest value that goes into a table.
const VALUE_MAX: usize = 40;

/// Text of `thalweg tune show`.
pub fn tune_show(report: &TuneShow, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    let traps = report.findings.iter().filter(|finding| finding.weight == Weight::Trap).count();
    let kernel = report.kernel.as_ref().map(|kernel| format!(", Linux {kernel}")).unwrap_or_default();
    page.line(&page.paint(&format!("{}{kernel}: {}", report.source, count(traps, "trap")), Style::Strong));
    let read = report.read;
    let mut what =
        vec![count(read.sysctls, "TCP sysctl"), count(read.routes, "route"), count(read.sockets, "connection")];
    if read.other_sysctls > 0 {
        what.push(format!("{} passed over", count(read.other_sysctls, "other sysctl")));
    }
    page.line(&page.paint(&format!("read: {}", what.join(", ")), Style::Faint));
    if report.kernel.is_none() {
        let hint = "The kernel is not known, so every release's default counts; --kernel names it.";
        page.sentence("", hint, Style::Faint);
    }
    for (weight, title) in [(Weight::Trap, "Traps"), (Weight::Note, "Notes")] {
        let found: Vec<&TuneFinding> = report.findings.iter().filter(|finding| finding.weight == weight).collect();
        if !found.is_empty() {
            page.heading(title);
        }
        for finding in found {
            one(&mut page, finding);
        }
    }
    if !report.differences.is_empty() {
        page.heading("Differs from the default");
        let cell = |text: &str, style| {
            let short: String = if text.chars().count() > VALUE_MAX {
                text.chars().take(VALUE_MAX - 1).chain(['…']).collect()
            } else {
                text.to_owned()
            };
            Entry::new(short, style)
        };
        let rows: Vec<Vec<Entry>> = report
            .differences
            .iter()
            .map(|one| {
                vec![
                    cell(&one.setting, Style::Plain),
                    cell(&one.value, Style::Strong),
                    cell(&one.default, Style::Faint),
                ]
            })
            .collect();
        page.table(&["setting", "value", "default"].map(str::to_owned), &rows, 3);
    }
    page.finish()
}

fn one(page: &mut Page, finding: &TuneFinding) {
    let line = finding.line.map(|line| format!("  line {line}")).unwrap_or_default();
    let value = if finding.value.is_empty() { String::new() } else { format!(" = {}", finding.value) };
    let style = if finding.weight == Weight::Trap { Style::Bad } else { Style::Plain };
    let title = format!("{}{value}", finding.setting);
    page.line(&format!(
        "  {}  {}",
        page.paint(&title, style),
        page.paint(&format!("{}{line}", finding.code), Style::Faint)
    ));
    page.sentence("    ", &finding.says, Style::Plain);
    page.sentence("    ", &finding.why, Style::Faint);
    if let Some(set) = &finding.set {
        page.sentence("    set: ", set, Style::Good);
    }
}

fn count(number: usize, what: &str) -> String {
    match number {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// Text of `thalweg tune plan`.
pub fn tune_plan(plan: &TunePlan, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    let kernel = plan.kernel.as_ref().map(|kernel| format!(", Linux {kernel}")).unwrap_or_default();
    page.line(
        &page.paint(&format!("{}{kernel}: {}", plan.purpose, count(plan.changes.len(), "change")), Style::Strong),
    );
    if let Some(gain) = &plan.expected {
        page.heading("Expected");
        let figure = Figure::named(&gain.figure);
        let values = match (gain.before, gain.after) {
            (Some(before), Some(after)) => format!(": {} → {}", figure.print(before), figure.print(after)),
            _ => String::new(),
        };
        let better = page.paint(&format!("{} better", times(gain.ratio)), Style::Good);
        page.line(&format!("  {}{values}  {better}", figure.in_words()));
        page.sentence("    ", &gain.source, Style::Faint);
    }
    page.heading("Arithmetic");
    for step in &plan.arithmetic {
        page.line(&format!("  {}: {}", step.what, page.paint(&step.result, Style::Strong)));
        page.sentence("    ", &format!("= {}", step.how), Style::Faint);
    }
    if !plan.changes.is_empty() {
        page.heading("Set, the narrowest scope first");
    }
    for change in &plan.changes {
        let (kind, name) = match &change.setting {
            Setting::Sysctl(name) => ("", name),
            Setting::Route(name) => ("route ", name),
            Setting::Socket(name) => ("socket ", name),
        };
        let route = change.route.as_ref().map(|route| format!(" of {}", route.to)).unwrap_or_default();
        let from = change.from.as_ref().map(|from| format!(" (now {from})")).unwrap_or_default();
        let reach = match change.reach {
            Reach::Socket => "one program",
            Reach::Route => "connections over the route",
            Reach::Namespace => "every connection of the network namespace",
            Reach::Host => "the whole host",
        };
        let title = page.paint(&format!("{kind}{name}{route} = {}", change.to), Style::Good);
        page.line(&format!("  {title}{from}  {}", page.paint(reach, Style::Faint)));
        page.sentence("    why:  ", &change.why, Style::Plain);
        page.sentence("    risk: ", &change.risk, Style::Plain);
    }
    if !plan.warnings.is_empty() {
        page.heading("Before it is applied");
        for warning in &plan.warnings {
            page.sentence("  ", warning, Style::Bad);
        }
    }
    if !plan.enough.is_empty() {
        page.heading("Enough as it is");
        for line in &plan.enough {
            page.sentence("  ", line, Style::Faint);
        }
    }
    page.finish()
}
