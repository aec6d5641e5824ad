//! The emulated path between client and server, each direction on its own.

use serde::{Deserialize, Serialize};
use units::{Bytes, Rate, Ratio, Span};

/// A path between client and server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// Server to client.
    pub down: PathDirection,
    /// Client to server.
    pub up: PathDirection,
    /// The largest IP packet every link carries, in bytes.
    pub mtu: u16,
}

/// One direction of a path: a bottleneck (rate and queue), then propagation (delay, jitter, loss).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathDirection {
    /// One-way propagation delay.
    pub delay: Span,
    /// Random variation of the delay.
    pub jitter: Option<Jitter>,
    /// Packets that vanish at random.
    pub loss: Loss,
    /// The bottleneck's rate; `None` is a link that never queues.
    pub rate: Option<Rate>,
    /// What the bottleneck holds before it drops; meaningless without a rate.
    pub queue: Queue,
}

/// Random variation of a delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// Standard deviation; for [`Distribution::Uniform`] half the width.
    pub stddev: Span,
    /// Shape of the variation.
    pub distribution: Distribution,
    /// Whether a packet may overtake another.
    pub reorder: bool,
}

/// Shape of a jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Every delay within ± stddev equally likely.
    Uniform,
    /// The bell curve, cut at four standard deviations as netem's tables are.
    Normal,
}

/// Which packets vanish.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum Loss {
    /// None.
    None,
    /// Each with the same probability, independently.
    Random {
        /// Probability that a packet is lost.
        probability: Ratio,
    },
    /// A two-state Markov chain.
    ///
    /// Source: Salsano et al., "Definition of a general and intuitive loss model for packet networks", 2009.
    GilbertElliott {
        /// Probability of going from the good state to the bad.
        p: Ratio,
        /// Probability of going back.
        r: Ratio,
        /// Probability that a packet passes in the bad state.
        h: Ratio,
        /// Probability that a packet passes in the good state.
        k: Ratio,
    },
}

/// What a bottleneck holds before it drops from the tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Queue {
    /// So many packets.
    Packets(u32),
    /// So many bytes.
    Bytes(Bytes),
    /// As many bytes as the rate sends in this time.
    Time(Span),
}

impl Path {
    /// Round-trip propagation delay.
    pub fn rtt(&self) -> Span {
        Span::from_nanos(self.down.delay.as_nanos() + self.up.delay.as_nanos())
    }
}

impl Default for PathDirection {
    fn default() -> Self {
        Self { delay: Span::ZERO, jitter: None, loss: Loss::None, rate: None, queue: Queue::Packets(1000) }
    }
}

impl Default for Path {
    fn default() -> Self {
        Self { down: PathDirection::default(), up: PathDirection::default(), mtu: 1500 }
    }
}
