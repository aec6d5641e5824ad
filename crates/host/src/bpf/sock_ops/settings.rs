//! What the program sets on which connections, as it lies in its map.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thalweg_units::Span;

/// Offsets in the map's value, which are in order of the fields; the program reads them. Numbers of 0 are not set.
pub(super) const SHARE: i16 = 0;
pub(super) const PORT: i16 = 4;
/// 4, 6, or 0 for any destination.
pub(super) const FAMILY: i16 = 8;
/// Four words each, as the kernel shows addresses: in the network's order. IPv4 has the first.
pub(super) const NETWORK: i16 = 12;
pub(super) const MASK: i16 = 28;
/// Initial window, clamp, minimum retransmission timeout (µs), longest delay of an acknowledgement (µs).
pub(super) const NUMBERS: i16 = 44;
/// First bytes that are timed.
pub(super) const FIRST: i16 = 64;
/// Name of a congestion control, ended by a zero byte.
pub(super) const CONGESTION: i16 = 72;
/// Longest name, with its zero byte. Source: linux/tcp.h, `TCP_CA_NAME_MAX`.
pub(super) const CONGESTION_LEN: usize = 16;

/// What connections are set to, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// Connections that get the settings, in percent.
    pub share: u8,
    /// Local port; `None` for any.
    pub port: Option<u16>,
    /// Destinations: an address and the length of the prefix. `None` for any.
    pub destination: Option<(IpAddr, u8)>,
    /// Segments of the initial window.
    pub initial_window: Option<u32>,
    /// Most segments in flight.
    pub cwnd_clamp: Option<u32>,
    /// Least retransmission timeout.
    pub rto_min: Option<Span>,
    /// Longest delay of an acknowledgement.
    pub delack_max: Option<Span>,
    /// Congestion control; at most 15 bytes.
    pub congestion: Option<String>,
    /// Bytes whose acknowledgement is timed from the handshake on.
    pub first_bytes: u64,
}

impl ConnectionSettings {
    pub(super) const LEN: usize = 88;

    /// Numbers of the map's value.
    const WORDS: usize = Self::LEN / 8;

    pub(super) fn bytes(&self) -> Vec<u8> {
        let micros =
            |time: Option<Span>| time.map_or(0, |time| u32::try_from(time.as_nanos() / 1_000).unwrap_or(u32::MAX));
        let mut bytes = Vec::with_capacity(Self::LEN);
        let (family, network, mask) = words(self.destination);
        for word in [u32::from(self.share), u32::from(self.port.unwrap_or(0)), family] {
            bytes.extend(word.to_ne_bytes());
        }
        network.iter().chain(&mask).for_each(|octets| bytes.extend(octets));
        let (window, clamp) = (self.initial_window.unwrap_or(0), self.cwnd_clamp.unwrap_or(0));
        for word in [window, clamp, micros(self.rto_min), micros(self.delack_max), 0] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(self.first_bytes.to_ne_bytes());
        let name = self.congestion.as_deref().unwrap_or_default().as_bytes();
        bytes.extend(name.iter().copied().take(CONGESTION_LEN - 1));
        bytes.resize(Self::LEN, 0);
        bytes
    }

    pub(super) fn from_numbers(numbers: &[u64; Self::WORDS]) -> Self {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let octets = |at: i16| -> [u8; 4] {
            let at = at as usize;
            [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]
        };
        let word = |at: i16| u32::from_ne_bytes(octets(at));
        let some = |at: i16| Some(word(at)).filter(|number| *number > 0);
        let time = |at: i16| some(at).map(|micros| Span::from_nanos(u64::from(micros) * 1_000));
        let ones = [0, 4, 8, 12].map(|at| u32::from_be_bytes(octets(MASK + at)).count_ones() as u8).iter().sum();
        let address = match word(FAMILY) {
            4 => Some(IpAddr::V4(Ipv4Addr::from(octets(NETWORK)))),
            6 => {
                let words = [0, 4, 8, 12].map(|at| u128::from(u32::from_be_bytes(octets(NETWORK + at))));
                Some(IpAddr::V6(Ipv6Addr::from_bits(words.iter().fold(0, |all, word| all << 32 | word))))
            }
            _ => None,
        };
        let name: Vec<u8> = bytes[CONGESTION as usize..].iter().copied().take_while(|byte| *byte != 0).collect();
        Self {
            share: word(SHARE) as u8,
            port: some(PORT).map(|port| port as u16),
            destination: address.map(|address| (address, ones)),
            initial_window: some(NUMBERS),
            cwnd_clamp: some(NUMBERS + 4),
            rto_min: time(NUMBERS + 8),
            delack_max: time(NUMBERS + 12),
            congestion: Some(String::from_utf8_lossy(&name).into_owned()).filter(|name| !name.is_empty()),
            first_bytes: u64::from(word(FIRST)) | u64::from(word(FIRST + 4)) << 32,
        }
    }
}

/// The family, and the words of network and mask.
fn words(destination: Option<(IpAddr, u8)>) -> (u32, [[u8; 4]; 4], [[u8; 4]; 4]) {
    let (family, bits, width, length) = match destination {
        None => return (0, [[0; 4]; 4], [[0; 4]; 4]),
        Some((IpAddr::V4(address), length)) => (4, u128::from(address.to_bits()) << 96, 32, length),
        Some((IpAddr::V6(address), length)) => (6, address.to_bits(), 128, length),
    };
    let mask = u128::MAX.checked_shl(128 - u32::from(length.min(width))).unwrap_or(0);
    let split = |bits: u128| [96, 64, 32, 0].map(|shift| ((bits >> shift) as u32).to_be_bytes());
    (family, split(bits & mask), split(mask))
}
