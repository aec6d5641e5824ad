//! Packets that never came, from the IPv4 identification.
//!
//! Linux numbers the packets of a connection one by one (`ip_select_ident_segs`: `inet_id`), so a number that never comes is a packet that
//! was lost before the tap. Only this is used of it: whether new data that follows a silence was sent before. Hosts that number the
//! packets of all connections together are recognized by numbers that are missing without a reason.

/// Numbers further apart than this are not of one sequence.
const MAX_STEP: i16 = 4_096;
/// Packets before the numbers are trusted.
const MIN_PACKETS: u64 = 2;
/// Part of the packets that must follow one another, in tenths.
const CONSECUTIVE_TENTHS: u64 = 9;

/// The identifications of one sender's packets.
#[derive(Debug, Default)]
pub(crate) struct IpIdGaps {
    newest: Option<u16>,
    /// Numbers that the packet with the newest has: one that the kernel or the NIC merged shows the first of its segments' alone.
    numbers: u64,
    packets: u64,
    consecutive: u64,
    /// Numbers missing just before the current packet.
    gap: u64,
    /// The capture has packets without data, too.
    show_losses: bool,
}

impl IpIdGaps {
    /// The next packet has this identification, and `segments`; 0 is no identification (RFC 6864 §4.1).
    pub(crate) fn came(&mut self, id: Option<u16>, segments: u64) {
        self.gap = 0;
        let Some(id) = id.filter(|&id| id != 0) else { return };
        let Some(newest) = self.newest else {
            (self.newest, self.numbers) = (Some(id), segments);
            return;
        };
        let step = id.wrapping_sub(newest) as i16;
        self.packets += 1;
        if step > 0 && step <= MAX_STEP {
            self.consecutive += 1;
            self.gap = (step as u64).saturating_sub(self.numbers);
        }
        if step > 0 {
            (self.newest, self.numbers) = (Some(id), segments);
        }
    }

    /// How many packets are missing just before the current one; 0 where the numbers are not this connection's alone.
    pub(crate) const fn missing(&self) -> u64 {
        let trusted = self.show_losses
            && self.packets >= MIN_PACKETS
            && self.consecutive * 10 >= self.packets * CONSECUTIVE_TENTHS;
        if trusted { self.gap } else { 0 }
    }

    /// None of the packets missing just before the current one had data: each of them is another connection's, as far as is known.
    pub(crate) const fn had_no_data(&mut self) {
        self.consecutive = self.consecutive.saturating_sub(self.gap);
    }

    /// The other side acknowledged by packets without data: this side's, which have numbers as well, would be in the capture.
    pub(crate) const fn show_losses(&mut self) {
        self.show_losses = true;
    }

    /// The capture lost packets: the numbers that are missing next are theirs.
    pub(crate) const fn were_not_captured(&mut self) {
        self.newest = None;
    }

    /// The packets missing just before the current one are another connection's.
    pub(crate) const fn are_others(&mut self) {
        self.consecutive = self.consecutive.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(ids: &[u16]) -> u64 {
        let mut gaps = IpIdGaps { show_losses: true, ..IpIdGaps::default() };
        ids.iter().for_each(|&id| gaps.came(Some(id), 1));
        gaps.missing()
    }

    #[test]
    fn a_merged_packet_has_a_number_for_each_segment() {
        let mut gaps = IpIdGaps { show_losses: true, ..IpIdGaps::default() };
        for (id, segments) in [(1, 3), (4, 10), (14, 1), (15, 1), (16, 2)] {
            gaps.came(Some(id), segments);
            assert_eq!(gaps.missing(), 0, "{id}");
        }
        gaps.came(Some(20), 1);
        assert_eq!(gaps.missing(), 2);
        gaps.were_not_captured();
        gaps.came(Some(40), 1);
        assert_eq!(gaps.missing(), 0);
    }

    #[test]
    fn numbers_that_never_come_are_counted() {
        assert_eq!(missing(&[1, 2, 3, 6]), 2);
        assert_eq!(missing(&[u16::MAX - 1, u16::MAX, 1, 3]), 1);
        assert_eq!(missing(&[7, 9]), 0, "not enough packets");
        assert_eq!(missing(&[7, 40_000, 9, 50_000]), 0, "no sequence");
    }
}
