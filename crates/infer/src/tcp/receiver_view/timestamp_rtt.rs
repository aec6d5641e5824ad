//! Round trips between a tap and a far sender, from timestamp echoes.
//!
//! Source: Kathleen Nichols, pping: the first packet with a TSval to the first of the other direction that echoes it.

use crate::reset::{Reset, reset_keeping};
use std::collections::VecDeque;
use thalweg_units::SeqNum;

/// TSvals awaiting their echo; a window of a thousand acknowledgements of different milliseconds is a second long. Bounds memory.
const MAX_WAITING: usize = 1_024;
/// Samples the current round trip is the least of: paced or idle senders answer late, never early. Bounds memory.
const RECENT_SAMPLES: usize = 16;
const MIN_RECENT_SAMPLES: usize = 4;
/// Samples before flights are counted: they grow at first, and of short connections they tell nothing.
const MIN_SAMPLES: u64 = 32;

/// A TSval of the receiver's: when it passed the tap, and the most that packets with it acknowledged.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    tsval: u32,
    at: u64,
    ack: SeqNum,
}

/// What the first echo of a TSval tells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EchoSample {
    /// From when the TSval passed the tap, in nanoseconds.
    pub(crate) round_trip: u64,
    /// What was in flight when the sender had sent what is before this packet, and what of that was when it had heard this TSval; in bytes.
    pub(crate) flights: Option<(u64, u64)>,
    /// The first of these and for how long it lasted, where it counts.
    pub(crate) lasted: Option<(u64, u64)>,
}

/// Echoes of one receiver's timestamps by its sender.
#[derive(Debug, Default)]
pub(crate) struct TimestampRtt {
    waiting: VecDeque<Waiting>,
    newest: Option<u32>,
    /// The last that was echoed, what it acknowledged, and how far the sender had sent when it echoed it.
    echoed: Option<(Waiting, SeqNum)>,
    /// The latest, in a ring.
    recent: [u64; RECENT_SAMPLES],
    pub(crate) samples: u64,
    pub(crate) min: Option<u64>,
}

impl Reset for TimestampRtt {
    fn reset(&mut self) {
        reset_keeping!(self, waiting);
    }
}

