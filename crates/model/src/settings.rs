//! What is set on a host: sysctls, route metrics, socket options.

use crate::remedy::Setting;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::collections::BTreeMap;
use std::fmt;
use thalweg_units::{Bytes, Rate, Span};

/// The settings of one host; what is `None` or absent stays at the kernel's default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSettings {
    /// Sysctls by their dotted names, such as `net.ipv4.tcp_rmem`.
    pub sysctl: BTreeMap<String, String>,
    /// Metrics of the route to the other host.
    pub route: RouteSettings,
    /// Options of every socket the workload opens on this host.
    pub socket: SocketSettings,
}

/// Metrics of a route (`ip route … initcwnd 40`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteSettings {
    /// Initial congestion window, in segments.
    pub initcwnd: Option<u32>,
    /// Initial receive window, in segments.
    pub initrwnd: Option<u32>,
    /// Bound of the congestion window, in segments.
    ///
    /// The kernel takes it, and `ssthresh`, from its cache of TCP metrics, where a host is once a connection to it has
    /// ended. Source: net/ipv4/tcp_metrics.c, `tcp_init_metrics`.
    pub cwnd: Option<u32>,
    /// Slow-start threshold connections begin with, in segments; only with `net.ipv4.tcp_no_ssthresh_metrics_save` at 0.
    pub ssthresh: Option<u32>,
    /// Smallest retransmission timeout, in whole milliseconds, rounded up.
    pub rto_min: Option<Span>,
    /// Acknowledge every segment at once.
    pub quickack: Option<bool>,
    /// Congestion control of connections over this route.
    pub congctl: Option<String>,
    /// Largest IP packet sent over this route, in bytes.
    pub mtu: Option<u32>,
    /// Largest TCP payload the other host is asked to send, in bytes.
    pub advmss: Option<u32>,
    /// What connections over this route may use.
    pub features: Vec<RouteFeature>,
}

/// Something connections over a route may use (`ip route … features ecn`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteFeature {
    /// Explicit congestion notification, whatever `net.ipv4.tcp_ecn` is.
    Ecn,
    /// TCP timestamps in microseconds instead of milliseconds.
    TcpUsecTs,
}

impl RouteFeature {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Ecn, Self::TcpUsecTs];

    /// The name `ip route` gives it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ecn => "ecn",
            Self::TcpUsecTs => "tcp_usec_ts",
        }
    }
}

/// Options of a socket.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketSettings {
    /// `TCP_CONGESTION`.
    pub congestion: Option<String>,
    /// `SO_SNDBUF`: the kernel takes at most `net.core.wmem_max` of it, doubles that and stops auto-tuning.
    pub sndbuf: Option<Bytes>,
    /// `SO_RCVBUF`: the kernel takes at most `net.core.rmem_max` of it, doubles that and stops auto-tuning.
    pub rcvbuf: Option<Bytes>,
    /// Sets both buffers by `SO_SNDBUFFORCE` and `SO_RCVBUFFORCE`, which a privileged program may: no limit applies.
    #[serde(default)]
    pub force: Option<bool>,
    /// `TCP_NOTSENT_LOWAT`.
    pub notsent_lowat: Option<Bytes>,
    /// `TCP_NODELAY`.
    pub nodelay: Option<bool>,
    /// `SO_MAX_PACING_RATE`.
    pub max_pacing_rate: Option<Rate>,
    /// Fast Open: `TCP_FASTOPEN` with this many half-open connections on a listener; `TCP_FASTOPEN_CONNECT`, unless 0, on a
    /// client. Both need their bit of `net.ipv4.tcp_fastopen`.
    #[serde(deserialize_with = "fastopen")]
    pub fastopen: Option<u32>,
    /// `TCP_WINDOW_CLAMP`: bound of the window that is advertised.
    pub window_clamp: Option<Bytes>,
    /// `TCP_RTO_MIN_US`.
    pub rto_min: Option<Span>,
    /// `TCP_DELACK_MAX_US`: how long an acknowledgement may be delayed.
    pub delack_max: Option<Span>,
    /// `TCP_USER_TIMEOUT`: how long data may go unacknowledged before the connection breaks, in whole milliseconds.
    pub user_timeout: Option<Span>,
    /// `TCP_QUICKACK`, set as the connection begins; the kernel leaves it by itself once data goes both ways. For a whole
    /// connection use the route's.
    pub quickack: Option<bool>,
}

/// What `fastopen = true` lets wait.
const FASTOPEN_QUEUE: u32 = 1024;

/// Reads a number of half-open connections; `true` is the usual number and `false` is none.
fn fastopen<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    struct Queue;

    impl de::Visitor<'_> for Queue {
        type Value = Option<u32>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number, true or false")
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Self::Value, E> {
            Ok(Some(if flag { FASTOPEN_QUEUE } else { 0 }))
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
            u32::try_from(number).map(Some).map_err(E::custom)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            text.parse().map(Some).map_err(E::custom)
        }
    }
    deserializer.deserialize_any(Queue)
}

impl HostSettings {
    /// Every setting that is given, with its value.
    pub fn given(&self) -> Vec<(Setting, String)> {
        fn show<T: ToString>(value: &Option<T>) -> Option<String> {
            value.as_ref().map(ToString::to_string)
        }
        let Self { sysctl, route, socket } = self;
        let features: Vec<&str> = route.features.iter().map(|feature| feature.name()).collect();
        let route = [
            ("initcwnd", show(&route.initcwnd)),
            ("initrwnd", show(&route.initrwnd)),
            ("cwnd", show(&route.cwnd)),
            ("ssthresh", show(&route.ssthresh)),
            ("rto_min", show(&route.rto_min)),
            ("quickack", show(&route.quickack)),
            ("congctl", route.congctl.clone()),
            ("mtu", show(&route.mtu)),
            ("advmss", show(&route.advmss)),
            ("features", (!features.is_empty()).then(|| features.join(" "))),
        ];
        let socket = [
            ("congestion", socket.congestion.clone()),
            ("sndbuf", show(&socket.sndbuf)),
            ("rcvbuf", show(&socket.rcvbuf)),
            ("force", show(&socket.force)),
            ("notsent_lowat", show(&socket.notsent_lowat)),
            ("nodelay", show(&socket.nodelay)),
            ("max_pacing_rate", show(&socket.max_pacing_rate)),
            ("fastopen", show(&socket.fastopen)),
            ("window_clamp", show(&socket.window_clamp)),
            ("rto_min", show(&socket.rto_min)),
            ("delack_max", show(&socket.delack_max)),
            ("user_timeout", show(&socket.user_timeout)),
            ("quickack", show(&socket.quickack)),
        ];
        let sysctl = sysctl.iter().map(|(name, value)| (Setting::Sysctl(name.clone()), value.clone()));
        let route = route.into_iter().filter_map(|(name, value)| Some((Setting::Route(name.to_owned()), value?)));
        let socket = socket.into_iter().filter_map(|(name, value)| Some((Setting::Socket(name.to_owned()), value?)));
        sysctl.chain(route).chain(socket).collect()
    }
}
