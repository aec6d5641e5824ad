//! Which hosts there are, and what joins them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thalweg_units::{Bytes, Rate};

/// Which hosts there are, and what joins them. There is one server in any case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// Number of clients, at least 1.
    pub clients: u32,
    /// What is between them and the server.
    pub between: Between,
    /// Each host's own network card; `None` is one without a rate. At a switch it has the rate of the ports unless the scenario says otherwise.
    pub nic: Option<Nic>,
}

/// What is between clients and server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Between {
    /// One path that all clients share, its bottleneck included: a household, an office.
    Shared,
    /// A path for each client on its own: viewers all over a country.
    Own,
    /// A switch all hosts are plugged into.
    Switch(Switch),
}

/// A switch that stores and forwards; each port sends at its rate, and what waits is held in its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// Rate of each port.
    pub rate: Rate,
    /// Bytes the switch can hold.
    pub buffer: Bytes,
    /// Whether all ports share the buffer; each has one of its own otherwise.
    pub shared: bool,
    /// Bytes every frame costs on the wire besides its Ethernet header.
    pub overhead: u16,
}

/// A host's own network card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// Its rate.
    pub rate: Rate,
    /// Packets its queue holds: Linux's `txqueuelen` unless something else is said.
    #[serde(default = "Nic::packets")]
    pub packets: u32,
    /// Bytes every frame costs on the wire besides its Ethernet header.
    #[serde(default)]
    pub overhead: u16,
}

impl Nic {
    /// A card at a switch's port: it has the port's rate.
    pub const fn of(switch: &Switch) -> Self {
        Self { rate: switch.rate, packets: Self::packets(), overhead: switch.overhead }
    }

    const fn packets() -> u32 {
        1000
    }
}

/// A host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostName {
    /// The server.
    Server,
    /// A client, counted from 1.
    Client(u32),
}

impl Default for Topology {
    fn default() -> Self {
        Self { clients: 1, between: Between::Shared, nic: None }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server => f.write_str("server"),
            Self::Client(1) => f.write_str("client"),
            Self::Client(number) => write!(f, "client{number}"),
        }
    }
}

impl FromStr for HostName {
    type Err = String;

    /// Reads `server`, `client` (the first), `client3`.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = match text {
            "server" => return Ok(Self::Server),
            "client" => Some(1),
            other => other.strip_prefix("client").and_then(|digits| digits.parse().ok()).filter(|number| *number > 0),
        };
        number.map(Self::Client).ok_or_else(|| format!("'{text}' is no host; write server, client, client2, client3 …"))
    }
}

impl Serialize for HostName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
