//! Packets that a capture holds a second time: files that were joined, one of them twice.

use crate::hash::Mixer;
use std::hash::Hasher;

/// Finds where a file begins again.
#[derive(Debug, Default)]
pub(super) struct RepeatedPackets {
    /// The time of the first packet, in nanoseconds, and the hash of its bytes.
    first: Option<(u64, u64)>,
    /// The latest time of all packets, a clock that was set back or not: [`super::time_order`] counts from where it was set to.
    newest: u64,
    /// The first packet came again: what lies behind the newest is known.
    is_again: bool,
    /// Packets that are known.
    pub(super) known: u64,
}

impl RepeatedPackets {
    /// Whether the packet of this time, in nanoseconds, is in the capture already.
    pub(super) fn has(&mut self, at: u64, bytes: &[u8]) -> bool {
        let Some((first_at, first)) = self.first else {
            (self.first, self.newest) = (Some((at, print(bytes))), at);
            return false;
        };
        if at > self.newest {
            (self.newest, self.is_again) = (at, false);
            return false;
        }
        self.is_again |= at == first_at && at < self.newest && print(bytes) == first;
        self.known += u64::from(self.is_again);
        self.is_again
    }
}

fn print(bytes: &[u8]) -> u64 {
    let mut print = Mixer::default();
    print.write_usize(bytes.len());
    print.write(bytes);
    print.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of the packets that are new, each of a time and a byte.
    fn new(packets: &[(u64, u8)]) -> Vec<usize> {
        let mut repeated = RepeatedPackets::default();
        let new = (0..packets.len()).filter(|&n| !repeated.has(packets[n].0, &[packets[n].1]));
        new.collect()
    }

    #[test]
    fn a_file_that_begins_again_is_known_until_it_goes_on() {
        assert_eq!(new(&[(5, 1), (6, 2), (7, 2), (5, 1), (6, 2), (7, 2), (8, 3), (7, 4)]), [0, 1, 2, 6, 7]);
        assert_eq!(new(&[(5, 1), (6, 2), (5, 7), (6, 8)]), [0, 1, 2, 3], "another file of the same time");
        assert_eq!(new(&[(5, 1), (5, 1), (6, 2)]), [0, 1, 2], "a tap that delivers twice is told as such");
        let set_back = [(50, 1), (60, 2), (10, 3), (11, 4)];
        assert_eq!(new(&[set_back, set_back].concat()), [0, 1, 2, 3], "a file in which the clock was set back");
    }
}
