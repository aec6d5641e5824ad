//! Moments that lie whole milliseconds apart, as a timer of the sending program sets them, though an acknowledgement came just before.
//!
//! What an acknowledgement lets go follows it at once, and a round trip is no whole number of milliseconds but by chance.

/// How exactly they lie so, in nanoseconds: a timer of the kernel's fires this late at most on an idle host. By chance one in 25 does.
const MAX_OFF_NS: u64 = 20_000;
const MILLISECOND_NS: u64 = 1_000_000;
/// Distances of so many milliseconds are a timer's even where an acknowledgement comes at the same moment: a round trip is that long, so exactly, with
/// probability 1/250. `what_follows_acknowledgements_at_once_or_comes_at_any_distance_is_no_timers` holds it.
const TIMER_PERIOD_NS: u64 = 10 * MILLISECOND_NS;
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
    periods: u64,
    prompt: u64,
}

impl Ticks {
    /// The sender went on at `now`, this long after an acknowledgement.
    pub(crate) fn went_on(&mut self, now: u64, after_ack: u64) {
        let Some(distance) = self.last.replace(now).map(|last| now.saturating_sub(last)) else { return };
        self.distances += 1;
        self.whole += u64::from(is_multiple(distance, MILLISECOND_NS));
        self.periods += u64::from(is_multiple(distance, TIMER_PERIOD_NS));
        self.prompt += u64::from(after_ack <= MAX_PROMPT_NS);
    }

    /// Whether a timer lets the sender go on, nine times of ten.
    pub(crate) const fn are_a_timers(&self) -> bool {
        let nearly_all = self.distances * 9;
        let is_whole = self.whole * 10 >= nearly_all && self.prompt * 10 <= self.distances;
        self.distances >= MIN_DISTANCES && (is_whole || self.periods * 10 >= nearly_all)
    }
}

/// Whether a distance is a multiple of `of`, as nearly as a timer keeps it.
const fn is_multiple(distance: u64, of: u64) -> bool {
    let over = distance % of;
    distance > MAX_OFF_NS && (over <= MAX_OFF_NS || of - over <= MAX_OFF_NS)
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
        assert!(!judge(41_000_000, 20_000), "at once");
        assert!(judge(40_000_000, 20_000), "at the moment of an acknowledgement");
    }
}
