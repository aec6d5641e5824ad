//! Amounts of data after which a sender stops, and what lets it go on.
//!
//! A window above TCP lets a program send a fixed amount, until a message of the other program opens it again (HTTP/2 `WINDOW_UPDATE`,
//! RFC 9113 §6.9; SSH `SSH_MSG_CHANNEL_WINDOW_ADJUST`, RFC 4254 §5.2). A send buffer that is written once it is empty does the same with
//! acknowledgements.

use super::counted::Counted;
use super::ticks::Ticks;
use crate::event::{Accuracy, MIN_ACK_DELAY_NS, Sent, Trigger};

/// Stops that make a habit. Two of the same size may be chance, eight are a loop of the program. `a_fixed_amount_is_a_habit_by_what_lets_it_go_on`
/// holds it.
const MIN_STOPS: u64 = 8;
/// Parts, in tenths, of the stops that must be alike: the first stops come while the congestion window still grows.
/// `amounts_that_differ_or_outlast_a_flight_are_none` holds it.
const ALIKE_TENTHS: u64 = 8;
/// A message or an acknowledgement lets a sender go on at most this long before it does, in nanoseconds: within this time a program that is woken
/// has written. A timer of period T falls into it by chance with probability 1 ms/T. `a_fixed_amount_is_a_habit_by_what_lets_it_go_on` holds it.
const AFTER_RELEASE: u64 = 1_000_000;
/// Silences from which on it shows what ended them, at the sender and elsewhere, in nanoseconds: acknowledgements of a gigabit come every 24 µs, and
/// times at a far sender are known to a millisecond. `a_window_above_tcp_is_seen_at_either_end_however_often_it_is_opened` holds it.
const SILENCES: [u64; 2] = [100_000, 2_000_000];
/// And a round trip has at most this many: more are what pacing leaves between packets. `pacing_leaves_no_silences` holds it.
const SILENCES_PER_ROUND_TRIP: u64 = 16;
/// Part of the data phase that the stops must take: less is not what holds the transfer.
const MIN_PART_WAITED: f64 = 0.5;
/// What goes on within this part of the time it stopped may be let go by either: a timer does so by chance with probability 1/20.
/// `what_goes_on_soon_is_no_timer` holds it.
const SOON_PART: u64 = 20;

/// What let a sender go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// Data of the other side.
    Message,
    /// An acknowledgement without data.
    Acknowledgement,
}

/// The stops of one direction: all that was sent is acknowledged, or a message comes after a silence. Elsewhere than at the sender they are
/// silences of half a round trip.
#[derive(Debug, Default)]
pub(crate) struct StopAndWait {
    /// The first packets after them.
    pub(crate) stops: Counted,
    by_message: u64,
    by_acknowledgement: u64,
    /// Stops that ended later, and still soon after an acknowledgement.
    soon: u64,
    /// Of all, amounts that were in flight whole, so that nothing but their end stopped them.
    whole: u64,
    /// The amount that more than half of the stops have, if any has (Boyer and Moore's majority vote), and how often it was seen.
    amount: u64,
    votes: u64,
    seen: u64,
    /// Stops, those that were whole, and those that messages and acknowledgements ended, before that amount was seen: while the congestion window
    /// grows, each is larger than the last.
    before: [u64; 4],
    /// Nanoseconds from the last byte before a stop to the first after it, and of them those by which the acknowledgement of that byte came later
    /// than a round trip after it.
    waited: u64,
    delayed: u64,
    ticks: Ticks,
    start: Option<u64>,
    most_in_flight: u64,
    message_at: Option<u64>,
    /// Silences that a message ended, their nanoseconds, and those of all silences: where delays vary, there are short ones besides.
    ended_by_message: u64,
    until_message: u64,
    silent: u64,
    /// What lets data go, each counted once: messages that acknowledge new data, and acknowledgements of it without any.
    pub(crate) messages: u64,
    acknowledgements: u64,
    /// When the last of them came, where the tap is at the sender: it may let many segments go.
    let_go_at: Option<u64>,
    /// Number and time of the first packet that shows such a message.
    pub(crate) first_message: Option<(u64, u64)>,
}

impl StopAndWait {
    /// New data was acknowledged in a packet without data. From afar it cannot be told which of these let data go.
    pub(crate) fn acknowledged(&mut self) {
        self.acknowledgements += 1;
    }

    /// The other side sent data.
    pub(crate) fn message(&mut self, now: u64) {
        self.message_at = Some(now);
    }

    /// New data was acknowledged in a packet with data.
    pub(crate) fn acknowledged_by_message(&mut self, now: u64, number: u64) {
        self.messages += 1;
        self.first_message.get_or_insert((number, now));
    }

