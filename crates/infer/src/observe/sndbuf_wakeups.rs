//! Whether a full socket buffer is what made the sending program wait.
//!
//! A program blocked on a full buffer is woken when a third of it is free, and fills it again at once. Each pause so ends with an
//! acknowledgement, when what is still in flight has come down to one and the same level: between what was in flight before the
//! acknowledgements that came at once and after them, which is much where delays vary. How much was in flight when the pause began
//! tells less: Linux lets a program write more than the buffer holds while the congestion window is open (docs/limits.md, "A send
//! buffer that does not hold"). A program that has nothing to send ends its pauses when it pleases, or with the request that an
//! acknowledgement carries, and most often with nothing in flight.
//!
//! Where what is written is paced (BBR), acknowledgements come while it is sent, and less is in flight when a pause begins than the buffer
//! holds: the pause may end at nearly the same. At the sender's tap it shows by what ends it.
//!
//! Source: Linux `sk_stream_is_writeable`.

use super::ticks::Ticks;
use crate::event::{Pause, Waited};

/// Where more is in flight yet, in quarters, no program was woken: the kernel gathers segments before it sends them (`tcp_tso_should_defer`).
const MAX_FLIGHT_QUARTERS: u64 = 3;
/// What is shorter is no pause: within this time a program that is woken has written and the kernel sent.
const MIN_PAUSE_NS: u64 = 1_000_000;
/// Within this time what waits for a window alone is sent. `what_an_acknowledgement_sets_off_is_a_buffers_wherever_the_pause_began` holds it.
const MIN_ROOM_NS: u64 = 250_000;
/// The kernel does not gather for longer: `tcp_tso_should_defer` waits only within a millisecond after a write.
const MIN_SILENCE_NS: u64 = 2_000_000;
/// Part of the flight, one in this many, that must be acknowledged meanwhile. Where it is less, it was a congestion window after losses: with one
/// in 200, four of some fifty send buffers of two labelled ranges were not found. A write of 64 KiB into a buffer that lets 4 MiB be in flight is
/// less, too. `what_an_acknowledgement_sets_off_is_a_buffers_wherever_the_pause_began` holds it.
const FLIGHT_PER_FREED: u64 = 32;
/// Pauses enough to judge by. `one_level_at_which_acknowledgements_wake_is_a_buffers` holds it.
const MIN_PAUSES: u64 = 16;
/// Or fewer, if they last for this many round trips together. `one_level_at_which_acknowledgements_wake_is_a_buffers` holds it.
const MIN_PAUSE_ROUND_TRIPS: f64 = 4.0;
const MIN_LONG_PAUSES: u64 = 4;
/// Part of the pauses that must end so. A timer of period T falls into the 1 ms after an acknowledgement by chance with
/// probability 1 ms/T.
const MIN_WOKEN_SHARE: f64 = 0.8;
/// A full buffer holds whole segments; where most pauses began after a short one, the program had written all it had. In the labelled
/// range of 400,000 every pause of 23 of the 29 programs that pause by themselves began so, and at most half of any full buffer's.
const MAX_SHORT_SHARE: f64 = 0.75;
/// A pause ends at the same flight as the others within this part of it. In our lab flights differ by 2 % on average at the sender's tap
/// and by 7 % as timestamps tell them, which blurs what is acknowledged within a millisecond.
const MAX_END_DEVIATION: f64 = 0.15;
/// Or within this part of what was in flight when it began: of a small buffer little is in flight when it is written again, and that is blurred as much.
/// `a_small_buffers_level_is_as_blurred_as_what_is_freed` holds it.
const MAX_FREED_DEVIATION: f64 = 0.03;
/// And begins at the same one, where the buffer holds. One counted in packets' memory varies by 1 % in our lab; a window that grows from
/// 70 to 100 % of its peak (RFC 9438, β = 0.7) by 7 % on average.
const MAX_BEGIN_DEVIATION: f64 = 0.05;
/// Acknowledgements no further apart than this, in nanoseconds, came at once: a program that the first of them wakes writes after the last.
/// `acknowledgements_that_come_at_once_hold_the_level_between_them` holds it.
const ACK_BURST_NS: u64 = 20_000;
/// Weight of the latest flight in the mean: one of a buffer that tunes itself, and of packets that grow, is soon forgotten.
const LATEST_WEIGHT: f64 = 0.25;
/// Where the buffer holds, a program is let write again at two thirds of what there was, or less, for what packets take besides is counted as
/// well: 0.54 to 0.665 in our lab. `a_buffer_that_holds_more_than_the_window_wakes_above_two_thirds_of_that` holds it.
const MAX_WOKEN_PART: f64 = 2.0 / 3.0;
/// Part of the window at which it is full: whole segments fit, and of those that the kernel makes of many the last may not.
const MIN_FULL_WINDOW_PART: f64 = 0.97;
/// Part of the pauses that must be at the same flight: a buffer that tunes itself grows first.
const MIN_ALIKE_SHARE: f64 = 0.75;

