//! What a client asks for: the first document on the control channel.

use super::lenient::{flag, unsigned};
use super::refusal::Refusal;
use super::{
    MAX_BURST, MAX_OMIT_SECONDS, MAX_SECONDS, MAX_SEGMENT, MAX_STREAMS, MAX_TCP_LENGTH, MAX_UDP_LENGTH, MAX_WINDOW,
    MIN_UDP_LENGTH, TCP_LENGTH, UDP_LENGTH,
};
use serde_json::{Map, Value, json};

/// Longest title, extra data and name of a congestion control that is kept, in bytes.
const MAX_TEXT: usize = 1_024;

/// The transport of the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Senders {
    /// The client.
    Client,
    /// The server (`reverse`).
    Server,
    /// Both, each on streams of its own (`bidirectional`).
    Both,
}

impl Senders {
    /// Whether the client sends, and whether the server does.
    pub const fn ends(self) -> (bool, bool) {
        match self {
            Self::Client => (true, false),
            Self::Server => (false, true),
            Self::Both => (true, true),
        }
    }
}

/// When a test ends: at the first of these that is not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ending {
    /// After this many seconds (`time`), without those of `omit`.
    pub seconds: u64,
    /// After this many bytes were sent in a direction (`num`).
    pub bytes: u64,
    /// After this many blocks were sent in a direction (`blockcount`).
    pub blocks: u64,
    /// The seconds at the start that count for nothing (`omit`).
    pub omit_seconds: u64,
}

/// What the streams' sockets are opened with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SocketParameters {
    /// `SO_SNDBUF` and `SO_RCVBUF`, in bytes (`window`).
    pub window: Option<u64>,
    /// `TCP_CONGESTION`.
    pub congestion: Option<String>,
    /// `TCP_MAXSEG` (`MSS`).
    pub segment_bytes: Option<u32>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// The type of service (`TOS`).
    pub service: Option<u8>,
    /// `IP_MTU_DISCOVER` of UDP (`dont_fragment`).
    pub dont_fragment: bool,
}

/// How fast each stream sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pace {
    /// Bits per second (`bandwidth`); 0 is no limit.
    pub rate_bps: u64,
    /// `SO_MAX_PACING_RATE` in bits per second (`fqrate`); 0 is no limit.
    pub socket_rate_bps: u64,
    /// Blocks sent at once (`burst`); 0 where it was not asked for.
    pub burst: u32,
}

impl Pace {
    /// The lower of both limits in bits per second.
    pub fn limit_bps(&self) -> Option<u64> {
        [self.rate_bps, self.socket_rate_bps].into_iter().filter(|rate| *rate > 0).min()
    }
}

/// The parameters of a test. What has no effect here is left out: `pacing_timer`, `flowlabel`, `zerocopy`, `repeating_payload`,
/// `server_affinity`, `mptcp`, and how the client's UDP packets are gathered (`gso…`, `gro…`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    /// The streams' transport.
    pub transport: Transport,
    /// Who sends.
    pub senders: Senders,
    /// Streams of each direction (`parallel`).
    pub streams: u32,
    /// When it ends.
    pub ending: Ending,
    /// Bytes of a block, of UDP of a datagram (`len`).
    pub length: u32,
    /// How fast.
    pub pace: Pace,
    /// The sockets.
    pub socket: SocketParameters,
    /// Datagrams count in 64 bits, not 32 (`udp_counters_64bit`).
    pub wide_counters: bool,
    /// The receiver need not copy what it receives (`skip_rx_copy`).
    pub skip_copy: bool,
    /// The client wants the server's own output (`get_server_output`).
    pub wants_output: bool,
    /// A name of the test (`title`).
    pub title: Option<String>,
    /// Any text for the reports (`extra_data`).
    pub extra_data: Option<String>,
    /// The client's version (`client_version`, from 3.1 on).
    pub client_version: Option<String>,
}

impl Default for Parameters {
    /// Those of iperf3 without options.
    fn default() -> Self {
        Self {
            transport: Transport::Tcp,
            senders: Senders::Client,
            streams: 1,
            ending: Ending { seconds: 10, ..Ending::default() },
            length: TCP_LENGTH,
            pace: Pace::default(),
            socket: SocketParameters::default(),
            wide_counters: false,
            skip_copy: false,
            wants_output: false,
            title: None,
            extra_data: None,
            client_version: None,
        }
    }
}

