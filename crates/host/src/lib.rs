//! Everything that touches Linux: namespaces, netlink, sysctls, sockets, packet capture.
//!
//! The only room with `unsafe`; each use is one system call with its arguments owned by the caller.
#![allow(unsafe_code)]
#![warn(clippy::too_many_lines)]

pub mod allocator;
pub mod bpf;
pub mod capture;
pub mod closed_connections;
pub mod confined;
pub mod cpu_time;
pub mod descriptors;
mod error;
pub mod filter;
pub mod guest;
pub mod link;
pub mod mem_info;
pub mod memory;
#[cfg(test)]
mod namespaces;
mod netlink;
pub mod netns;
pub mod peer;
pub mod poll;
pub mod process;
pub mod qdisc;
pub mod random;
pub mod reach;
mod refusal;
pub mod relay;
pub mod route;
pub mod sandbox;
pub mod segment;
pub mod socket;
pub mod socket_owners;
pub mod sockets;
pub mod sysctl;
pub mod table;
pub mod tcp_info;
pub mod tcp_samples;
pub mod tun;
pub mod user_namespace;

pub use error::HostError;
