//! What is in flight before a loss and some round trips after it, against what CUBIC or Reno could have by then: whether the window was kept.
//!
//! That tells of BBR where repair takes nearly all the time, so that no window is seen after it.

use crate::event::Sent;

/// Segments that a window must have for a cut of it to show. `the_cut_names_the_family` holds it.
pub(super) const MIN_WINDOW_SEGMENTS: u64 = 8;

/// Round trips from a loss on until the window is cut: the one that it is found in, the one in which it is cut (RFC 6937), and one for a queue that
/// makes them longer meanwhile; and those after which it has grown again. `who_keeps_the_window_through_losses_sends_with_bbr` holds both.
const ROUND_TRIPS_TO_CUT: u64 = 3;
const ROUND_TRIPS_LOOKED_AT: u64 = 6;
/// CUBIC's constants: C, in segments per cubic second, and β (RFC 9438 §4.1.2, §4.6).
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;
/// Where CUBIC's window has grown again to no more than this part of what it was before a loss, one that is within `KEPT_PART` of it was
/// never cut. `who_keeps_the_window_through_losses_sends_with_bbr` holds both.
const MAX_GROWN_PART: f64 = 0.8;
const KEPT_PART: f64 = 0.9;

/// The flight before a loss, and after what would have cut it.
#[derive(Debug, Clone, Copy)]
struct FlightAtLoss {
    at: u64,
    /// The smoothed round trip then, in nanoseconds.
    rtt: u64,
    before: u64,
    after: u64,
    /// Something else than the congestion window bounded what it was after.
    is_bounded: bool,
}

impl FlightAtLoss {
    /// Whether the window was kept, as far as this long after the loss; `None` where one that was cut may be as large again.
    fn was_kept(&self, elapsed: u64, mss: u64) -> Option<bool> {
        if self.after == 0 || self.before < MIN_WINDOW_SEGMENTS * mss {
            return None;
        }
        let (before, seconds) = (self.before as f64 / mss as f64, elapsed as f64 / 1e9);
        let back_after = (before * (1.0 - CUBIC_BETA) / CUBIC_C).cbrt();
        let by_cubic = CUBIC_C * (seconds - back_after).powi(3) + before;
        // Reno's growth, and CUBIC's where it is as slow: a segment in each round trip (RFC 9438 §4.3).
        let by_reno = CUBIC_BETA * before + elapsed as f64 / self.rtt.max(1) as f64;
        let is_told = by_cubic.max(by_reno) <= MAX_GROWN_PART * before;
        let is_kept = self.after as f64 >= KEPT_PART * self.before as f64;
        (is_told && (is_kept || !self.is_bounded)).then_some(is_kept)
    }
}

/// Losses of one direction, and what was in flight after them.
#[derive(Debug, Default)]
pub(crate) struct FlightThroughLosses {
    latest: Option<FlightAtLoss>,
    /// Losses after which a window that was cut could not have grown again, and those of them through which it was kept.
    told: u32,
    kept: u32,
}

impl FlightThroughLosses {
    /// Acknowledgements reported a loss at `now`, with at most `before` in flight in the round trip before; `rtt` in nanoseconds.
    pub(crate) fn lost(&mut self, now: u64, mss: u64, rtt: u64, before: u64) {
        // Within a round trip of the last repair, what it was meanwhile is all that is known.
        let before = before.max(self.latest.map_or(0, |loss| loss.after));
        self.judge(now, mss);
        self.latest = Some(FlightAtLoss { at: now, rtt, before, after: 0, is_bounded: false });
    }

    /// New data left, bounded by something else than the congestion window if `is_bounded`.
    pub(crate) fn sent(&mut self, sent: &Sent, is_bounded: bool) {
        let Some(loss) = &mut self.latest else { return };
        let elapsed = sent.now.saturating_sub(loss.at);
        if elapsed > loss.rtt.saturating_mul(ROUND_TRIPS_LOOKED_AT) {
            self.judge(sent.now, sent.mss);
        } else if elapsed >= loss.rtt.saturating_mul(ROUND_TRIPS_TO_CUT) {
            loss.after = loss.after.max(sent.flight);
            loss.is_bounded |= is_bounded;
        }
    }

    /// What follows the latest loss does not tell.
    pub(crate) const fn forget(&mut self) {
        self.latest = None;
    }

    /// Losses through which the window was kept, and all that tell.
    pub(crate) const fn counts(&self) -> (u32, u32) {
        (self.kept, self.told)
    }

    /// Judges the latest loss, once its time is over or another is found.
    fn judge(&mut self, now: u64, mss: u64) {
        let Some(loss) = self.latest.take() else { return };
        let elapsed = now.saturating_sub(loss.at).min(loss.rtt.saturating_mul(ROUND_TRIPS_LOOKED_AT));
        if let Some(kept) = loss.was_kept(elapsed, mss) {
            self.told += 1;
            self.kept += u32::from(kept);
        }
    }
}
