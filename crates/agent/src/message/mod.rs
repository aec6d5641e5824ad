//! The messages of the control connection: JSON objects, one a line. Bytes in, values out; no socket and no clock.
//!
//! A connection begins with a cookie of 37 bytes, as those of iperf3 do, so that both protocols share a port. The server then sends
//! [`ServerMessage::Hello`], the client proves that it knows the token, and asks for what it wants. Every number is checked when it is read.

use serde::{Deserialize, Serialize};
use thalweg_model::{Size, Way};
use thalweg_units::{Bytes, Span};

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;
/// Bytes of a line at most, its end included.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Times in one message at most; as digits they fit into a line.
pub const TIMES_MAX: usize = 2_000;
/// Packets of a train at most.
pub const TRAIN_PACKETS_MAX: u32 = 100_000;
/// Bytes of a train at most.
pub const TRAIN_BYTES_MAX: u64 = 256 << 20;
/// The smallest packet of a train: a number and the session.
pub const TRAIN_SIZE_MIN: u32 = 16;
/// The largest packet of a train. Source: RFC 768, RFC 791.
pub const TRAIN_SIZE_MAX: u32 = 65_507;
/// The longest time between two packets of a train, in nanoseconds.
pub const TRAIN_INTERVAL_NS_MAX: u64 = 1_000_000_000;
/// The longest train, in nanoseconds.
pub const TRAIN_NS_MAX: u64 = 60_000_000_000;
/// Topics of a test at most.
pub const TOPICS_MAX: usize = 64;
/// Messages of a test at most.
pub const MESSAGES_MAX: u64 = 1_000_000;
/// The shortest period of a topic.
pub const PERIOD_MIN: Span = Span::from_micros(100);
/// The smallest message: a number and a length.
pub const MESSAGE_BYTES_MIN: u64 = 16;
/// The largest message.
pub const MESSAGE_BYTES_MAX: u64 = 64 << 20;
/// The longest test of topics.
pub const TOPICS_SPAN_MAX: Span = Span::from_millis(86_400_000);
/// The longest name of a congestion control. Source: include/net/tcp.h, `TCP_CA_NAME_MAX`, with its closing zero.
pub const CONGESTION_CHARS_MAX: usize = 15;
/// The longest time until a test of topics starts, in nanoseconds.
pub const START_NS_MAX: u64 = 10_000_000_000;

/// Bytes of a cookie, its closing zero included: those of iperf3 (`COOKIE_SIZE`).
pub const COOKIE_LEN: usize = 37;
const CONTROL_MARK: &str = "thalweg.ctl1.";
const TOPIC_MARK: &str = "thalweg.top1.";
/// What the UDP packet begins with by which a client makes itself known; the session follows.
pub const GREETING_MARK: [u8; 8] = *b"thalweg1";

/// What a connection is for, by its cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A control connection.
    Control,
    /// A topic of a session's test.
    Topic {
        /// The session.
        session: u64,
        /// The topic's place in the test.
        topic: u16,
    },
}

impl Purpose {
    /// The cookie that says it.
    pub fn cookie(self) -> [u8; COOKIE_LEN] {
        let text = match self {
            Self::Control => CONTROL_MARK.to_owned(),
            Self::Topic { session, topic } => format!("{TOPIC_MARK}{session:016x}{topic:04x}"),
        };
        let mut cookie = [b'.'; COOKIE_LEN];
        cookie[..text.len()].copy_from_slice(text.as_bytes());
        cookie[COOKIE_LEN - 1] = 0;
        cookie
    }

    /// What a cookie says; `None` for those of other protocols.
    pub fn of_cookie(cookie: &[u8; COOKIE_LEN]) -> Option<Self> {
        let text = std::str::from_utf8(cookie).ok()?;
        let found = if text.starts_with(CONTROL_MARK) {
            Self::Control
        } else {
            let rest = text.strip_prefix(TOPIC_MARK)?;
            let session = u64::from_str_radix(rest.get(..16)?, 16).ok()?;
            Self::Topic { session, topic: u16::from_str_radix(rest.get(16..20)?, 16).ok()? }
        };
        (found.cookie() == *cookie).then_some(found)
    }
}

/// The session that a greeting names; `None` if it is none.
pub fn greeted_session(datagram: &[u8; 16]) -> Option<u64> {
    let (mark, session) = datagram.split_first_chunk::<8>()?;
    (*mark == GREETING_MARK).then(|| u64::from_be_bytes(std::array::from_fn(|at| session[at])))
}

/// The greeting of a session.
pub fn greeting(session: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&GREETING_MARK);
    bytes[8..].copy_from_slice(&session.to_be_bytes());
    bytes
}

/// A train of UDP packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainPlan {
    /// Its number within the session.
    pub number: u32,
    /// Who sends.
    pub way: Way,
    /// Packets.
    pub packets: u32,
    /// UDP payload of each, in bytes.
    pub size_bytes: u32,
    /// From one to the next; 0 sends them at once.
    pub interval_ns: u64,
}

