//! The congestion window by round trips, and what it does at losses: whose algorithm that is.
//!
//! Reno halves its window (RFC 5681 §3.1), CUBIC goes to 0.7 (RFC 9438 §4.6), and BBR does not mind a single loss. Where no window is seen
//! after a repair, what is in flight tells it ([`flight_through_losses`]). BBR shows without a loss, too: every ten seconds it goes
//! down to four segments for a fifth of a second (`BBRMinRTTFilterLen`, `BBRMinPipeCwnd`, `ProbeRTTDuration`;
//! draft-cardwell-iccrg-bbr-congestion-control-00, §4.3.5).

mod flight_through_losses;

use crate::event::Sent;
use flight_through_losses::{FlightThroughLosses, MIN_WINDOW_SEGMENTS};
use thalweg_model::{CongestionFamily, FamilyName};

/// Parts of the window before a loss that a window after it is, by family. CUBIC's grows again at once, and a window of few segments
/// is cut to whole ones.
const RENO: (f64, f64) = (0.40, 0.60);
const CUBIC: (f64, f64) = (0.60, 0.82);
const BBR: (f64, f64) = (0.88, 1.6);
/// Episodes before anything is said, and part of them that must agree. `the_cut_names_the_family` holds it.
const MIN_EPISODES: u32 = 3;
const MIN_AGREEING_SHARE: f64 = 0.6;
/// Losses through which the window was kept until that is said. A window that twice its flight fits into, as Linux lets it grow (`tcp_is_cwnd_limited`), is cut
/// twice before that shows.
const MIN_KEPT: u32 = 3;
/// Segments that BBR leaves in flight while it looks for the round trip, with one more that it is about to send.
const PROBE_RTT_SEGMENTS: u64 = 5;
/// From one such time to the next, in nanoseconds; it takes a round trip, and a fifth of a second, to go down and up again.
/// `bbr_shows_without_a_loss_every_ten_seconds` holds it.
const PROBE_RTT_PERIOD_NS: (u64, u64) = (9_500_000_000, 11_500_000_000);
/// And how long it lasts at least: BBR stays for 200 ms. `bbr_shows_without_a_loss_every_ten_seconds` holds it.
const MIN_PROBE_RTT_NS: u64 = 150_000_000;

/// Windows of one direction.
#[derive(Debug, Default)]
pub(crate) struct CongestionControl {
    /// The round under way: where it ends, its largest flight, and whether something else than the window bounded it.
    end: u64,
    flight: u64,
    bounded: bool,
    /// The largest flight of the round before.
    previous: u64,
    /// The window when the latest loss was found; and where the first round after its repair ends.
    before: Option<u64>,
    settles: Option<u64>,
    /// How often the window was this many fortieths of what it was before.
    cuts: Option<Box<[u16; 64]>>,
    through_losses: FlightThroughLosses,
    low: Option<u64>,
    was_high: bool,
    /// Times BBR looked for the round trip, when the latest began, and how many came in their period.
    probes: u32,
    probed_at: u64,
    in_period: u32,
}

impl CongestionControl {
    /// New data left, after a pause of the application if it `paused`; gives the largest flight of the round trip that ends with it.
    pub(crate) fn sent(&mut self, sent: &Sent, paused: bool) -> Option<u64> {
        self.probe(sent);
        let is_bounded = paused || sent.is_bounded;
        self.through_losses.sent(sent, is_bounded);
        let ended = sent.una >= self.end;
        let round = std::mem::take(&mut self.flight);
        self.flight = if ended { sent.flight } else { round.max(sent.flight) };
        if !ended {
            self.bounded |= is_bounded;
            return None;
        }
        let bounded = std::mem::replace(&mut self.bounded, is_bounded);
        if !sent.is_repairing
            && round > 0
            && self.settles.take_if(|end| sent.una >= *end).is_some()
            && let Some(before) = self.before.take().filter(|_| !bounded)
        {
            let part = (round as f64 / before as f64 * 40.0).round() as usize;
            let cut = &mut self.cuts.get_or_insert_with(|| Box::new([0; 64]))[part.min(63)];
            *cut = cut.saturating_add(1);
        }
        self.previous = round;
        self.end = sent.next;
        (round > 0).then_some(round)
    }

