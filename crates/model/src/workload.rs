//! What the hosts do over the path.

use crate::topology::HostName;
use crate::way::Way;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thalweg_units::{Bytes, Rate, Ratio, Seed, Span};

/// What the hosts do over the path. A client always connects; sizes are payload. With several clients each does it, all
/// at the same time, and figures are of all of them together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Workload {
    /// Bulk transfers, as iperf3's.
    Stream(Stream),
    /// Request and response over one connection, again and again, as netperf's `TCP_RR`.
    Rr(Exchange),
    /// Connect, request, response, close, again and again, as netperf's `TCP_CRR`.
    Crr(Exchange),
    /// A live stream's start.
    Burst(Burst),
    /// UDP packets at fixed distances: finds a queue's size and its drain rate.
    UdpTrain(UdpTrain),
    /// Messages that are published at fixed periods, as a robot's or a vehicle's hosts do.
    Topics(Topics),
    /// Several of these at once.
    Mixed {
        /// What runs.
        parts: Vec<Part>,
    },
    /// Programs of the user's own.
    Command(Command),
}

impl Workload {
    /// Whether programs of the user's own are part of it.
    pub fn has_programs(&self) -> bool {
        match self {
            Self::Command(_) => true,
            Self::Mixed { parts } => parts.iter().any(|part| part.workload.has_programs()),
            _ => false,
        }
    }
}

/// Bulk transfers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// Which way the data goes.
    pub direction: Way,
    /// When each transfer ends.
    pub amount: Amount,
    /// Connections of each client at the same time; `Amount::Bytes` is divided among them.
    pub parallel: u32,
    /// The rate at which the sending program has data; `None` is as fast as the socket takes it.
    pub pace: Option<Rate>,
    /// What the program keeps of the data its socket does not take; the oldest is dropped then. `None` keeps all.
    pub backlog: Option<Bytes>,
    /// A file of the host to send from instead of from memory, as `iperf3 -F`.
    pub file: Option<String>,
}

/// Requests and responses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// Request size.
    pub request: Bytes,
    /// Response size.
    pub response: Bytes,
    /// How many each client makes.
    pub amount: Transactions,
}

/// A live stream's start: on request the server sends what it has buffered, then goes on at the media's rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// What the server holds when the viewer comes: the cached group of pictures.
    pub buffered: Bytes,
    /// The media's rate after that; written 25 times a second.
    pub rate: Rate,
    /// How much the client takes before it leaves.
    pub total: Bytes,
    /// Size of the first keyframe, container included.
    pub keyframe: Bytes,
    /// Byte counts whose arrival is reported besides the keyframe's.
    pub marks: Vec<Bytes>,
}

/// UDP packets at fixed distances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UdpTrain {
    /// Which way they go.
    pub direction: Way,
    /// UDP payload of each.
    pub size: Bytes,
    /// From one to the next; zero sends them at once.
    pub interval: Span,
    /// How many each client sends or gets.
    pub packets: u32,
}

/// Published messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Topics {
    /// The topics.
    pub topics: Vec<Topic>,
    /// For how long messages are published; those under way are waited for.
    pub seconds: Span,
}

/// A named flow of messages; each subscriber has a TCP connection of its own to the publisher.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// The host that publishes.
    pub publisher: HostName,
    /// The hosts that get every message.
    pub subscribers: Vec<HostName>,
    /// From one message to the next.
    pub period: Span,
    /// When the first is published, counted from the start.
    pub phase: Span,
    /// Other topics, by name. A message is published once the message of the same number of each of them is whole at the publisher; then
    /// `period` and `phase` are theirs. Empty: it is published by its period.
    pub after: Vec<String>,
    /// From then until it is published.
    pub compute: Span,
    /// How large they are.
    pub size: Size,
    /// `SO_PRIORITY` of its sockets: 0 to 7.
    pub priority: u8,
    /// How late a message may be whole at a subscriber.
    pub deadline: Option<Span>,
}

/// Size of a message.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "distribution", rename_all = "lowercase")]
pub enum Size {
    /// Always the same.
    Fixed {
        /// Payload.
        bytes: Bytes,
    },
    /// Anything between, equally likely.
    Uniform {
        /// The least.
        min: Bytes,
        /// The most.
        max: Bytes,
    },
    /// Mostly `usual`, a part of them `rare`: delta and key frames.
    Mixture {
        /// Payload of most.
        usual: Bytes,
        /// Payload of the others.
        rare: Bytes,
        /// How many are of the other kind.
        part: Ratio,
    },
}