/// A topic of a test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TopicPlan {
    /// Who publishes.
    pub way: Way,
    /// From one message to the next.
    pub period: Span,
    /// When the first is published, after the start.
    pub phase: Span,
    /// How large the messages are.
    pub size: Size,
    /// `SO_PRIORITY`, 0 to 7.
    pub priority: u8,
}

/// Topics that run together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopicsPlan {
    /// The topics, by their place.
    pub topics: Vec<TopicPlan>,
    /// For how long messages are published.
    pub span: Span,
    /// Seed of the messages' sizes.
    pub seed: u64,
    /// The publishers' congestion control; `None` is each host's own.
    pub congestion: Option<String>,
}

/// What a client says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ClientMessage {
    /// Proves that it knows the token; without a token the proof is empty.
    Prove {
        /// The client's own challenge.
        challenge: String,
        /// The proof, as hexadecimal digits.
        proof: String,
    },
    /// Asks for the server's clock.
    Clock {
        /// The client's clock when it asked.
        sent_ns: u64,
    },
    /// From now on greets by UDP, until the server is ready.
    Datagrams,
    /// Asks for a train.
    Train(TrainPlan),
    /// All packets of the client's train are sent.
    Sent,
    /// Asks for a test of topics, and connects one stream for each.
    Topics(TopicsPlan),
    /// When the test starts.
    Start {
        /// By the server's clock.
        at_ns: u64,
    },
    /// The client has published all, and waits no longer.
    End,
}

/// What a server says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ServerMessage {
    /// Greets.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
        /// The server's challenge.
        challenge: String,
        /// Whether it asks for a token.
        token: bool,
    },
    /// The client may ask for tests.
    Welcome {
        /// The session's secret name, which its streams and packets carry.
        session: String,
        /// The server's own proof; empty without a token.
        proof: String,
    },
    /// Ends the connection.
    Refuse {
        /// Why, as a code.
        code: RefusalCode,
        /// Why, in words.
        reason: String,
    },
    /// The server's clock.
    Clock {
        /// What the client sent.
        sent_ns: u64,
        /// The server's clock when the question came.
        received_ns: u64,
        /// And when this answer was sent.
        answered_ns: u64,
    },
    /// What was asked for may begin.
    Ready,
    /// When packets were sent or arrived, or messages arrived; by the server's clock. `None` where one did not.
    Times {
        /// The train's number, or the topic's place.
        of: u32,
        /// The number of the first of them.
        first: u32,
        /// Their times.
        ns: Vec<Option<u64>>,
    },
    /// All of a train was said.
    TrainEnd(TrainEnd),
    /// The connection of a topic that the server publishes.
    TopicEnd(TopicEnd),
    /// All was said of a test of topics.
    End,
}

/// What the server has counted of a train.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainEnd {
    /// Packets that arrived more than once.
    pub duplicates: u64,
    /// Packets that the receiving socket had no room for.
    pub dropped: u64,
    /// Times the sending socket had no room.
    pub blocked: u64,
}

/// What a publisher's kernel says of a topic's connection at the end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TopicEnd {
    /// The topic's place.
    pub topic: u32,
    /// Messages published.
    pub published: u64,
    /// The congestion control.
    pub congestion: String,
    /// Segments sent again (`tcpi_total_retrans`).
    pub retransmits: u64,
    /// Retransmission timeouts (`tcpi_total_rto`); `None` before Linux 6.7.
    pub timeouts: Option<u64>,
    /// The retransmission timeout, in microseconds.
    pub rto_us: u64,
    /// The smoothed round-trip time, in microseconds.
    pub rtt_us: u64,
    /// The least round-trip time, in microseconds.
    pub min_rtt_us: u64,
    /// The congestion window, in packets.
    pub cwnd_packets: u64,
    /// The most that waited in the program since the socket had no room, in bytes.
    pub backlog_max_bytes: u64,
}

/// Why a server refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalCode {
    /// The token is another one.
    Token,
    /// The server has none, and is reached from another host.
    Unprotected,
    /// Too many clients.
    Full,
    /// No UDP packet came.
    Datagrams,
    /// Anything else.
    Other,
}

/// What came is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// A line without an end.
    #[error("a line is longer than {LINE_BYTES_MAX} bytes")]
    Long,
    /// Not JSON, or no message.
    #[error("a line is no message")]
    Syntax,
    /// A message at the wrong time.
    #[error("a message was not expected")]
    Unexpected,
    /// Another version.
    #[error("version {0} of the protocol, where {PROTOCOL} is spoken")]
    Version(u32),
    /// A value out of its range.
    #[error("'{0}' is out of range")]
    Value(&'static str),
}

fn within(is: bool, name: &'static str) -> Result<(), MessageError> {
    if is { Ok(()) } else { Err(MessageError::Value(name)) }
}

impl TrainPlan {
    /// Whether it is one that is sent.
    ///
    /// # Errors
    /// The value that is out of its range.
    pub fn check(&self) -> Result<(), MessageError> {
        let packets = u64::from(self.packets);
        within((1..=TRAIN_PACKETS_MAX).contains(&self.packets), "packets")?;
        within((TRAIN_SIZE_MIN..=TRAIN_SIZE_MAX).contains(&self.size_bytes), "size_bytes")?;
        within(packets * u64::from(self.size_bytes) <= TRAIN_BYTES_MAX, "packets")?;
        within(self.interval_ns <= TRAIN_INTERVAL_NS_MAX && packets * self.interval_ns <= TRAIN_NS_MAX, "interval_ns")
    }
}

