//! How many journal lines a client's address may cause, so that a flood from one address cannot rotate other viewers' lines out.
//!
//! An address has lines for a burst and then for a rate; what exceeds both is summed up in one line a minute.

use crate::viewer::{Viewer, client_network};
use serde_json::json;
use std::collections::HashMap;
use std::net::IpAddr;

/// Lines that an address may cause at once.
const BURST: u32 = 1_000;
/// Lines that an address may cause in a second after that. At 300 bytes a line this is 260 MB a day.
const LINES_PER_S: u64 = 10;
/// Viewers left out are summed up this often, milliseconds.
const SUMMARY_MS: u64 = 60_000;
/// Addresses with a budget of their own at a time; all others share one.
const ADDRESSES_MAX: usize = 65_536;

/// The budgets of all addresses.
#[derive(Debug, Default)]
pub struct JournalBudget {
    /// `None` is those past [`ADDRESSES_MAX`].
    budgets: HashMap<Option<IpAddr>, Budget>,
}

#[derive(Debug)]
struct Budget {
    lines: u32,
    /// When a line was last added to the budget.
    filled_ms: u64,
    left_out: LeftOut,
}

/// Viewers without a line of their own.
#[derive(Debug, Default)]
struct LeftOut {
    viewers: u64,
    bytes: u64,
    segments: u64,
    from_ms: u64,
}

impl JournalBudget {
    /// Whether a viewer that has gone has a line of its own; otherwise it is summed up.
    pub fn admit(&mut self, viewer: &Viewer, now_ms: u64) -> bool {
        let network = Some(client_network(viewer.address));
        let is_known = self.budgets.contains_key(&network);
        let key = if is_known || self.budgets.len() < ADDRESSES_MAX { network } else { None };
        let new = || Budget { lines: BURST, filled_ms: now_ms, left_out: LeftOut::default() };
        let budget = self.budgets.entry(key).or_insert_with(new);
        budget.fill(now_ms);
        if budget.lines > 0 {
            budget.lines -= 1;
            return true;
        }
        let left_out = &mut budget.left_out;
        if left_out.viewers == 0 {
            left_out.from_ms = now_ms;
        }
        left_out.viewers += 1;
        left_out.bytes += viewer.bytes;
        left_out.segments += viewer.segments;
        false
    }

    /// The lines of those that were summed up for a minute, or, at the `end`, at all.
    pub fn summaries(&mut self, now_ms: u64, end: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for (network, budget) in &mut self.budgets {
            budget.fill(now_ms);
            let is_due = end || now_ms.saturating_sub(budget.left_out.from_ms) >= SUMMARY_MS;
            if budget.left_out.viewers > 0 && is_due {
                let LeftOut { viewers, bytes, segments, from_ms } = std::mem::take(&mut budget.left_out);
                let line = json!({
                    "left_out": viewers,
                    "address": network,
                    "from_ms": from_ms,
                    "until_ms": now_ms,
                    "bytes": bytes,
                    "segments": segments,
                });
                lines.push(line.to_string());
            }
        }
        self.budgets.retain(|_, budget| budget.lines < BURST || budget.left_out.viewers > 0);
        lines
    }
}

impl Budget {
    fn fill(&mut self, now_ms: u64) {
        let more = now_ms.saturating_sub(self.filled_ms) * LINES_PER_S / 1_000;
        self.filled_ms += more * 1_000 / LINES_PER_S;
        self.lines = BURST.min(self.lines.saturating_add(u32::try_from(more).unwrap_or(u32::MAX)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::viewer::{Protocol, Who};

    fn viewer(address: [u8; 4]) -> Viewer {
        let who = Who {
            stream: "live/cam".into(),
            protocol: Protocol::Hls,
            is_tls: false,
            address: address.into(),
            agent: "x".into(),
            subject: None,
            began_ms: 0,
        };
        Viewer { bytes: 7, ..Viewer::new(1, who) }
    }

    #[test]
    fn a_flood_from_one_address_leaves_the_others_their_lines() {
        let mut budget = JournalBudget::default();
        let flood = viewer([192, 0, 2, 1]);
        // Ten thousand a second for ten seconds.
        let lines = (0..100_000).filter(|at| budget.admit(&flood, at / 10)).count();
        assert_eq!(lines, BURST as usize + 99, "a burst and ten a second");
        assert!(budget.admit(&viewer([192, 0, 2, 2]), 10_000));
        assert_eq!(budget.summaries(10_000, false), Vec::<String>::new());
        let summary = budget.summaries(70_000, false);
        assert_eq!(summary.len(), 1);
        let summary: serde_json::Value = serde_json::from_str(&summary[0]).expect("JSON");
        let left_out = 100_000 - lines as u64;
        assert_eq!(summary["left_out"].as_u64(), Some(left_out));
        assert_eq!((summary["bytes"].as_u64(), summary["address"].as_str()), (Some(7 * left_out), Some("192.0.2.1")));
        budget.summaries(1_000_000, false);
        assert!(budget.budgets.is_empty(), "who is silent is forgotten");
    }

    #[test]
    fn addresses_are_bounded() {
        let mut budget = JournalBudget::default();
        for number in 0..ADDRESSES_MAX as u32 + 2_000 {
            budget.admit(&viewer(number.to_be_bytes()), 0);
        }
        assert_eq!(budget.budgets.len(), ADDRESSES_MAX + 1);
        assert_eq!(budget.summaries(0, true).len(), 1, "those past the bound share a budget");
    }
}
