//! What makes two packets parts of one connection, and how that is looked up.

use crate::connection::Endpoint;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::net::IpAddr;
use wire::{Segment, Tags};

/// What makes two packets parts of one connection, apart from the reuse of ports.
///
/// One 5-tuple on several VLANs, tunnels or interfaces is one connection seen several times: each view is analysed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    interface: u32,
    tags: Tags,
    /// The smaller end, then the larger.
    pub(crate) ends: [Endpoint; 2],
}

impl Key {
    pub(crate) fn of(interface: u32, segment: &Segment) -> Self {
        let source = (segment.ip.source, segment.tcp.source_port);
        let destination = (segment.ip.destination, segment.tcp.destination_port);
        let ends = if source <= destination { [source, destination] } else { [destination, source] };
        Self { interface, tags: segment.tags, ends }
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
        let mut ports = u64::from(self.interface) << 32;
        for (place, (address, port)) in self.ends.iter().enumerate() {
            match address {
                IpAddr::V4(address) => state.write_u64(u64::from(address.to_bits())),
                IpAddr::V6(address) => {
                    let bits = address.to_bits();
                    state.write_u64(bits as u64);
                    state.write_u64((bits >> 64) as u64);
                }
            }
            ports |= u64::from(*port) << (16 * place);
        }
        state.write_u64(ports);
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

/// Builds [`Mixer`]s.
pub(crate) type Mixing = BuildHasherDefault<Mixer>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::net::Ipv4Addr;

    #[test]
    fn neighbouring_connections_are_spread_evenly() {
        let mut shards: HashMap<u64, u32> = HashMap::new();
        for n in 0..4_096u32 {
            let client = (IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + n / 64)), 40_000 + (n % 64) as u16);
            let server = (IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);
            let key = Key { interface: 0, tags: Tags::default(), ends: [client, server] };
            *shards.entry(key.spread() % 8).or_default() += 1;
        }
        // 512 each, with a standard deviation of 21.
        assert!(shards.len() == 8 && shards.values().all(|&n| (410..614).contains(&n)), "{shards:?}");
    }
}
