//! Retransmissions, zero windows and resets as comments on their packets.

use std::collections::{BTreeMap, HashMap};
use thalweg_model::{Flow, LossMark, MarkKind, Series};

/// Adds the comments of a flow.
pub(super) fn add(comments: &mut BTreeMap<u64, String>, flow: &Flow, series: Option<&Series>) {
    let id = flow.id;
    if let Some(series) = series {
        for marks in [&series.marks, &series.other_marks] {
            for mark in packets(marks) {
                put(comments, mark.packet, &mark.text(id));
            }
        }
    }
    if let Some(reset) = flow.life.and_then(|life| life.reset) {
        let by =
            if reset.is_foreign() { "not sent by the host that has its address" } else { "it ends the connection" };
        put(comments, reset.packet, &format!("thalweg reset, flow {id}: {by}"));
    }
}

fn put(comments: &mut BTreeMap<u64, String>, packet: u64, text: &str) {
    let comment = comments.entry(packet).or_default();
    if !comment.is_empty() {
        comment.push('\n');
    }
    comment.push_str(text);
}

/// A packet that is commented.
struct Marked {
    packet: u64,
    kind: MarkKind,
    byte: u64,
    /// The packet that shows a retransmission not to have been needed.
    needless: Option<u64>,
}

impl Marked {
    fn text(&self, flow: u64) -> String {
        let class = match self.kind {
            MarkKind::Fast => "fast",
            MarkKind::Rto => "RTO",
            MarkKind::Tlp => "TLP",
            MarkKind::ZeroWindow | MarkKind::Spurious => {
                return format!("thalweg zero window, flow {flow}: the receiver takes nothing past byte {}", self.byte);
            }
        };
        match self.needless {
            None => format!("thalweg retransmission ({class}), flow {flow}: from byte {}", self.byte),
            Some(packet) => format!(
                "thalweg retransmission ({class}, spurious), flow {flow}: from byte {}, which had arrived, as packet {packet} shows",
                self.byte
            ),
        }
    }
}

/// The packets of a direction's marks; that a retransmission was not needed is said at its own packet, the latest from that byte on.
fn packets(marks: &[LossMark]) -> Vec<Marked> {
    let mut all: Vec<Marked> = Vec::new();
    let mut latest: HashMap<u64, usize> = HashMap::new();
    for &LossMark { packet, byte, kind, .. } in marks {
        if kind == MarkKind::Spurious {
            if let Some(marked) = latest.get(&byte).and_then(|&at| all.get_mut(at)) {
                marked.needless = Some(packet);
            }
            continue;
        }
        if kind != MarkKind::ZeroWindow {
            latest.insert(byte, all.len());
        }
        all.push(Marked { packet, kind, byte, needless: None });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_needless_retransmission_is_marked_where_it_was_sent() {
        let mark = |packet, byte, kind| LossMark { t: 0.0, packet, byte, kind };
        let marks = [
            mark(10, 1_000, MarkKind::Fast),
            mark(12, 5_000, MarkKind::Rto),
            mark(15, 1_000, MarkKind::Tlp),
            mark(17, 1_000, MarkKind::Spurious),
            mark(18, 9_000, MarkKind::ZeroWindow),
            mark(19, 7_777, MarkKind::Spurious),
        ];
        let texts: Vec<_> = packets(&marks).iter().map(|marked| (marked.packet, marked.text(3))).collect();
        let wanted = [
            (10, "thalweg retransmission (fast), flow 3: from byte 1000"),
            (12, "thalweg retransmission (RTO), flow 3: from byte 5000"),
            (
                15,
                "thalweg retransmission (TLP, spurious), flow 3: from byte 1000, which had arrived, as packet 17 shows",
            ),
            (18, "thalweg zero window, flow 3: the receiver takes nothing past byte 9000"),
        ];
        assert_eq!(texts, wanted.map(|(packet, text)| (packet, text.to_owned())));
    }
}
