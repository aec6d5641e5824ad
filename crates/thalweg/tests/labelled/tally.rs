//! What was right and what was not, by cause and vantage.

use super::{Case, transfer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Counts of verdicts.
#[derive(Default)]
pub struct Tally {
    /// By vantage, label and verdict.
    counts: BTreeMap<(&'static str, String, String), usize>,
    /// By vantage: right, right as far as can be told from there, and all.
    totals: BTreeMap<&'static str, [usize; 3]>,
    /// Verdicts on healthy flows, and the false findings among them.
    healthy: [usize; 2],
    /// What was not right, a line each.
    pub wrong: Vec<String>,
    /// Runs whose goodput contradicts the label's arithmetic: not judged.
    pub refused: Vec<String>,
}

impl Tally {
    /// Counts the verdicts on a transfer from both ends.
    pub fn count_both(&mut self, case: &Case, flows: &[Value]) {
        for vantage in ["sender", "receiver"] {
            self.count(case, vantage, transfer(flows, vantage));
        }
    }

    /// Counts the verdict on a flow; `None` where the capture holds no such flow.
    fn count(&mut self, case: &Case, vantage: &'static str, flow: Option<&Value>) {
        let code = flow.and_then(|flow| flow["verdict"]["code"].as_str()).unwrap_or("no flow");
        let findings: Vec<&Value> =
            flow.and_then(|flow| flow["findings"].as_array()).map(|all| all.iter().collect()).unwrap_or_default();
        let made = &case.made;
        let named = made
            .finding
            .is_none_or(|wanted| wanted == code || findings.iter().any(|finding| finding["code"] == wanted));
        let exact = code == made.sender && named;
        // What cannot be told from there must say so.
        let doubtful = vantage == "receiver"
            && made.receiver.contains(&code)
            && !exact
            && flow.is_some_and(|flow| flow["verdict"].to_string().contains("capture at the sender"));
        let total = self.totals.entry(vantage).or_default();
        total[2] += 1;
        if exact {
            total[0] += 1;
        } else if doubtful {
            total[1] += 1;
        } else {
            let flow = flow.map(|flow| (flow["limits"].to_string(), flow["verdict"]["gain"].to_string()));
            self.wrong
                .push(format!("{} ({}) from the {vantage}: {code}, named {named}, {flow:?}", case.name, case.kernel));
        }
        let cell = if doubtful { format!("({code})") } else { code.to_owned() };
        *self.counts.entry((vantage, case.cause.to_owned(), cell)).or_default() += 1;
        if made.healthy {
            self.healthy[0] += 1;
            let harmless = |code: &str| matches!(code, "path-rate" | "application" | "nothing-to-gain" | "bufferbloat");
            let false_finding = !harmless(code)
                || findings.iter().any(|finding| {
                    let gain = finding["gain"].as_f64().unwrap_or(1.0);
                    finding["depends_on"].is_null()
                        && gain >= 1.05
                        && !harmless(finding["code"].as_str().unwrap_or_default())
                });
            if false_finding {
                self.healthy[1] += 1;
                self.wrong.push(format!("{} from the {vantage}: false finding beside {code}", case.name));
            }
        }
    }

    /// How many are right from a vantage, or say that it cannot be told from there, and how many there are.
    pub fn right_of(&self, vantage: &str) -> (usize, usize) {
        let [right, doubtful, all] = self.totals.get(vantage).copied().unwrap_or_default();
        (right + doubtful, all)
    }

    /// The part that is right from a vantage, with what says that it cannot be told from there.
    pub fn right(&self, vantage: &str) -> f64 {
        let (right, all) = self.right_of(vantage);
        right as f64 / all.max(1) as f64
    }

    /// The part of healthy verdicts with a false finding.
    pub fn false_findings(&self) -> f64 {
        self.healthy[1] as f64 / self.healthy[0].max(1) as f64
    }

    /// Totals and confusion tables as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "| capture at | verdicts | right | right, but undecidable there | wrong |\n|---|---|---|---|---|\n",
        );
        for (vantage, [right, doubtful, all]) in &self.totals {
            let part = |n: usize| format!("{n} ({:.1} %)", 100.0 * n as f64 / (*all).max(1) as f64);
            let _ = writeln!(
                text,
                "| {vantage} | {all} | {} | {} | {} |",
                part(*right),
                part(*doubtful),
                part(all - right - doubtful)
            );
        }
        let _ = writeln!(
            text,
            "\nHealthy flows: {} verdicts, {} with a false finding ({:.1} %). Refused, as the run contradicts the label's arithmetic: {}.",
            self.healthy[0],
            self.healthy[1],
            100.0 * self.false_findings(),
            self.refused.len()
        );
        for vantage in ["sender", "receiver"] {
            let _ = writeln!(text, "\n### Seen from the {vantage}\n\n| made | verdicts |\n|---|---|");
            let causes: BTreeSet<&String> =
                self.counts.keys().filter(|key| key.0 == vantage).map(|key| &key.1).collect();
            for cause in causes {
                let mut cells: Vec<(usize, &String)> = self
                    .counts
                    .iter()
                    .filter(|(key, _)| key.0 == vantage && key.1 == *cause)
                    .map(|(key, count)| (*count, &key.2))
                    .collect();
                cells.sort_by(|a, b| b.cmp(a));
                let cells: Vec<String> = cells.iter().map(|(count, code)| format!("{code} {count}")).collect();
                let _ = writeln!(text, "| {cause} | {} |", cells.join(", "));
            }
        }
        text
    }
}