impl Size {
    /// A message's size, by a seed of its own.
    pub fn draw(&self, seed: Seed) -> Bytes {
        // The 53 bits a double holds: 0 to just below 1.
        let unit = (seed.get() >> 11) as f64 / (1u64 << 53) as f64;
        match *self {
            Self::Fixed { bytes } => bytes,
            Self::Uniform { min, max } => {
                let range = (max.get() - min.get()) as f64 + 1.0;
                Bytes::new((min.get() + (unit * range) as u64).min(max.get()))
            }
            Self::Mixture { usual, rare, part } => {
                if unit < part.get() {
                    rare
                } else {
                    usual
                }
            }
        }
    }
}

/// One of several workloads that run at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its name; its figures are grouped under it.
    pub name: String,
    /// When it begins.
    pub start: Span,
    /// The clients that do it; none named is all.
    pub clients: Vec<u32>,
    /// What it is; not mixed again.
    pub workload: Workload,
}

/// Programs of the user's own; `{server}`, `{client}`, `{folder}` and `{thalweg}` in their words are filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// The server's program and its arguments; `None` where the client needs none.
    pub server: Option<Vec<String>>,
    /// The TCP port on which the server listens once it is ready; the client is not started before.
    pub port: Option<u16>,
    /// The client's program and its arguments.
    pub client: Vec<String>,
    /// How often the client is run, one after the other.
    pub times: u32,
    /// Virtual time after which whatever still runs is ended.
    pub timeout: Span,
    /// Files made in `{folder}` before anything starts: names and texts.
    pub files: BTreeMap<String, String>,
    /// Figures to take from the client's output: names and regular expressions with one group that is a number.
    pub figures: BTreeMap<String, String>,
}

impl Command {
    /// Reads the regular expression of a figure: `^` and `$` are a line's ends, and its one group is the number.
    ///
    /// # Errors
    /// What is wrong with it, one sentence.
    pub fn figure_pattern(text: &str) -> Result<Regex, String> {
        let regex = RegexBuilder::new(text).multi_line(true).build().map_err(|error| {
            // The library draws the place over several lines; its last says what is wrong.
            let text = error.to_string();
            text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        })?;
        match regex.captures_len() {
            2 => Ok(regex),
            1 => Err("it has no group; the number stands in one, as in 'total=([0-9.]+)'".to_owned()),
            _ => Err("it has several groups; only the number stands in one, others are written (?:…)".to_owned()),
        }
    }
}

/// Background flows, between hosts of their own, over the same path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cross {
    /// How many flows.
    pub flows: u32,
    /// Which way their data goes.
    pub direction: Way,
    /// When they begin.
    pub start: Span,
    /// When they end; `None` is with the workload.
    pub end: Option<Span>,
    /// What they are.
    pub traffic: CrossTraffic,
}

/// What background flows are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum CrossTraffic {
    /// TCP transfers without end.
    Stream {
        /// Their congestion control; `None` is the kernel's default.
        congestion: Option<String>,
    },
    /// UDP packets at a constant rate.
    Udp {
        /// Rate of each flow, IP and UDP headers not counted.
        rate: Rate,
        /// Payload of a packet.
        size: Bytes,
    },
}

/// How much a stream sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Amount {
    /// So many bytes.
    Bytes(Bytes),
    /// As many as it can in this time, counted from the connection's establishment.
    Seconds(Span),
}

/// How many transactions are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transactions {
    /// So many.
    Count(u32),
    /// New ones are begun for so long.
    Seconds(Span),
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            direction: Way::Down,
            amount: Amount::Seconds(Span::from_millis(10_000)),
            parallel: 1,
            pace: None,
            backlog: None,
            file: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_as_asked_for() {
        let drawn =
            |size: &Size| (0..10_000).map(|n| size.draw(Seed::new(7).derive(3).derive(n)).get()).collect::<Vec<_>>();
        let uniform = drawn(&Size::Uniform { min: Bytes::new(10), max: Bytes::new(12) });
        for size in 10..=12 {
            let share = uniform.iter().filter(|drawn| **drawn == size).count();
            assert!((3100..3570).contains(&share), "{share} of {size}");
        }
        assert!(uniform.iter().all(|size| (10..=12).contains(size)));
        let part = "10%".parse().expect("a ratio");
        let mixture = drawn(&Size::Mixture { usual: Bytes::new(1), rare: Bytes::new(50), part });
        let rare = mixture.iter().filter(|size| **size == 50).count();
        assert!((900..1100).contains(&rare), "{rare}");
    }
}
