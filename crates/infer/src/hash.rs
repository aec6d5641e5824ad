//! A fast hash of a few words.

use std::hash::Hasher;

/// Hashes words by multiplying them with an odd constant and folding the product, as wyhash does.
///
/// The standard hasher withstands those who choose keys to collide, and takes a tenth of the whole analysis for it. Whoever makes a
/// capture of colliding connections makes only its analysis slow.
///
/// Source: Wang Yi, wyhash, `_wymix`.
#[derive(Debug, Default)]
pub(crate) struct Mixer(u64);

impl Mixer {
    /// 2⁶⁴ over the golden ratio: the two's complement of Linux `GOLDEN_RATIO_64`, include/linux/hash.h.
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ Self::ODD) * u128::from(Self::ODD);
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }
}