    /// New data was sent. The amount before it, if that was a stop. Messages open a window above TCP again before all of it has arrived, most of
    /// them at half.
    pub(crate) fn sent(&mut self, sent: &Sent, accuracy: Accuracy) -> Option<u64> {
        let begun = *self.start.get_or_insert(sent.start);
        let is_far = accuracy != Accuracy::Exact;
        let is_opened = self.is_opened(sent);
        let silence = sent.silence();
        if silence >= SILENCES[usize::from(is_far)].max(sent.rtt_min / SILENCES_PER_ROUND_TRIP) {
            self.silent += silence;
            self.ended_by_message += u64::from(is_opened);
            self.until_message += if is_opened { silence } else { 0 };
        }
        let is_silent = silence >= sent.rtt_min / 2;
        let is_stop = if is_far { is_silent } else { sent.una >= sent.start || is_opened && is_silent };
        let amount = sent.start.checked_sub(begun).filter(|amount| is_stop && *amount > 0);
        if let Some(amount) = amount {
            self.stopped(amount, sent, is_opened, is_far);
            self.start = Some(sent.start);
            self.most_in_flight = 0;
        }
        if !is_far {
            self.let_go(sent);
        }
        self.most_in_flight = self.most_in_flight.max(sent.flight_with());
        amount
    }

    /// Counts the acknowledgement that let this go, unless it let data go before. Nothing that was acknowledged lets the first flight go.
    fn let_go(&mut self, sent: &Sent) {
        let Trigger::Ack { pure } = sent.trigger else { return };
        if sent.una <= sent.first || self.let_go_at.replace(sent.last_progress) == Some(sent.last_progress) {
            return;
        }
        if pure {
            self.acknowledged();
        } else {
            self.acknowledged_by_message(sent.now, sent.number);
        }
    }

    /// Whether a message has just come.
    fn is_opened(&self, sent: &Sent) -> bool {
        self.message_at.is_some_and(|at| at > sent.last_send && sent.now.saturating_sub(at) <= AFTER_RELEASE)
    }

    fn stopped(&mut self, amount: u64, sent: &Sent, is_opened: bool, is_far: bool) {
        let before = self.counts();
        self.stops.note(sent.number, sent.now);
        // From afar it is not known what was in flight; what acknowledgements let go is told apart by their being no messages.
        self.whole += u64::from(is_far || self.most_in_flight >= amount);
        let since = |at: u64| sent.now.saturating_sub(at);
        let stopped = sent.silence();
        self.waited += stopped;
        self.delayed += sent.ack_delay();
        self.ticks.went_on(sent.now, since(sent.last_progress));
        if is_opened {
            self.by_message += 1;
        } else if since(sent.last_progress) <= AFTER_RELEASE {
            self.by_acknowledgement += 1;
        } else if since(sent.last_progress) <= stopped / SOON_PART {
            self.soon += 1;
        }
        if self.votes == 0 {
            (self.amount, self.seen, self.before) = (amount, 0, before);
        }
        // A program that opens the window at half counts whole segments.
        let slack = if is_far || sent.una < sent.start { sent.mss } else { 0 };
        let is_same = amount.abs_diff(self.amount) <= slack;
        self.seen += u64::from(is_same);
        self.votes = if is_same { self.votes + 1 } else { self.votes - 1 };
    }

    /// Whether messages let nearly all data go, or end silences of nearly all their time.
    pub(crate) fn goes_on_by_messages(&self) -> bool {
        let nearly = |part: u64, all: u64| part * 10 >= all * ALIKE_TENTHS;
        self.messages >= MIN_STOPS && nearly(self.messages, self.messages + self.acknowledgements)
            || self.ended_by_message >= MIN_STOPS && nearly(self.until_message, self.silent)
    }

    /// How much later than a round trip the acknowledgements come that end stops, in the mean, in seconds, where the receiver delays them.
    pub(crate) fn ack_delay(&self) -> Option<f64> {
        let mean = self.delayed as f64 / self.stops.count.max(1) as f64;
        (mean >= MIN_ACK_DELAY_NS as f64).then_some(mean / 1e9)
    }

    /// Whether neither messages nor acknowledgements let the sender go on.
    pub(crate) const fn goes_on_by_itself(&self) -> bool {
        (self.by_message + self.by_acknowledgement + self.soon) * 10 <= self.stops.count * (10 - ALIKE_TENTHS)
    }

    /// The amount after which the sender stops until this lets it go on, where that takes most of a data phase of `phase_s` seconds.
    pub(crate) fn amount(&self, release: Release, phase_s: f64) -> Option<u64> {
        let (amount, by) = self.habit()?;
        (by == release && self.waited as f64 / 1e9 >= phase_s * MIN_PART_WAITED).then_some(amount)
    }

    const fn counts(&self) -> [u64; 4] {
        [self.stops.count, self.whole, self.by_message, self.by_acknowledgement]
    }

