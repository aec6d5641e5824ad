//! H.264 whose macroblocks are raw samples, or as they were (ISO/IEC 14496-10 §7.3).

use crate::avc::{NAL_IDR, NAL_PPS, NAL_SPS};
use crate::bits::BitWriter;

/// In macroblocks of 16 by 16.
const COLUMNS: usize = 20;
const ROWS: usize = 12;
/// 256 of luma, 64 of each chroma.
const MACROBLOCK: usize = 384;
const BALL: i64 = 32;
/// Bits of `frame_num`.
const FRAME_NUM_BITS: u32 = 8;

/// 75 % colour bars (ITU-R BT.801), as luma and chroma of BT.601.
const BARS: [[u8; 3]; 8] = [
    [180, 128, 128],
    [162, 44, 142],
    [131, 156, 44],
    [112, 72, 58],
    [84, 184, 198],
    [65, 100, 212],
    [35, 212, 114],
    [16, 128, 128],
];
const WHITE: [u8; 3] = [235, 128, 128];

/// Remembers what the last picture was.
#[derive(Debug, Default)]
pub(super) struct Painter {
    last: Vec<[u8; MACROBLOCK]>,
    /// Pictures since the keyframe.
    since: u32,
    keyframes: u32,
}

impl Painter {
    /// The access unit of picture `number`, with its length before it.
    pub(super) fn paint(&mut self, number: u64, flash: bool, keyframe: bool) -> Vec<u8> {
        let now: Vec<_> = (0..ROWS * COLUMNS).map(|at| macroblock(at % COLUMNS, at / COLUMNS, number, flash)).collect();
        let keyframe = keyframe || self.last.is_empty();
        let mut bits = BitWriter::default();
        if keyframe {
            self.since = 0;
            self.keyframes += 1;
        }
        self.header(keyframe, &mut bits);
        let mut same = 0;
        for (at, samples) in now.iter().enumerate() {
            if !keyframe && self.last[at] == *samples {
                same += 1;
                continue;
            }
            if !keyframe {
                bits.ue(std::mem::take(&mut same));
            }
            // I_PCM, by its number in slices of either type (tables 7-11 and 7-13).
            bits.ue(if keyframe { 25 } else { 30 });
            bits.align();
            bits.bytes(samples);
        }
        if same > 0 {
            bits.ue(same);
        }
        self.last = now;
        self.since += 1;
        let nal = nal(if keyframe { 0x60 | NAL_IDR } else { 0x41 }, bits);
        [&(nal.len() as u32).to_be_bytes()[..], &nal].concat()
    }

    /// The slice's header (§7.3.3).
    fn header(&self, keyframe: bool, bits: &mut BitWriter) {
        bits.ue(0);
        // All slices of the picture: I, or P.
        bits.ue(if keyframe { 7 } else { 5 });
        bits.ue(0);
        bits.bits(FRAME_NUM_BITS, self.since % (1 << FRAME_NUM_BITS));
        if keyframe {
            // Two keyframes in a row have different numbers.
            bits.ue(self.keyframes % 2);
            bits.bits(2, 0);
        } else {
            // As many references as usual, in their usual order, and none is marked.
            bits.bits(3, 0);
        }
        bits.se(0);
        // No deblocking: samples stay as they are.
        bits.ue(1);
    }
}

/// The sequence parameter set (§7.3.2.1.1).
pub(super) fn sps() -> Vec<u8> {
    let mut bits = BitWriter::default();
    // Constrained Baseline, level 3.
    bits.bytes(&[66, 0xc0, 30]);
    bits.ue(0);
    bits.ue(FRAME_NUM_BITS - 4);
    // Shown in the order of decoding.
    bits.ue(2);
    bits.ue(1);
    bits.bit(false);
    bits.ue(COLUMNS as u32 - 1);
    bits.ue(ROWS as u32 - 1);
    // Frames only; direct inference; no cropping; no usability information.
    bits.bits(4, 0b1100);
    nal(0x60 | NAL_SPS, bits)
}

/// The picture parameter set (§7.3.2.2).
pub(super) fn pps() -> Vec<u8> {
    let mut bits = BitWriter::default();
    bits.ue(0);
    bits.ue(0);
    // CAVLC, no fields.
    bits.bits(2, 0);
    bits.ue(0);
    bits.ue(0);
    bits.ue(0);
    // No weighted prediction.
    bits.bits(3, 0);
    bits.se(0);
    bits.se(0);
    bits.se(0);
    // Slices say how they are deblocked.
    bits.bits(3, 0b100);
    nal(0x60 | NAL_PPS, bits)
}

/// A NAL unit: its header, its bits with a stop bit, and nothing in it that looks like a start code (§7.4.1).
fn nal(header: u8, mut bits: BitWriter) -> Vec<u8> {
    bits.bit(true);
    let plain = bits.finish();
    let mut nal = Vec::with_capacity(plain.len() + 8);
    nal.push(header);
    let mut zeros = 0;
    for byte in plain {
        if zeros >= 2 && byte <= 3 {
            nal.push(3);
            zeros = 0;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        nal.push(byte);
    }
    nal
}

/// Samples of the macroblock at a column and row.
fn macroblock(column: usize, row: usize, number: u64, flash: bool) -> [u8; MACROBLOCK] {
    let mut samples = [0; MACROBLOCK];
    let (left, top) = (16 * column as i64, 16 * row as i64);
    let (luma, chroma) = samples.split_at_mut(256);
    let (blue, red) = chroma.split_at_mut(64);
    for (at, sample) in (0..).zip(luma) {
        *sample = pixel(left + at % 16, top + at / 16, number, flash)[0];
    }
    for (at, (blue, red)) in (0..).zip(blue.iter_mut().zip(red)) {
        [_, *blue, *red] = pixel(left + at % 8 * 2, top + at / 8 * 2, number, flash);
    }
    samples
}

/// What is at a place: the ball, the flash in the corner, else the bars.
fn pixel(x: i64, y: i64, number: u64, flash: bool) -> [u8; 3] {
    let (width, height) = (16 * COLUMNS as i64, 16 * ROWS as i64);
    let (left, top) = (bounce(3 * number as i64, width - BALL), bounce(2 * number as i64, height - BALL));
    let (dx, dy) = (2 * (x - left) - BALL + 1, 2 * (y - top) - BALL + 1);
    let corner = flash && x < 48 && y < 32;
    if dx * dx + dy * dy < BALL * BALL || corner { WHITE } else { BARS[(x * 8 / width) as usize] }
}

/// To and fro between 0 and `most`.
const fn bounce(passed: i64, most: i64) -> i64 {
    let at = passed % (2 * most);
    if at < most { at } else { 2 * most - at }
}
