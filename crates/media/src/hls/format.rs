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
}

impl Container {
    /// The media sequence number in a segment's file name; `None` for a name that is none of this container's.
    pub fn number_in(&self, file: &str) -> Option<u64> {
        let digits = file.strip_suffix(self.extension)?.strip_suffix('.')?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
    }

    /// The file name of the segment with this media sequence number.
    pub fn file_name(&self, number: u64) -> String {
        format!("{number}.{}", self.extension)
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

    /// Appends what a segment begins with.
    fn begin(&mut self, out: &mut Vec<u8>);

    /// Appends a unit, or holds it until [`SegmentFormat::flush`].
    fn unit(&mut self, unit: &Unit, out: &mut Vec<u8>);

    /// Appends what is held. Each segment ends with it.
    fn flush(&mut self, out: &mut Vec<u8>);
}

impl SegmentFormat for Muxer {
    const CONTAINER: Container = Container { extension: "ts", media_type: "video/mp2t" };

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
        assert_eq!(container.file_name(1_234), "1234.ts");
        assert_eq!(container.number_in("1234.ts"), Some(1_234));
        for file in ["1234", ".ts", "1234.mp4", "1234ts", "+1.ts", "-1.ts", "1.2.ts", "99999999999999999999.ts"] {
            assert_eq!(container.number_in(file), None, "{file}");
        }
    }
}
