//! A window above TCP: the sending program stops after a fixed amount, until a message of the receiving program opens it again (HTTP/2
//! `WINDOW_UPDATE`, RFC 9113 §6.9; SSH `SSH_MSG_CHANNEL_WINDOW_ADJUST`, RFC 4254 §5.2).
//!
//! A receiver that opens it when half or a quarter was read makes the sender stop each round trip, for the same amount. One that opens it for each
//! piece keeps the flight at a level, and nearly all that acknowledges new data is such a message.

use crate::estimate::data_phase::DataPhase;
use crate::estimate::partition::Partition;
use crate::estimate::round_trips::RoundTrips;
use crate::observe::stop_and_wait::Release;

/// Segments of the least window, the initial congestion window (RFC 6928 §2): smaller amounts are messages of a program that asks and answers.
const MIN_SEGMENTS: u64 = 10;
/// Part of the data phase in which the program, or what looks like its buffer, must hold the sender: less is not what holds the transfer.
/// `a_window_above_tcp_is_seen_at_either_end_however_often_it_is_opened` holds it.
const MIN_PART: f64 = 0.5;
/// The receiver's messages are one part in this many of the data at most: others carry data of their own, and acknowledge by the way.
/// `what_acknowledgements_let_go_is_no_window_above_tcp` holds it.
const MAX_PART_OF_DATA: u64 = 10;

/// A window above TCP.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AboveTcp {
    /// The amount, or the level of the flight, in bytes.
    pub(crate) bytes: u64,
    /// Messages open it again for each piece; else after stops.
    pub(crate) in_pieces: bool,
}

impl RoundTrips<'_> {
    /// The window above TCP that holds the sender most of the time; `returned` bytes came from the receiver.
    pub(crate) fn above_tcp(&self, split: &Partition, returned: u64) -> Option<AboveTcp> {
        let waits = &self.sender.observers.stop_and_wait;
        let phase_s = DataPhase::of(self.sender).took;
        let least = MIN_SEGMENTS * self.sender.space.mss;
        if returned * MAX_PART_OF_DATA > self.sender.totals.delivered {
            return None;
        }
        if let Some(bytes) = waits.amount(Release::Message, phase_s).filter(|bytes| *bytes >= least) {
            return Some(AboveTcp { bytes, in_pieces: false });
        }
        let held = split.application.seconds + split.send_buffer.seconds;
        if !waits.goes_on_by_messages() || held < phase_s * MIN_PART {
            return None;
        }
        let bytes = self.level()?;
        (bytes >= least && bytes < self.sender.window.max * 9 / 10).then_some(AboveTcp { bytes, in_pieces: true })
    }
}