/// A flight that keeps coming back, in bytes.
#[derive(Debug, Default, Clone, Copy)]
struct Level {
    mean: f64,
    /// How many were near the mean of the latest before them.
    near: u64,
}

impl Level {
    /// Takes the `count`th flight in, counted from 1, which was between these two: the same as the others if it is within a part of them, or this many
    /// bytes.
    fn take(&mut self, (least, most): (u64, u64), count: u64, part: f64, bytes: f64) {
        let flight = if count == 1 { least as f64 } else { self.mean.max(least as f64).min(most as f64) };
        self.near += u64::from((flight - self.mean).abs() <= (part * self.mean).max(bytes));
        self.mean += (flight - self.mean) * (1.0 / count as f64).max(LATEST_WEIGHT);
    }

    fn keeps_coming_back(&self, count: u64) -> bool {
        self.near as f64 + 1.0 >= MIN_ALIKE_SHARE * count as f64
    }
}

/// Whether there was `room` to send for a while, and then an acknowledgement set the segment off: a window sends at the first acknowledgement
/// that makes room, and a kernel that paces by its timer.
fn is_set_off(end: &Pause, room: u64, patience: u64) -> bool {
    room >= MIN_ROOM_NS
        && end.set_off_after >= MIN_SILENCE_NS.max(patience / 2)
        && end.began_at.saturating_sub(end.ended_at) * FLIGHT_PER_FREED >= end.began_at
}

/// Pauses that room in all windows made the application's or, of a far sender, that timestamps tell, and how they ended.
#[derive(Debug, Default)]
pub(crate) struct SndbufWakeups {
    pauses: u64,
    /// Of these, those in which the program had written all it had: they began after a short segment, or ended with nothing in flight.
    empty: u64,
    /// Nanoseconds of others, of which the kernel's gathering made most.
    gathered: u64,
    /// Those that ended as a full buffer's do.
    pub(crate) woken: u64,
    /// Of these, those that an acknowledgement set off, as the sender's tap shows.
    set_off: u64,
    /// Of `woken`, those that began after a short segment.
    short: u64,
    /// Nanoseconds of these, and of all.
    pub(crate) time: u64,
    all: u64,
    began_at: Level,
    ended_at: Level,
    ticks: Ticks,
    /// When the sender heard last, and what was in flight before the acknowledgements that came at once then.
    heard: (u64, u64),
}

impl SndbufWakeups {
    /// The sender heard of new data with so much in flight.
    pub(crate) const fn heard(&mut self, now: u64, flight: u64) {
        let flight = if now.saturating_sub(self.heard.0) <= ACK_BURST_NS { self.heard.1 } else { flight };
        self.heard = (now, flight);
    }

    /// A pause ended; open time is the application's if it lasted for longer than `patience` nanoseconds.
    pub(crate) fn ended(&mut self, end: Pause, waited: Waited, patience: u64) {
        // Timestamps tell the flight at one moment; acknowledgements that come at once change it.
        let before = if end.lasted.is_some() { end.ended_at } else { self.heard.1.max(end.ended_at) };
        let set_off = is_set_off(&end, waited.room, patience);
        let lasted = end.lasted.unwrap_or(if set_off { end.set_off_after } else { waited.charged });
        if lasted < MIN_PAUSE_NS {
            return;
        }
        if end.clocked && !set_off && end.ended_at * 4 > end.began_at * MAX_FLIGHT_QUARTERS {
            // Without room a window made it wait.
            self.gathered += if waited.room > 0 { lasted } else { 0 };
            return;
        }
        self.pauses += 1;
        self.empty += u64::from(end.short || end.ended_at == 0);
        self.all += lasted;
        if !end.clocked || end.ended_at == 0 {
            return;
        }
        self.woken += 1;
        self.set_off += u64::from(set_off);
        self.short += u64::from(end.short);
        self.time += lasted;
        self.ticks.went_on(end.at, end.after_ack);
        self.began_at.take((end.began_at, end.began_at), self.woken, MAX_BEGIN_DEVIATION, 0.0);
        self.ended_at.take(
            (end.ended_at, before),
            self.woken,
            MAX_END_DEVIATION,
            end.began_at as f64 * MAX_FREED_DEVIATION,
        );
    }

