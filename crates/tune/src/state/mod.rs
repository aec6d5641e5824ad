//! What is known of one host's settings, from the host itself or from a pasted text.

mod parse;
mod parse_route;

pub use parse::{TEXT_MAX, parse};

use std::collections::BTreeMap;
use thalweg_model::since::Release;

/// One host's settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostState {
    /// Release of its kernel, where it is known.
    pub kernel: Option<Release>,
    /// Sysctls in the order they were read; one can be there more than once.
    pub sysctls: Vec<Sysctl>,
    /// Routes.
    pub routes: Vec<Route>,
    /// Connections.
    pub sockets: Vec<Socket>,
    /// Queueing disciplines: device and kind.
    pub qdiscs: Vec<(String, String)>,
    /// Memory of the host, in bytes.
    pub memory_bytes: Option<u64>,
}

/// A sysctl that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl {
    /// Its dotted name.
    pub name: String,
    /// Its value, with single spaces.
    pub value: String,
    /// Its line in a text, from 1.
    pub line: Option<usize>,
}

/// A route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Route {
    /// `default`, or an address and the bits of its prefix.
    pub to: String,
    /// Preference: the route with the least is taken.
    pub metric: u64,
    /// Gateway.
    pub via: Option<String>,
    /// Device.
    pub dev: Option<String>,
    /// Type of service of the packets that take it; 0 is any.
    pub tos: u8,
    /// It is of IPv6.
    pub ipv6: bool,
    /// Its link is down.
    pub link_down: bool,
    /// It goes away by itself, as those that a router announced.
    pub expires: bool,
    /// The route without its attributes as words of an `ip route` command; `None` where it has a part that is not written.
    pub words: Option<String>,
    /// Attributes that bear on TCP, by their `ip route` names; a locked one's value begins with `lock `.
    pub attributes: BTreeMap<String, String>,
    /// Its line in a text, from 1.
    pub line: Option<usize>,
}

/// A connection, as `ss -ti` shows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Socket {
    /// Its ends, where the line before showed them.
    pub ends: Option<String>,
    /// Congestion control.
    pub congestion: Option<String>,
    /// Both ends have a window scale.
    pub scaled: bool,
    /// It has a pacing rate.
    pub paced: bool,
    /// Part of the busy time in which the receiver's window was full, in percent.
    pub receive_window_limited: Option<f64>,
    /// Part of the busy time in which the send buffer was full, in percent.
    pub send_buffer_limited: Option<f64>,
    /// Its line in a text, from 1.
    pub line: Option<usize>,
}

impl HostState {
    /// The sysctl as it was read last: that one holds.
    pub fn sysctl(&self, name: &str) -> Option<&Sysctl> {
        self.sysctls.iter().rev().find(|sysctl| sysctl.name == name)
    }

    /// The route to exactly this destination that packets take: its link is up, and its metric is the least. `default` is IPv4's, or
    /// IPv6's where IPv4 has none; `::/0` is IPv6's.
    pub fn route_to(&self, destination: &str) -> Option<&Route> {
        let found = self.routes.iter().filter(|route| !route.link_down && route.is_to(destination));
        // Packets of TCP have no type of service unless a program sets one.
        found.min_by_key(|route| (route.ipv6, route.tos, route.metric))
    }
}

impl Route {
    fn is_to(&self, destination: &str) -> bool {
        if destination == "::/0" { self.to == "default" && self.ipv6 } else { self.to == destination }
    }

    /// As `ip route` prints it, as far as that distinguishes routes.
    pub fn title(&self) -> String {
        let via = self.via.as_ref().map(|via| format!(" via {via}")).unwrap_or_default();
        let dev = self.dev.as_ref().map(|dev| format!(" dev {dev}")).unwrap_or_default();
        let metric = if self.metric > 0 { format!(" metric {}", self.metric) } else { String::new() };
        format!("{}{via}{dev}{metric}", self.to)
    }
}

#[cfg(test)]
mod tests;
