//! The emulated path between client and server, each direction on its own.

use crate::way::Way;
use serde::{Deserialize, Serialize};
use thalweg_units::{Bytes, Rate, Ratio, Span};

/// A path between client and server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// Server to client.
    pub down: PathDirection,
    /// Client to server.
    pub up: PathDirection,
    /// The largest IP packet every link carries, in bytes.
    pub mtu: u16,
    /// Whether the hosts hand TSO frames of up to 64 KB to their devices; every queue then counts one as one packet.
    pub offloads: bool,
}

/// One direction of a path: a policer, a bottleneck (rate and queue), then propagation (delay, jitter, loss).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathDirection {
    /// One-way propagation delay.
    pub delay: Span,
    /// Random variation of the delay.
    pub jitter: Option<Jitter>,
    /// Packets that vanish.
    pub loss: Loss,
    /// Packets that arrive twice.
    pub duplicate: Option<Chance>,
    /// Packets of which one bit is flipped; TCP's checksum finds most of them, and they count as lost.
    pub corrupt: Option<Chance>,
    /// Packets that skip the delay, and so overtake.
    pub reorder: Option<Reorder>,
    /// Packets longer than this vanish without a word: a path-MTU black hole.
    pub black_hole: Option<u16>,
    /// What discards, rather than queues, what is over a rate.
    pub policer: Option<Policer>,
    /// The bottleneck's rate; `None` is a link that never queues.
    pub rate: Option<Rate>,
    /// A link whose rate a recording gives, in place of `rate`.
    pub trace: Option<Trace>,
    /// Bytes every packet costs on the wire besides its Ethernet header: 24 for preamble, FCS and the gap between frames.
    pub overhead: u16,
    /// What may leave at once after a pause; `None` takes as little as the rate needs.
    pub burst: Option<Bytes>,
    /// What the bottleneck holds before it drops; meaningless without a rate.
    pub queue: Queue,
    /// How the bottleneck manages its queue.
    pub discipline: Discipline,
    /// Packets that the delay holds before it drops, as netem's `limit` counts them; `None` holds all.
    pub delay_limit: Option<u32>,
    /// Whether the queue and random loss mark ECN-capable packets where they would drop them.
    pub ecn: bool,
    /// How it changes with time, the earliest first.
    pub steps: Vec<Step>,
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
    /// How much a packet's deviation follows that of the packet before: the correlation of the normal variables that are
    /// turned into the distribution, and for [`Distribution::Normal`] that of the delays themselves.
    pub correlation: Ratio,
}

/// Shape of a jitter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Every delay within ± stddev equally likely.
    Uniform,
    /// The bell curve, cut at four standard deviations as netem's tables are.
    Normal,
    /// A heavy tail to the late side.
    Pareto,
    /// A quarter normal and three quarters Pareto, as iproute2 mixes them.
    ParetoNormal,
    /// A table as iproute2's `.dist` files hold: deviations in units of 1/8192 of the standard deviation.
    Table(Vec<i16>),
}

/// A probability, and how much one packet's fate follows the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Chance {
    /// Probability for one packet.
    pub probability: Ratio,
    /// Correlation with the packet before.
    pub correlation: Ratio,
}

/// Packets that skip the delay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reorder {
    /// How likely.
    pub chance: Chance,
    /// Only one packet in this many may; 1 is any.
    pub gap: u32,
}

/// Which packets vanish.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum Loss {
    /// None.
    None,
    /// Each with the same probability.
    Random(Chance),
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
    /// Exactly these, counted from 1; what is sent again counts again.
    List {
        /// What is counted.
        of: Counted,
        /// Their numbers, ascending.
        numbers: Vec<u64>,
    },
}

/// What a list of losses counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counted {
    /// Every IP packet.
    Packets,
    /// TCP segments with payload.
    Segments,
}

/// Discards what is over a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policer {
    /// Rate of its token bucket.
    pub rate: Rate,
    /// Size of the bucket.
    pub burst: Bytes,
}

/// A link that a recording of delivery opportunities gives, as Mahimahi's link-shell replays it.
///
/// Source: Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015; mahimahi(1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Milliseconds since the start at which 1500 bytes may leave, ascending; after the last one it begins again.
    pub opportunities_ms: Vec<u32>,
}

/// What a bottleneck holds before it drops.
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

/// How a bottleneck manages its queue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Discipline {
    /// First in, first out; drops from the tail.
    Fifo,
    /// Random early detection. Source: Floyd, Jacobson, 1993; `tc-red(8)`.
    Red {
        /// Average queue from which it drops at all.
        min: Bytes,
        /// Average queue at which it drops with `probability`.
        max: Bytes,
        /// Probability at `max`.
        probability: Ratio,
    },
    /// Controlled delay. Source: RFC 8289.
    Codel {
        /// Queueing delay that is acceptable.
        target: Span,
        /// Over which the least delay is taken.
        interval: Span,
    },
    /// Controlled delay for each flow on its own. Source: RFC 8290.
    FqCodel {
        /// Queueing delay that is acceptable.
        target: Span,
        /// Over which the least delay is taken.
        interval: Span,
        /// Number of queues.
        flows: u32,
    },
    /// Proportional integral controller enhanced. Source: RFC 8033.
    Pie {
        /// Queueing delay that is aimed at.
        target: Span,
        /// How often the probability of dropping is computed.
        tupdate: Span,
    },
    /// Common Applications Kept Enhanced, with its own shaper. Source: `tc-cake(8)`.
    Cake {
        /// The round-trip time it is tuned for.
        rtt: Span,
        /// Which acknowledgements it drops.
        ack_filter: AckFilter,
    },
}

/// Which acknowledgements CAKE drops from a flow's queue when a later one waits there. Source: `tc-cake(8)`, `ack-filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AckFilter {
    /// None.
    #[default]
    Off,
    /// Those that say nothing new, and leaves at least two.
    On,
    /// All but the last.
    Aggressive,
}

/// A change of a direction at a moment; what is `None` stays as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// When, counted from the workload's start.
    pub at: Span,
    /// The rate from then on.
    pub rate: Option<Rate>,
    /// The delay from then on.
    pub delay: Option<Span>,
    /// The loss from then on: not a list.
    pub loss: Option<Loss>,
}

impl Path {
    /// One direction of it.
    pub const fn direction(&self, way: Way) -> &PathDirection {
        match way {
            Way::Down => &self.down,
            Way::Up => &self.up,
        }
    }

    /// Round-trip propagation delay.
    pub fn rtt(&self) -> Span {
        Span::from_nanos(self.down.delay.as_nanos() + self.up.delay.as_nanos())
    }
}

impl Loss {
    /// Loss of each packet with the same probability, independently of the others.
    pub const fn random(probability: Ratio) -> Self {
        Self::Random(Chance::of(probability))
    }
}

impl Chance {
    /// Without correlation.
    pub const fn of(probability: Ratio) -> Self {
        Self { probability, correlation: Ratio::ZERO }
    }
}

impl Default for PathDirection {
    fn default() -> Self {
        Self {
            delay: Span::ZERO,
            jitter: None,
            loss: Loss::None,
            duplicate: None,
            corrupt: None,
            reorder: None,
            black_hole: None,
            policer: None,
            rate: None,
            trace: None,
            overhead: 0,
            burst: None,
            queue: Queue::Packets(1000),
            discipline: Discipline::Fifo,
            delay_limit: None,
            ecn: false,
            steps: Vec::new(),
        }
    }
}

impl Default for Path {
    fn default() -> Self {
        Self { down: PathDirection::default(), up: PathDirection::default(), mtu: 1500, offloads: false }
    }
}
