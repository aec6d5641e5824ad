//! A send buffer that is written again once it is empty, as some systems have where the program sets its size, and small devices always.

use crate::estimate::data_phase::DataPhase;
use crate::estimate::round_trips::RoundTrips;
use crate::observe::stop_and_wait::Release;

/// Segments of the shortest such write that is no whole number of them: what Nagle's algorithm holds back is one part of a segment (RFC 9293
/// §3.7.4), behind a segment at most, for two are acknowledged at once (RFC 9293 §3.8.6.3). A buffer of 4,096 bytes holds two and a part.
const MIN_SEGMENTS: u64 = 2;

impl RoundTrips<'_> {
    /// The bytes of each write, where the acknowledgement of the last one lets the next one go most of the time.
    ///
    /// Elsewhere than at the sender a program that writes by a timer looks the same, unless the receiver delays that acknowledgement.
    pub(crate) fn emptied_buffer(&self) -> Option<u64> {
        let phase_s = DataPhase::of(self.sender).took;
        let mss = self.sender.space.mss.max(1);
        let waits = &self.sender.observers.stop_and_wait;
        let bytes = waits.amount(Release::Acknowledgement, phase_s)?;
        let is_seen = self.sender.is_exact() || waits.ack_delay().is_some();
        (is_seen && (bytes >= MIN_SEGMENTS * mss || bytes.is_multiple_of(mss))).then_some(bytes)
    }
}
