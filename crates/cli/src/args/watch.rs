//! What can be typed after `thalweg watch`.

use clap::{Args as ClapArgs, ValueEnum};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use thalweg_units::{Bytes, Rate, Span};
use thalweg_watch::{Column, ColumnSet};

/// The shortest interval: the kernel's own figures are smoothed over round trips, and asking costs time.
const LEAST_INTERVAL: Span = Span::from_millis(100);

/// A live view of this host's TCP sockets.
#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg watch\n  thalweg watch 'port:443 state:established cause:receive-window'\n  thalweg watch 'peer:10.0.0.0/8 rtt:>100ms retrans:>1% -proc:ssh' --sort backlog\n  thalweg watch proc:nginx --show send --once\n  thalweg watch --json --interval 5s > sockets.jsonl\n  thalweg watch --replay sockets.jsonl\n  thalweg watch --prometheus 9633\n  thalweg watch --otlp http://127.0.0.1:4318 --interval 10s\n  thalweg watch --bursts eth0 --port-rate 1gbit --port-buffer 128KiB\n  thalweg watch --bursts eth0 --count 60 --record bins.parquet --html bins.html\n  thalweg watch --replay bins.parquet --port-rate 1gbit --port-buffer 256KiB --html bins.html\n\nTerms are joined by spaces, and all must hold; of values with commas one must; - before a term negates it (after -- if it comes first).\nTerms: port, local-port, peer-port, local, peer, state, proc, pid, uid, cgroup, cc, cause, life, rtt, min-rtt, retrans, rate, backlog.\nWith --json there is one document a line and refresh. It needs no privilege; only the names of other users' programs do (CAP_SYS_PTRACE)."
)]
pub(crate) struct WatchArgs {
    /// Which sockets; default: all
    #[arg(value_name = "FILTER")]
    pub(crate) filter: Vec<String>,
    /// The column to sort by; its largest figure comes first
    #[arg(long, value_name = "COLUMN", default_value = "rate", value_parser = column)]
    pub(crate) sort: Column,
    /// Sorts the other way around
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Columns: overview, send, receive, who or all
    #[arg(long, value_name = "COLUMNS", default_value = "overview", value_parser = columns)]
    pub(crate) show: ColumnSet,
    /// Time from one refresh to the next
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub(crate) interval: Span,
    /// Ends after so many refreshes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// One table as text, after one interval
    #[arg(long, conflicts_with = "count")]
    pub(crate) once: bool,
    /// Serves metrics for Prometheus at this port of 127.0.0.1, or at ADDRESS:PORT, under /metrics
    #[arg(long, value_name = "ADDRESS", value_parser = address, conflicts_with_all = ["replay", "once"])]
    pub(crate) prometheus: Option<SocketAddr>,
    /// Exports metrics by OTLP/HTTP to a collector, at each refresh; without a URL to that of OTEL_EXPORTER_OTLP_ENDPOINT, or http://localhost:4318
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["replay", "once"])]
    pub(crate) otlp: Option<String>,
    /// Instead of sockets: what this interface sends and receives, in bins of 100 µs, 1 ms and 10 ms (CAP_BPF and CAP_NET_ADMIN, or CAP_NET_RAW)
    #[arg(long, value_name = "INTERFACE", conflicts_with_all = ["filter", "sort", "reverse", "show", "prometheus", "otlp", "replay"])]
    pub(crate) bursts: Option<String>,
    /// With --bursts: what counts packets: BPF on tcx, BPF on clsact or an AF_PACKET ring; auto takes the first that this host allows
    #[arg(long, value_enum, value_name = "SOURCE", default_value = "auto", requires = "bursts")]
    pub(crate) burst_source: BurstSourceChoice,
    /// With --bursts, and with --replay of what it recorded: how many flows have rows of their own, 8 if it is not said, all others one together; 0: none
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=64))]
    pub(crate) flows: Option<u8>,
    /// With --bursts: the rate of a port that the traffic has to pass, such as 1gbit
    #[arg(long, value_name = "RATE", requires = "port_buffer")]
    pub(crate) port_rate: Option<Rate>,
    /// With --bursts: that port's buffer, such as 128KiB; bursts that overflow it are counted
    #[arg(long, value_name = "SIZE", requires = "port_rate")]
    pub(crate) port_buffer: Option<Bytes>,
    /// With --bursts: also writes every bin of 100 µs in which something passed, by flow, to this Parquet file
    #[arg(long, value_name = "FILE.parquet", requires = "bursts")]
    pub(crate) record: Option<PathBuf>,
    /// With --bursts: also draws the rate of every millisecond, of all packets and of each flow, as one HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Shows what --json recorded, or what --bursts --record did; - is stdin, where stdout is no terminal
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
}

/// What counts an interface's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BurstSourceChoice {
    Auto,
    Tcx,
    Clsact,
    AfPacket,
}

fn column(text: &str) -> Result<Column, String> {
    text.parse()
}

fn columns(text: &str) -> Result<ColumnSet, String> {
    text.parse()
}

fn interval(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: thalweg_units::ParseError| error.to_string())?;
    if span < LEAST_INTERVAL { Err(format!("the shortest interval is {LEAST_INTERVAL}")) } else { Ok(span) }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().ok().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let wrong = || "write it as a port, such as 9633, or as ADDRESS:PORT, such as 192.0.2.1:9633".to_owned();
    let given = || text.parse().ok().map(thalweg_model::canonical);
    port.or_else(given).ok_or_else(wrong)
}
