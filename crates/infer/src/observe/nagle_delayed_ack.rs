//! Small writes that wait for the acknowledgement of the one before, whether the other side delays that or not.
//!
//! Source: RFC 896 (Nagle), RFC 1122 §4.2.3.2 (delayed acknowledgements), Minshall's variant in Linux `tcp_nagle_check`.

use super::counted::Counted;
use crate::event::{Accuracy, MIN_ACK_DELAY_NS, Sent, Trigger};

/// Longest: RFC 1122 allows 500 ms; Windows and Linux at most 200 ms.
const MAX_DELAY_NS: u64 = 520_000_000;

/// What Nagle's algorithm held leaves this soon after the acknowledgement, in nanoseconds: the kernel sends it then. A program's own timer of period T
/// falls into it by chance with probability 100 µs/T. `what_a_small_segment_holds_back_leaves_with_its_acknowledgement` holds it.
const MAX_AFTER_ACK_NS: u64 = 100_000;
/// What every window holds, in segments: RFC 6928 §2.
const WINDOW_SEGMENTS: u64 = 10;

/// Waits, and their nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    pub(crate) seen: Counted,
    pub(crate) time: u64,
}

impl Waits {
    fn add(&mut self, sent: &Sent, nanos: u64) {
        self.seen.note(sent.number, sent.now);
        self.time += nanos;
    }
}

/// Times that a small segment waited for an acknowledgement.
#[derive(Debug, Default)]
pub(crate) struct NagleDelayedAck {
    /// For one that was delayed, beyond the round trip.
    pub(crate) delayed: Waits,
    small: bool,
    /// For one that came at once, though every window had room.
    pub(crate) prompt: Waits,
    /// End of the latest small segment, and what was acknowledged and in flight when anything was sent last.
    small_end: u64,
    una: u64,
    flight: u64,
    /// When the other side sent data.
    message_at: u64,
}

impl NagleDelayedAck {
    /// Nanoseconds waited in all.
    pub(crate) const fn waited(&self) -> u64 {
        self.delayed.time + self.prompt.time
    }

    /// The other side sent data, which a program may answer.
    pub(crate) const fn message(&mut self, now: u64) {
        self.message_at = now;
    }

    pub(crate) fn sent(&mut self, sent: &Sent, accuracy: Accuracy) {
        let small = sent.len < sent.mss;
        let beyond = sent.ack_delay();
        let by_ack = sent.trigger == (Trigger::Ack { pure: true });
        let is_delayed = (MIN_ACK_DELAY_NS..MAX_DELAY_NS).contains(&beyond);
        if self.small && small && by_ack && sent.una >= sent.start && is_delayed {
            self.delayed.add(sent, beyond);
        } else if small && by_ack && accuracy == Accuracy::Exact && self.was_held(sent) {
            self.prompt.add(sent, sent.silence());
        }
        if small {
            self.small_end = sent.start + sent.len;
        }
        (self.small, self.una, self.flight) = (small, sent.una, sent.flight_with());
    }

    /// Whether the acknowledgement of the small segment before let this one go, and nothing else had to.
    fn was_held(&self, sent: &Sent) -> bool {
        let is_of_small = self.small_end > self.una && sent.una >= self.small_end;
        let had_room = self.flight + sent.len <= WINDOW_SEGMENTS * sent.mss;
        let is_prompt = sent.now.saturating_sub(sent.last_progress) <= MAX_AFTER_ACK_NS;
        let is_answer = self.message_at > sent.last_send;
        is_of_small && had_room && is_prompt && !is_answer && sent.silence() * 2 >= sent.rtt_min && !sent.is_repairing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;
    const RTT: u64 = 60_000_000;

    /// Twelve answers of a small head, so many full segments, and a small tail that leaves so long after the head was acknowledged, with a message
    /// that long before it if there is one.
    fn held(full: u64, after_ack: u64, message: Option<u64>) -> u64 {
        let mut found = NagleDelayedAck::default();
        let (mut start, mut now, mut last_send) = (0, 0, 0);
        for number in 0..12 {
            let begun = start;
            let lens = std::iter::once(100).chain(std::iter::repeat_n(MSS, full as usize));
            for len in lens {
                let sent = Sent { number, now, ..segment((start, len), begun, last_send) };
                found.sent(&sent, Accuracy::Exact);
                (start, last_send) = (start + len, now);
            }
            let last_progress = now + RTT;
            now = last_progress + after_ack;
            if let Some(before) = message {
                found.message(now - before);
            }
            let trigger = Trigger::Ack { pure: true };
            let sent = Sent { number, now, last_progress, trigger, ..segment((start, 300), begun + 100, last_send) };
            found.sent(&sent, Accuracy::Exact);
            (start, last_send, now) = (start + 300, now, now + RTT);
        }
        found.prompt.seen.count
    }

    fn segment((start, len): (u64, u64), una: u64, last_send: u64) -> Sent {
        let (next, flight_before) = (start + len, start - una);
        Sent { start, len, una, next, flight_before, last_send, mss: MSS, rtt_min: RTT, ..Sent::default() }
    }

    #[test]
    fn what_a_small_segment_holds_back_leaves_with_its_acknowledgement() {
        assert_eq!([held(2, 10_000, None), held(2, 10_000, Some(RTT + 10_000))], [12, 12]);
        let [late, large] = [held(2, 500_000, None), held(20, 10_000, None)];
        assert_eq!([late, large], [0, 0], "the program's own time; a window of its size");
        assert_eq!(held(2, 10_000, Some(5_000)), 0, "an answer");
    }
}
