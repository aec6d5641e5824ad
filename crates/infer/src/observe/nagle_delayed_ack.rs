//! Small writes that wait for the acknowledgement of the one before, which the other side delays.
//!
//! Source: RFC 896 (Nagle), RFC 1122 §4.2.3.2 (delayed acknowledgements), Minshall's variant in Linux `tcp_nagle_check`.

use super::counted::Counted;
use crate::event::{MIN_ACK_DELAY_NS, Sent, Trigger};

/// Longest: RFC 1122 allows 500 ms; Windows and Linux at most 200 ms.
const MAX_DELAY_NS: u64 = 520_000_000;

/// Times that a small segment waited for a delayed acknowledgement.
#[derive(Debug, Default)]
pub(crate) struct NagleDelayedAck {
    pub(crate) waits: Counted,
    /// Nanoseconds waited beyond the round trip.
    pub(crate) time: u64,
    small: bool,
}

impl NagleDelayedAck {
    pub(crate) fn sent(&mut self, sent: &Sent) {
        let small = sent.len < sent.mss;
        let beyond = sent.ack_delay();
        let is_released = sent.trigger == (Trigger::Ack { pure: true }) && sent.una >= sent.start;
        if self.small && small && is_released && (MIN_ACK_DELAY_NS..MAX_DELAY_NS).contains(&beyond) {
            self.waits.note(sent.number, sent.now);
            self.time += beyond;
        }
        self.small = small;
    }
}
