//! The first segments of a publisher, which wait for its sound.
//!
//! A player that finds video alone in its first segment makes no room for sound: hls.js ends with an error when that comes. So segments
//! without the sound that metadata or a configuration announce are not listed before it comes, or for a bounded time.

use thalweg_media::hls::Segment;

/// Holds the first segments of a publisher back.
#[derive(Debug)]
pub(super) struct SoundWait {
    /// The segments without sound; `None` once nothing is waited for any more.
    held: Option<Vec<Segment>>,
    is_announced: bool,
    /// How long sound is waited for, in milliseconds of segments.
    bound_ms: u64,
}

impl SoundWait {
    /// Waits for so long.
    pub(super) const fn new(bound_ms: u64) -> Self {
        Self { held: Some(Vec::new()), is_announced: false, bound_ms }
    }

    /// Sound follows, though none has come.
    pub(super) const fn announce(&mut self) {
        self.is_announced = true;
    }

    /// The segments to list now that `segment` has ended. Behind the last one of its publisher nothing is waited for.
    pub(super) fn take(&mut self, mut segment: Segment, is_last: bool) -> Vec<Segment> {
        let Some(mut held) = self.held.take() else { return vec![segment] };
        if segment.has_sound {
            // Those before it have video alone, and are dropped.
            segment.info.discontinuity |= held.iter().any(|held| held.info.discontinuity);
            return vec![segment];
        }
        held.push(segment);
        let lasted_ms: u64 = held.iter().map(|segment| segment.info.duration_ms).sum();
        if self.is_announced && !is_last && lasted_ms < self.bound_ms {
            self.held = Some(held);
            return Vec::new();
        }
        held
    }

    /// The publisher is gone: the segments that were held back.
    pub(super) fn end(&mut self) -> Vec<Segment> {
        self.held.take().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_media::hls::SegmentInfo;

    fn segment(number: u64, has_sound: bool) -> Segment {
        let discontinuity = number == 0;
        let info = SegmentInfo {
            number,
            duration_ms: 2_000,
            discontinuity,
            bytes: 1,
            pictures: 50,
            independent: true,
            continued: true,
            init: None,
        };
        Segment { info, bytes: vec![0], init: None, has_sound }
    }

    /// The numbers of segments, and whether the first is behind a discontinuity.
    fn listed(segments: &[Segment]) -> (Vec<u64>, bool) {
        let numbers = segments.iter().map(|segment| segment.info.number).collect();
        (numbers, segments.first().is_some_and(|segment| segment.info.discontinuity))
    }

    #[test]
    fn announced_sound_is_waited_for_within_a_bound() {
        let mut wait = SoundWait::new(6_000);
        wait.announce();
        assert_eq!(listed(&wait.take(segment(0, false), false)), (vec![], false));
        assert_eq!(listed(&wait.take(segment(1, true), false)), (vec![1], true), "the discontinuity is kept");
        assert_eq!(listed(&wait.take(segment(2, false), false)), (vec![2], false));
        // It does not come, or the publisher goes: nothing is lost.
        let mut wait = SoundWait::new(6_000);
        wait.announce();
        (0..2).for_each(|number| assert_eq!(listed(&wait.take(segment(number, false), false)), (vec![], false)));
        assert_eq!(listed(&wait.take(segment(2, false), false)), (vec![0, 1, 2], true));
        let mut wait = SoundWait::new(6_000);
        wait.announce();
        wait.take(segment(0, false), false);
        assert_eq!(listed(&wait.end()), (vec![0], true));
        // Nothing announces it.
        assert_eq!(listed(&SoundWait::new(6_000).take(segment(0, false), false)), (vec![0], true));
    }
}