impl TimestampRtt {
    /// The receiver sent `tsval` and acknowledged what is before `ack`.
    pub(crate) fn sent(&mut self, now: u64, tsval: u32, ack: SeqNum) {
        if self.newest.is_some_and(|newest| (tsval.wrapping_sub(newest) as i32) <= 0) {
            if let Some(last) = self.waiting.back_mut().filter(|last| last.tsval == tsval && ack.since(last.ack) > 0) {
                last.ack = ack;
            }
            return;
        }
        self.newest = Some(tsval);
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
        }
        if self.waiting.capacity() == 0 {
            self.waiting.reserve(16);
        }
        self.waiting.push_back(Waiting { tsval, at: now, ack });
    }

    /// The sender echoed `tsecr` with data up to `end`; gives what the first echo tells.
    pub(crate) fn echoed(&mut self, now: u64, tsecr: u32, end: SeqNum) -> Option<EchoSample> {
        if let Some((_, reached)) = self.echoed.as_mut().filter(|(echoed, _)| echoed.tsval == tsecr) {
            if end.since(*reached) > 0 {
                *reached = end;
            }
            return None;
        }
        while let Some(&first) = self.waiting.front() {
            let Waiting { tsval, at, .. } = first;
            match (tsval.wrapping_sub(tsecr) as i32).signum() {
                -1 => {
                    self.waiting.pop_front();
                }
                0 => {
                    self.waiting.pop_front();
                    let sample = now.saturating_sub(at);
                    let (mut flights, mut lasted) = (None, None);
                    if let Some((before, reached)) = self.echoed.replace((first, end)) {
                        let flight = reached.since(before.ack).max(0) as u64;
                        flights = Some((flight, reached.since(first.ack).max(0) as u64));
                        lasted =
                            (self.samples >= MIN_SAMPLES).then(|| (flight, at.saturating_sub(before.at).min(sample)));
                    }
                    self.recent[self.samples as usize % RECENT_SAMPLES] = sample;
                    self.samples += 1;
                    self.min = Some(self.min.map_or(sample, |min| min.min(sample)));
                    return Some(EchoSample { round_trip: sample, flights, lasted });
                }
                _ => return None,
            }
        }
        None
    }

    /// The round trip now: the least of the recent samples. The first few often hold the time the application took to answer,
    /// and a handshake the time of an address resolution, so until there are a few more the `handshake`'s counts as one.
    pub(crate) fn current(&self, handshake: Option<u64>) -> Option<u64> {
        let count = (self.samples as usize).min(RECENT_SAMPLES);
        let least = self.recent[..count].iter().min().copied()?;
        Some(if count < MIN_RECENT_SAMPLES { handshake.map_or(least, |handshake| handshake.min(least)) } else { least })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: u64 = 40_000_000;
    const MS: u64 = 1_000_000;

    /// A tick of the receiver's clock in each of which two packets of 1,000 bytes are acknowledged, echoed a round trip later with
    /// what the window then lets out; and how long flights lasted.
    fn told(window: impl Fn(u64) -> u32) -> (TimestampRtt, Vec<(u64, u64)>) {
        let (mut echo, mut flights) = (TimestampRtt::default(), Vec::new());
        for tick in 0..400u64 {
            let first = SeqNum::new((tick as u32).wrapping_mul(2_000).wrapping_add(u32::MAX - 100_000));
            echo.sent(tick * MS, tick as u32, first.add(1_000));
            echo.sent(tick * MS + 500_000, tick as u32, first.add(2_000));
            if let Some(heard) = tick.checked_sub(RTT / MS) {
                let first = SeqNum::new((heard as u32).wrapping_mul(2_000).wrapping_add(u32::MAX - 100_000));
                for ack in [1_000, 2_000] {
                    let now = tick * MS + u64::from(ack) * 100;
                    let echoed = echo.echoed(now, heard as u32, first.add(ack + window(heard)));
                    flights.extend(echoed.and_then(|echoed| echoed.lasted));
                }
            }
        }
        (echo, flights)
    }

    /// For how long flights lasted that are `wanted`, of the time of all.
    fn part(flights: &[(u64, u64)], wanted: impl Fn(u64) -> bool) -> f64 {
        let time = |wanted: &dyn Fn(u64) -> bool| {
            flights.iter().filter(|one| wanted(one.0)).map(|one| one.1).sum::<u64>() as f64
        };
        time(&wanted) / time(&|_| true)
    }

    #[test]
    fn a_flight_that_stands_is_told_to_the_byte() {
        let (echo, flights) = told(|_| 80_000);
        assert_eq!((part(&flights, |flight| flight == 80_000), echo.min), (1.0, Some(RTT + 100_000)));
        assert!(flights.iter().map(|one| one.1).sum::<u64>() > 320 * MS);
    }

    #[test]
    fn flights_around_a_pause_are_told_by_what_was_heard() {
        let (mut echo, seq) = (TimestampRtt::default(), SeqNum::new);
        echo.sent(0, 1, seq(1_000));
        assert!(echo.echoed(RTT, 1, seq(15_000)).is_some_and(|first| first.flights.is_none()));
        assert!(echo.echoed(RTT + MS, 1, seq(21_000)).is_none());
        echo.sent(50 * MS, 51, seq(13_000));
        echo.sent(50 * MS, 51, seq(15_000));
        let told = echo.echoed(50 * MS + RTT, 51, seq(22_000)).expect("a first echo");
        assert_eq!((told.round_trip, told.flights), (RTT, Some((20_000, 6_000))));
    }

    #[test]
    fn of_one_that_moves_no_size_has_most_of_the_time() {
        let (_, flights) = told(|tick| 80_000 + (tick % 40) as u32 * 1_000);
        assert!((80..120).all(|thousands| part(&flights, |flight| flight == thousands * 1_000) < 0.1), "{flights:?}");
        // It has most of it again and again, with others between.
        let (_, flights) = told(|tick| 80_000 + u32::from(tick % 4 == 0) * 1_000);
        assert!(part(&flights, |flight| flight == 80_000) > 0.7, "{flights:?}");
    }
}