impl Parameters {
    /// Reads the document of a client. Unknown keys are ignored, and each value may be written as any version writes it.
    ///
    /// # Errors
    /// The reason a server gives for a value that is out of iperf3's range.
    pub fn read(document: &Map<String, Value>) -> Result<Self, Refusal> {
        let set = |key: &str| document.get(key).is_some_and(flag);
        if set("sctp") {
            return Err(Refusal::Protocol);
        }
        let number = |key: &str, most: u64, refusal: Refusal| match document.get(key) {
            None | Some(Value::Null) => Ok(0),
            Some(value) => unsigned(value).filter(|number| *number <= most).ok_or(refusal),
        };
        let text = |key: &str| {
            let text = document.get(key)?.as_str()?;
            Some(text.chars().filter(|letter| !letter.is_control()).take(MAX_TEXT / 4).collect::<String>())
        };
        let transport = if set("udp") { Transport::Udp } else { Transport::Tcp };
        let senders = match (set("bidirectional"), set("reverse")) {
            (true, _) => Senders::Both,
            (false, true) => Senders::Server,
            (false, false) => Senders::Client,
        };
        let streams = if document.contains_key("parallel") {
            number("parallel", u64::from(MAX_STREAMS), Refusal::Streams)?
        } else {
            1
        };
        if streams == 0 {
            return Err(Refusal::Streams);
        }
        let ending = Ending {
            seconds: number("time", MAX_SECONDS, Refusal::Duration)?,
            bytes: number("num", u64::MAX, Refusal::Parameters)?,
            blocks: number("blockcount", u64::MAX, Refusal::Parameters)?,
            omit_seconds: number("omit", MAX_OMIT_SECONDS, Refusal::Omit)?,
        };
        let socket = SocketParameters {
            window: Some(number("window", MAX_WINDOW, Refusal::Window)?).filter(|bytes| *bytes > 0),
            congestion: text("congestion").filter(|name| !name.is_empty()),
            segment_bytes: Some(number("MSS", u64::from(MAX_SEGMENT), Refusal::Segment)? as u32).filter(|mss| *mss > 0),
            nodelay: set("nodelay"),
            service: Some(number("TOS", 255, Refusal::Service)? as u8).filter(|service| *service > 0),
            dont_fragment: set("dont_fragment"),
        };
        let pace = Pace {
            rate_bps: number("bandwidth", u64::MAX, Refusal::Parameters)?,
            socket_rate_bps: number("fqrate", u64::MAX, Refusal::Parameters)?,
            burst: number("burst", u64::from(MAX_BURST), Refusal::Burst)? as u32,
        };
        Ok(Self {
            transport,
            senders,
            streams: streams as u32,
            ending,
            length: length(transport, number("len", u64::MAX, Refusal::Length)?)?,
            pace,
            socket,
            wide_counters: set("udp_counters_64bit"),
            skip_copy: set("skip_rx_copy"),
            wants_output: set("get_server_output"),
            title: text("title"),
            extra_data: text("extra_data"),
            client_version: text("client_version"),
        })
    }

    /// The document that a client sends.
    pub fn document(&self) -> Value {
        let mut found = Map::new();
        let mut put = |key: &str, value: Value| found.insert(key.to_owned(), value);
        put(if self.transport == Transport::Udp { "udp" } else { "tcp" }, json!(true));
        put("omit", json!(self.ending.omit_seconds));
        put("time", json!(self.ending.seconds));
        put("num", json!(self.ending.bytes));
        put("blockcount", json!(self.ending.blocks));
        put("parallel", json!(self.streams));
        put("len", json!(self.length));
        match self.senders {
            Senders::Client => None,
            Senders::Server => put("reverse", json!(true)),
            Senders::Both => put("bidirectional", json!(true)),
        };
        for (key, number) in [
            ("MSS", u64::from(self.socket.segment_bytes.unwrap_or(0))),
            ("window", self.socket.window.unwrap_or(0)),
            ("bandwidth", self.pace.rate_bps),
            ("fqrate", self.pace.socket_rate_bps),
            ("burst", u64::from(self.pace.burst)),
            ("TOS", u64::from(self.socket.service.unwrap_or(0))),
            ("get_server_output", u64::from(self.wants_output)),
            ("udp_counters_64bit", u64::from(self.wide_counters)),
            ("dont_fragment", u64::from(self.socket.dont_fragment)),
            ("skip_rx_copy", u64::from(self.skip_copy)),
        ] {
            if number > 0 {
                put(key, json!(number));
            }
        }
        if self.socket.nodelay {
            put("nodelay", json!(true));
        }
        for (key, text) in [
            ("title", &self.title),
            ("extra_data", &self.extra_data),
            ("congestion", &self.socket.congestion),
            ("client_version", &self.client_version),
        ] {
            if let Some(text) = text {
                put(key, json!(text));
            }
        }
        Value::Object(found)
    }

    /// Bytes after which a direction has sent all, if that ends the test: of `num`, or of as many blocks.
    pub fn budget(&self) -> Option<u64> {
        let blocks = self.ending.blocks.saturating_mul(u64::from(self.length));
        [self.ending.bytes, blocks].into_iter().filter(|bytes| *bytes > 0).min()
    }
}

