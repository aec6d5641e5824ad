//! What is on the wire and in capture files: link, IP and TCP views; pcap and pcapng, in and out.
//!
//! Nothing here allocates per packet, panics on any input, or takes memory without bound: captures come from strangers.

#![warn(clippy::too_many_lines, clippy::struct_excessive_bools)]
#![forbid(unsafe_code)]

mod bytes;
mod capture;
mod compressed;
mod damage;
mod decap;
mod fast_path;
pub mod filter;
mod fragments;
mod frame;
mod headers;
mod icmp;
mod ip;
mod link;
mod link_header;
mod magic;
mod next_header;
mod packet;
mod pcap;
pub mod pcapng;
mod read_buffer;
mod segment;
mod tcp;
mod tunnel;
mod wlan;

pub use capture::{Capture, Error};
pub use damage::Damage;
pub use frame::{Decoder, decode};
pub use ip::IpFacts;
pub use link::LinkType;
pub use packet::{Interface, Packet};
pub use segment::{Decoded, Late, Other, Segment, Tag, Tags, TooBig};
pub use tcp::{Flags, Options, SackBlocks, TcpHeader};
