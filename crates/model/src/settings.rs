//! What is set on a host: sysctls, route metrics, socket options.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::{Bytes, Rate, Span};

/// The settings of one host; what is `None` or absent stays at the kernel's default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
pub struct RouteSettings {
    /// Initial congestion window, in segments.
    pub initcwnd: Option<u32>,
    /// Initial receive window, in segments.
    pub initrwnd: Option<u32>,
    /// Smallest retransmission timeout.
    pub rto_min: Option<Span>,
    /// Acknowledge every segment at once.
    pub quickack: Option<bool>,
    /// Congestion control of connections over this route.
    pub congctl: Option<String>,
}

/// Options of a socket.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SocketSettings {
    /// `TCP_CONGESTION`.
    pub congestion: Option<String>,
    /// `SO_SNDBUF`; the kernel doubles it and stops auto-tuning.
    pub sndbuf: Option<Bytes>,
    /// `SO_RCVBUF`; the kernel doubles it and stops auto-tuning.
    pub rcvbuf: Option<Bytes>,
    /// `TCP_NOTSENT_LOWAT`.
    pub notsent_lowat: Option<Bytes>,
    /// `TCP_NODELAY`.
    pub nodelay: Option<bool>,
    /// `SO_MAX_PACING_RATE`.
    pub max_pacing_rate: Option<Rate>,
}
