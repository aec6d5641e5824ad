//! H.264 as far as a server has to know it: its configuration, where NAL units begin, how large the picture is.
//!
//! Source: ISO/IEC 14496-10 (H.264), Annex B and §7.3; ISO/IEC 14496-15 §5.3.3.1 (AVCDecoderConfigurationRecord).

use crate::bits::BitReader;

/// How to decode a track of H.264.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AvcConfig {
    /// The AVCDecoderConfigurationRecord, as FLV and MP4 carry it.
    pub record: Vec<u8>,
    /// In how many bytes a unit's NAL lengths are: 1, 2 or 4.
    pub length_size: usize,
    /// Sequence parameter sets, without start codes. There is at least one.
    pub sps: Vec<Vec<u8>>,
    /// Picture parameter sets, without start codes.
    pub pps: Vec<Vec<u8>>,
    /// Width of the shown picture, in pixels; 0 where the set is not understood.
    pub width: u32,
    /// Height of the shown picture, in pixels; 0 where the set is not understood.
    pub height: u32,
}

/// Why bytes are no configuration of H.264, or no access unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AvcError {
    /// The record ends early.
    #[error("the H.264 configuration is cut off")]
    Cut,
    /// It is of another version than 1.
    #[error("the H.264 configuration is of version {0}, where there is only 1")]
    Version(u8),
    /// NAL lengths of three bytes.
    #[error("NAL lengths of {0} bytes do not exist")]
    LengthSize(usize),
    /// Nothing says how large a picture is.
    #[error("the H.264 configuration has no sequence parameter set")]
    NoSps,
    /// A NAL unit is longer than the access unit that holds it, or of no length.
    #[error("an access unit's NAL lengths do not add up")]
    Nal,
}

/// A slice of a picture that is no IDR picture: a NAL unit's type (§7.4.1).
const NAL_SLICE: u8 = 1;
/// A slice's data partition with its header.
const NAL_PARTITION: u8 = 2;
/// A slice of an IDR picture.
pub const NAL_IDR: u8 = 5;
/// Supplemental enhancement information.
const NAL_SEI: u8 = 6;
/// The type of an SEI message with a recovery point (§D.1.1).
const SEI_RECOVERY_POINT: u32 = 6;
/// A sequence parameter set.
pub const NAL_SPS: u8 = 7;
/// A picture parameter set.
pub const NAL_PPS: u8 = 8;
/// An access unit delimiter.
pub const NAL_AUD: u8 = 9;

impl AvcConfig {
    /// The configuration in an AVCDecoderConfigurationRecord.
    ///
    /// # Errors
    /// [`AvcError`].
    pub fn parse(record: &[u8]) -> Result<Self, AvcError> {
        let (&head, mut rest) = record.split_first_chunk::<6>().ok_or(AvcError::Cut)?;
        if head[0] != 1 {
            return Err(AvcError::Version(head[0]));
        }
        let length_size = usize::from(head[4] & 3) + 1;
        if length_size == 3 {
            return Err(AvcError::LengthSize(3));
        }
        let sps = sets(&mut rest, head[5] & 0x1f)?;
        let (&count, after) = rest.split_first().ok_or(AvcError::Cut)?;
        rest = after;
        let pps = sets(&mut rest, count)?;
        let first = sps.first().ok_or(AvcError::NoSps)?;
        let (width, height) = picture_size(first).unwrap_or((0, 0));
        Ok(Self { record: record.to_vec(), length_size, sps, pps, width, height })
    }

    /// The configuration of parameter sets, with NAL lengths of four bytes.
    ///
    /// # Errors
    /// [`AvcError`] where a set is empty or longer than 65,535 bytes.
    pub fn of(sps: &[u8], pps: &[u8]) -> Result<Self, AvcError> {
        Self::of_sets(&[sps], &[pps], 4)
    }

    fn of_sets(sps: &[&[u8]], pps: &[&[u8]], length_size: usize) -> Result<Self, AvcError> {
        let [_, profile, compatibility, level, ..] = **sps.first().ok_or(AvcError::NoSps)? else {
            return Err(AvcError::NoSps);
        };
        let mut record = vec![1, profile, compatibility, level, 0xfc | (length_size - 1) as u8];
        // §5.3.3.1: 31 sequence parameter sets, and 255 picture parameter sets.
        for (sets, reserved, most) in [(sps, 0xe0, 31), (pps, 0, 255)] {
            let count = u8::try_from(sets.len()).ok().filter(|&count| count <= most).ok_or(AvcError::Nal)?;
            record.push(reserved | count);
            for set in sets {
                let length = u16::try_from(set.len()).map_err(|_| AvcError::Nal)?;
                record.extend(length.to_be_bytes());
                record.extend_from_slice(set);
            }
        }
        Self::parse(&record)
    }

