//! Losses at the end of what there was to send.

use crate::event::RetransmitKind;

/// Losses of the last segments sent: no acknowledgement can tell of them, so a probe or a timer has to.
#[derive(Debug, Default)]
pub(crate) struct TailLosses {
    pub(crate) by_probe: u64,
    pub(crate) by_timer: u64,
    /// The latest, while it may yet prove needless: its first byte, the end of what was sent then, and what showed it.
    latest: Option<(u64, u64, RetransmitKind)>,
}

impl TailLosses {
    /// A probe or a timer had `start` sent again, while nothing above it and below `next` was acknowledged. Until `next` is, what fires
    /// more is of the same loss.
    pub(crate) fn fired(&mut self, una: u64, start: u64, next: u64, kind: RetransmitKind) {
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

    const fn counter(&mut self, kind: RetransmitKind) -> &mut u64 {
        match kind {
            RetransmitKind::Probe => &mut self.by_probe,
            RetransmitKind::Fast | RetransmitKind::Timer => &mut self.by_timer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_and_the_timer_after_it_are_one_loss_and_a_needless_one_is_none() {
        let mut tails = TailLosses::default();
        tails.fired(1_000, 3_000, 4_000, RetransmitKind::Probe);
        tails.fired(1_000, 1_000, 4_000, RetransmitKind::Timer);
        tails.fired(1_000, 1_000, 4_000, RetransmitKind::Timer);
        assert_eq!((tails.by_probe, tails.by_timer), (1, 0));
        tails.fired(9_000, 9_000, 10_000, RetransmitKind::Timer);
        tails.fired(20_000, 22_000, 23_000, RetransmitKind::Probe);
        tails.needless(22_000);
        assert_eq!((tails.by_probe, tails.by_timer), (1, 1));
    }
}