    /// Whether the pauses are those of a program that waits for its socket buffer; `rtt` in nanoseconds, the receiver's largest `window` in bytes.
    pub(crate) fn are_a_buffers(&self, rtt: f64, window: u64) -> bool {
        let enough = self.woken >= MIN_PAUSES
            || self.woken >= MIN_LONG_PAUSES && self.time as f64 >= MIN_PAUSE_ROUND_TRIPS * rtt;
        let whole = (self.short as f64) < MAX_SHORT_SHARE * self.woken as f64;
        // A window that is used up moves on by what is acknowledged, and pauses like a buffer by chance; a program that writes each ten
        // milliseconds over a round trip of twenty does so as long as the kernel gathers.
        let mostly = self.woken as f64 >= MIN_WOKEN_SHARE * self.pauses as f64 && self.gathered < self.time;
        // Where the window is full as well, what the buffer holds besides is not in flight.
        // Of what is paced not all that the buffer holds is in flight at once.
        let paced = self.set_off as f64 >= MIN_WOKEN_SHARE * self.woken as f64;
        let fits = paced
            || self.full().is_none_or(|full| {
                self.level() <= MAX_WOKEN_PART * full || full >= MIN_FULL_WINDOW_PART * window as f64
            });
        enough && whole && mostly && fits && !self.ticks.are_a_timers() && self.ended_at.keeps_coming_back(self.woken)
    }

    /// Whether the program had more to send at most of the pauses, as far as they tell.
    pub(crate) const fn had_more(&self) -> bool {
        self.pauses > 0 && self.empty * 4 < self.pauses
    }

    /// The part of all pauses' time that is theirs.
    pub(crate) fn part(&self) -> f64 {
        self.time as f64 / self.all.max(1) as f64
    }

    /// What is in flight when the program is let write again, in bytes.
    pub(crate) fn level(&self) -> f64 {
        self.ended_at.mean
    }

    /// About what the buffer is to hold, in bytes: one and a half of what is in flight when the program is let write again. What packets take
    /// besides their payload is not in it, a twentieth in our lab.
    pub(crate) fn buffer(&self) -> f64 {
        1.5 * self.level()
    }

