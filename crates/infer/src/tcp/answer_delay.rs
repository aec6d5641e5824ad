//! How soon a side acknowledges what passes the tap: the round trip between the tap and that side is at most as long.
//!
//! The third packet of a handshake may come late (the program that connects is slow, or the host); acknowledgements of data tell that.

use thalweg_units::SeqNum;

/// Acknowledgements that are timed at the beginning: some of them wait for more data (RFC 9293 §3.8.6.3).
/// `a_late_third_packet_of_the_handshake_is_no_round_trip` holds it.
const TIMED: u8 = 8;

/// The acknowledgements of one side's data.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AnswerDelay {
    /// After the last byte seen.
    end: Option<SeqNum>,
    /// What comes after data that was seen for the first time, and when.
    awaited: Option<(SeqNum, u64)>,
    least: Option<u64>,
    timed: u8,
}

impl AnswerDelay {
    /// Data up to `end` passes.
    pub(super) fn sent(&mut self, now: u64, end: SeqNum) {
        if self.timed >= TIMED || self.end.is_some_and(|last| end.since(last) <= 0) {
            return;
        }
        self.end = Some(end);
        self.awaited.get_or_insert((end, now));
    }

    /// What is before `ack` arrived; gives the shortest time that it took, once this many are known.
    pub(super) fn acknowledged(&mut self, now: u64, ack: SeqNum) -> Option<u64> {
        let (_, sent) = self.awaited.filter(|(end, _)| ack.since(*end) >= 0)?;
        let took = now.saturating_sub(sent);
        self.awaited = None;
        self.least = Some(self.least.map_or(took, |least| least.min(took)));
        self.timed += 1;
        self.least.filter(|_| self.timed == TIMED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soonest_of_the_first_acknowledgements_is_told_once() {
        let mut delay = AnswerDelay::default();
        let mut told = Vec::new();
        for n in 0..12u32 {
            let at = u64::from(n) * 1_000;
            delay.sent(at, SeqNum::new(n * 100 + 100));
            delay.sent(at + 10, SeqNum::new(n * 100 + 100));
            assert_eq!(delay.acknowledged(at + 20, SeqNum::new(n * 100)), None);
            told.extend(delay.acknowledged(at + 50 - u64::from(n), SeqNum::new(n * 100 + 100)));
        }
        assert_eq!(told, [43]);
    }
}
