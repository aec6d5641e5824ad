//! What the timestamps of a far sender's packets tell of the time there: when each left, and what had been heard by then.
//!
//! A packet carries the sender's clock (TSval) and the receiver's clock as the newest acknowledgement that reached it had it (TSecr, RFC
//! 7323 §4.3). The difference of the two is least where the packet left at once when that acknowledgement came; it is the more
//! the longer the sender had heard nothing. Queues behind the sender do not change it.

/// Linux's clocks of timestamps run at 1 kHz (`TCP_TS_HZ`); other ones are not used. In nanoseconds.
pub(crate) const TICK: u64 = 1_000_000;
/// For so long the clocks are watched first, in nanoseconds.
const WARM_UP_NS: u64 = 30_000_000;
/// Clocks drift apart by 100 ppm at most: one tick in this many nanoseconds.
const NS_PER_DRIFTED_TICK: u64 = 10_000_000_000;

/// Times at the sender when it sent a packet, in nanoseconds, exact to a tick or two.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendTiming {
    /// Since an acknowledgement reached it.
    pub(crate) unheard: u64,
    /// Since it sent the packet before.
    pub(crate) quiet: u64,
}

/// Packets enough to judge by.
const MIN_PACKETS: u64 = 100;
/// Of so many packets one may have waited where nothing paces them: of BBR's it was one in 4,000 at least, in 39 transfers, and of CUBIC's none
/// (`what_is_paced_behind_a_buffer_is_no_clamp`).
const PACKETS_PER_LATE_ONE: u64 = 10_000;

/// Whether new data of a far sender left when an acknowledgement came, or at a time of its own.
#[derive(Debug, Default)]
pub(crate) struct SendTriggers {
    at_once: u64,
    later: u64,
}

impl SendTriggers {
    /// New data was sent; its times are as far as they are known.
    pub(crate) fn sent(&mut self, then: Option<SendTiming>) {
        if let Some(then) = then {
            *(if then.unheard <= TICK { &mut self.at_once } else { &mut self.later }) += 1;
        }
    }

    /// Whether acknowledgements set nearly all of it off: what a program sends when it pleases does not wait for them.
    pub(crate) const fn are_acknowledgements(&self) -> bool {
        self.at_once >= MIN_PACKETS && self.later * 20 <= self.at_once
    }

    /// Whether acknowledgements set all of it off, and nothing paces it.
    pub(crate) const fn are_acknowledgements_alone(&self) -> bool {
        self.later * PACKETS_PER_LATE_ONE <= self.at_once
    }

    /// Whether acknowledgements set hardly any of it off.
    pub(crate) const fn are_the_programs(&self) -> bool {
        self.later >= MIN_PACKETS && self.later >= self.at_once
    }
}

/// The clocks of both ends as one direction's packets show them.
#[derive(Debug, Default)]
pub(crate) struct RemoteClock {
    /// Time at the tap and TSval of the first packet.
    first: Option<(u64, u32)>,
    newest: u32,
    /// Time of the receiver's first acknowledgement at the tap, and its TSval.
    receiver: Option<(u64, u32)>,
    /// The receiver's clock has another rate: a difference of the two tells nothing.
    other_rate: bool,
    /// The least difference, and when it was set or allowed for drift last.
    least: (i32, u64),
}

impl RemoteClock {
    /// The receiver sent an acknowledgement with this TSval; `now` is when it passed the tap.
    pub(crate) fn receiver_sent(&mut self, now: u64, tsval: u32) {
        let (at, first) = *self.receiver.get_or_insert((now, tsval));
        let past = now.saturating_sub(at);
        if past >= WARM_UP_NS {
            self.other_rate = !is_kilohertz(tsval.wrapping_sub(first), past);
        }
    }

