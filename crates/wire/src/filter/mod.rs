//! Which packets are wanted, said as tcpdump's users say it: `host 10.0.0.1 and not port 22`.
//!
//! Source: pcap-filter(7), of which this is the part about addresses and ports of TCP; `and` and `or` bind alike there, from left to
//! right, and a value without a qualifier takes that of the one before.

mod error;
mod names;
mod parse;
mod program;

pub use error::FilterError;
pub use program::Instruction;

use crate::segment::Segment;
use std::net::IpAddr;
use std::str::FromStr;

/// An expression over the ends of a TCP segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter(Expression);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Expression {
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
    Test(Side, What),
}

/// Which end a test is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Either,
    Source,
    Destination,
}

/// What an end is tested for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// Addresses whose prefix of this many bits is that of this one.
    Net(IpAddr, u8),
    /// Ports from the first to the second.
    Ports(u16, u16),
    /// True of every TCP segment.
    Tcp,
    /// IPv4, or IPv6.
    Version(u8),
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        parse::parse(text).map(Self)
    }
}

impl Filter {
    /// Whether the segment is wanted; of one in a tunnel the inner addresses count.
    pub fn matches(&self, segment: &Segment) -> bool {
        let ends =
            [(segment.ip.source, segment.tcp.source_port), (segment.ip.destination, segment.tcp.destination_port)];
        self.0.holds(ends)
    }

    /// Whether a connection between these ends has packets that are wanted, one way or the other.
    pub fn matches_connection(&self, one: (IpAddr, u16), other: (IpAddr, u16)) -> bool {
        self.0.holds([one, other]) || self.0.holds([other, one])
    }

    /// The filter as a program for a packet socket whose frames begin with the IP header (`SOCK_DGRAM`), that keeps `keep` bytes of
    /// the TCP it lets pass, and `keep_tunnel` of what may have more headers before TCP's. It lets pass what is wanted, later fragments, and whatever may hold a tunnel: [`Self::matches`] decides
    /// there. `None` when the program would be longer than the kernel takes.
    pub fn program(&self, keep: u32, keep_tunnel: u32) -> Option<Vec<Instruction>> {
        program::compile(&self.0, keep, keep_tunnel)
    }
}

impl Expression {
    fn holds(&self, ends: [(IpAddr, u16); 2]) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.holds(ends)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(ends)),
            Self::Not(part) => !part.holds(ends),
            Self::Test(Side::Either, what) => ends.iter().any(|end| what.holds(*end)),
            Self::Test(Side::Source, what) => what.holds(ends[0]),
            Self::Test(Side::Destination, what) => what.holds(ends[1]),
        }
    }
}

impl What {
    fn holds(self, (address, port): (IpAddr, u16)) -> bool {
        match (self, address) {
            (Self::Net(IpAddr::V4(net), bits), IpAddr::V4(address)) => {
                (net.to_bits() ^ address.to_bits()) & mask(bits, 32) as u32 == 0
            }
            (Self::Net(IpAddr::V6(net), bits), IpAddr::V6(address)) => {
                (net.to_bits() ^ address.to_bits()) & mask(bits, 128) == 0
            }
            (Self::Net(..), _) => false,
            (Self::Ports(first, last), _) => (first..=last).contains(&port),
            (Self::Tcp, _) => true,
            (Self::Version(version), address) => (version == 4) == address.is_ipv4(),
        }
    }
}

/// A number of `of` bits whose first `bits` are set.
const fn mask(bits: u8, of: u8) -> u128 {
    let all = u128::MAX >> (128 - of);
    let rest = if bits >= of { 0 } else { all >> bits };
    all ^ rest
}

#[cfg(test)]
mod tests;
