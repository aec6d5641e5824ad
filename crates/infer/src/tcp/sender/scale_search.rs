//! The window scale of a connection whose SYNs are not in the capture.
//!
//! No data lies beyond the right edge of the window (RFC 9293 §3.8.6), so data refutes each scale that is too small. A sender that waits for the
//! window sends up to its edge in each round trip: the least scale that is not refuted is the true one if it does so there. Where something else holds
//! the sender, its data reaches the edge of no scale for long, but by chance, and the true one stays unknown.

use crate::tcp::receiver_view::remote_clock::TICK;

/// Scales there are: 0 to 14 (RFC 7323 §2.3).
const SCALES: usize = 15;
/// Round trips in a row in which data reaches the edge: a congestion window that grows passes an edge in fewer.
/// `a_window_that_grows_past_every_edge_tells_no_scale` holds it.
const MIN_ROUND_TRIPS: u32 = 16;
/// Of the packets of a round trip at most one in this many beyond the edge: elsewhere than at the sender it is not known to the packet which acknowledgement had come.
/// `data_that_keeps_to_an_edge_tells_its_scale` holds it.
const PACKETS_PER_BEYOND: u64 = 50;
/// A window holds this much more than what a sender that waits for it may leave. `messages_in_a_window_of_a_segment_tell_no_scale` holds it.
const MIN_LEFT_PER_WINDOW: u64 = 4;
/// When the sender heard is known to so much from afar, in nanoseconds. `data_that_keeps_to_an_edge_tells_its_scale` holds it.
const ERROR_AFAR_NS: u64 = TICK;

/// How data lay to the edges that the scales put the window's end at.
#[derive(Debug, Default)]
pub(crate) struct ScaleSearch {
    field: u16,
    field_max: u16,
    acked: u64,
    /// For each scale, the furthest end of a window so far.
    edges: [u64; SCALES],
    round: Round,
    /// The least scale that is not refuted, and the round trips in a row in which data reached its edge.
    candidate: Option<usize>,
    reached: u32,
    found: Option<u8>,
}

/// A round trip's packets.
#[derive(Debug, Default)]
struct Round {
    began: Option<u64>,
    packets: u32,
    /// For each scale: packets beyond its edge, and whether one was at it.
    beyond: [u32; SCALES],
    at_edge: [bool; SCALES],
}

impl Round {
    fn stands(&self, scale: usize) -> bool {
        u64::from(self.beyond[scale]) * PACKETS_PER_BEYOND <= u64::from(self.packets)
    }
}

/// New data, as the search asks for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewData {
    pub(super) now: u64,
    /// Where it ends.
    pub(super) end: u64,
    /// Bytes of a full segment.
    pub(super) segment: u64,
    /// Nanoseconds.
    pub(super) round_trip: u64,
    /// It is not known exactly what the sender had heard.
    pub(super) afar: bool,
}

impl ScaleSearch {
    /// The scale, once it is known.
    pub(crate) const fn found(&self) -> Option<u8> {
        self.found
    }

    /// The largest window so far, in bytes.
    pub(super) fn window_max(&self) -> u64 {
        u64::from(self.field_max) << self.found.unwrap_or(0)
    }

    /// The latest window, in bytes, and its furthest end.
    pub(super) fn window(&self) -> (u64, u64) {
        let scale = self.found.unwrap_or(0);
        (u64::from(self.field) << scale, self.edges[usize::from(scale)])
    }

    /// All before `ack` is acknowledged with this in the window field.
    pub(super) fn advertised(&mut self, ack: u64, field: u16) {
        (self.acked, self.field) = (ack, field);
        self.field_max = self.field_max.max(field);
        for (scale, edge) in self.edges.iter_mut().enumerate() {
            *edge = (*edge).max(ack + (u64::from(field) << scale));
        }
    }

