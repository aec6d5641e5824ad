//! AAC as far as a server has to know it: its configuration, and ADTS around its frames.
//!
//! Source: ISO/IEC 14496-3 §1.6.2.1 (AudioSpecificConfig), §1.A.2 (ADTS).

use crate::bits::BitReader;

/// How to decode a track of AAC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AacConfig {
    /// The AudioSpecificConfig, as FLV and MP4 carry it.
    pub record: Vec<u8>,
    /// The audio object type of the core: 2 is AAC-LC, for the high-efficiency variants too.
    pub object_type: u8,
    /// The object type that the configuration begins with: 5 and 29 are the high-efficiency variants, said outright.
    pub signalled_type: u8,
    /// The place of the core's sample rate among the thirteen that exist.
    pub frequency_index: u8,
    /// 1 to 7: as many channels up to six, and eight for 7.
    pub channel_configuration: u8,
    /// Samples in a frame: 1024, or 960.
    pub samples: u32,
}

/// Why bytes are no configuration of AAC, or one that a transport stream cannot say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AacError {
    /// It ends early.
    #[error("the AAC configuration is cut off")]
    Cut,
    /// Not Main, LC, SSR or LTP.
    #[error("audio object type {0} has no place in ADTS")]
    ObjectType(u32),
    /// None of the thirteen rates.
    #[error("a sample rate of {0} Hz has no place in ADTS")]
    SampleRate(u32),
    /// Channels that are laid out in the configuration itself (`program_config_element`).
    #[error(
        "AAC channels in an order of their own (channel configuration 0) are not carried: send mono or stereo (FFmpeg: -ac 2)"
    )]
    OwnChannels,
    /// Channels that have no place in ADTS, or are reserved.
    #[error("channel configuration {0} has no place in ADTS")]
    Channels(u32),
}

/// Sample rates, in hertz, by their index (ISO/IEC 14496-3 table 1.18).
const RATES: [u32; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];
/// An ADTS header without a checksum.
pub const ADTS_LENGTH: usize = 7;
/// Thirteen bits say how long a frame is, its header included.
const ADTS_FRAME_MAX: usize = (1 << 13) - 1;

impl AacConfig {
    /// The configuration in an AudioSpecificConfig.
    ///
    /// # Errors
    /// [`AacError`].
    pub fn parse(record: &[u8]) -> Result<Self, AacError> {
        let mut bits = BitReader::new(record);
        let signalled = object_type(&mut bits).ok_or(AacError::Cut)?;
        let frequency_index = frequency(&mut bits)?;
        let channels = bits.bits(4).ok_or(AacError::Cut)?;
        let mut object = signalled;
        if signalled == 5 || signalled == 29 {
            // High efficiency, said outright: the extension's rate, then the core's type.
            frequency(&mut bits)?;
            object = object_type(&mut bits).ok_or(AacError::Cut)?;
        }
        if !(1..=4).contains(&object) {
            return Err(AacError::ObjectType(object));
        }
        if channels == 0 {
            return Err(AacError::OwnChannels);
        }
        if !(1..=7).contains(&channels) {
            return Err(AacError::Channels(channels));
        }
        let short = bits.bit().unwrap_or(false);
        Ok(Self {
            record: record.to_vec(),
            object_type: object as u8,
            signalled_type: signalled as u8,
            frequency_index,
            channel_configuration: channels as u8,
            samples: if short { 960 } else { 1024 },
        })
    }

    /// AAC-LC.
    ///
    /// # Errors
    /// [`AacError`] for a rate or channels that it has not.
    pub fn low_complexity(sample_rate: u32, channels: u8) -> Result<Self, AacError> {
        let index = RATES.iter().position(|&rate| rate == sample_rate).ok_or(AacError::SampleRate(sample_rate))?;
        let number = 2u16 << 11 | (index as u16) << 7 | u16::from(channels & 15) << 3;
        Self::parse(&number.to_be_bytes())
    }

    /// Whether frames are decoded alike by `other`: the records may differ in an extension that says that there is none.
    ///
    /// Source: ISO/IEC 14496-3 §1.6.5.3: a sync extension with the type of spectral band replication, and a flag that it is there.
    pub fn decodes_as(&self, other: &Self) -> bool {
        let plain = |config: &Self| Self { record: config.extension().to_vec(), ..config.clone() };
        plain(self) == plain(other)
    }

    /// What of the record follows the core's configuration, without an extension that says that there is none.
    fn extension(&self) -> &[u8] {
        let rest = if self.signalled_type == self.object_type {
            self.record.get(2..).unwrap_or_default()
        } else {
            &self.record
        };
        match rest {
            // Eleven bits 0x2b7, five of the type 5, the flag, and padding.
            [0x56, 0xe5, flags, ..] if flags & 0x80 == 0 => &[],
            _ => rest,
        }
    }

    /// The core's samples a second and channel.
    pub fn sample_rate(&self) -> u32 {
        RATES[usize::from(self.frequency_index)]
    }

    /// The codec's name in a playlist (RFC 6381).
    pub fn codec(&self) -> String {
        format!("mp4a.40.{}", self.signalled_type)
    }

