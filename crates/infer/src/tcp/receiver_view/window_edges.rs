//! Round trips from the edges of the advertised window, for a sender that is not at the tap and sends no timestamps.
//!
//! Data beyond an edge left after the sender had heard of the next one (RFC 9293 §3.8.6), so the time from there on is a round trip at least.

use std::collections::VecDeque;
use thalweg_units::SeqNum;

/// Edges that are remembered; past it the oldest is forgotten, and tells nothing. Bounds memory.
const MAX_EDGES: usize = 64;

/// Edges of the window that a receiver beside the tap advertised.
#[derive(Debug, Default)]
pub(crate) struct WindowEdges {
    /// Each with the time it was advertised, in nanoseconds; edges and times go up.
    edges: VecDeque<(SeqNum, u64)>,
    /// The largest one that data has passed.
    passed: Option<SeqNum>,
    /// The largest one at all.
    latest: Option<SeqNum>,
}

impl WindowEdges {
    /// Takes in that the window ends there.
    pub(crate) fn advertised(&mut self, now: u64, edge: SeqNum) {
        if self.latest.is_some_and(|latest| edge.since(latest) <= 0) {
            return;
        }
        self.latest = Some(edge);
        if self.edges.len() == MAX_EDGES {
            self.passed = self.edges.pop_front().map(|(edge, _)| edge);
        }
        self.edges.push_back((edge, now));
    }

    /// The most that the round trip between the tap and the sender can be, by data that ends there; `None` if it tells nothing.
    pub(crate) fn sent(&mut self, now: u64, end: SeqNum) -> Option<u64> {
        while let Some(&(edge, _)) = self.edges.front().filter(|(edge, _)| end.since(*edge) > 0) {
            self.passed = Some(edge);
            self.edges.pop_front();
        }
        let (_, advertised_at) = self.edges.front()?;
        let is_beyond = self.passed.is_some_and(|passed| end.since(passed) > 0);
        is_beyond.then(|| now.saturating_sub(*advertised_at))
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.edges.clear();
        (self.passed, self.latest) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_beyond_an_edge_was_set_off_by_the_next_one() {
        let n = SeqNum::new;
        let mut edges = WindowEdges::default();
        edges.advertised(0, n(8_000));
        assert_eq!(edges.sent(50, n(5_000)), None, "it may have left at any time");
        edges.advertised(60, n(13_000));
        edges.advertised(70, n(16_000));
        assert_eq!(edges.sent(90, n(8_000)), None);
        assert_eq!(edges.sent(95, n(9_500)), Some(35));
        assert_eq!(edges.sent(99, n(14_000)), Some(29));
        assert_eq!(edges.sent(99, n(9_000)), None, "sent again");
        assert_eq!(edges.sent(99, n(17_000)), None, "no edge lets it");
    }
}
