//! A capture's findings as comments on the packets that show them, as Wireshark shows comments.

mod marks;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use thalweg_model::{CaptureReport, Code, Evidence, Flow, Series};

/// Flows the summary names.
const MOST_NAMED: usize = 20;

/// What each packet shows, by its number from 1: retransmissions and zero windows by the `marks` of each flow's number, resets, and findings.
pub fn comments(capture: &CaptureReport, marks: &BTreeMap<u64, Series>) -> BTreeMap<u64, String> {
    let mut comments: BTreeMap<u64, String> = BTreeMap::new();
    for flow in &capture.flows {
        marks::add(&mut comments, flow, marks.get(&flow.id));
        let findings = flow.findings.iter().map(|finding| &finding.verdict);
        for verdict in std::iter::once(&flow.verdict).chain(findings) {
            let code = verdict.code();
            let mut claim = Some(verdict.claim());
            for Evidence { text, packets, .. } in verdict.evidence() {
                for packet in packets {
                    let comment = comments.entry(packet).or_default();
                    if !comment.is_empty() {
                        comment.push('\n');
                    }
                    let _ = write!(comment, "thalweg {code}, flow {}: {text}", flow.id);
                    // In full once, at the first packet that shows it.
                    if let Some(claim) = claim.take().filter(|claim| *claim != text) {
                        let _ = write!(comment, ". {claim}");
                    }
                }
            }
        }
    }
    comments
}

/// Every flow's verdict, the costliest first, for the file as a whole.
pub fn summary(capture: &CaptureReport) -> String {
    let mut text = String::from("thalweg:");
    let named: Vec<&Flow> =
        capture.flows.iter().map(Box::as_ref).filter(|flow| flow.verdict.code() != Code::Unknown).collect();
    for flow in named.iter().take(MOST_NAMED) {
        let Flow { id, client, server, verdict, .. } = flow;
        let _ = write!(text, "\nflow {id}, {client} – {server}: {}: {}", verdict.code(), verdict.claim());
    }
    let more = named.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        let _ = write!(text, "\nand {more} more");
    }
    text
}