/// The length of a block that was asked for; 0 is the transport's own.
fn length(transport: Transport, asked: u64) -> Result<u32, Refusal> {
    let (own, range, refusal) = match transport {
        Transport::Tcp => (TCP_LENGTH, 1..=MAX_TCP_LENGTH, Refusal::Length),
        Transport::Udp => (UDP_LENGTH, MIN_UDP_LENGTH..=MAX_UDP_LENGTH, Refusal::DatagramLength),
    };
    match u32::try_from(asked) {
        Ok(0) => Ok(own),
        Ok(asked) if range.contains(&asked) => Ok(asked),
        _ => Err(refusal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(value: Value) -> Result<Parameters, Refusal> {
        Parameters::read(value.as_object().expect("an object"))
    }

    #[test]
    fn old_and_new_clients_are_understood() {
        let old =
            json!({"tcp": true, "omit": 0, "time": 10, "parallel": 1, "len": 131_072, "client_version": "3.0.11"});
        let old = read(old).expect("taken");
        assert_eq!((old.streams, old.length, old.ending.seconds), (1, 131_072, 10));
        let new = json!({
            "udp": 1, "omit": "2", "time": 5.0, "num": 0, "blockcount": 0, "parallel": 4.0, "bidirectional": "true", "len": 1448,
            "bandwidth": 1e9, "pacing_timer": 1000, "burst": 10, "gso": 0, "gso_dg_size": 0, "gso_bf_size": 65507, "gro": 0,
            "gro_bf_size": 65507, "TOS": 32, "flowlabel": 7, "title": "a\u{7}b", "extra_data": "x", "get_server_output": 1,
            "udp_counters_64bit": 1, "repeating_payload": 1, "zerocopy": 1, "dont_fragment": 1, "skip_rx_copy": 1,
            "server_affinity": 0, "mptcp": true, "authtoken": "x", "something_new": [1, {"a": null}], "client_version": "3.21"
        });
        let new = read(new).expect("taken");
        assert_eq!((new.transport, new.senders, new.streams), (Transport::Udp, Senders::Both, 4));
        assert_eq!((new.ending.omit_seconds, new.ending.seconds, new.pace.rate_bps), (2, 5, 1_000_000_000));
        assert_eq!((new.title.as_deref(), new.socket.service, new.pace.burst), (Some("ab"), Some(32), 10));
        assert!(new.wide_counters && new.skip_copy && new.wants_output && new.socket.dont_fragment);
    }

    #[test]
    fn what_is_out_of_range_is_refused_with_its_reason() {
        for (value, refusal) in [
            (json!({"parallel": 129}), Refusal::Streams),
            (json!({"parallel": 0}), Refusal::Streams),
            (json!({"time": 86_401}), Refusal::Duration),
            (json!({"time": -1}), Refusal::Duration),
            (json!({"omit": 601}), Refusal::Omit),
            (json!({"len": 1_048_577}), Refusal::Length),
            (json!({"udp": true, "len": 15}), Refusal::DatagramLength),
            (json!({"udp": true, "len": 65_508}), Refusal::DatagramLength),
            (json!({"window": 1u64 << 30}), Refusal::Window),
            (json!({"MSS": 40_000}), Refusal::Segment),
            (json!({"TOS": 256}), Refusal::Service),
            (json!({"burst": 1_001}), Refusal::Burst),
            (json!({"num": "many"}), Refusal::Parameters),
            (json!({"sctp": true}), Refusal::Protocol),
        ] {
            assert_eq!(read(value.clone()), Err(refusal), "{value}");
        }
    }

    proptest! {
        #[test]
        fn what_is_sent_reads_back(
            (udp, senders, streams, seconds, bytes) in (any::<bool>(), 0..3, 1..=MAX_STREAMS, 0..=MAX_SECONDS, any::<u64>()),
            (length, rate, window, mss, flags) in (16..=65_507u32, 0..1u64 << 53, 0..=MAX_WINDOW, 0..=MAX_SEGMENT, any::<[bool; 5]>()),
            title in prop::option::of("[ -~]{0,40}"),
        ) {
            let sent = Parameters {
                transport: if udp { Transport::Udp } else { Transport::Tcp },
                senders: [Senders::Client, Senders::Server, Senders::Both][senders as usize],
                streams,
                ending: Ending { seconds, bytes, blocks: bytes / 7, omit_seconds: seconds % 600 },
                length,
                pace: Pace { rate_bps: rate, socket_rate_bps: rate / 3, burst: streams },
                socket: SocketParameters {
                    window: Some(window).filter(|window| *window > 0),
                    congestion: Some("reno".to_owned()),
                    segment_bytes: Some(mss).filter(|mss| *mss > 0),
                    nodelay: flags[0],
                    service: Some(16),
                    dont_fragment: flags[1],
                },
                wide_counters: flags[2],
                skip_copy: flags[3],
                wants_output: flags[4],
                title,
                extra_data: None,
                client_version: Some("1".to_owned()),
            };
            prop_assert_eq!(read(sent.document()), Ok(sent));
        }
    }
}