    /// Acknowledgements reported a loss at `now`, the first since the last was repaired.
    pub(crate) fn lost(&mut self, now: u64, mss: u64, rtt: u64) {
        let before = self.previous.max(self.flight);
        self.through_losses.lost(now, mss, rtt, before);
        // A window that was cut and has not been seen since tells nothing of the cut.
        self.before = (before >= MIN_WINDOW_SEGMENTS * mss && self.settles.is_none()).then_some(before);
        self.settles = None;
    }

    /// A timer fired, and the window is one segment now, whoever set it; or a loss was none, and a window that was cut is restored.
    pub(crate) const fn forget(&mut self) {
        (self.before, self.settles) = (None, None);
        self.through_losses.forget();
    }

    /// A loss is repaired; what is sent from here on is the new window's.
    pub(crate) fn repaired(&mut self, next: u64) {
        self.settles = self.before.map(|_| next);
        (self.end, self.flight, self.previous, self.bounded) = (next, 0, 0, false);
    }

    fn probe(&mut self, sent: &Sent) {
        if sent.is_repairing {
            (self.low, self.was_high) = (None, false);
        } else if sent.flight > PROBE_RTT_SEGMENTS * sent.mss {
            if let Some(began) = self.low.take()
                && self.was_high
                && sent.now.saturating_sub(began) >= MIN_PROBE_RTT_NS
            {
                let since = began.saturating_sub(self.probed_at);
                self.in_period += u32::from(since >= PROBE_RTT_PERIOD_NS.0 && since <= PROBE_RTT_PERIOD_NS.1);
                (self.probes, self.probed_at) = (self.probes + 1, began);
            }
            self.was_high = sent.flight >= 2 * PROBE_RTT_SEGMENTS * sent.mss || self.was_high;
        } else if self.low.is_none() {
            self.low = Some(sent.now);
        }
    }

    fn counted(&self) -> impl Iterator<Item = u32> {
        self.cuts.iter().flat_map(|cuts| cuts.iter()).map(|&n| u32::from(n))
    }

    /// Episodes of loss after which the window was seen, and of them those in which it was cut as `family` cuts it.
    fn cut(&self, (from, to): (f64, f64)) -> u32 {
        let within = |part: usize| (from..to).contains(&(part as f64 / 40.0));
        self.counted().enumerate().filter(|(part, _)| within(*part)).map(|(_, n)| n).sum()
    }

    /// Whose algorithm it likely is; `None` without a loss that tells, and without BBR's own signs.
    pub(crate) fn family(&self) -> Option<CongestionFamily> {
        let episodes: u32 = self.counted().sum();
        let median = self.median(episodes);
        let signs = self.in_period;
        if signs > 0 && self.cut(RENO) + self.cut(CUBIC) <= episodes / 2 {
            let confidence = 1.0 - 0.3f64.powi(signs as i32 + 1);
            return Some(CongestionFamily {
                name: FamilyName::Bbr,
                confidence,
                episodes: episodes.into(),
                window_after: median,
                probes: self.probes.into(),
            });
        }
        if let Some(kept) = self.kept() {
            return Some(kept);
        }
        if episodes < MIN_EPISODES {
            return (episodes > 0).then_some(CongestionFamily {
                name: FamilyName::Unknown,
                confidence: 0.0,
                episodes: episodes.into(),
                window_after: median,
                probes: 0,
            });
        }
        let told = [(FamilyName::Reno, RENO), (FamilyName::Cubic, CUBIC), (FamilyName::Bbr, BBR)];
        let counted = told.map(|(name, parts)| (name, self.cut(parts)));
        let (name, agree) = counted.into_iter().max_by_key(|one| one.1)?;
        let part = f64::from(agree) / f64::from(episodes);
        // Laplace's rule: of few episodes less is said.
        let confidence = part * f64::from(episodes + 1) / f64::from(episodes + 2);
        let (name, confidence) =
            if part >= MIN_AGREEING_SHARE { (name, confidence) } else { (FamilyName::Unknown, 0.0) };
        Some(CongestionFamily { name, confidence, episodes: episodes.into(), window_after: median, probes: 0 })
    }

