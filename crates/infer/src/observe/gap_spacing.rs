//! How packets come on either side of what is missing, beside the receiver.
//!
//! A queue that overflows is not empty: what it hands on comes as closely as ever, whatever was dropped between. What is lost elsewhere
//! leaves the room that it would have taken.

/// Holes kept.
const MOST: usize = 512;
/// Holes enough to judge by.
const ENOUGH: usize = 8;
/// A gap this many times a packet's own time has room for another packet; halfway between none and one, and a little more.
const ROOM: f64 = 1.6;

/// Part of the holes with such a gap, less that of the packets before them. Below the first it is a queue's, above the second it is not: between
/// the overflows and the policers of our labelled ranges of 400,000 to 600,000, which overlap between these.
const CLOSED: f64 = 0.12;
const OPEN: f64 = 0.25;
/// A gap of less than this part of a packet's time, and the part of such gaps before holes with which packets come in bursts.
const CLOSE: f64 = 0.5;
const MOSTLY: f64 = 0.5;
/// Packets come in clumps where so many of the gaps before holes are as wide.
const CLUMPS: f64 = 0.25;

/// The time across a hole, and that between the two packets before it, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Hole {
    across: u64,
    before: u64,
}

/// Whether what was lost left room between the packets that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GapRoom {
    /// It did not.
    None,
    /// It did.
    Left,
}

/// Holes in what came, as far as they are kept.
#[derive(Debug, Default)]
pub(crate) struct GapSpacing(Vec<Hole>);

impl GapSpacing {
    /// Something is missing between two packets that came `across` nanoseconds apart, and `before` after the one before them.
    pub(crate) fn seen(&mut self, across: u64, before: u64) {
        if self.0.len() < MOST {
            self.0.push(Hole { across, before });
        }
    }

    /// Whether the holes have room for what is missing, where a full packet takes `packet` nanoseconds on the path and the least round trip is
    /// `rtt` nanoseconds; `None` of a few, and where it is not clear.
    ///
    /// Where packets come in clumps, gaps are as wide before the holes, whatever was lost, and nothing is clear.
    pub(crate) fn room(&self, packet: f64, rtt: u64) -> Option<GapRoom> {
        let wide = ROOM * packet;
        // After half a round trip it was the sender that waited.
        let holes = || self.0.iter().filter(|hole| hole.across <= rtt / 2);
        let count = |gap: fn(&Hole) -> u64| holes().filter(|hole| gap(hole) as f64 >= wide).count() as f64;
        let all = holes().count().max(1) as f64;
        let (across, before) = (count(|hole| hole.across) / all, count(|hole| hole.before) / all);
        // What came closer than the path's packets do was not handed on by its queue.
        let close = holes().filter(|hole| (hole.before as f64) < CLOSE * packet).count() as f64 / all;
        match (holes().count() >= ENOUGH, across - before) {
            (true, ..CLOSED) if before < CLUMPS && close < MOSTLY => Some(GapRoom::None),
            (true, OPEN..) => Some(GapRoom::Left),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of a packet each 100 µs.
    fn room(across: u64, before: u64, count: usize) -> Option<GapRoom> {
        let mut holes = GapSpacing::default();
        (0..count).for_each(|_| holes.seen(across * 1_000, before * 1_000));
        holes.room(100_000.0, 20_000_000)
    }

    #[test]
    fn a_queue_closes_holes_and_nothing_else_does() {
        assert_eq!(room(100, 100, 20), Some(GapRoom::None));
        assert_eq!(room(200, 100, 20), Some(GapRoom::Left));
        assert_eq!(room(200, 100, ENOUGH - 1), None);
        // Behind a policer bursts come at the rate of the line.
        assert_eq!(room(10, 10, 20), None);
        // In clumps.
        assert_eq!(room(800, 800, 20), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut holes = GapSpacing::default();
        (0..100_000).for_each(|n| holes.seen(n, n));
        assert_eq!(holes.0.len(), MOST);
    }
}
