//! How the pauses between packets of new data ended.

use super::Sender;
use crate::observe::sndbuf_wakeups::PauseEnd;
use crate::tcp::packet::Data;
use crate::tcp::receiver_view::remote_clock::TICK;

/// A far sender's pause is told where it is longer than what ticks leave open, in nanoseconds.
const MIN_PAUSE_BY_TIMESTAMPS_NS: u64 = 3 * TICK;

impl Sender {
    /// How a pause ends with this packet, as the tap at the sender shows it; `clocked` where an acknowledgement had just come. For how long
    /// the program had nothing to send is not known before the packet is taken in.
    pub(super) fn pause_seen(&self, data: &Data, clocked: bool) -> PauseEnd {
        PauseEnd {
            charged: 0,
            clocked: clocked && self.clocks.progress_was_pure && u64::from(data.len) >= self.space.mss,
            short: self.totals.drained,
            began_at: self.totals.flight_at_send,
            before: self.observers.sndbuf_wakeups.before(),
            ended_at: self.flight(),
        }
    }

    /// How a far sender's pause ends with this packet, as timestamps tell it; `None` where they do not, where it began with the window full, and
    /// where packets overtake each other.
    pub(super) fn pause_told(&self, data: &Data) -> Option<PauseEnd> {
        let (then, (began_at, ended_at)) = self.remote.timing.zip(self.remote.flights)?;
        let was_full = self.window.filled_at.is_some_and(|at| at >= self.clocks.last_send);
        let overtaken = self.scoreboard.out_of_order * 100 > self.totals.data_packets;
        (then.quiet >= MIN_PAUSE_BY_TIMESTAMPS_NS && !was_full && !overtaken).then(|| PauseEnd {
            charged: then.quiet,
            clocked: then.unheard <= TICK && u64::from(data.len) >= self.space.mss,
            short: self.totals.drained,
            began_at,
            before: ended_at,
            ended_at,
        })
    }
}
