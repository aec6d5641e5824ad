//! This host's clock, and by how much the other host's differs.
//!
//! Of several questions the one with the shortest round trip is taken: the answer's time was read somewhere within that round trip, so half of it
//! bounds the error. Source: RFC 5905 §8, with the clock filter of §10 reduced to its minimum.

use std::time::Instant;

/// A clock that begins with the session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Nanoseconds since the session began.
    pub(crate) fn now_ns(self) -> u64 {
        self.at(Instant::now())
    }

    /// That moment.
    pub(crate) fn at(self, moment: Instant) -> u64 {
        u64::try_from(moment.saturating_duration_since(self.0).as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A question for the server's clock and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockSample {
    /// The client's clock in the middle of the round trip.
    pub(crate) client_ns: u64,
    /// What must be added to the client's clock for the server's.
    pub(crate) offset_ns: i64,
    /// The round trip, without the server's own time.
    pub(crate) rtt_ns: u64,
}

impl ClockSample {
    /// From the client's times of sending and receiving, and the server's of receiving and answering.
    pub(crate) fn new(client: [u64; 2], server: [u64; 2]) -> Self {
        let rtt_ns = client[1].saturating_sub(client[0]).saturating_sub(server[1].saturating_sub(server[0]));
        let middle = |times: [u64; 2]| times[0] / 2 + times[1] / 2;
        let offset_ns = middle(server).wrapping_sub(middle(client)) as i64;
        Self { client_ns: middle(client), offset_ns, rtt_ns }
    }
}

/// The server's clock by the client's: a line through one sample before a test and one after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockLine {
    pub(crate) before: ClockSample,
    pub(crate) after: ClockSample,
}

impl ClockLine {
    /// What the offset grows by in each second, in parts per million.
    pub(crate) fn drift_ppm(&self) -> f64 {
        let span = self.after.client_ns.saturating_sub(self.before.client_ns) as f64;
        if span > 0.0 { (self.after.offset_ns.wrapping_sub(self.before.offset_ns)) as f64 / span * 1e6 } else { 0.0 }
    }

    /// A moment of the server's clock by the client's, in nanoseconds.
    pub(crate) fn to_client(self, server_ns: u64) -> f64 {
        let first = server_ns as f64 - self.before.offset_ns as f64;
        first - self.drift_ppm() * 1e-6 * (first - self.before.client_ns as f64)
    }

    /// The larger of both round trips, which twice the error of an offset cannot exceed.
    pub(crate) fn rtt_ns(&self) -> u64 {
        self.before.rtt_ns.max(self.after.rtt_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_exact_on_a_symmetric_path() {
        // The server's clock is 1 s ahead; 10 ms each way, and 3 ms in the server.
        let sample = ClockSample::new([5_000_000, 28_000_000], [1_015_000_000, 1_018_000_000]);
        assert_eq!((sample.offset_ns, sample.rtt_ns), (1_000_000_000, 20_000_000));
        // Its clock is behind.
        let sample = ClockSample::new([1_005_000_000, 1_028_000_000], [15_000_000, 18_000_000]);
        assert_eq!(sample.offset_ns, -1_000_000_000);
    }

    #[test]
    fn a_drift_is_followed() {
        let at = |client_ns, offset_ns| ClockSample { client_ns, offset_ns, rtt_ns: 1_000 };
        let line = ClockLine { before: at(1_000_000_000, 500), after: at(11_000_000_000, 100_500) };
        assert!((line.drift_ppm() - 10.0).abs() < 1e-9);
        // At 6 s the server's clock is 50.5 µs ahead; the drift of that itself is below a nanosecond.
        assert!((line.to_client(6_000_050_500) - 6e9).abs() < 1.0, "{}", line.to_client(6_000_050_500));
    }
}
