//! Bits in a row, from the highest of each byte to the lowest, out of bytes and into them.

/// Reads bits; behind the end there is nothing.
#[derive(Debug, Clone)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn bit(&mut self) -> Option<bool> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte >> (7 - self.at % 8) & 1 == 1;
        self.at += 1;
        Some(bit)
    }

    /// `n` bits, at most 32, as a number.
    pub(crate) fn bits(&mut self, n: u32) -> Option<u32> {
        (0..n).try_fold(0, |number: u32, _| Some(number << 1 | u32::from(self.bit()?)))
    }

    /// An unsigned Exp-Golomb number (ISO/IEC 14496-10 §9.1).
    pub(crate) fn ue(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.bit()? {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        Some((1u32 << zeros) - 1 + self.bits(zeros)?)
    }

    /// A signed Exp-Golomb number (§9.1.1).
    pub(crate) fn se(&mut self) -> Option<i32> {
        let number = i64::from(self.ue()?);
        Some(if number % 2 == 1 { (number + 1) / 2 } else { -number / 2 } as i32)
    }
}

/// Writes bits.
#[derive(Debug, Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits of the last byte that are not written yet.
    free: u32,
}

impl BitWriter {
    pub(crate) fn bit(&mut self, bit: bool) {
        if self.free == 0 {
            self.bytes.push(0);
            self.free = 8;
        }
        self.free -= 1;
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << self.free;
        }
    }

    /// The `n` lowest bits of `number`, at most 32.
    pub(crate) fn bits(&mut self, n: u32, number: u32) {
        for at in (0..n).rev() {
            self.bit(number >> at & 1 == 1);
        }
    }

    /// An unsigned Exp-Golomb number.
    pub(crate) fn ue(&mut self, number: u32) {
        let n = u64::from(number) + 1;
        let length = n.ilog2();
        self.bits(length, 0);
        self.bit(true);
        self.bits(length, (n - (1 << length)) as u32);
    }

    /// A signed Exp-Golomb number.
    pub(crate) fn se(&mut self, number: i32) {
        self.ue(if number > 0 { 2 * number as u32 - 1 } else { 2 * number.unsigned_abs() });
    }

    /// Zeros up to the next whole byte.
    pub(crate) const fn align(&mut self) {
        self.free = 0;
    }

    /// Whole bytes; what came before must be whole bytes too.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        debug_assert_eq!(self.free, 0, "bytes begin at a byte");
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(numbers in prop::collection::vec((0u32..u32::MAX, -100_000i32..100_000), 0..20)) {
            let mut writer = BitWriter::default();
            for (unsigned, signed) in &numbers {
                writer.ue(*unsigned);
                writer.se(*signed);
                writer.bits(3, *unsigned & 7);
            }
            let bytes = writer.finish();
            let mut reader = BitReader::new(&bytes);
            for (unsigned, signed) in &numbers {
                prop_assert_eq!(reader.ue(), Some(*unsigned));
                prop_assert_eq!(reader.se(), Some(*signed));
                prop_assert_eq!(reader.bits(3), Some(*unsigned & 7));
            }
        }
    }
}