    /// Takes new data in; whether the scale is another than before.
    pub(super) fn sent(&mut self, data: &NewData) -> bool {
        if self.acked == 0 || data.round_trip == 0 {
            return false;
        }
        let flight = data.end.saturating_sub(self.acked);
        let error =
            if data.afar { (flight as f64 * (ERROR_AFAR_NS as f64 / data.round_trip as f64)) as u64 } else { 0 };
        let left = data.segment + error;
        self.round.packets += 1;
        for (scale, edge) in self.edges.iter().enumerate() {
            let beyond = data.end > edge + error;
            self.round.beyond[scale] += u32::from(beyond);
            self.round.at_edge[scale] |= !beyond && self.is_wide(scale, left) && data.end + left >= *edge;
        }
        let began = *self.round.began.get_or_insert(data.now);
        if data.now.saturating_sub(began) < data.round_trip {
            return false;
        }
        self.judge()
    }

    /// Whether a window is so much wider than what is left of it that data is not at its edge whatever it does.
    const fn is_wide(&self, scale: usize, left: u64) -> bool {
        (self.field as u64) << scale >= MIN_LEFT_PER_WINDOW * left
    }

    /// A round trip is over.
    fn judge(&mut self) -> bool {
        let round = std::mem::take(&mut self.round);
        let candidate = (0..SCALES).find(|scale| round.stands(*scale));
        let reached = candidate.is_some_and(|scale| round.at_edge[scale]);
        self.reached = if reached && candidate == self.candidate { self.reached + 1 } else { 0 };
        self.candidate = candidate;
        let before = self.found;
        if self.reached >= MIN_ROUND_TRIPS {
            self.found = candidate.and_then(|scale| u8::try_from(scale).ok());
        } else if self.found.is_some_and(|found| !round.stands(usize::from(found))) {
            self.found = None;
        }
        self.found != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1_448;
    const ROUND_TRIP: u64 = 50_000_000;

    /// The scales that 400,000 packets tell in turn, of which each is sent with so many bytes in flight, behind a window whose field is this.
    fn search(afar: bool, field: impl Fn(u64) -> u16, flight: impl Fn(u64) -> u64) -> Vec<Option<u8>> {
        let (mut search, mut now, mut told) = (ScaleSearch::default(), 0, Vec::new());
        for n in 0..400_000u64 {
            let end = (1 << 32) + n * SEGMENT;
            let out = flight(n).max(SEGMENT);
            search.advertised(end - out, field(n));
            now += ROUND_TRIP * SEGMENT / out;
            if search.sent(&NewData { now, end, segment: SEGMENT, round_trip: ROUND_TRIP, afar }) {
                told.push(search.found());
            }
        }
        told
    }

    #[test]
    fn data_that_keeps_to_an_edge_tells_its_scale() {
        for afar in [false, true] {
            for scale in 0..=10u8 {
                // From afar the flight is known to 2 %.
                let window = |n: u64| 30_000 + (n / 100) as u16;
                let late = |n: u64| if afar { n % 3 * (30_000 << scale) / 150 } else { 0 };
                let flight = |n: u64| (u64::from(window(n)) << scale) / SEGMENT * SEGMENT + late(n);
                assert_eq!(search(afar, window, flight), [Some(scale)], "{afar}");
            }
        }
    }

    #[test]
    fn a_window_that_grows_past_every_edge_tells_no_scale() {
        // By 1 % each round trip.
        let growing = |n: u64| 10 * SEGMENT + n * SEGMENT / 100;
        assert_eq!([false, true].map(|afar| search(afar, |_| 500, growing)), [vec![], vec![]]);
    }

    #[test]
    fn a_flight_that_keeps_away_from_all_edges_tells_no_scale() {
        let held = |part: u64| move |_: u64| (500 << 7) * part / 100;
        assert_eq!([75, 60].map(|part| search(false, |_| 500, held(part))), [vec![], vec![]]);
        assert_eq!([75, 60].map(|part| search(true, |_| 500, held(part))), [vec![], vec![]]);
    }

    #[test]
    fn messages_in_a_window_of_a_segment_tell_no_scale() {
        assert_eq!([false, true].map(|afar| search(afar, |_| 501, |_| SEGMENT)), [vec![], vec![]]);
    }
}
