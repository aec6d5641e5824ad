//! What is asked of a load: where, how many, how, for how long.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;
use thiserror::Error;
use url::Url;

/// What players ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A playlist, again and again, and the segments in it.
    Hls,
    /// One answer without an end, of FLV tags.
    Flv,
}

/// A load.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What players ask for.
    pub kind: Kind,
    /// Where: an HLS entry playlist or media playlist, or an FLV stream.
    pub url: Url,
    /// How many players there are at last.
    pub players: u32,
    /// The time over which they start, evenly.
    pub ramp: Duration,
    /// The time from the first one's start to the end.
    pub duration: Duration,
    /// Players, of a hundred, that read at `slow_bytes` a second.
    pub slow_percent: u32,
    /// What a slow player reads, in bytes a second.
    pub slow_bytes: u32,
    /// Players, of a hundred, that stop reading once their first media has come, and stay.
    pub stalled_percent: u32,
    /// Where connections come from, one after the other; empty for the kernel's choice.
    pub sources: Vec<IpAddr>,
    /// A player begins to play when it holds this much; below nothing it stalls.
    pub buffer: Duration,
    /// TCP Fast Open: where the kernel has a server's cookie, the request goes with the SYN.
    pub fastopen: bool,
    /// Servers' certificates are not looked at.
    pub insecure: bool,
    /// Threads; each has its part of the players.
    pub threads: usize,
    /// The number of this process's first player among all, and how far apart players of one process are.
    pub part: (u32, u32),
}

/// Why a load cannot be.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The URL is not one to load.
    #[error("cannot load '{url}': {why}")]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// This host refuses something that all players need.
    #[error(transparent)]
    Host(#[from] thalweg_host::HostError),
}

impl Plan {
    /// Where the URL leads.
    ///
    /// # Errors
    /// When it is not HTTP or HTTPS, or its host has no address.
    pub fn address(&self) -> Result<SocketAddr, LoadError> {
        address(&self.url)
    }

    /// Players of this process.
    pub(crate) fn own(&self) -> impl Iterator<Item = u32> + use<> {
        let (first, every) = self.part;
        (first..self.players).step_by(every.max(1) as usize)
    }

    /// When player `number` is due to start, after the first.
    pub(crate) fn start_of(&self, number: u32) -> Duration {
        self.ramp.mul_f64(f64::from(number) / f64::from(self.players.max(1)))
    }

    /// Where player `number` connects from.
    pub(crate) fn source_of(&self, number: u32) -> Option<IpAddr> {
        let count = self.sources.len();
        (count > 0).then(|| self.sources[number as usize % count])
    }

    /// How player `number` reads. Slow and stalled ones are spread over all, the same in every run.
    pub(crate) fn reading_of(&self, number: u32) -> Reading {
        // 37 and 100 have no common factor: of each hundred players each has another place.
        let place = number.wrapping_mul(37) % 100;
        if place < self.stalled_percent {
            Reading::Stalled
        } else if place < self.stalled_percent + self.slow_percent {
            Reading::Slow
        } else {
            Reading::Fast
        }
    }
}

/// Where a URL leads.
pub(crate) fn address(url: &Url) -> Result<SocketAddr, LoadError> {
    let refused = |why: &str| LoadError::Url { url: url.to_string(), why: why.to_owned() };
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("only http:// and https:// are spoken here"));
    }
    let host = url.host_str().ok_or_else(|| refused("it names no host"))?.trim_matches(['[', ']']);
    let port = url.port_or_known_default().unwrap_or(80);
    let mut found = (host, port).to_socket_addrs().map_err(|error| refused(&error.to_string()))?;
    found.next().map(thalweg_model::canonical).ok_or_else(|| refused("its host has no address"))
}

/// How a player reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// As fast as it comes.
    Fast,
    /// So many bytes a second.
    Slow,
    /// Nothing more once media has come.
    Stalled,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(players: u32) -> Plan {
        Plan {
            kind: Kind::Hls,
            url: Url::parse("http://127.0.0.1:8080/live/a.m3u8").expect("a URL"),
            players,
            ramp: Duration::from_secs(10),
            duration: Duration::from_secs(60),
            slow_percent: 10,
            slow_bytes: 1,
            stalled_percent: 5,
            sources: vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2])],
            buffer: Duration::ZERO,
            fastopen: false,
            insecure: false,
            threads: 1,
            part: (0, 1),
        }
    }

    #[test]
    fn players_are_spread_over_time_sources_and_processes() {
        let plan = plan(100);
        assert_eq!((plan.start_of(0), plan.start_of(50)), (Duration::ZERO, Duration::from_secs(5)));
        assert_eq!(plan.source_of(3), Some(IpAddr::from([127, 0, 0, 2])));
        let count = |reading| (0..100).filter(|&n| plan.reading_of(n) == reading).count();
        assert_eq!([Reading::Stalled, Reading::Slow, Reading::Fast].map(count), [5, 10, 85]);
        let parts = [0, 1, 2].map(|first| Plan { part: (first, 3), ..plan.clone() }.own().count());
        assert_eq!(parts, [34, 33, 33]);
    }

    #[test]
    fn other_schemes_are_refused() {
        let error = address(&Url::parse("rtmp://127.0.0.1/live").expect("a URL")).expect_err("refused");
        assert!(error.to_string().contains("http://"), "{error}");
        let address = address(&Url::parse("https://[::1]/x").expect("a URL")).expect("an address");
        assert_eq!(address.to_string(), "[::1]:443");
        let mapped = super::address(&Url::parse("http://[::ffff:127.0.0.1]/x").expect("a URL")).expect("an address");
        assert_eq!(mapped.to_string(), "127.0.0.1:80");
    }
}
