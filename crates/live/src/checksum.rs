//! The Internet checksum. Source: RFC 1071.

/// Ones' complement sum of 16-bit words, not complemented. An odd last byte is the high byte of a word.
pub(crate) fn sum(bytes: &[u8], start: u32) -> u32 {
    let mut total = u64::from(start);
    let mut words = bytes.chunks_exact(2);
    for word in &mut words {
        total += u64::from(u16::from_be_bytes([word[0], word[1]]));
    }
    if let [last] = words.remainder() {
        total += u64::from(*last) << 8;
    }
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u32
}
