//! What a capture shows of the protocols above TCP, as far as timing needs it: the TLS handshake, requests and responses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is known of the protocols above TCP.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Application {
    /// The name lookup that gave the server's address, where that ended up to a second before the connection began.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lookup: Option<NameLookup>,
    /// The TLS handshake, where there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tls: Option<TlsHandshake>,
    /// How long responses were waited for, where there was a request.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waits: Option<RequestWaits>,
    /// The requests in their order; of more than 1,000 the slowest.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    #[schemars(length(max = 1000))]
    pub requests: Vec<RequestTiming>,
}

/// A name lookup: all queries of a client for one name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NameLookup {
    /// The name.
    pub name: String,
    /// The first query, in seconds since the connection's first packet: below 0.
    #[schemars(extend("minimum" = null))]
    pub start_s: f64,
    /// From the first query to the latest answer before the connection.
    pub took_ms: f64,
    /// Queries sent again.
    pub again: u32,
}

/// A TLS handshake.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TlsHandshake {
    /// The ClientHello, in seconds since the connection's first packet.
    pub start_s: f64,
    /// From the ClientHello until both sides have changed their cipher, or the client's first application data; in TLS 1.3 its Finished is that.
    /// `None` if it was not seen to end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub handshake_ms: Option<f64>,
    /// `1.2` and the like, where the ServerHello was captured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
    /// The server's name that the client asks for (SNI).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server_name: Option<String>,
    /// Protocols that the client offers (ALPN), its first choice first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    #[schemars(length(max = 8))]
    pub offered: Vec<String>,
    /// The protocol that the server chose; TLS 1.3 encrypts it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub chosen: Option<String>,
}

/// How long the responses of a connection were waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestWaits {
    /// Requests.
    pub count: u64,
    /// Of these, requests that have no response.
    pub unanswered: u64,
    /// Of all, requests that are not listed.
    pub unlisted: u64,
    /// Median of the time from a request's last byte to the first of its response.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p50_ms: Option<f64>,
    /// What 90 % are at or below.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p90_ms: Option<f64>,
    /// The longest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_ms: Option<f64>,
}

/// A request and its response: of HTTP/1, or else a turn, data of the client after which the server answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestTiming {
    /// From 1, in order.
    #[schemars(range(min = 1))]
    pub number: u64,
    /// Number of its first packet in the file.
    pub packet: u64,
    /// Its first byte, in seconds since the connection's first packet.
    pub start_s: f64,
    /// Its method, if it is a request of HTTP/1 whose first line was captured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub method: Option<String>,
    /// The path, or host and port for CONNECT: at most 100 characters, never a query, path parameters or user information.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    /// The host it is for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<String>,
    /// The response's status code.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(range(min = 100, max = 999))]
    pub status: Option<u16>,
    /// From the request's first byte to its last.
    pub request_ms: f64,
    /// From the request's last byte to the first of the response; `None` if nothing answered.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub wait_ms: Option<f64>,
    /// From the first byte of the response to the last.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub transfer_ms: Option<f64>,
    /// Bytes of the request, as TCP carries them.
    pub bytes_up: u64,
    /// Bytes of the response.
    pub bytes_down: u64,
}

impl RequestTiming {
    /// From the first byte of the request to the last of the response, in milliseconds.
    pub fn total_ms(&self) -> f64 {
        self.request_ms + self.wait_ms.unwrap_or_default() + self.transfer_ms.unwrap_or_default()
    }

    /// What was asked for, or that it is a turn.
    pub fn name(&self) -> String {
        match (&self.method, &self.target) {
            (Some(method), Some(target)) => format!("{method} {target}"),
            _ => "(turn)".to_owned(),
        }
    }
}
