//! When the first keyframe has come, by a glance at the bytes: a player by the thousand cannot decode.
//!
//! Source: Adobe, "Video File Format Specification" 10.1, Annex E (FLV); ISO/IEC 13818-1 §2.4 (transport stream).

/// Longest tag whose end is waited for.
const TAG_MAX: u32 = 0xff_ffff;

/// A stream of FLV tags.
#[derive(Debug, Default)]
pub(crate) struct Flv {
    /// Bytes to step over before the next tag's header.
    skip: u64,
    /// What came of the next tag's header and the first two bytes of its body.
    header: Vec<u8>,
    begun: bool,
    /// The header says that there is no video: a frame of sound counts as a picture.
    is_sound: bool,
    /// The tag that is being stepped over is a whole picture.
    keyframe: bool,
    pub(crate) has_keyframe: bool,
    /// The latest time stamp of the media, in milliseconds, and that of the first keyframe.
    pub(crate) latest_ms: Option<u32>,
}

/// What came is not what it should be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotMedia;

impl Flv {
    const FILE_HEADER: usize = 9;
    /// The tag's header, and enough of its body to tell a keyframe from a decoder's configuration.
    const LOOKED_AT: usize = 11 + 2;

    pub(crate) fn read(&mut self, mut bytes: &[u8]) -> Result<(), NotMedia> {
        while !bytes.is_empty() {
            let n = self.skip.min(bytes.len() as u64) as usize;
            bytes = &bytes[n..];
            self.skip -= n as u64;
            if self.skip > 0 {
                return Ok(());
            }
            if self.keyframe {
                (self.keyframe, self.has_keyframe) = (false, true);
            }
            let wanted = if self.begun { Self::LOOKED_AT } else { Self::FILE_HEADER };
            let n = (wanted - self.header.len()).min(bytes.len());
            self.header.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if self.header.len() < wanted {
                return Ok(());
            }
            self.tag()?;
            self.header.clear();
        }
        Ok(())
    }

    fn tag(&mut self) -> Result<(), NotMedia> {
        let header = &self.header;
        if !self.begun {
            if &header[..3] != b"FLV" {
                return Err(NotMedia);
            }
            self.begun = true;
            // E.2: the flags of audio and of video.
            self.is_sound = header[4] & 5 == 4;
            let length = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
            // The first tag's predecessor has no length either.
            self.skip = u64::from(length.min(TAG_MAX)).saturating_sub(9) + 4;
            return Ok(());
        }
        let length = u32::from_be_bytes([0, header[1], header[2], header[3]]);
        if !matches!(header[0], 8 | 9 | 18) {
            return Err(NotMedia);
        }
        let ms = u32::from_be_bytes([header[7], header[4], header[5], header[6]]);
        let (first, second) = (header[11], header[12]);
        // Enhanced RTMP's frames have the highest bit set, and their packet type in the lower four: 1 and 3 are coded frames.
        let is_picture = if first & 0x80 == 0 { second == 1 } else { matches!(first & 15, 1 | 3) };
        let is_keyframe = header[0] == 9 && (first >> 4) & 7 == 1 && is_picture;
        // Of AAC, and of Enhanced RTMP's codecs, the second byte or the lower four bits tell a configuration from a frame.
        let is_frame = match first >> 4 {
            10 => second == 1,
            9 => first & 15 == 1,
            _ => true,
        };
        let is_keyframe = is_keyframe || self.is_sound && header[0] == 8 && is_frame;
        if header[0] != 18 && (header[0] == 8 || is_picture) {
            self.latest_ms = Some(ms);
        }
        self.keyframe = is_keyframe && !self.has_keyframe;
        // The body's rest, and its length once more; two bytes of it were looked at, which may be of what follows a shorter one.
        self.skip = (u64::from(length) + 4).checked_sub(2).ok_or(NotMedia)?;
        Ok(())
    }
}

/// A transport stream.
#[derive(Debug, Default)]
pub(crate) struct Ts {
    packet: Vec<u8>,
    program: Option<u16>,
    video: Option<u16>,
    /// Pictures that began.
    pictures: u32,
    /// Bytes in all.
    pub(crate) bytes: u64,
}

impl Ts {
    const PACKET: usize = 188;

    /// Whether the first picture is whole: the second began.
    pub(crate) const fn has_picture(&self) -> bool {
        self.pictures > 1
    }