    /// The configuration that holds from a keyframe of these NAL units on, if that has other sequence parameter sets.
    pub(crate) fn replaced_by(&self, keyframe: Nals<'_>) -> Option<Self> {
        let sets = |wanted: u8| keyframe.clone().filter(move |nal| nal[0] & 0x1f == wanted);
        if sets(NAL_SPS).all(|set| self.sps.iter().any(|known| known == set)) {
            return None;
        }
        let (sps, mut pps): (Vec<&[u8]>, Vec<&[u8]>) = (sets(NAL_SPS).collect(), sets(NAL_PPS).collect());
        if pps.is_empty() {
            pps = self.pps.iter().map(Vec::as_slice).collect();
        }
        // What is no parameter set changes nothing.
        Self::of_sets(&sps, &pps, self.length_size).ok()
    }

    /// The codec's name in a playlist (RFC 6381): profile, constraints and level.
    pub fn codec(&self) -> String {
        format!("avc1.{:02X}{:02X}{:02X}", self.record[1], self.record[2], self.record[3])
    }
}

fn sets(rest: &mut &[u8], count: u8) -> Result<Vec<Vec<u8>>, AvcError> {
    (0..count)
        .map(|_| {
            let (&length, after) = rest.split_first_chunk().ok_or(AvcError::Cut)?;
            let (set, after) = after.split_at_checked(u16::from_be_bytes(length).into()).ok_or(AvcError::Cut)?;
            *rest = after;
            if set.is_empty() { Err(AvcError::Nal) } else { Ok(set.to_vec()) }
        })
        .collect()
}

/// The NAL units of an access unit whose lengths are in `length_size` bytes; they end where the lengths make no sense.
#[derive(Debug, Clone)]
pub struct Nals<'a> {
    rest: &'a [u8],
    length_size: usize,
}

impl<'a> Nals<'a> {
    /// Goes through the NAL units of `payload`.
    pub const fn new(payload: &'a [u8], length_size: usize) -> Self {
        Self { rest: payload, length_size }
    }

    /// Whether lengths add up to the payload, with no NAL unit empty and at least one there.
    ///
    /// # Errors
    /// [`AvcError::Nal`].
    pub fn check(mut self) -> Result<(), AvcError> {
        let mut count = 0;
        while self.next().is_some() {
            count += 1;
        }
        if count > 0 && self.rest.is_empty() { Ok(()) } else { Err(AvcError::Nal) }
    }

    /// Whether an IDR picture is in it: no later picture refers to an earlier one.
    pub fn has_idr(&self) -> bool {
        self.clone().any(|nal| nal[0] & 0x1f == NAL_IDR)
    }

    /// Whether decoding can begin at this picture, which the publisher flags as a keyframe or does not. An IDR picture is one whatever
    /// the flag says. Another picture is one if it is flagged, and its first field has intra slices only, or it has a recovery point.
    pub fn is_keyframe(&self, is_flagged: bool) -> bool {
        let kind = |nal: &[u8]| nal[0] & 0x1f;
        if self.has_idr() {
            return true;
        }
        if !is_flagged {
            return false;
        }
        let slices = self.clone().filter(|nal| matches!(kind(nal), NAL_SLICE | NAL_PARTITION));
        let mut headers = slices.map(slice_header);
        // A second field begins with macroblock 0 as the first does, and may refer to the first.
        let is_intra = |header: Option<(u32, u32)>| header.is_some_and(|(_, kind)| matches!(kind % 5, 2 | 4));
        headers.next().is_some_and(is_intra)
            && headers.take_while(|header| header.is_none_or(|(first, _)| first != 0)).all(is_intra)
            || self.clone().any(|nal| kind(nal) == NAL_SEI && has_recovery_point(nal))
    }
}

/// The number of a slice's first macroblock, and its type: 2 and 4, modulo 5, refer to no other picture. Source: §7.3.3, table 7-6.
fn slice_header(slice: &[u8]) -> Option<(u32, u32)> {
    let mut bits = BitReader::new(&slice[1..]);
    Some((bits.ue()?, bits.ue()?))
}

