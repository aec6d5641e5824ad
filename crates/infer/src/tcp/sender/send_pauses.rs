//! How the pauses between packets of new data ended.

use super::Sender;
use crate::event::{Pause, Trigger};
use crate::tcp::packet::Data;
use crate::tcp::receiver_view::remote_clock::TICK;

/// The shortest pause of a far sender that timestamps show, in nanoseconds. Both timestamps are rounded down to a [`TICK`], and when the sender heard
/// is known to one more.
const MIN_PAUSE_BY_TIMESTAMPS_NS: u64 = 3 * TICK;

/// Within it a program that an acknowledgement wakes has written, and the kernel sent. `causes_that_are_known_are_named_at_both_ends` fails
/// without it (`send-buffer-paced`).
const MAX_WAKE_NS: u64 = 100_000;

impl Sender {
    /// How a pause ends with this packet, with `flight` out before it. Elsewhere than at the sender timestamps tell, unless the pause began
    /// with the window full, or packets overtake each other.
    pub(super) fn pause(&self, data: &Data, trigger: Trigger, flight: u64) -> Option<Pause> {
        let is_full_segment = u64::from(data.len) >= self.space.mss;
        let short = self.totals.drained;
        if self.is_exact() {
            let clocked = is_full_segment && trigger == (Trigger::Ack { pure: true });
            let (at, after_ack) = (data.now, data.now.saturating_sub(self.clocks.last_progress));
            let prompt = clocked && after_ack <= MAX_WAKE_NS;
            let set_off_after = if prompt { data.now.saturating_sub(self.clocks.last_send) } else { 0 };
            let began_at = self.totals.flight_at_send;
            return Some(Pause {
                at,
                after_ack,
                lasted: None,
                clocked,
                set_off_after,
                short,
                began_at,
                ended_at: flight,
            });
        }
        let (then, (began_at, ended_at)) = self.remote.timing.zip(self.remote.flights)?;
        let was_full = self.window.filled_at.is_some_and(|at| at >= self.clocks.last_send);
        let overtaken = self.scoreboard.out_of_order * 100 > self.totals.data_packets;
        let clocked = is_full_segment && then.unheard <= TICK;
        let is_told = then.quiet >= MIN_PAUSE_BY_TIMESTAMPS_NS && !was_full && !overtaken;
        is_told.then_some(Pause {
            at: data.now,
            after_ack: 0,
            lasted: Some(then.quiet),
            clocked,
            set_off_after: 0,
            short,
            began_at,
            ended_at,
        })
    }
}
