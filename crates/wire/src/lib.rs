//! What is on the wire and in capture files: link, IP and TCP views; pcap and pcapng, in and out.
//!
//! Nothing here allocates per packet, panics on any input, or takes memory without bound: captures come from strangers.

#![warn(clippy::too_many_lines, clippy::struct_excessive_bools)]
#![forbid(unsafe_code)]

mod begin;
mod buffer;
mod bytes;
mod capture;
mod compressed;
mod damage;
pub mod filter;
mod fragments;
mod frame;
mod ip;
mod link;
mod looks;
mod pcap;
pub mod pcapng;
mod plain;
mod tcp;
mod tunnel;
mod walk;
mod wlan;

pub use capture::{Capture, Error, Interface, Packet};
pub use damage::Damage;
pub use frame::{Decoded, Decoder, Late, Other, Segment, Tag, Tags, decode};
pub use ip::IpFacts;
pub use link::LinkType;
pub use tcp::{Flags, Options, SackBlocks, TcpHeader};
