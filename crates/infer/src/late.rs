//! How far packets were overtaken, and losses at the end of what there was to send.

use crate::recovery::Kind;

/// Packets that were overtaken.
///
/// Where data itself is seen late, each late packet is one. At its sender it leaves in order, and what tells is an acknowledgement of
/// data that was sent once and lies below what was selectively acknowledged before (Linux `tcp_check_sack_reordering`).
#[derive(Debug, Default)]
pub(crate) struct Overtaken {
    pub(crate) packets: u64,
    /// The most bytes that overtook one, and the longest that one came after what overtook it, in nanoseconds.
    pub(crate) bytes: u64,
    pub(crate) nanos: u64,
}

impl Overtaken {
    /// A packet was found overtaken by so many bytes; it came so much later than what overtook it, where that is known.
    pub(crate) fn by(&mut self, bytes: u64, nanos: u64) {
        self.packets += 1;
        self.bytes = self.bytes.max(bytes);
        self.nanos = self.nanos.max(nanos);
    }
}

/// Losses of the last segments sent: no acknowledgement can tell of them, so a probe or a timer has to.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    pub(crate) by_probe: u64,
    pub(crate) by_timer: u64,
    /// The latest, while it may yet prove needless: its first byte, the end of what was sent then, and what told of it.
    latest: Option<(u64, u64, Kind)>,
}

impl Tails {
    /// A probe or a timer had `start` sent again, while nothing above it and below `next` was acknowledged. Until `next` is, what fires
    /// more is of the same loss.
    pub(crate) fn fired(&mut self, una: u64, start: u64, next: u64, kind: Kind) {
        if self.latest.is_none_or(|(_, end, _)| end <= una) {
            self.latest = Some((start, next, kind));
            *self.counter(kind) += 1;
        }
    }

    /// What was sent again from `start` on had arrived.
    pub(crate) fn needless(&mut self, start: u64) {
        if let Some((_, _, kind)) = self.latest.take_if(|latest| latest.0 == start) {
            *self.counter(kind) -= 1;
        }
    }

    const fn counter(&mut self, kind: Kind) -> &mut u64 {
        match kind {
            Kind::Probe => &mut self.by_probe,
            Kind::Fast | Kind::Timer => &mut self.by_timer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_and_the_timer_after_it_are_one_loss_and_a_needless_one_is_none() {
        let mut tails = Tails::default();
        tails.fired(1_000, 3_000, 4_000, Kind::Probe);
        tails.fired(1_000, 1_000, 4_000, Kind::Timer);
        tails.fired(1_000, 1_000, 4_000, Kind::Timer);
        assert_eq!((tails.by_probe, tails.by_timer), (1, 0));
        tails.fired(9_000, 9_000, 10_000, Kind::Timer);
        tails.fired(20_000, 22_000, 23_000, Kind::Probe);
        tails.needless(22_000);
        assert_eq!((tails.by_probe, tails.by_timer), (1, 1));
    }
}
