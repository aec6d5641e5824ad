//! An HTTP-FLV player: one answer, for as long as it plays.

use crate::format;
use crate::glance;
use crate::playout::Playout;
use crate::tally::Tally;
use std::time::Duration;

/// A player's state.
#[derive(Debug)]
pub(crate) struct Flv {
    glance: glance::Flv,
    playout: Playout,
    /// The media's time that was handed to the playout.
    counted_ms: Option<u32>,
    pictured: bool,
}

impl Flv {
    pub(crate) fn new(buffer: Duration) -> Self {
        Self { glance: glance::Flv::default(), playout: Playout::new(buffer), counted_ms: None, pictured: false }
    }

    pub(crate) const fn playout(&self) -> &Playout {
        &self.playout
    }

    pub(crate) const fn has_picture(&self) -> bool {
        self.pictured
    }

    /// The load is over: counts what kept a player from its picture.
    pub(crate) fn end(&self, tally: &mut Tally) {
        if !self.pictured && self.glance.latest_ms.is_some() {
            tally.failed("media without a keyframe until the end");
        }
    }

    /// The connection is opened again.
    pub(crate) fn begin(&mut self) {
        self.glance = glance::Flv::default();
        self.counted_ms = None;
    }

    /// Takes a part of the body, `now` after the start.
    pub(crate) fn body(&mut self, bytes: &[u8], now: Duration, tally: &mut Tally) -> Result<(), String> {
        self.glance.read(bytes).map_err(|_| match format::name(bytes) {
            Some(name) if self.counted_ms.is_none() => format!("a stream that is no FLV: it is {name}"),
            _ => "a stream that is no FLV".to_owned(),
        })?;
        if !self.glance.has_keyframe {
            return Ok(());
        }
        if !self.pictured {
            self.pictured = true;
            tally.playing += 1;
            tally.first_frame.record(now);
        }
        let Some(latest) = self.glance.latest_ms else { return Ok(()) };
        // Times of audio and video interleave, and a new publisher's start again: only what goes on is media that can be played.
        let length = match self.counted_ms {
            Some(counted) if (latest.wrapping_sub(counted) as i32) <= 0 => 0,
            Some(counted) => latest.wrapping_sub(counted),
            None => 0,
        };
        if length > 0 || self.counted_ms.is_none() {
            self.counted_ms = Some(latest);
            // A jump is no media.
            let length = if length > 10_000 { 0 } else { length };
            if let Some(stall) = self.playout.arrived(now, Duration::from_millis(length.into())) {
                tally.stall.record(stall);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_without_a_keyframe_is_named() {
        let mut tally = Tally::default();
        let mut flv = Flv::new(Duration::ZERO);
        flv.end(&mut tally);
        assert_eq!(tally.failures(), 0, "nothing came: that has a failure of its own");
        let inter = b"\x09\0\0\x05\0\0\x28\0\0\0\0\x27\x01\0\0\0\0\0\0\x10";
        let file = [&b"FLV\x01\x05\0\0\0\x09\0\0\0\0"[..], inter, inter].concat();
        flv.body(&file, Duration::ZERO, &mut tally).expect("FLV");
        flv.end(&mut tally);
        assert_eq!(tally.failures.keys().collect::<Vec<_>>(), ["media without a keyframe until the end"]);
    }
}
