//! Moments that lie whole milliseconds apart, as a timer of the sending program sets them, though an acknowledgement came just before.
//!
//! What an acknowledgement lets go follows it at once, and a round trip is no whole number of milliseconds but by chance.

/// How exactly they lie so, in nanoseconds: a timer of the kernel's fires this late at most on an idle host. By chance one in 25 does.
const MAX_OFF_NS: u64 = 20_000;
const MILLISECOND_NS: u64 = 1_000_000;
/// A sender with data waiting sends this soon after an acknowledgement (Linux `tcp_data_snd_check`, in the softirq that takes it). A program that one
/// wakes takes longer, but not to the microsecond as long each time.
const MAX_PROMPT_NS: u64 = 20_000;
/// Distances that make a habit, as of [`super::stop_and_wait`].
const MIN_DISTANCES: u64 = 8;

#[derive(Debug, Default)]
pub(crate) struct Ticks {
    last: Option<u64>,
    distances: u64,
    whole: u64,
    prompt: u64,
}

impl Ticks {
    /// The sender went on at `now`, this long after an acknowledgement.
    pub(crate) fn went_on(&mut self, now: u64, after_ack: u64) {
        let Some(distance) = self.last.replace(now).map(|last| now.saturating_sub(last)) else { return };
        let over = distance % MILLISECOND_NS;
        self.distances += 1;
        self.whole += u64::from(over.min(MILLISECOND_NS - over) <= MAX_OFF_NS);
        self.prompt += u64::from(after_ack <= MAX_PROMPT_NS);
    }

    /// Whether a timer lets the sender go on, nine times of ten.
    pub(crate) const fn are_a_timers(&self) -> bool {
        self.distances >= MIN_DISTANCES && self.whole * 10 >= self.distances * 9 && self.prompt * 10 <= self.distances
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_acknowledgements_at_once_or_comes_at_any_distance_is_no_timers() {
        let judge = |distance: u64, after_ack: u64| {
            let mut ticks = Ticks::default();
            (0..20).for_each(|n| ticks.went_on(n * distance, after_ack));
            ticks.are_a_timers()
        };
        assert!(judge(40_000_000, 840_000));
        assert!(judge(40_015_000, 840_000));
        assert!(!judge(40_150_000, 840_000), "a round trip's");
        assert!(!judge(40_000_000, 20_000), "at once");
    }
}