    /// The flight at which the pauses begin, in bytes: what the buffer holds; `None` where it does not hold.
    pub(crate) fn full(&self) -> Option<f64> {
        self.began_at.keeps_coming_back(self.woken).then_some(self.began_at.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHARGED: Waited = Waited { charged: 30_000_000, room: 30_000_000 };
    const PATIENCE: u64 = 10_000_000;
    const PAUSE: Pause = Pause {
        at: 0,
        after_ack: 0,
        lasted: None,
        clocked: true,
        set_off_after: 0,
        short: false,
        began_at: 400_000,
        ended_at: 220_000,
    };

    #[test]
    fn one_level_at_which_acknowledgements_wake_is_a_buffers() {
        let mut wakes = SndbufWakeups::default();
        (0..5).for_each(|n| wakes.ended(Pause { began_at: 400_000 + n * 1_000, ..PAUSE }, CHARGED, PATIENCE));
        assert!(wakes.are_a_buffers(30e6, u64::MAX));
        assert!(!wakes.are_a_buffers(60e6, u64::MAX), "too few for that long a round trip");
        assert!(wakes.full().is_some_and(|full| (full - 402_000.0).abs() < 1_000.0));
    }

    #[test]
    fn a_buffer_that_does_not_hold_wakes_at_its_level_nonetheless() {
        let mut wakes = SndbufWakeups::default();
        (0..20).for_each(|n| wakes.ended(Pause { began_at: 400_000 + n % 4 * 300_000, ..PAUSE }, CHARGED, PATIENCE));
        assert!(wakes.are_a_buffers(30e6, u64::MAX));
        assert_eq!((wakes.level(), wakes.full()), (220_000.0, None));
    }

    #[test]
    fn a_buffer_that_holds_more_than_the_window_wakes_above_two_thirds_of_that() {
        let mut wakes = SndbufWakeups::default();
        (0..20).for_each(|_| wakes.ended(Pause { ended_at: 280_000, ..PAUSE }, CHARGED, PATIENCE));
        assert_eq!([400_000, 500_000].map(|window| wakes.are_a_buffers(30e6, window)), [true, false]);
    }

    #[test]
    fn acknowledgements_that_come_at_once_hold_the_level_between_them() {
        let judge = |before: u64| {
            let mut wakes = SndbufWakeups::default();
            for n in 0..40 {
                wakes.heard(n * 50_000_000, before);
                wakes.ended(Pause { ended_at: 80_000 + n * 61 % 40 * 3_500, ..PAUSE }, CHARGED, PATIENCE);
            }
            wakes.are_a_buffers(30e6, u64::MAX)
        };
        assert!(judge(900_000));
        assert!(!judge(0), "one at a time, and no level");
        let mut wakes = SndbufWakeups::default();
        [(1_000_000, 900_000), (1_010_000, 700_000), (1_020_000, 400_000)]
            .into_iter()
            .for_each(|(now, flight)| wakes.heard(now, flight));
        assert_eq!(wakes.heard.1, 900_000);
        wakes.heard(1_050_000, 300_000);
        assert_eq!(wakes.heard.1, 300_000);
    }

    #[test]
    fn a_small_buffers_level_is_as_blurred_as_what_is_freed() {
        let judge = |began_at: u64| {
            let mut wakes = SndbufWakeups::default();
            let lasted = Some(58_000_000);
            (0..40).for_each(|n| {
                let end = Pause { lasted, began_at, ended_at: 12_000 + n * 7 % 4 * 2_500, ..PAUSE };
                wakes.ended(end, CHARGED, PATIENCE);
            });
            wakes.are_a_buffers(60e6, u64::MAX)
        };
        assert_eq!([40_000, 170_000].map(judge), [false, true]);
    }

    #[test]
    fn what_an_acknowledgement_sets_off_is_a_buffers_wherever_the_pause_began() {
        // BBR over 20 ms: 64 KiB are paced out while acknowledgements come.
        const PACED: Pause = Pause { set_off_after: 8_000_000, began_at: 191_000, ended_at: 168_000, ..PAUSE };
        let judge = |end: Pause, room: u64| {
            let mut wakes = SndbufWakeups::default();
            (0..40).for_each(|_| wakes.ended(end, Waited { charged: 0, room }, 5_000_000));
            wakes.are_a_buffers(20e6, u64::MAX)
        };
        assert!(judge(PACED, 570_000));
        assert!(!judge(PACED, 90_000), "a window's, after acknowledgements that came at once");
        assert!(!judge(Pause { set_off_after: 0, ..PACED }, 570_000), "a pacing timer's");
        assert!(!judge(Pause { set_off_after: 1_050_000, ..PACED }, 700_000), "gathered");
        assert!(!judge(Pause { ended_at: 187_000, ..PACED }, 570_000), "a window's after a loss");
        assert!(
            judge(Pause { began_at: 2_785_000, ended_at: 2_785_000 - 97_000, ..PACED }, 570_000),
            "45 and 22 segments"
        );
    }

    #[test]
    fn a_program_with_more_to_send_pauses_after_whole_segments_with_some_in_flight() {
        let had_more = |end: fn(u64) -> Pause| {
            let mut wakes = SndbufWakeups::default();
            (0..16).for_each(|n| wakes.ended(end(n), CHARGED, PATIENCE));
            wakes.had_more()
        };
        assert!(had_more(|n| Pause { clocked: n % 2 == 0, short: n % 8 == 0, ..PAUSE }));
        assert!(!had_more(|n| Pause { short: n % 2 == 0, ..PAUSE }));
        assert!(!had_more(|_| Pause { ended_at: 0, ..PAUSE }));
        assert!(!had_more(|_| Pause { lasted: Some(0), ..PAUSE }), "no pause");
    }

    #[test]
    fn timers_requests_and_growing_windows_are_not() {
        let judge = |end: fn(u64) -> Pause| {
            let mut wakes = SndbufWakeups::default();
            (0..100).for_each(|n| wakes.ended(end(n), CHARGED, PATIENCE));
            wakes.are_a_buffers(30e6, u64::MAX)
        };
        assert!(!judge(|n| Pause { clocked: n % 2 == 0, ..PAUSE }));
        assert!(!judge(|_| Pause { ended_at: 0, ..PAUSE }));
        assert!(!judge(|_| Pause { ended_at: 380_000, ..PAUSE }), "gathered by the kernel");
        assert!(!judge(|_| Pause { ended_at: 280_000, ..PAUSE }), "written every third of a round trip");
        assert!(!judge(|_| Pause { short: true, ..PAUSE }), "all that was written had gone");
        assert!(!judge(|n| Pause { ended_at: if n % 2 == 0 { 380_000 } else { 220_000 }, ..PAUSE }), "every other one");
        assert!(!judge(|n| Pause { ended_at: 220_000 + n % 10 * 20_000, ..PAUSE }));
    }

    #[test]
    fn what_the_kernel_gathers_is_nothing_beside_longer_pauses() {
        let judge = |longer: u64, room: u64| {
            let mut wakes = SndbufWakeups::default();
            for n in 0..100 {
                let gathers = n % 2 == 0;
                let ended_at = if gathers { 380_000 } else { 220_000 };
                let lasted = Some(10_000_000 + if gathers { 0 } else { longer });
                wakes.ended(Pause { ended_at, lasted, ..PAUSE }, Waited { room, ..CHARGED }, PATIENCE);
            }
            wakes.are_a_buffers(30e6, u64::MAX)
        };
        assert!(!judge(0, 30_000_000));
        assert!(judge(30_000_000, 30_000_000));
        assert!(judge(0, 0), "a window's pauses are not the kernel's gathering");
    }
}