/// Whether an SEI NAL unit has a message with a recovery point. Source: §7.3.2.3.1.
fn has_recovery_point(nal: &[u8]) -> bool {
    let plain = without_emulation(&nal[1..]);
    let mut rest = plain.as_slice();
    let number = |rest: &mut &[u8]| {
        let mut sum = 0u32;
        loop {
            let (&byte, after) = rest.split_first()?;
            *rest = after;
            sum = sum.saturating_add(byte.into());
            if byte != 0xff {
                return Some(sum);
            }
        }
    };
    // What is left at the end is the trailing bits, one byte.
    while rest.len() > 1 {
        let (Some(kind), Some(length)) = (number(&mut rest), number(&mut rest)) else { return false };
        if kind == SEI_RECOVERY_POINT {
            return true;
        }
        rest = rest.get(length as usize..).unwrap_or_default();
    }
    false
}

impl<'a> Iterator for Nals<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.rest.split_at_checked(self.length_size)?;
        let length = length.iter().fold(0usize, |length, &byte| length << 8 | usize::from(byte));
        let (nal, rest) = rest.split_at_checked(length).filter(|(nal, _)| !nal.is_empty())?;
        self.rest = rest;
        Some(nal)
    }
}

/// The NAL units of a byte stream (Annex B): what is between start codes.
#[derive(Debug, Clone)]
pub struct StartCodes<'a> {
    rest: &'a [u8],
}

impl<'a> StartCodes<'a> {
    /// Goes through the NAL units of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: start(bytes).map_or(&[], |at| &bytes[at + 3..]) }
    }
}

impl<'a> Iterator for StartCodes<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.rest.is_empty() {
            let (nal, rest) = match start(self.rest) {
                Some(at) => (&self.rest[..at], &self.rest[at + 3..]),
                None => (self.rest, &[][..]),
            };
            self.rest = rest;
            // Zeros behind a NAL unit are padding, or the first of a start code's four bytes.
            let length = nal.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
            if length > 0 {
                return Some(&nal[..length]);
            }
        }
        None
    }
}

fn start(bytes: &[u8]) -> Option<usize> {
    bytes.windows(3).position(|three| three == [0, 0, 1])
}

/// Width and height that a sequence parameter set says, cropping taken off.
fn picture_size(sps: &[u8]) -> Option<(u32, u32)> {
    let plain = without_emulation(sps.get(1..)?);
    let mut bits = BitReader::new(&plain);
    let profile = bits.bits(8)?;
    bits.bits(16)?;
    bits.ue()?;
    let mut chroma = 1;
    // §7.3.2.1.1: the profiles that say more of their samples.
    if [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135].contains(&profile) {
        chroma = bits.ue()?;
        if chroma == 3 {
            bits.bit()?;
        }
        bits.ue()?;
        bits.ue()?;
        bits.bit()?;
        if bits.bit()? {
            for list in 0..if chroma == 3 { 12 } else { 8 } {
                if bits.bit()? {
                    scaling_list(&mut bits, if list < 6 { 16 } else { 64 })?;
                }
            }
        }
    }
    bits.ue()?;
    match bits.ue()? {
        0 => {
            bits.ue()?;
        }
        1 => {
            bits.bit()?;
            bits.se()?;
            bits.se()?;
            for _ in 0..bits.ue()?.min(255) {
                bits.se()?;
            }
        }
        _ => {}
    }
    bits.ue()?;
    bits.bit()?;
    let width = bits.ue()?.checked_add(1)?.checked_mul(16)?;
    let map_units = bits.ue()?.checked_add(1)?.checked_mul(16)?;
    let frames_only = bits.bit()?;
    let fields = if frames_only { 1 } else { 2 };
    let height = map_units.checked_mul(fields)?;
    if !frames_only {
        bits.bit()?;
    }
    bits.bit()?;
    if !bits.bit()? {
        return Some((width, height));
    }
    // §7.4.2.1.1: units of cropping, by the chroma format.
    let (x, y) = match chroma {
        1 => (2, 2),
        2 => (2, 1),
        _ => (1, 1),
    };
    let mut crop = || bits.ue();
    let (left, right, top, bottom) = (crop()?, crop()?, crop()?, crop()?);
    Some((
        width.checked_sub(left.checked_add(right)?.checked_mul(x)?)?,
        height.checked_sub(top.checked_add(bottom)?.checked_mul(y * fields)?)?,
    ))
}

