//! What can be typed after `thalweg load`.

use super::expect::Expectation;
use clap::Args as ClapArgs;
use std::net::IpAddr;
use thalweg_units::{Bytes, Ratio, Span};
use url::Url;

/// Players of a stream.
#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg load hls http://127.0.0.1:8080/live/demo.m3u8 --players 1000 --duration 60s\n  thalweg load hls https://edge.example/live/a.m3u8 -n 5000 --ramp 30s --expect 'first_frame_p99 <= 500ms' --expect 'stalled <= 0.1%'\n  thalweg load flv http://127.0.0.1:8080/live/demo.flv -n 500 --stalled 10% --json\n\nEach player has a session and a connection of its own, polls the playlist by its media sequence (RFC 8216 section 6.3), fetches each segment once, and stalls when its buffer runs empty. Times count from when something was due.\n\nExpectations: first_frame_p50 … first_frame_max, playlist_…, segment_…, stall_… (p50, p90, p99, p999, max), stalled (part of the time watched), failures, playing. Exit 1 when one does not hold."
)]
pub(crate) struct LoadArgs {
    /// Playlist or stream
    #[arg(value_parser = super::values::web_url)]
    pub(crate) url: Url,
    /// Players
    #[arg(short = 'n', long, default_value = "10", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) players: u32,
    /// They start evenly over this time
    #[arg(long, default_value = "0s")]
    pub(crate) ramp: Span,
    /// From the first one's start to the end
    #[arg(long, default_value = "30s")]
    pub(crate) duration: Span,
    /// What a player holds before it plays
    #[arg(long, default_value = "0s")]
    pub(crate) buffer: Span,
    /// Players that read slowly
    #[arg(long, value_name = "PART", default_value = "0%")]
    pub(crate) slow: Ratio,
    /// What a slow player reads in a second
    #[arg(long, value_name = "BYTES", default_value = "10B")]
    pub(crate) slow_rate: Bytes,
    /// Players that stop reading at their first picture, and stay
    #[arg(long, value_name = "PART", default_value = "0%")]
    pub(crate) stalled: Ratio,
    /// Addresses they come from, one after the other; towards 127.0.0.0/8 one for each 10,000 players by default
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', value_parser = super::values::ip_address)]
    pub(crate) source: Vec<IpAddr>,
    /// TCP Fast Open: a connection after the first sends its request with the SYN
    #[arg(long)]
    pub(crate) fastopen: bool,
    /// Take any certificate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Processes; default: as many as the limit of descriptors asks for
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) processes: Option<u32>,
    /// Threads of each process
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
    /// What must hold (repeatable)
    #[arg(long, value_name = "EXPECTATION")]
    pub(crate) expect: Vec<Expectation>,
    /// Which of the processes this is
    #[arg(long, hide = true, value_name = "I/N", value_parser = super::values::part)]
    pub(crate) part: Option<thalweg_lab::Part>,
}
