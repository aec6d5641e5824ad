//! What can be typed after `thalweg load udp-train`.

use super::load_stream::TokenArgs;
use clap::Args as ClapArgs;
use thalweg_units::{Bytes, Rate};

/// Trains of UDP packets.
#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg load udp-train 192.0.2.1\n  thalweg load udp-train 192.0.2.1 -R --token-file token\n  thalweg load udp-train 192.0.2.1 --rate 1.2Gb/s --overhead 24 --json\n\nThe server is 'thalweg load serve'. Trains of packets back to back, each twice as long as the one before, until packets are lost. The rate at which they arrive is the bottleneck's; what was sent before a loss and had not left the queue is what its buffer holds.\n\nExit: 0 the trains passed, 1 nothing arrived, 2 the command or the token is wrong, 3 network or server failed."
)]
pub(crate) struct LoadUdpTrainArgs {
    /// The server: a name or an address
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    /// Its port
    #[arg(short, long, default_value = "5201", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
    /// The server sends
    #[arg(short = 'R', long)]
    pub(crate) reverse: bool,
    /// UDP payload of a packet
    #[arg(short = 'l', long, value_name = "BYTES", default_value = "1400B")]
    pub(crate) size: Bytes,
    /// The rate within a train, its frames' headers counted; default: the growing ones as fast as the sender can,
    /// the measured ones at twice the rate that was found
    #[arg(short = 'b', long, value_name = "RATE")]
    pub(crate) rate: Option<Rate>,
    /// Packets of the longest train
    #[arg(long, value_name = "N", default_value = "8192", value_parser = clap::value_parser!(u32).range(16..=100_000))]
    pub(crate) packets: u32,
    /// Trains that are measured, once growing ones have found the length
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) trains: u32,
    /// Bytes a frame costs on the wire besides its Ethernet header; Ethernet: 24
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u32).range(..=1_000))]
    pub(crate) overhead: u32,
    #[command(flatten)]
    pub(crate) token: TokenArgs,
}