    /// A frame without sound; `None` for configurations that none is known for.
    ///
    /// One or two channels whose spectrum has no section: ISO/IEC 14496-3 table 4.4.1.1 (`single_channel_element`,
    /// `channel_pair_element`) with `max_sfb` 0, and an ending.
    pub fn silence(&self) -> Option<&'static [u8]> {
        match (self.object_type, self.signalled_type, self.samples, self.channel_configuration) {
            (2, 2, 1024, 1) => Some(b"\x00\xc8\x00\x80\x23\x80"),
            (2, 2, 1024, 2) => Some(b"\x21\x00\x49\x90\x02\x19\x00\x23\x80"),
            _ => None,
        }
    }

    /// The header that goes before a frame of `length` bytes; `None` for a frame that ADTS cannot hold.
    pub fn adts(&self, length: usize) -> Option<[u8; ADTS_LENGTH]> {
        let frame = Some(length + ADTS_LENGTH).filter(|&frame| frame <= ADTS_FRAME_MAX)?;
        let channels = self.channel_configuration;
        Some([
            0xff,
            // MPEG-4, no checksum.
            0xf1,
            (self.object_type - 1) << 6 | self.frequency_index << 2 | channels >> 2,
            (channels & 3) << 6 | (frame >> 11) as u8,
            (frame >> 3) as u8,
            // The buffer's fullness is not given: eleven ones. One raw data block.
            (frame as u8 & 7) << 5 | 0x1f,
            0xfc,
        ])
    }
}

/// The frames of a stream of ADTS, each with its configuration; they end where the bytes make no sense.
#[derive(Debug, Clone)]
pub struct AdtsFrames<'a> {
    rest: &'a [u8],
}

impl<'a> AdtsFrames<'a> {
    /// Goes through the frames of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What was not understood, once there are no more frames.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for AdtsFrames<'a> {
    type Item = (AacConfig, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let header = self.rest.first_chunk::<ADTS_LENGTH>()?;
        if header[0] != 0xff || header[1] & 0xf6 != 0xf0 {
            return None;
        }
        let protected = header[1] & 1 == 0;
        let length = usize::from(header[3] & 3) << 11 | usize::from(header[4]) << 3 | usize::from(header[5] >> 5);
        let before = ADTS_LENGTH + if protected { 2 } else { 0 };
        let (frame, rest) = self.rest.split_at_checked(length)?;
        let body = frame.get(before..)?;
        let (object, index) = (header[2] >> 6, header[2] >> 2 & 15);
        let channels = (header[2] & 1) << 2 | header[3] >> 6;
        let number = u16::from(object + 1) << 11 | u16::from(index) << 7 | u16::from(channels) << 3;
        let config = AacConfig::parse(&number.to_be_bytes()).ok()?;
        self.rest = rest;
        Some((config, body))
    }
}

fn object_type(bits: &mut BitReader<'_>) -> Option<u32> {
    match bits.bits(5)? {
        31 => Some(32 + bits.bits(6)?),
        object => Some(object),
    }
}

fn frequency(bits: &mut BitReader<'_>) -> Result<u8, AacError> {
    match bits.bits(4).ok_or(AacError::Cut)? {
        15 => {
            let rate = bits.bits(24).ok_or(AacError::Cut)?;
            let index = RATES.iter().position(|&known| known == rate).ok_or(AacError::SampleRate(rate))?;
            Ok(index as u8)
        }
        index if (index as usize) < RATES.len() => Ok(index as u8),
        _ => Err(AacError::SampleRate(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn configurations_are_read() {
        // 44.1 kHz stereo, as FFmpeg says it: with an explicit "no SBR" behind.
        let config = AacConfig::parse(b"\x12\x10\x56\xe5\x00").expect("a configuration");
        assert_eq!((config.object_type, config.sample_rate(), config.channel_configuration), (2, 44_100, 2));
        assert_eq!(config.codec(), "mp4a.40.2");
        assert_eq!(AacConfig::low_complexity(44_100, 2).expect("a configuration").record, b"\x12\x10");
        // High efficiency: type 5, 22.05 kHz, stereo, extended to 44.1 kHz, core LC.
        let config = AacConfig::parse(b"\x2b\x92\x08").expect("a configuration");
        assert_eq!((config.object_type, config.signalled_type, config.sample_rate()), (2, 5, 22_050));
        assert_eq!(AacConfig::parse(b"\x12"), Err(AacError::Cut));
        assert_eq!(AacConfig::parse(b"\x12\x00"), Err(AacError::OwnChannels));
        assert_eq!(AacConfig::parse(b"\x16\x90"), Err(AacError::SampleRate(0)));
    }

    #[test]
    fn adts_says_what_the_configuration_says() {
        let config = AacConfig::low_complexity(48_000, 6).expect("a configuration");
        let frame = vec![7; 1000];
        let mut bytes = config.adts(frame.len()).expect("a header").to_vec();
        bytes.extend(&frame);
        let mut frames = AdtsFrames::new(&bytes);
        assert_eq!(frames.next(), Some((config.clone(), &frame[..])));
        assert_eq!(frames.next(), None);
        assert!(frames.rest().is_empty());
        assert_eq!(config.adts(8185), None);
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = AacConfig::parse(&bytes);
            let _ = AdtsFrames::new(&[b"\xff\xf1", &bytes[..]].concat()).count();
        }
    }
}