    /// BBR, where the flight stays as large through losses.
    pub(crate) fn kept(&self) -> Option<CongestionFamily> {
        let (kept, told) = self.through_losses.counts();
        let is_kept = kept >= MIN_KEPT && f64::from(kept) >= MIN_AGREEING_SHARE * f64::from(told);
        is_kept.then(|| CongestionFamily {
            name: FamilyName::Bbr,
            confidence: f64::from(kept) / f64::from(told + 1),
            episodes: told.into(),
            window_after: None,
            probes: 0,
        })
    }

    fn median(&self, episodes: u32) -> Option<f64> {
        let mut left = episodes.div_ceil(2);
        self.counted()
            .position(|n| {
                let found = left > 0 && n >= left;
                left = left.saturating_sub(n);
                found
            })
            .map(|part| part as f64 / 40.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    /// Rounds of 50 ms with windows of this many segments; before those in `lost` a loss is found.
    fn family(rounds: &[u64], lost: impl Fn(usize) -> bool) -> Option<CongestionFamily> {
        let mut windows = CongestionControl::default();
        let mut next = 0;
        for (n, &segments) in rounds.iter().enumerate() {
            if lost(n) {
                windows.lost(n as u64 * 50_000_000, MSS, 50_000_000);
                windows.repaired(next);
            }
            let una = next;
            next += segments * MSS;
            let (now, flight) = (n as u64 * 50_000_000, segments * MSS);
            windows.sent(&Sent { now, una, next, flight, mss: MSS, ..Sent::default() }, false);
        }
        windows.family()
    }

    /// Twenty seconds with a loss in each, found before the last one is repaired; a few round trips after one the flight is this part of what it was.
    fn through_losses(part: f64) -> Option<CongestionFamily> {
        let mut windows = CongestionControl::default();
        for n in 0..400u64 {
            if n % 20 == 19 {
                windows.lost(n * 50_000_000, MSS, 50_000_000);
            }
            let window = if n < 25 { 400.0 } else { 400.0 * part.powi(((n - 5) / 20) as i32) };
            let (now, flight) = (n * 50_000_000, window as u64 * MSS);
            windows.sent(&Sent { now, next: n, flight, mss: MSS, is_repairing: n > 18, ..Sent::default() }, false);
        }
        windows.family()
    }

    #[test]
    fn who_keeps_the_window_through_losses_sends_with_bbr() {
        let found = through_losses(1.0).expect("losses");
        assert_eq!((found.name, found.window_after), (FamilyName::Bbr, None), "{found:?}");
        assert!(found.confidence > 0.8 && found.episodes >= 15, "{found:?}");
        // Where every loss cuts it, or nearly, nothing is said of it.
        assert!(through_losses(0.7).is_none() && through_losses(0.89).is_none());
    }

    #[test]
    fn the_cut_names_the_family() {
        for (name, part) in [(FamilyName::Reno, 0.5), (FamilyName::Cubic, 0.7), (FamilyName::Bbr, 1.0)] {
            let mut window = 60.0;
            let rounds: Vec<u64> = (0..200)
                .map(|n| {
                    window = if n % 20 == 19 { window * part } else { window + 60.0 * (1.0 - part) / 18.0 };
                    window as u64
                })
                .collect();
            let found = family(&rounds, |n| n % 20 == 19).expect("losses");
            assert_eq!(found.name, name, "{found:?}");
            assert!(found.confidence > 0.8 && found.episodes == 9, "{found:?}");
        }
        let found = family(&[20, 20, 20, 14, 14, 14], |n| n == 3).expect("a loss");
        assert_eq!((found.name, found.confidence, found.episodes), (FamilyName::Unknown, 0.0, 1));
        assert!(family(&[20; 100], |_| false).is_none());
    }

    #[test]
    fn bbr_shows_without_a_loss_every_ten_seconds() {
        // 25 s, with four segments for 250 ms after ten seconds each.
        let rounds =
            |period: usize| (0..500).map(|n| if n % period >= period - 5 { 4 } else { 60 }).collect::<Vec<_>>();
        let found = family(&rounds(205), |_| false).expect("its probes");
        assert_eq!((found.name, found.probes, found.window_after), (FamilyName::Bbr, 2, None));
        assert!(family(&rounds(60), |_| false).is_none(), "a program that pauses every three seconds");
    }
}
