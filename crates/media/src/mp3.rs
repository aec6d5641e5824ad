//! MP3 as far as a server has to know it: what a frame's header says.
//!
//! Source: ISO/IEC 11172-3 §2.4.2.3 (header), ISO/IEC 13818-3 §2.4.2.3 (lower sampling frequencies).

/// How to decode a track of MP3. Each frame says it itself; this is what they have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mp3Config {
    /// Samples a second and channel.
    pub sample_rate: u32,
    /// 1 or 2.
    pub channels: u8,
    /// Samples in a frame, of each channel: 1152, or 576 at the lower rates.
    pub samples: u32,
}

/// Why bytes are no frame of MP3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Mp3Error {
    /// No header: eleven ones, a version, layer III, a rate.
    #[error("a frame of MP3 does not begin with its header")]
    Header,
}

/// Sample rates of MPEG-1, in hertz; MPEG-2 has half of them, and MPEG-2.5 a quarter.
const RATES: [u32; 3] = [44_100, 48_000, 32_000];

impl Mp3Config {
    /// What the frame at the beginning of `bytes` says.
    ///
    /// # Errors
    /// [`Mp3Error`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Mp3Error> {
        let &[0xff, second, third, fourth] = bytes.first_chunk().ok_or(Mp3Error::Header)? else {
            return Err(Mp3Error::Header);
        };
        const LAYER_III: u8 = 1;
        if second & 0xe0 != 0xe0 || second >> 1 & 3 != LAYER_III || third >> 4 == 15 {
            return Err(Mp3Error::Header);
        }
        let rate = RATES.get(usize::from(third >> 2 & 3)).ok_or(Mp3Error::Header)?;
        let (divisor, samples) = match second >> 3 & 3 {
            3 => (1, 1152),
            2 => (2, 576),
            0 => (4, 576),
            _ => return Err(Mp3Error::Header),
        };
        // 3: a single channel.
        let channels = if fourth >> 6 == 3 { 1 } else { 2 };
        Ok(Self { sample_rate: rate / divisor, channels, samples })
    }

    /// The codec's name in a playlist. Source: RFC 6381, ISO/IEC 14496-3 table 1.17 (object type 34, layer III).
    pub fn codec(&self) -> String {
        "mp4a.40.34".to_owned()
    }

    /// The byte before a frame in an FLV tag (Adobe's FLV 10.1, E.4.2.1): format, rate, 16 bits, channels.
    pub(crate) const fn flv_head(&self) -> u8 {
        // 14 is MP3 at 8 kHz, which the two bits of the rate have no value for.
        let (format, rate) = match self.sample_rate {
            0..=8_000 => (14, 0),
            8_001..=16_000 => (2, 1),
            16_001..=24_000 => (2, 2),
            _ => (2, 3),
        };
        format << 4 | rate << 2 | 2 | (self.channels - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers_are_read() {
        let config = |bytes: &[u8]| Mp3Config::parse(bytes);
        let made = |sample_rate, channels, samples| Ok(Mp3Config { sample_rate, channels, samples });
        // As LAME writes them: 128 kbit/s joint stereo at 44.1 kHz, mono at 22.05 and 8 kHz.
        assert_eq!(config(b"\xff\xfb\x90\x64rest"), made(44_100, 2, 1152));
        assert_eq!(config(b"\xff\xf3\x80\xc4"), made(22_050, 1, 576));
        assert_eq!(config(b"\xff\xe3\x88\xc4"), made(8_000, 1, 576));
        assert_eq!(config(b"\xff\xfb\x90\x64").map(|c| c.flv_head()), Ok(0x2f));
        assert_eq!(config(b"\xff\xe3\x88\xc4").map(|c| c.flv_head()), Ok(0xe2));
        // ADTS, layer II, reserved rate, cut off.
        for wrong in [&b"\xff\xf1\x50\x80"[..], b"\xff\xfd\x90\x64", b"\xff\xfb\x9c\x64", b"\xff\xfb\x90", b""] {
            assert_eq!(config(wrong), Err(Mp3Error::Header));
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..6)) {
            if let Ok(config) = Mp3Config::parse(&bytes) {
                prop_assert!(config.sample_rate >= 8_000 && config.flv_head() > 0);
            }
        }
    }
}