    /// A packet came; gives its times where the clocks tell them: not those of packets that were overtaken.
    pub(crate) fn sent(&mut self, now: u64, tsval: u32, tsecr: u32) -> Option<SendTiming> {
        let difference = tsval.wrapping_sub(tsecr) as i32;
        let Some((at, first)) = self.first else {
            self.first = Some((now, tsval));
            (self.newest, self.least) = (tsval, (difference, now));
            return None;
        };
        let quiet = tsval.wrapping_sub(self.newest) as i32;
        if quiet < 0 {
            return None;
        }
        self.newest = tsval;
        let drifts = now.saturating_sub(self.least.1) / NS_PER_DRIFTED_TICK;
        self.least = (self.least.0.wrapping_add(drifts as i32), self.least.1 + drifts * NS_PER_DRIFTED_TICK);
        if difference.wrapping_sub(self.least.0) <= 0 {
            self.least = (difference, now);
        }
        let past = now.saturating_sub(at);
        if past < WARM_UP_NS || self.other_rate || !is_kilohertz(tsval.wrapping_sub(first), past) {
            return None;
        }
        let since = |ticks: i32| ticks.max(0) as u64 * TICK;
        Some(SendTiming { unheard: since(difference.wrapping_sub(self.least.0)), quiet: since(quiet) })
    }
}

/// Whether a clock that went on by `ticks` in `past` nanoseconds has ticks of 1 ms.
const fn is_kilohertz(ticks: u32, past: u64) -> bool {
    let nanos = (ticks as u64).saturating_mul(TICK);
    nanos <= past.saturating_mul(2) && nanos.saturating_mul(2) >= past
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn queues_do_not_hide_how_long_nothing_was_heard() {
        let mut stamps = RemoteClock::default();
        // The receiver's clock is 500 behind, and acknowledgements take 5 ms.
        assert!(stamps.sent(0, 1_000, 495).is_none());
        let then = stamps.sent(60 * MS, 1_050, 545).expect("both clocks are known");
        assert_eq!((then.unheard, then.quiet), (0, 50 * MS));
        // A timer's, 40 ms after the same acknowledgement came; the queue is 10 ms longer.
        let then = stamps.sent(110 * MS, 1_090, 545).expect("still");
        assert_eq!((then.unheard, then.quiet), (40 * MS, 40 * MS));
        // One that was overtaken.
        assert!(stamps.sent(111 * MS, 1_080, 545).is_none());
    }

    #[test]
    fn what_sets_data_off_is_told_of_enough_of_it() {
        let told = |at_once: u64, later: u64| {
            let mut prompts = SendTriggers::default();
            let mut sent =
                |count, unheard| (0..count).for_each(|_| prompts.sent(Some(SendTiming { unheard, quiet: 0 })));
            sent(at_once, TICK);
            sent(later, 5 * TICK);
            prompts.sent(None);
            (prompts.are_acknowledgements(), prompts.are_the_programs())
        };
        assert_eq!(told(1_000, 50), (true, false));
        assert_eq!(told(1_000, 100), (false, false));
        assert_eq!(told(100, 100), (false, true));
        assert_eq!((told(99, 0), told(0, 99)), ((false, false), (false, false)), "too few");
    }

    #[test]
    fn clocks_of_another_rate_tell_nothing() {
        let mut stamps = RemoteClock::default();
        assert!(stamps.sent(0, 1_000, 495).is_none());
        assert!(stamps.sent(1_000 * MS, 1_100, 595).is_none());
    }

    #[test]
    fn a_receivers_clock_of_another_rate_is_not_compared_with_the_senders() {
        for (hertz, is_told) in [(1_000, true), (250, false), (100, false)] {
            let mut stamps = RemoteClock::default();
            let tsval = |millis: u64| (7_000 + millis * hertz / 1_000) as u32;
            assert!(stamps.sent(0, 1_000, tsval(0)).is_none());
            stamps.receiver_sent(0, tsval(0));
            stamps.receiver_sent(80 * MS, tsval(80));
            // It left at once when the acknowledgement came.
            let then = stamps.sent(80 * MS, 1_080, tsval(80));
            assert_eq!(then.map(|then| then.unheard), is_told.then_some(0), "{hertz} Hz");
        }
    }
}
