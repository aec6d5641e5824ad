//! What makes two packets parts of one connection, and how that is looked up.

use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use wire::{Segment, Tags};

/// What makes two packets parts of one connection, apart from the reuse of ports.
///
/// One 5-tuple on several VLANs, tunnels or interfaces is one connection seen several times: each view is analysed by itself.
#[derive(Debug, Clone, Copy, Eq)]
pub(crate) struct Key {
    /// The smaller end's address, then the larger's: as numbers, for every packet's are compared. `is_v6` tells IPv6's from IPv4's.
    addresses: [u128; 2],
    ports: [u16; 2],
    is_v6: bool,
    interface: u32,
    tags: Tags,
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |key: &Self| (key.addresses, key.ports, key.is_v6, key.interface);
        numbers(self) == numbers(other) && (self.tags.is_empty() && other.tags.is_empty() || self.tags == other.tags)
    }
}

impl Key {
    pub(crate) fn of(interface: u32, segment: &Segment) -> Self {
        let (ip, tcp) = (&segment.ip, &segment.tcp);
        let number = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        let (source, destination) = (number(ip.source), number(ip.destination));
        let (mut addresses, mut ports) = ([source, destination], [tcp.source_port, tcp.destination_port]);
        if (source, ports[0]) > (destination, ports[1]) {
            (addresses, ports) = ([destination, source], [ports[1], ports[0]]);
        }
        Self { addresses, ports, is_v6: ip.source.is_ipv6(), interface, tags: segment.tags }
    }

    /// A number that spreads connections evenly; the same in every run, for the work is divided by it.
    pub(crate) fn spread(&self) -> u64 {
        let mut hasher = Mixer::default();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Tags are left out: most packets have none, and views of one connection are few.
        for address in self.addresses {
            state.write_u64(address as u64);
            if self.is_v6 {
                state.write_u64((address >> 64) as u64);
            }
        }
        let [a, b] = self.ports.map(u64::from);
        state.write_u64(u64::from(self.interface) << 32 | b << 16 | a);
    }
}

/// Hashes words by multiplying them with an odd constant and folding the product, as wyhash does.
///
/// The standard hasher withstands those who choose keys to collide, and takes a tenth of the whole analysis for it. Whoever makes a
/// capture of colliding connections makes only its analysis slow.
///
/// Source: Wang Yi, wyhash, `_wymix`; the constant is 2⁶⁴ over the golden ratio.
#[derive(Debug, Default)]
pub(crate) struct Mixer(u64);

impl Mixer {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn neighbouring_connections_are_spread_evenly() {
        let mut shards: HashMap<u64, u32> = HashMap::new();
        for n in 0..4_096u32 {
            let addresses = [0x0a00_0000 + u128::from(n / 64), 0xc000_0201];
            let ports = [40_000 + (n % 64) as u16, 443];
            let key = Key { addresses, ports, is_v6: false, interface: 0, tags: Tags::default() };
            *shards.entry(key.spread() % 8).or_default() += 1;
        }
        // 512 each, with a standard deviation of 21.
        assert!(shards.len() == 8 && shards.values().all(|&n| (410..614).contains(&n)), "{shards:?}");
    }
}
