//! What can be typed after `thalweg load rr` and `thalweg load crr`.

use super::load_stream::TokenArgs;
use clap::Args as ClapArgs;
use thalweg_units::{Bytes, Span};

/// Requests and responses.
#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg load rr 192.0.2.1\n  thalweg load crr 192.0.2.1 --request 1000B --response 3MB -t 60s\n  thalweg load crr 192.0.2.1 -P 8 --json\n\nThe server is 'thalweg load serve'; iperf3 has no transactions. rr has one connection for all transactions of a stream, crr a new one for each, as netperf's TCP_RR and TCP_CRR.\n\nExit: 0 there were transactions, 1 there were none, 2 the command is wrong, 3 network or server failed."
)]
pub(crate) struct LoadTransactionArgs {
    /// The server: a name or an address
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    /// Its port
    #[arg(short, long, default_value = "5201", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
    /// Bytes of a request; default and least: 1B, with crr 37B
    #[arg(long, value_name = "BYTES")]
    pub(crate) request: Option<Bytes>,
    /// Bytes of a response
    #[arg(long, value_name = "BYTES", default_value = "1B")]
    pub(crate) response: Bytes,
    /// Transactions at a time
    #[arg(short = 'P', long, visible_alias = "parallel", default_value = "1", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) streams: u32,
    /// How long
    #[arg(short = 't', long, value_name = "TIME", value_parser = super::values::time_or_seconds, default_value = "10s")]
    pub(crate) duration: Span,
    /// Socket buffers at this end, as SO_SNDBUF and SO_RCVBUF take them
    #[arg(short = 'w', long, value_name = "BYTES")]
    pub(crate) window: Option<Bytes>,
    /// The congestion control at this end, such as cubic
    #[arg(short = 'C', long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    #[command(flatten)]
    pub(crate) token: TokenArgs,
}