    /// The amount after which the sender stops, in bytes, and what lets it go on, where both are the same nearly always.
    fn habit(&self) -> Option<(u64, Release)> {
        let mut counts = self.counts();
        counts.iter_mut().zip(self.before).for_each(|(count, before)| *count -= before);
        let [stops, whole, by_message, by_acknowledgement] = counts;
        let alike = |count: u64| count * 10 >= stops * ALIKE_TENTHS;
        if stops < MIN_STOPS || !alike(self.seen) || !alike(whole) {
            return None;
        }
        if alike(by_message) {
            Some((self.amount, Release::Message))
        } else if alike(by_acknowledgement) && !self.ticks.are_a_timers() {
            Some((self.amount, Release::Acknowledgement))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first packet after a stop at `start`, with this much in flight before it.
    fn after_stop(
        number: u64,
        now: u64,
        (start, flight_before): (u64, u64),
        last_send: u64,
        last_progress: u64,
    ) -> Sent {
        let (next, una) = (start, start);
        Sent { number, now, start, next, una, flight_before, last_send, last_progress, ..Sent::default() }
    }

    /// Twelve amounts over a round trip of 100 ms: each is acknowledged, and a message comes with that where `message` says so.
    fn habit(amount: fn(u64) -> u64, in_flight: fn(u64) -> u64, message: bool) -> Option<(u64, Release)> {
        let mut found = StopAndWait::default();
        let (mut start, mut last_send, mut now) = (0, 0, 0);
        for n in 0..12 {
            let last_progress = now;
            if message {
                found.message(now);
            }
            now += 100_000;
            let flight_before = in_flight(amount(n));
            found.sent(&after_stop(n, now, (start, flight_before), last_send, last_progress), Accuracy::Exact);
            (start, last_send, now) = (start + amount(n), now, now + 100_000_000);
        }
        found.habit()
    }

    #[test]
    fn a_fixed_amount_is_a_habit_by_what_lets_it_go_on() {
        assert_eq!(habit(|_| 65_535, |bytes| bytes, true), Some((65_535, Release::Message)));
        assert_eq!(habit(|_| 16_384, |bytes| bytes, false), Some((16_384, Release::Acknowledgement)));
        assert_eq!(habit(|n| if n == 0 { 600 } else { 16_384 }, |b| b, true), Some((16_384, Release::Message)));
    }

    #[test]
    fn a_window_that_is_opened_again_at_half_is_a_habit() {
        let habit = |una_behind: u64, message: bool| {
            let mut found = StopAndWait::default();
            let (mut start, mut now) = (65_535, 0);
            for n in 0..12 {
                if message {
                    found.message(now);
                }
                let last_send = now.saturating_sub(99_000_000);
                let sent = after_stop(n, now + 50_000, (start, una_behind + 33_000), last_send, now);
                let una = start - una_behind;
                found.sent(&Sent { una, mss: 1_448, rtt_min: 100_000_000, ..sent }, Accuracy::Exact);
                start += 32_768 + n % 3 * 700;
                now += 100_000_000;
            }
            found.habit().map(|(_, release)| release)
        };
        assert_eq!(habit(32_000, true), Some(Release::Message));
        // Acknowledgements that let the next flight out are those of any window; answers are of any size.
        assert_eq!([habit(32_000, false), habit(0, true)], [None; 2]);
    }

    #[test]
    fn what_goes_on_soon_is_no_timer() {
        let goes_on_by_itself = |after: u64| {
            let mut found = StopAndWait::default();
            for n in 0..12 {
                let (start, now) = (n * 16_384, n * (100_000_000 + after));
                let last_send = now.saturating_sub(100_000_000 + after);
                let last_progress = now.saturating_sub(after);
                found.sent(&after_stop(n, now, (start, 16_384), last_send, last_progress), Accuracy::Exact);
            }
            found.goes_on_by_itself()
        };
        assert_eq!([500_000, 5_000_000, 30_000_000].map(goes_on_by_itself), [false, false, true]);
    }

    #[test]
    fn pacing_leaves_no_silences() {
        // Each 30 ms a message, and then twenty packets so far apart, over a round trip of 60 ms.
        let goes_on_by_messages = |apart: u64| {
            let (mut found, mut now, mut number) = (StopAndWait::default(), 0, 0u64);
            for _ in 0..20 {
                for packet in 0..20 {
                    let last_send = now;
                    now += if packet == 0 { 30_000_000 } else { apart };
                    if packet == 0 {
                        found.message(now);
                    }
                    let start = number * 1_448;
                    let una = start.saturating_sub(64_000);
                    let sent = Sent {
                        number,
                        now,
                        start,
                        una,
                        next: start,
                        last_send,
                        rtt_min: 60_000_000,
                        ..Sent::default()
                    };
                    found.sent(&sent, Accuracy::Exact);
                    number += 1;
                }
            }
            found.goes_on_by_messages()
        };
        assert_eq!([200_000, 3_000_000, 5_000_000].map(goes_on_by_messages), [true, true, false]);
    }

    #[test]
    fn amounts_that_differ_or_outlast_a_flight_are_none() {
        assert_eq!(habit(|n| 60_000 + n * 1_000, |bytes| bytes, true), None);
        assert_eq!(habit(|_| 300_000, |bytes| bytes / 4, true), None, "the congestion window stopped it");
    }
}