fn scaling_list(bits: &mut BitReader<'_>, size: usize) -> Option<()> {
    let mut next = 8;
    for _ in 0..size {
        next = (next + bits.se()? % 256 + 256) % 256;
        if next == 0 {
            break;
        }
    }
    Some(())
}

/// A NAL unit's content without the bytes that keep start codes out of it (§7.3.1).
fn without_emulation(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut zeros = 0;
    for &byte in bytes {
        if zeros >= 2 && byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        plain.push(byte);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// x264's sets for 1920 × 1080, High profile, level 4.0: 1088 lines of which 8 are cropped.
    const SPS: &[u8] =
        b"\x67\x64\x00\x28\xac\xd9\x40\x78\x02\x27\xe5\xc0\x44\x00\x00\x03\x00\x04\x00\x00\x03\x00\xc8\x3c\x60\xc6\x58";
    const PPS: &[u8] = b"\x68\xeb\xe3\xcb\x22\xc0";

    #[test]
    fn the_record_says_what_is_decoded() {
        let config = AvcConfig::of(SPS, PPS).expect("a configuration");
        assert_eq!((config.width, config.height), (1920, 1080));
        assert_eq!(config.codec(), "avc1.640028");
        assert_eq!(config.length_size, 4);
        assert_eq!(AvcConfig::parse(&config.record), Ok(config.clone()));
        for length in 0..config.record.len() {
            assert_eq!(AvcConfig::parse(&config.record[..length]), Err(AvcError::Cut));
        }
    }

    #[test]
    fn nal_units_are_found() {
        let payload = b"\0\0\0\x02ab\0\0\0\x01c";
        assert_eq!(Nals::new(payload, 4).collect::<Vec<_>>(), [&b"ab"[..], b"c"]);
        assert_eq!(Nals::new(payload, 4).check(), Ok(()));
        assert_eq!(Nals::new(&payload[..9], 4).check(), Err(AvcError::Nal));
        assert_eq!(Nals::new(b"\0\0\0\0", 4).check(), Err(AvcError::Nal));
        assert_eq!(Nals::new(b"", 4).check(), Err(AvcError::Nal));
        let stream = b"\0\0\0\x01ab\0\0\x01c\0\0\0\x01\0\0\x01d\0";
        assert_eq!(StartCodes::new(stream).collect::<Vec<_>>(), [&b"ab"[..], b"c", b"d"]);
    }

    #[test]
    fn a_keyframe_is_where_decoding_can_begin() {
        let unit = |nals: &[&[u8]]| -> Vec<u8> {
            nals.iter().flat_map(|nal| [&(nal.len() as u32).to_be_bytes()[..], nal].concat()).collect()
        };
        // Slice headers begin with first_mb_in_slice, 0 but for the last one, and slice_type: 7 is I, 5 is P.
        let (idr, intra, inter) = (&b"\x65\x88\x80"[..], &b"\x41\x88\x80"[..], &b"\x41\x9a\x00"[..]);
        let inter_after = &b"\x41\x31\x80"[..];
        // As x264 writes them: its settings, and a recovery point.
        let (settings, recovery) = (&b"\x06\x05\x03abc\x80"[..], &b"\x06\x06\x01\xc4\x80"[..]);
        for (nals, flagged, wanted) in [
            (&[idr][..], true, true),
            (&[settings, idr], false, true),
            (&[intra], true, true),
            (&[intra], false, false),
            (&[inter], true, false),
            (&[intra, inter_after], true, false),
            (&[intra, inter], true, true),
            (&[settings, inter], true, false),
            (&[settings, recovery, inter], true, true),
        ] {
            assert_eq!(Nals::new(&unit(nals), 4).is_keyframe(flagged), wanted, "{nals:?} {flagged}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = picture_size(&bytes);
            let _ = AvcConfig::parse(&bytes);
            let _ = AvcConfig::parse(&[b"\x01\x64\0\x28\xff\xe1\0\x20\x67\x64\0\x28", &bytes[..]].concat());
            for size in [1, 2, 4] {
                let _ = Nals::new(&bytes, size).check();
                let _ = Nals::new(&bytes, size).is_keyframe(true);
            }
            prop_assert!(StartCodes::new(&bytes).map(<[u8]>::len).sum::<usize>() <= bytes.len());
        }
    }
}
