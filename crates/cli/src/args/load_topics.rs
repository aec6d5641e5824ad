//! What can be typed after `thalweg load topics`.

use super::load_stream::TokenArgs;
use clap::Args as ClapArgs;
use thalweg_model::HostName;
use thalweg_units::{Bytes, Span};

/// Messages at fixed periods.
#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg load topics 192.0.2.1 --period 10ms --size 60KB -t 30s\n  thalweg load topics 192.0.2.1 car.toml --token-file token\n  thalweg load topics 192.0.2.1 topics-meet --as client2 --json\n\nThe server is 'thalweg load serve'. Topics are written as in a scenario of the lab (thalweg lab run), so that the same file predicts the latencies there and measures them here; of its topics those between the two hosts are run. Each is a TCP connection of its own.\n\nExit: 0 every message came in time, 1 a message was late or lost, 2 the command or the token is wrong, 3 network or server failed."
)]
pub(crate) struct LoadTopicsArgs {
    /// The server: a name or an address
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    /// A scenario with topics: a file or a built-in one; default: topics as the options say
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Option<String>,
    /// Its port
    #[arg(short, long, default_value = "5201", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
    /// Which of the scenario's hosts this host is
    #[arg(long = "as", value_name = "NAME", default_value = "client", requires = "scenario")]
    pub(crate) this: HostName,
    /// Which of the scenario's hosts the server is
    #[arg(long, value_name = "NAME", default_value = "server", requires = "scenario")]
    pub(crate) peer: HostName,
    /// Which of the scenario's arms has the topics; default: the first
    #[arg(long, value_name = "NAME", requires = "scenario")]
    pub(crate) arm: Option<String>,
    /// For how long messages are published; default: what the scenario says, or 10s
    #[arg(short = 't', long, value_name = "TIME", value_parser = super::values::time_or_seconds)]
    pub(crate) duration: Option<Span>,
    /// From one message to the next
    #[arg(long, value_name = "TIME", default_value = "100ms", conflicts_with = "scenario")]
    pub(crate) period: Span,
    /// Bytes of a message
    #[arg(short = 'l', long, value_name = "BYTES", default_value = "60KB", conflicts_with = "scenario")]
    pub(crate) size: Bytes,
    /// Topics of this kind, which are published at the same moments
    #[arg(short = 'P', long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=64), conflicts_with = "scenario")]
    pub(crate) topics: u16,
    /// The server publishes
    #[arg(short = 'R', long, conflicts_with = "scenario")]
    pub(crate) reverse: bool,
    /// How late a message may be; default: the scenario's, or the period
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<Span>,
    /// The congestion control of both ends' publishers, such as reno; default: each host's own
    #[arg(short = 'C', long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    #[command(flatten)]
    pub(crate) token: TokenArgs,
}
