//! Whether a sender probes for the loss of its tail, shown by probes that were due and did not come.
//!
//! With several segments out a probe comes long before the retransmission timer. With one the two come at the same time, so of that one
//! nothing but what the sender did before tells.

use super::Sender;
use crate::event::RetransmitKind;
use crate::tcp::recovery::{RetransmitEvidence, TailLossProbes};

/// What a timer of two ticks at 100 Hz adds to a probe's time, and its own tick, in nanoseconds. `and_the_timers_where_a_probe_was_missed` holds it.
const TIMER_ERROR_NS: f64 = 30e6;
/// What is added for an acknowledgement that may be held back, of a single segment: `rto_min`, of which more is rare.
/// `one_segment_sent_again_after_silence_is_a_probes` holds it.
const DELAYED_ACK_NS: f64 = 200e6;
/// The kernel's smoothed round trip and ours may differ by as much.
const RTT_ERROR_RATIO: f64 = 1.25;

impl Sender {
    /// Whether the next that is sent of itself would be a probe: the congestion state is open and no probe is out.
    ///
    /// Source: Linux `tcp_schedule_loss_probe`.
    fn is_probe_next(&self) -> bool {
        self.is_exact()
            && self.scoreboard.sack_permitted
            && self.losses.episode.is_none()
            && !self.losses.is_probing()
            && self.scoreboard.sacked.total() == 0
            && self.scoreboard.duplicates_in_row == 0
            // What ended an episode starts the timer, not a probe's.
            && self.clocks.last_again < self.clocks.last_send.max(self.clocks.last_progress)
            && !self.losses.ended_at(self.space.una)
            && self.rtt.usual() > 0.0
    }

    /// How long a probe waits at most, in nanoseconds.
    fn probe_timeout(&self, segments: u64) -> f64 {
        2.0 * RTT_ERROR_RATIO * self.rtt.usual() + TIMER_ERROR_NS + if segments > 1 { 0.0 } else { DELAYED_ACK_NS }
    }

    /// An acknowledgement of new data comes at `now`: was a probe due before?
    pub(super) fn note_missed_probe(&mut self, now: u64) {
        if self.silence(now) as f64 > self.probe_timeout(2) && self.space.nxt > self.space.una + self.space.mss {
            self.missed_probe();
        }
    }

    /// None came for so long: it sends none, if one was next and nothing tells otherwise.
    fn missed_probe(&mut self) {
        if self.losses.tail_probes == TailLossProbes::Unknown && self.is_probe_next() {
            self.losses.tail_probes = TailLossProbes::Missed;
        }
    }

    /// Whether what is sent again now may be a probe, as far as its time and what the sender did before tell.
    pub(super) fn may_be_probe(&self, now: u64, is_first: bool) -> bool {
        // A timer sends the first segment again, so another one is no timer's.
        !is_first
            || self.losses.tail_probes != TailLossProbes::Missed
                && (!self.is_exact() || (self.silence(now) as f64) < self.probe_timeout(1))
    }

    /// Takes in what a retransmission, just before it is counted, tells of probes.
    pub(super) fn note_probe(&mut self, evidence: &RetransmitEvidence, kind: RetransmitKind) {
        let silent = evidence.silence as f64 > evidence.rtt;
        match kind {
            RetransmitKind::Probe if !evidence.is_first => self.losses.tail_probes = TailLossProbes::Sent,
            // The first of several, and nothing that could have been a probe with new data before it.
            RetransmitKind::Timer
                if evidence.is_first && !evidence.is_last && silent && self.clocks.last_gap as f64 <= evidence.rtt =>
            {
                self.missed_probe();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tcp::connection::Connection;
    use crate::testing::{connection_at, packet};
    use thalweg_wire::{Flags, Segment};

    const ACK: u8 = Flags::ACK;

    /// Two segments at 20 ms over a round trip of 20 ms, of which the first is acknowledged at `acked`; what follows is sent again.
    fn again(acked: u64, then: &[(u64, Segment)]) -> [u64; 3] {
        let opens = |up, ack| {
            let mut syn = packet(up, Flags::SYN | if up { 0 } else { ACK }, if up { 100 } else { 500 }, ack, 0);
            syn.tcp.options.sack_permitted = true;
            syn
        };
        let mut packets = vec![
            (0, opens(true, 0)),
            (20, opens(false, 101)),
            (20, packet(true, ACK, 101, 501, 0)),
            (20, packet(true, ACK, 101, 501, 1_460)),
            (20, packet(true, ACK, 1_561, 501, 1_460)),
        ];
        if acked > 0 {
            packets.push((acked, packet(false, ACK, 501, 1_561, 0)));
        }
        packets.extend_from_slice(then);
        let Connection { sides, .. } = connection_at(&packets);
        let losses = &sides[0].sender.losses;
        [losses.fast, losses.timer, losses.probe]
    }

    fn second() -> Segment {
        packet(true, ACK, 1_561, 501, 1_460)
    }

    #[test]
    fn one_segment_sent_again_after_silence_is_a_probes() {
        assert_eq!(again(40, &[(260, second())]), [0, 0, 1]);
        // Later than a probe.
        assert_eq!(again(40, &[(400, second())]), [0, 1, 0]);
    }

    #[test]
    fn and_the_timers_where_a_probe_was_missed() {
        // Both were out for 120 ms.
        assert_eq!(again(140, &[(360, second())]), [0, 1, 0]);
        // The timer sent the first of both again.
        let first = (240, packet(true, ACK, 101, 501, 1_460));
        let acked = (260, packet(false, ACK, 501, 1_561, 0));
        let more = (260, packet(true, ACK, 3_021, 501, 1_460));
        assert_eq!(again(0, &[first, acked, more]), [0, 1, 0]);
    }

    #[test]
    fn the_last_of_several_is_a_probes_at_any_time() {
        assert_eq!(again(0, &[(400, second())]), [0, 0, 1]);
    }
}