    /// Takes bytes in. Once the first picture is whole they are only counted.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) -> Result<(), NotMedia> {
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() && !self.has_picture() {
            let n = (Self::PACKET - self.packet.len()).min(bytes.len());
            self.packet.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if self.packet.len() == Self::PACKET {
                self.look().ok_or(NotMedia)?;
                self.packet.clear();
            }
        }
        Ok(())
    }

    /// `None` where a packet does not begin with its sync byte.
    fn look(&mut self) -> Option<()> {
        let packet = &self.packet;
        if packet[0] != 0x47 {
            return None;
        }
        let starts = packet[1] & 0x40 != 0;
        let pid = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
        let at = if packet[3] & 0x20 == 0 { 4 } else { 5 + usize::from(packet[4]) };
        let payload = packet.get(at..).filter(|_| packet[3] & 0x10 != 0).unwrap_or_default();
        if !starts || payload.is_empty() {
            return Some(());
        }
        if Some(pid) == self.video {
            self.pictures += 1;
        } else if pid == 0 || Some(pid) == self.program {
            // A table begins after a pointer.
            if let Some(table) = payload.get(1 + usize::from(payload[0])..) {
                let found = if pid == 0 { program(table) } else { video(table) };
                *(if pid == 0 { &mut self.program } else { &mut self.video }) = found;
            }
        }
        Some(())
    }
}

fn pid(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([bytes.get(at)? & 0x1f, *bytes.get(at + 1)?]))
}

/// The first program's table, of a program association table.
fn program(table: &[u8]) -> Option<u16> {
    table.get(8..)?.chunks_exact(4).find(|entry| entry[..2] != [0, 0]).and_then(|entry| pid(entry, 2))
}

/// The first video, of a program's table.
fn video(table: &[u8]) -> Option<u16> {
    let length = 3 + usize::from(pid(table, 1)? & 0x0fff);
    let entries = table.get(..length.checked_sub(4)?)?;
    let mut at = 12 + usize::from(pid(table, 10)? & 0x0fff);
    while let Some(kind) = entries.get(at) {
        let video = pid(entries, at + 1)?;
        // MPEG-1 and -2, MPEG-4, H.264, HEVC.
        if matches!(kind, 1 | 2 | 0x10 | 0x1b | 0x24) {
            return Some(video);
        }
        at += 5 + usize::from(pid(entries, at + 3)? & 0x0fff);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tag(kind: u8, ms: u32, body: &[u8]) -> Vec<u8> {
        let mut tag = vec![kind];
        tag.extend(&(body.len() as u32).to_be_bytes()[1..]);
        tag.extend(&ms.to_be_bytes()[1..]);
        tag.extend([(ms >> 24) as u8, 0, 0, 0]);
        tag.extend(body);
        tag.extend((11 + body.len() as u32).to_be_bytes());
        tag
    }

    #[test]
    fn the_first_keyframe_counts_once_it_is_whole() {
        let file = [
            b"FLV\x01\x05\0\0\0\x09\0\0\0\0".to_vec(),
            tag(18, 0, b"onMetaData"),
            tag(9, 0, &[0x17, 0, 0, 0, 0, 1]),
            tag(8, 5, &[0xaf, 1, 2, 3]),
            tag(9, 40, &[0x27, 1, 0, 0, 0]),
        ]
        .concat();
        let key = tag(9, 0x0100_0050, &[0x17, 1, 0, 0, 0, 9, 9, 9]);
        for piece in [1, 5, 13, 1000] {
            let mut flv = Flv::default();
            file.chunks(piece).for_each(|bytes| flv.read(bytes).expect("FLV"));
            assert!(!flv.has_keyframe, "a configuration and an inter frame are none");
            assert_eq!(flv.latest_ms, Some(40));
            key[..key.len() - 1].chunks(piece).for_each(|bytes| flv.read(bytes).expect("FLV"));
            assert!(!flv.has_keyframe, "it is not whole");
            flv.read(&key[key.len() - 1..]).expect("FLV");
            flv.read(&tag(8, 6, &[0xaf, 1])).expect("FLV");
            assert!(flv.has_keyframe);
        }
        assert_eq!(Flv::default().read(b"HTTP/1.1 404"), Err(NotMedia));
    }

    #[test]
    fn without_video_the_first_frame_of_sound_counts() {
        let mut flv = Flv::default();
        flv.read(b"FLV\x01\x04\0\0\0\x09\0\0\0\0").expect("FLV");
        flv.read(&[tag(18, 0, b"onMetaData"), tag(8, 0, &[0xaf, 0, 0x12, 0x10])].concat()).expect("FLV");
        assert!(!flv.has_keyframe, "a configuration is none");
        flv.read(&[tag(8, 21, &[0xaf, 1, 2, 3]), tag(8, 42, &[0xaf, 1, 2, 3])].concat()).expect("FLV");
        assert!(flv.has_keyframe);
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600), piece in 1usize..300, flv: bool) {
            let mut bytes = bytes;
            let start: &[u8] = if flv { b"FLV\x01\x05\0\0\0\x09\0\0\0\0" } else { &[0x47, 0x40, 0, 0x10, 0] };
            bytes.splice(..0, start.iter().copied());
            let (mut flv, mut ts) = (Flv::default(), Ts::default());
            for piece in bytes.chunks(piece) {
                let _ = flv.read(piece);
                let _ = ts.read(piece);
            }
        }
    }
}
