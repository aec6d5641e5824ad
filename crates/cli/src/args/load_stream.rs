//! What can be typed after `thalweg load stream` and `thalweg load serve`.

use super::values::{time_or_seconds, whole_seconds};
use clap::Args as ClapArgs;
use std::net::IpAddr;
use std::path::PathBuf;
use thalweg_units::{Bytes, Rate, Span};

/// Streams to or from a server.
#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg load stream 192.0.2.1\n  thalweg load stream 192.0.2.1 -R -P 4 -t 30\n  thalweg load stream 192.0.2.1 --udp --rate 100Mb/s\n  thalweg load stream 192.0.2.1 --file image.iso --window 4MiB --congestion bbr --json\n\nThe server is 'thalweg load serve' or 'iperf3 -s', 3.1 to 3.21: it speaks iperf3's protocol. Of a sender each interval shows what limited it, judged as thalweg watch does.\n\nExit: 0 the test is complete, 2 the command is wrong, 3 network or server failed."
)]
pub(crate) struct LoadStreamArgs {
    /// The server: a name or an address
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    /// Its port
    #[arg(short, long, default_value = "5201", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
    /// UDP in place of TCP
    #[arg(short, long)]
    pub(crate) udp: bool,
    /// The most that each stream sends; TCP is paced by the kernel (SO_MAX_PACING_RATE); default: no limit, with --udp 1Mb/s
    #[arg(short = 'b', long, value_name = "RATE")]
    pub(crate) rate: Option<Rate>,
    /// The server sends
    #[arg(short = 'R', long, conflicts_with = "both")]
    pub(crate) reverse: bool,
    /// Both ends send, each on streams of its own
    #[arg(long, visible_alias = "bidir")]
    pub(crate) both: bool,
    /// Streams of each direction
    #[arg(short = 'P', long, visible_alias = "parallel", default_value = "1", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=128))]
    pub(crate) streams: u32,
    /// How long, in seconds; 0 is until Ctrl-C
    #[arg(short = 't', long, value_name = "N", default_value = "10", value_parser = whole_seconds, conflicts_with = "bytes")]
    pub(crate) seconds: u64,
    /// How many bytes all streams of a direction send together, in place of --seconds
    #[arg(short = 'n', long, value_name = "BYTES")]
    pub(crate) bytes: Option<Bytes>,
    /// Seconds at the start that do not count, such as slow start
    #[arg(short = 'O', long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u64).range(..=600))]
    pub(crate) omit: u64,
    /// Bytes of a block, with --udp of a datagram; default: 128KiB, with --udp what fits into a packet
    #[arg(short = 'l', long, value_name = "BYTES")]
    pub(crate) length: Option<Bytes>,
    /// Socket buffers at both ends, as SO_SNDBUF and SO_RCVBUF take them
    #[arg(short = 'w', long, value_name = "BYTES")]
    pub(crate) window: Option<Bytes>,
    /// The congestion control at both ends, such as cubic
    #[arg(short = 'C', long, value_name = "NAME", conflicts_with = "udp")]
    pub(crate) congestion: Option<String>,
    /// The largest segment (TCP_MAXSEG)
    #[arg(short = 'M', long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(88..=32_767), conflicts_with = "udp")]
    pub(crate) mss: Option<u32>,
    /// The time of a row
    #[arg(short = 'i', long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub(crate) interval: Span,
    /// Sends this file on each stream; its end ends the test
    #[arg(short = 'F', long, value_name = "FILE", conflicts_with_all = ["udp", "reverse", "both"])]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) token: TokenArgs,
}

/// Where the token is.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct TokenArgs {
    /// File with the token that both ends know; default: what THALWEG_LOAD_TOKEN holds
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

/// The server of load between hosts.
#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg load serve\n  openssl rand -hex 16 > token; thalweg load serve --listen 192.0.2.1 --token-file token\n  thalweg load serve --listen 0.0.0.0,:: --open --one-off --json\n\nClients are 'thalweg load stream', rr, crr, udp-train, topics and iperf3's own. Several are served at once. It listens at 127.0.0.1 unless told otherwise; elsewhere clients prove that they know the token. iperf3's own cannot: with --open whoever reaches the port can load this host with streams and transactions. With --json there is one document a line and test of streams."
)]
pub(crate) struct LoadServeArgs {
    /// Addresses to listen at
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', default_value = "127.0.0.1", value_parser = super::values::ip_address)]
    pub(crate) listen: Vec<IpAddr>,
    /// The port, of TCP and UDP; 0 is any free one
    #[arg(short, long, default_value = "5201", value_name = "PORT")]
    pub(crate) port: u16,
    /// Ends after one test
    #[arg(short = '1', long)]
    pub(crate) one_off: bool,
    /// Ends when there was no test for this long
    #[arg(long, value_name = "TIME")]
    pub(crate) idle_timeout: Option<Span>,
    /// The time of a row
    #[arg(short = 'i', long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub(crate) interval: Span,
    #[command(flatten)]
    pub(crate) token: TokenArgs,
    /// Serve streams and transactions to whoever reaches the port, as iperf3's own clients know no token
    #[arg(long)]
    pub(crate) open: bool,
}

/// iperf3's own range (`MIN_INTERVAL`, `MAX_INTERVAL`).
fn interval(text: &str) -> Result<Span, String> {
    let span = time_or_seconds(text)?;
    let range = Span::from_millis(100)..=Span::from_millis(60_000);
    if range.contains(&span) { Ok(span) } else { Err("it can be from 100ms to 60s".to_owned()) }
}
