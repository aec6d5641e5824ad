//! The container of segments: what a [`super::Segmenter`] asks of it, and what playlists and servers say of it.

use crate::ts::Muxer;
use crate::{Config, Unit};

/// What a server says of segments in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Container {
    /// The end of a segment's file name, without a dot.
    pub extension: &'static str,
    /// The media type of a segment's response.
    pub media_type: &'static str,
    /// The end of an initialization section's file name, without a dot; `None` where each segment holds what decodes it.
    pub init_extension: Option<&'static str>,
}

/// A part of a stream that has a file name of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The segment with this media sequence number.
    Segment(u64),
    /// The initialization section that came with the segment of this number.
    Init(u64),
}

/// What the file name of an initialization section begins with.
const INIT: &str = "init-";

impl Container {
    /// The part with this file name; `None` for a name that is none of this container's.
    pub fn part(&self, file: &str) -> Option<Part> {
        let number =
            |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
        let (stem, extension) = file.rsplit_once('.')?;
        match stem.strip_prefix(INIT) {
            Some(digits) if Some(extension) == self.init_extension => number(digits).map(Part::Init),
            None if extension == self.extension => number(stem).map(Part::Segment),
            _ => None,
        }
    }

    /// The file name of a part.
    pub fn file_name(&self, part: Part) -> String {
        match part {
            Part::Segment(number) => format!("{number}.{}", self.extension),
            Part::Init(number) => format!("{INIT}{number}.{}", self.init_extension.unwrap_or(self.extension)),
        }
    }
}

/// Writes units into segments of one container.
pub trait SegmentFormat: Default {
    /// What a server says of the segments.
    const CONTAINER: Container;

    /// A track exists, or is decoded otherwise, from the next [`SegmentFormat::begin`] on.
    fn config(&mut self, config: &Config);

    /// Removes all tracks.
    fn clear(&mut self);

    /// The initialization section that decodes the segments of the tracks there are; `None` where each segment holds that.
    fn init(&self) -> Option<Vec<u8>> {
        None
    }

    /// Appends what a segment begins with.
    fn begin(&mut self, out: &mut Vec<u8>);

    /// Appends a unit, or holds it until [`SegmentFormat::flush`].
    fn unit(&mut self, unit: &Unit, out: &mut Vec<u8>);

    /// Appends what is held. Each segment ends with it.
    fn flush(&mut self, out: &mut Vec<u8>);
}

impl SegmentFormat for Muxer {
    const CONTAINER: Container = Container { extension: "ts", media_type: "video/mp2t", init_extension: None };

    fn config(&mut self, config: &Config) {
        Self::config(self, config);
    }

    fn clear(&mut self) {
        Self::clear(self);
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        Self::begin(self, out);
    }

    fn unit(&mut self, unit: &Unit, out: &mut Vec<u8>) {
        self.write(unit, out);
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        Self::flush(self, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segments_name_is_read_as_it_is_written() {
        let container = Muxer::CONTAINER;
        assert_eq!(container.file_name(Part::Segment(1_234)), "1234.ts");
        assert_eq!(container.part("1234.ts"), Some(Part::Segment(1_234)));
        for file in
            ["1234", ".ts", "1234.mp4", "1234ts", "+1.ts", "-1.ts", "1.2.ts", "99999999999999999999.ts", "init-1.ts"]
        {
            assert_eq!(container.part(file), None, "{file}");
        }
        let boxed = Container { extension: "m4s", media_type: "video/mp4", init_extension: Some("mp4") };
        assert_eq!(boxed.file_name(Part::Init(7)), "init-7.mp4");
        let parts = ["init-7.mp4", "7.m4s", "7.mp4", "init-7.m4s", "init-.m4s"].map(|file| boxed.part(file));
        assert_eq!(parts, [Some(Part::Init(7)), Some(Part::Segment(7)), None, None, None]);
    }
}
