//! Token buckets, exact to a fraction of a nanosecond.

use thalweg_units::{Bytes, Rate, Span};

/// Bits per byte times nanoseconds per second.
const BIT_NANOS_PER_BYTE: u64 = 8_000_000_000;

/// A bucket that fills at a rate up to a burst. A packet may leave once the bucket holds its bytes, and takes them out.
///
/// The state is the time at which the bucket was empty. A bucket without a burst is a serializer: a packet leaves when its
/// last byte has been sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenBucket {
    rate_bits: u64,
    /// How long it takes to fill; rounded down, so that rounding never adds tokens.
    fill_nanos: i64,
    empty_at_nanos: i64,
    /// Fraction of a nanosecond that `empty_at_nanos` lacks, in units of 1/`rate_bits`.
    empty_at_rest: u64,
}

impl TokenBucket {
    /// A bucket that is full at the beginning.
    pub(crate) fn new(rate: Rate, burst: Bytes) -> Self {
        let rate_bits = rate.bits_per_second().max(1);
        let fill_nanos = nanos_for(burst, rate_bits);
        Self { rate_bits, fill_nanos, empty_at_nanos: -fill_nanos, empty_at_rest: 0 }
    }

    /// When `bytes` may leave, not before `now`; they are taken out.
    pub(crate) fn take(&mut self, now: Span, bytes: u64) -> Span {
        self.advance(now, bytes);
        let leaves = self.empty_at_nanos + i64::from(self.empty_at_rest > 0);
        now.max(Span::from_nanos(leaves.max(0).unsigned_abs()))
    }

    /// Takes `bytes` out if the bucket holds them at `now`.
    pub(crate) fn take_at_once(&mut self, now: Span, bytes: u64) -> bool {
        let mut after = *self;
        let conforms = after.take(now, bytes) == now;
        if conforms {
            *self = after;
        }
        conforms
    }

    /// Changes rate and burst at `now`; what the bucket holds stays in it, as far as the new burst has room.
    pub(crate) fn set_rate(&mut self, now: Span, rate: Rate, burst: Bytes) {
        let filled = (signed(now) - self.empty_at_nanos).clamp(0, self.fill_nanos);
        let tokens = u128::from(filled.unsigned_abs()) * u128::from(self.rate_bits) / u128::from(BIT_NANOS_PER_BYTE);
        *self = Self::new(rate, burst);
        let tokens = Bytes::new(u64::try_from(tokens).unwrap_or(u64::MAX)).min(burst);
        self.empty_at_nanos = signed(now) - nanos_for(tokens, self.rate_bits);
    }

    fn advance(&mut self, now: Span, bytes: u64) {
        let full_since = signed(now) - self.fill_nanos;
        if self.empty_at_nanos < full_since {
            (self.empty_at_nanos, self.empty_at_rest) = (full_since, 0);
        }
        let bit_nanos = bytes.saturating_mul(BIT_NANOS_PER_BYTE).saturating_add(self.empty_at_rest);
        self.empty_at_nanos = self.empty_at_nanos.saturating_add_unsigned(bit_nanos / self.rate_bits);
        self.empty_at_rest = bit_nanos % self.rate_bits;
    }
}

fn signed(at: Span) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX)
}

fn nanos_for(bytes: Bytes, rate_bits: u64) -> i64 {
    let nanos = u128::from(bytes.get()) * u128::from(BIT_NANOS_PER_BYTE) / u128::from(rate_bits);
    i64::try_from(nanos).unwrap_or(i64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serializer_keeps_the_rate_to_the_nanosecond() {
        // 3 Gb/s sends 1514 bytes in 4037.33 ns.
        let mut link = TokenBucket::new(Rate::from_bits_per_second(3_000_000_000), Bytes::new(0));
        let mut last = Span::ZERO;
        for _ in 0..3_000_000 {
            last = link.take(Span::ZERO, 1514);
        }
        assert_eq!(last, Span::from_millis(12_112));
        // An idle link saves nothing up.
        let later = Span::from_millis(20_000);
        assert_eq!(link.take(later, 1500).as_nanos(), later.as_nanos() + 4_000);
    }

    #[test]
    fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
        let mut bucket = TokenBucket::new(Rate::from_bits_per_second(8_000_000), Bytes::new(3_000));
        let now = Span::from_millis(5);
        let leaves: Vec<u64> = (0..4).map(|_| bucket.take(now, 1_500).as_micros()).collect();
        assert_eq!(leaves, [5_000, 5_000, 6_500, 8_000]);
    }

    #[test]
    fn a_policer_takes_nothing_for_what_it_refuses() {
        let mut bucket = TokenBucket::new(Rate::from_bits_per_second(8_000_000), Bytes::new(1_500));
        assert!(bucket.take_at_once(Span::ZERO, 1_500));
        assert!(!bucket.take_at_once(Span::from_micros(1_499), 1_500));
        assert!(bucket.take_at_once(Span::from_micros(1_500), 1_500));
    }

    #[test]
    fn a_change_of_rate_keeps_the_tokens() {
        let mut bucket = TokenBucket::new(Rate::from_bits_per_second(8_000_000), Bytes::new(2_000));
        assert_eq!(bucket.take(Span::ZERO, 2_000), Span::ZERO);
        // 500 tokens after 0.5 ms; at twice the rate the other 1000 come in 0.5 ms.
        bucket.set_rate(Span::from_micros(500), Rate::from_bits_per_second(16_000_000), Bytes::new(2_000));
        assert_eq!(bucket.take(Span::from_micros(500), 1_500), Span::from_micros(1_000));
    }
}
