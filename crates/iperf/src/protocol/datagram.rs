//! What UDP streams carry: the greeting, numbered datagrams, and what a receiver makes of them.
//!
//! Source: esnet/iperf, src/iperf_udp.c; RFC 3550 §6.4.1, §A.8.

use super::MIN_UDP_LENGTH;
use std::time::Duration;

/// A client's greetings and their answers, as bytes on the wire: from 3.10 on, and before. Each is a number in the byte order of
/// the host that sent it, and all that iperf3 runs on today have the smaller byte first.
const GREETINGS: [([u8; 4], [u8; 4]); 2] = [(*b"9876", *b"6789"), ([0x15, 0xcd, 0x5b, 0x07], [0xb1, 0x68, 0xde, 0x3a])];

/// The greeting that a client sends.
pub const GREETING: [u8; 4] = GREETINGS[0].0;

/// The answer to a greeting: in its own spelling. A server of iperf3 takes any datagram for one, and so does this.
pub fn answer(greeting: &[u8]) -> [u8; 4] {
    GREETINGS.into_iter().find(|(known, _)| greeting == known).unwrap_or(GREETINGS[0]).1
}

/// Whether this is a server's answer to a greeting, in any spelling.
pub fn is_answer(bytes: &[u8]) -> bool {
    let reversed = |known: [u8; 4]| -> [u8; 4] { [known[3], known[2], known[1], known[0]] };
    GREETINGS.into_iter().any(|(_, known)| bytes == known || bytes == reversed(known))
}

/// How a datagram begins: when it was sent, in seconds and microseconds, and its number from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// When it was sent, by the sender's clock.
    pub sent: Duration,
    /// Its number.
    pub number: u64,
}

impl Header {
    /// Bytes of a header with a counter of 32 bits.
    pub const NARROW_LEN: usize = 12;

    /// Reads it; `None` for a datagram that is too short.
    pub fn read(bytes: &[u8], wide: bool) -> Option<Self> {
        let word = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let number = if wide { u64::from_be_bytes(*bytes.get(8..)?.first_chunk()?) } else { u64::from(word(8)?) };
        // More than a million microseconds is a sender's mistake; it is a time all the same.
        let sent = Duration::from_secs(u64::from(word(0)?)) + Duration::from_micros(u64::from(word(4)?));
        Some(Self { sent, number })
    }

    /// Writes it to the start of a datagram, which is long enough ([`MIN_UDP_LENGTH`]).
    pub fn write(&self, into: &mut [u8], wide: bool) {
        debug_assert!(into.len() >= MIN_UDP_LENGTH as usize);
        into[..4].copy_from_slice(&(self.sent.as_secs() as u32).to_be_bytes());
        into[4..8].copy_from_slice(&self.sent.subsec_micros().to_be_bytes());
        if wide {
            into[8..16].copy_from_slice(&self.number.to_be_bytes());
        } else {
            into[8..12].copy_from_slice(&(self.number as u32).to_be_bytes());
        }
    }
}

/// What a receiver has counted of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Received {
    /// The largest number that came.
    pub highest: u64,
    /// Numbers that were passed over and did not come later.
    pub lost: u64,
    /// Datagrams that came after one with a larger number, or twice.
    pub out_of_order: u64,
    /// Jitter in seconds: RFC 3550 §6.4.1.
    pub jitter_s: f64,
    transit_s: Option<f64>,
}

impl Received {
    /// Takes a datagram that came at this moment by the receiver's clock. Only differences of both clocks count.
    pub fn take(&mut self, header: Header, now: Duration) {
        if header.number > self.highest {
            self.lost = self.lost.saturating_add(header.number - self.highest - 1);
            self.highest = header.number;
        } else {
            self.out_of_order += 1;
            self.lost = self.lost.saturating_sub(1);
        }
        let transit_s = now.as_secs_f64() - header.sent.as_secs_f64();
        let change_s = self.transit_s.map_or(0.0, |before| (transit_s - before).abs());
        self.jitter_s += (change_s - self.jitter_s) / 16.0;
        self.transit_s = Some(transit_s);
    }

    /// Jitter counts from here on only.
    pub fn reset_jitter(&mut self) {
        (self.jitter_s, self.transit_s) = (0.0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_greetings_are_answered_in_kind() {
        assert_eq!(u32::from_le_bytes(GREETING), 0x3637_3839);
        assert_eq!(u32::from_le_bytes(answer(&GREETING)), 0x3938_3736);
        assert_eq!(u32::from_le_bytes(answer(&123_456_789u32.to_le_bytes())), 987_654_321);
        assert_eq!(answer(b"anything else"), answer(&GREETING));
        for known in [0x3938_3736u32, 987_654_321] {
            assert!(is_answer(&known.to_le_bytes()) && is_answer(&known.to_be_bytes()));
        }
        assert!(!is_answer(&GREETING[..3]) && !is_answer(&[0; 4]));
    }

    #[test]
    fn gaps_are_losses_until_they_are_filled() {
        let mut received = Received::default();
        for number in [1, 2, 5, 4, 7, 7] {
            received.take(Header { sent: Duration::from_millis(number), number }, Duration::from_millis(number + 40));
        }
        assert_eq!((received.highest, received.lost, received.out_of_order), (7, 1, 2));
        assert!(received.jitter_s < 1e-12, "{received:?}");
        received.take(Header { sent: Duration::from_millis(8), number: 8 }, Duration::from_millis(64));
        assert!((received.jitter_s - 0.001).abs() < 1e-9, "{received:?}");
    }

    proptest! {
        #[test]
        fn headers_read_back(seconds: u32, micros in 0..1_000_000u32, number: u64, wide: bool) {
            let header = Header {
                sent: Duration::new(u64::from(seconds), micros * 1_000),
                number: if wide { number } else { u64::from(number as u32) },
            };
            let mut bytes = [0; 16];
            header.write(&mut bytes, wide);
            prop_assert_eq!(Header::read(&bytes, wide), Some(header));
            prop_assert_eq!(Header::read(&bytes[..11], wide), None);
        }

        #[test]
        fn no_numbers_overflow(numbers in prop::collection::vec(any::<u64>(), 0..50)) {
            let mut received = Received::default();
            for number in numbers {
                received.take(Header { sent: Duration::from_secs(number >> 33), number }, Duration::from_secs(number >> 40));
            }
            prop_assert!(received.jitter_s.is_finite());
        }
    }
}
