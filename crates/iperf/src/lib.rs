//! Load between hosts by iperf3's protocol, at both ends: a client and a server that work with iperf3's own.
#![warn(clippy::too_many_lines)]

pub mod protocol;
