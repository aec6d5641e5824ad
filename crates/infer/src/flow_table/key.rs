//! What makes two packets parts of one connection, and how that is looked up.

use crate::hash::Mixer;
use std::hash::Hasher;
use std::net::IpAddr;
use thalweg_wire::{Segment, Tags};

/// What makes two packets parts of one connection, apart from the reuse of ports.
///
/// One 5-tuple on several VLANs, tunnels or interfaces is one connection seen several times: each view is analysed by itself, unless each
/// has one of the two directions ([`Self::has_ends_of`]).
#[derive(Debug, Clone, Copy, Eq)]
pub(crate) struct FlowKey {
    /// The smaller end's address, then the larger's, in two halves each; their ports, the interface, and whether they are IPv6's: as few
    /// words as hold it, for every packet's are compared.
    words: [u64; 5],
    tags: Tags,
}

impl PartialEq for FlowKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        // Without a branch for each word.
        let differ = self.words.iter().zip(&other.words).fold(0, |differ, (a, b)| differ | (a ^ b));
        differ == 0 && (self.tags.is_empty() && other.tags.is_empty() || self.tags == other.tags)
    }
}

impl FlowKey {
    #[inline]
    pub(crate) fn of(interface: u32, segment: &Segment) -> Self {
        let (ip, tcp) = (&segment.ip, &segment.tcp);
        let (from, to) = (u64::from(tcp.source_port), u64::from(tcp.destination_port));
        let words = match (ip.source, ip.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let ends = [(source, from), (destination, to)].map(|(at, port)| u64::from(at.to_bits()) << 16 | port);
                let (small, large) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
                [0, small >> 16, 0, large >> 16, rest(interface, false, small & 0xffff, large & 0xffff)]
            }
            (source, destination) => {
                let number = |address: IpAddr| match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
                    IpAddr::V6(address) => address.to_bits(),
                };
                let (mut small, mut large) = ((number(source), from), (number(destination), to));
                if small > large {
                    (small, large) = (large, small);
                }
                let [a, b] = [small.0, large.0].map(|address| [(address >> 64) as u64, address as u64]);
                [a[0], a[1], b[0], b[1], rest(interface, true, small.1, large.1)]
            }
        };
        Self { words, tags: segment.tags }
    }

    /// Whether the addresses and ports are the same, whatever is around them.
    pub(crate) fn has_ends_of(&self, other: &Self) -> bool {
        let ends = |[a_high, a, b_high, b, rest]: [u64; 5]| [a_high, a, b_high, b, rest & ENDS];
        ends(self.words) == ends(other.words)
    }

    /// A number that spreads connections evenly; the same in every run, for the work is divided by it. It is that of all with these ends.
    #[inline]
    pub(crate) fn shard_hash(&self) -> u64 {
        let mut hasher = Mixer::default();
        let [a_high, a, b_high, b, rest] = self.words;
        // Tags are left out: most packets have none, and views of one connection are few.
        hasher.write_u64(a);
        hasher.write_u64(b);
        hasher.write_u64(rest & ENDS);
        if a_high | b_high != 0 {
            hasher.write_u64(a_high);
            hasher.write_u64(b_high);
        }
        hasher.finish()
    }

    /// The same for a table within a shard: the bits by which shards are chosen are not those by which it begins its search.
    #[inline]
    pub(crate) fn table_hash(&self) -> u64 {
        self.shard_hash().rotate_left(32)
    }
}

/// What of that word tells ends apart: all but the interface. It bounds memory: a key is two words.
const ENDS: u64 = (1 << 33) - 1;

/// What is not an address, in one word: no capture describes two thousand million interfaces.
const fn rest(interface: u32, is_v6: bool, small: u64, large: u64) -> u64 {
    (interface as u64) << 33 | (is_v6 as u64) << 32 | small << 16 | large
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn neighbouring_connections_are_spread_evenly() {
        let mut shards: HashMap<u64, u32> = HashMap::new();
        for n in 0..4_096u32 {
            let words =
                [0, 0x0a00_0000 + u64::from(n / 64), 0, 0xc000_0201, rest(0, false, 40_000 + u64::from(n % 64), 443)];
            let key = FlowKey { words, tags: Tags::default() };
            *shards.entry(key.shard_hash() % 8).or_default() += 1;
        }
        // 512 each, with a standard deviation of 21.
        assert!(shards.len() == 8 && shards.values().all(|&n| (410..614).contains(&n)), "{shards:?}");
    }
}