impl TopicsPlan {
    /// Whether it is one that is run.
    ///
    /// # Errors
    /// The value that is out of its range.
    pub fn check(&self) -> Result<(), MessageError> {
        within((1..=TOPICS_MAX).contains(&self.topics.len()), "topics")?;
        within(self.span > Span::ZERO && self.span <= TOPICS_SPAN_MAX, "span")?;
        let is_name = |name: &String| {
            (1..=CONGESTION_CHARS_MAX).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
        };
        within(self.congestion.as_ref().is_none_or(is_name), "congestion")?;
        let mut messages = 0;
        for topic in &self.topics {
            within(topic.period >= PERIOD_MIN && topic.period <= TOPICS_SPAN_MAX, "period")?;
            within(topic.phase <= TOPICS_SPAN_MAX, "phase")?;
            within(topic.priority <= 7, "priority")?;
            let range = MESSAGE_BYTES_MIN..=MESSAGE_BYTES_MAX;
            within(topic.sizes().iter().all(|size| range.contains(&size.get())), "size")?;
            if let Size::Uniform { min, max } = topic.size {
                within(min <= max, "size")?;
            }
            messages += self.messages(topic);
        }
        within(messages <= MESSAGES_MAX, "period")
    }

    /// Messages of a topic.
    pub fn messages(&self, topic: &TopicPlan) -> u64 {
        self.span.saturating_sub(topic.phase).as_nanos().div_ceil(topic.period.as_nanos().max(1))
    }
}

impl TopicPlan {
    fn sizes(&self) -> [Bytes; 2] {
        match self.size {
            Size::Fixed { bytes } => [bytes, bytes],
            Size::Uniform { min, max } => [min, max],
            Size::Mixture { usual, rare, .. } => [usual, rare],
        }
    }
}

impl ClientMessage {
    /// Reads a line.
    ///
    /// # Errors
    /// When it is no message, or a value is out of its range.
    pub fn read(line: &[u8]) -> Result<Self, MessageError> {
        let message: Self = serde_json::from_slice(line).map_err(|_| MessageError::Syntax)?;
        match &message {
            Self::Train(plan) => plan.check()?,
            Self::Topics(plan) => plan.check()?,
            Self::Prove { challenge, proof } => {
                within(challenge.len() == crate::token::CHALLENGE_CHARS && challenge.is_ascii(), "challenge")?;
                within(proof.len() <= 128 && proof.is_ascii(), "proof")?;
            }
            _ => {}
        }
        Ok(message)
    }
}

impl ServerMessage {
    /// Reads a line.
    ///
    /// # Errors
    /// When it is no message, or a value is out of its range.
    pub fn read(line: &[u8]) -> Result<Self, MessageError> {
        let message: Self = serde_json::from_slice(line).map_err(|_| MessageError::Syntax)?;
        match &message {
            Self::Hello { protocol, challenge, .. } => {
                if *protocol != PROTOCOL {
                    return Err(MessageError::Version(*protocol));
                }
                within(challenge.len() == crate::token::CHALLENGE_CHARS && challenge.is_ascii(), "challenge")?;
            }
            Self::Welcome { session, proof } => {
                within(session.len() == 16 && u64::from_str_radix(session, 16).is_ok(), "session")?;
                within(proof.len() <= 128 && proof.is_ascii(), "proof")?;
            }
            Self::Refuse { reason, .. } => {
                // It is shown to the user.
                within(reason.len() <= 500 && !reason.chars().any(char::is_control), "reason")?;
            }
            Self::Times { ns, .. } => within(ns.len() <= TIMES_MAX, "ns")?,
            Self::TopicEnd(end) => within(end.congestion.len() <= CONGESTION_CHARS_MAX, "congestion")?,
            _ => {}
        }
        Ok(message)
    }
}

/// A message as it is sent.
pub fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("invariant: a message has only text and numbers");
    line.push(b'\n');
    line
}

/// Bytes that came and were not read yet.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    /// No end of line is before this place.
    searched: usize,
}

impl Inbox {
    /// How many bytes it still takes.
    pub fn room(&self) -> usize {
        LINE_BYTES_MAX - self.bytes.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes what came; what is beyond [`Inbox::room`] is left out.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(self.room())]);
    }

    /// The next line without its end, if it has come whole.
    ///
    /// # Errors
    /// When it is too long; and as soon as it begins otherwise than an object, as another protocol's first bytes do.
    pub fn line(&mut self) -> Result<Option<Vec<u8>>, MessageError> {
        if self.bytes.first().is_some_and(|first| *first != b'{') {
            return Err(MessageError::Syntax);
        }
        let Some(end) = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.bytes.len();
            return if self.room() == 0 { Err(MessageError::Long) } else { Ok(None) };
        };
        let mut line: Vec<u8> = self.bytes.drain(..=self.searched + end).collect();
        line.pop();
        self.searched = 0;
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests;
