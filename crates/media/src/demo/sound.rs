//! AAC-LC with a tone or nothing in it (ISO/IEC 14496-3 §4.4.2).

use crate::bits::BitWriter;

/// How loud: two lines at 2^((184 - 100) / 4) come out at about a tenth of full scale.
const GAIN: u32 = 184;

/// A frame of 1024 samples.
///
/// The tone is at 468.75 Hz, 10 periods a frame, and falls between lines 19 and 20. These two alike, in each frame alike, make it
/// exactly: their sum is the tone under a sine, and behind the decoder's window, also a sine, frames that overlap add up to the
/// tone and a constant.
pub(super) fn frame(tone: bool) -> Vec<u8> {
    let mut bits = BitWriter::default();
    // A single channel, the first one.
    bits.bits(3, 0);
    bits.bits(4, 0);
    bits.bits(8, GAIN);
    // A long window, a sine.
    bits.bits(4, 0);
    // Bands of four lines: the tone is in the fifth and sixth.
    bits.bits(6, if tone { 6 } else { 0 });
    bits.bit(false);
    if tone {
        // Four bands of nothing, two of codebook 1.
        bits.bits(4, 0);
        bits.bits(5, 4);
        bits.bits(4, 1);
        bits.bits(5, 2);
        // Both as loud as the gain says: a difference of none is a zero (table 4.A.1).
        bits.bits(2, 0);
    }
    // No pulses, noise shaping or gain control.
    bits.bits(3, 0);
    if tone {
        // Codebook 1 (table 4.A.2): (0, 0, 0, -1), then (-1, 0, 0, 0).
        bits.bits(5, 0x12);
        bits.bits(5, 0x11);
    }
    // The end.
    bits.bits(3, 7);
    bits.finish()
}
