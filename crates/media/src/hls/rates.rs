//! Rates of a stream, measured by its segments.

use super::SegmentInfo;
use std::collections::VecDeque;

/// Rates, as a multivariant playlist has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rates {
    /// The highest bit rate of consecutive segments that last between half and one and a half target durations together.
    ///
    /// Source: RFC 8216 §4.1, "peak segment bit rate".
    pub peak_bits_per_second: u64,
    /// Bits of all segments over their duration.
    pub average_bits_per_second: u64,
    /// The highest frame rate of such consecutive segments, in pictures per 1,000 s; `None` without video. Segments whose end is assumed
    /// do not count.
    pub pictures_per_1000_s: Option<u64>,
}

/// Measures [`Rates`].
#[derive(Debug, Default)]
struct RateMeter {
    /// The latest segments, which last one and a half target durations together or little more.
    recent: VecDeque<Span>,
    total: Span,
    peak_bits_per_second: u64,
    pictures_per_1000_s: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Span {
    duration_ms: u64,
    bytes: u64,
    pictures: u64,
    /// How long pictures were counted.
    counted_ms: u64,
}

impl Span {
    const fn of(info: &SegmentInfo) -> Self {
        let (pictures, counted_ms) = if info.continued { (info.pictures as u64, info.duration_ms) } else { (0, 0) };
        Self { duration_ms: info.duration_ms, bytes: info.bytes, pictures, counted_ms }
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            duration_ms: self.duration_ms + other.duration_ms,
            bytes: self.bytes + other.bytes,
            pictures: self.pictures + other.pictures,
            counted_ms: self.counted_ms + other.counted_ms,
        }
    }

    fn bits_per_second(self) -> u64 {
        (self.bytes * 8_000).checked_div(self.duration_ms).unwrap_or(0)
    }

    fn pictures_per_1000_s(self) -> Option<u64> {
        (self.pictures * 1_000_000 + self.counted_ms / 2).checked_div(self.counted_ms).filter(|&rate| rate > 0)
    }
}

impl Rates {
    /// The rates of consecutive segments.
    pub(super) fn of<'a>(segments: impl Iterator<Item = &'a SegmentInfo>, target_duration_s: u32) -> Self {
        let mut meter = RateMeter::default();
        segments.for_each(|info| meter.push(info, target_duration_s));
        meter.rates()
    }
}

impl RateMeter {
    fn push(&mut self, info: &SegmentInfo, target_duration_s: u32) {
        let (least_ms, most_ms) = (u64::from(target_duration_s) * 500, u64::from(target_duration_s) * 1_500);
        let span = Span::of(info);
        self.total = self.total.plus(span);
        if info.discontinuity {
            self.recent.clear();
        }
        self.recent.push_back(span);
        let mut sum = Span::default();
        let mut used = 0;
        for span in self.recent.iter().rev() {
            sum = sum.plus(*span);
            if sum.duration_ms > most_ms {
                break;
            }
            used += 1;
            if sum.duration_ms >= least_ms {
                self.peak_bits_per_second = self.peak_bits_per_second.max(sum.bits_per_second());
                self.pictures_per_1000_s = self.pictures_per_1000_s.max(sum.pictures_per_1000_s());
            }
        }
        let surplus = self.recent.len() - used.max(1);
        self.recent.drain(..surplus);
    }

    fn rates(&self) -> Rates {
        let average_bits_per_second = self.total.bits_per_second();
        Rates {
            // No segments are long enough yet: their average is the best that is known.
            peak_bits_per_second: self.peak_bits_per_second.max(average_bits_per_second),
            average_bits_per_second,
            pictures_per_1000_s: self.pictures_per_1000_s.or_else(|| self.total.pictures_per_1000_s()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of segments, the end of which one is assumed.
    fn rates_but(segments: &[(u64, u64, u32)], assumed: Option<u64>) -> Rates {
        let info = |(number, &(duration_ms, bytes, pictures))| SegmentInfo {
            number,
            duration_ms,
            discontinuity: false,
            bytes,
            pictures,
            independent: true,
            continued: Some(number) != assumed,
            init: None,
        };
        let infos: Vec<SegmentInfo> = (0..).zip(segments).map(info).collect();
        Rates::of(infos.iter(), 2)
    }

    fn rates(segments: &[(u64, u64, u32)]) -> Rates {
        rates_but(segments, None)
    }

    #[test]
    fn a_short_segment_is_no_peak_alone() {
        // 40 ms that are one keyframe, between two seconds each: 2,000 B/s at most over at least a second.
        let measured = rates(&[(2_000, 2_000, 50), (40, 1_000, 1), (2_000, 4_000, 60)]);
        assert_eq!(measured.peak_bits_per_second, 5_000 * 8_000 / 2_040);
        assert_eq!(measured.average_bits_per_second, 7_000 * 8_000 / 4_040);
        assert_eq!(measured.pictures_per_1000_s, Some(30_000));
        // Nothing else is known of it yet.
        assert_eq!(rates(&[(40, 1_000, 1)]).peak_bits_per_second, 200_000);
        assert_eq!(rates(&[]), Rates::default());
    }

    #[test]
    fn short_segments_are_measured_together() {
        let measured = rates(&[(500, 500, 15), (500, 1_500, 15), (500, 1_500, 15), (500, 100, 15)]);
        assert_eq!((measured.peak_bits_per_second, measured.pictures_per_1000_s), (24_000, Some(30_000)));
        // 30,000/1,001 Hz, as rounded to milliseconds; sound alone has no rate.
        assert_eq!(rates(&[(2_002, 1, 60)]).pictures_per_1000_s, Some(29_970));
        assert_eq!(rates(&[(2_000, 1, 0)]).pictures_per_1000_s, None);
    }

    #[test]
    fn an_assumed_end_has_no_frame_rate() {
        // The last picture may have been shown for a second, as the others were.
        let measured = rates_but(&[(2_000, 1, 2), (2_000, 1, 2), (1_500, 1, 2)], Some(2));
        assert_eq!(measured.pictures_per_1000_s, Some(1_000));
        assert_eq!(rates_but(&[(500, 1, 1)], Some(0)).pictures_per_1000_s, None);
    }
}
