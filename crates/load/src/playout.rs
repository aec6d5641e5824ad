//! When a player plays and when it stalls, derived from the arrival of media.

use std::time::Duration;

/// A player's buffer of media that was not played yet.
#[derive(Debug, Clone)]
pub(crate) struct Playout {
    /// Held before it plays.
    threshold: Duration,
    /// Media that came, in all.
    came: Duration,
    /// When it began to play, after the player's start.
    began: Option<Duration>,
    /// Time it stood still since.
    stalled: Duration,
    stalls: u32,
}

impl Playout {
    pub(crate) const fn new(threshold: Duration) -> Self {
        Self { threshold, came: Duration::ZERO, began: None, stalled: Duration::ZERO, stalls: 0 }
    }

    /// Media of `length` more is there, `now` after the start. Gives how long nothing was to be played just before.
    pub(crate) fn arrived(&mut self, now: Duration, length: Duration) -> Option<Duration> {
        let stall = self
            .began
            .and_then(|began| now.checked_sub(began + self.came + self.stalled))
            .filter(|stall| !stall.is_zero());
        if let Some(stall) = stall {
            self.stalled += stall;
            self.stalls += 1;
        }
        self.came += length;
        if self.began.is_none() && self.came >= self.threshold {
            self.began = Some(now);
        }
        stall
    }

    /// Stalls so far, with the one that goes on `now`.
    pub(crate) fn stalls(&self, now: Duration) -> (u32, Duration) {
        match self
            .began
            .and_then(|began| now.checked_sub(began + self.came + self.stalled))
            .filter(|stall| !stall.is_zero())
        {
            Some(stall) => (self.stalls + 1, self.stalled + stall),
            None => (self.stalls, self.stalled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_runs_empty_is_a_stall_until_more_comes() {
        let s = Duration::from_secs_f64;
        let mut playout = Playout::new(s(4.0));
        assert_eq!(playout.arrived(s(0.5), s(2.0)), None);
        assert_eq!(playout.arrived(s(1.0), s(2.0)), None);
        assert_eq!(playout.arrived(s(4.0), s(2.0)), None);
        assert_eq!(playout.stalls(s(6.9)), (0, Duration::ZERO));
        assert_eq!(playout.stalls(s(7.5)), (1, s(0.5)));
        assert_eq!(playout.arrived(s(8.0), s(2.0)), Some(s(1.0)));
        assert_eq!(playout.stalls(s(8.0)), (1, s(1.0)));
    }
}
