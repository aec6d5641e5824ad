//! The configuration of a server of live streams. Each field is a key; nearly all have a default.

mod keepalive;
mod limits;
mod log;
mod routes;
mod secret;
mod webhooks;

pub use keepalive::KeepAlive;
pub use limits::LimitsConfig;
pub use log::{LogConfig, LogFormat, LogLevel};
pub use routes::RoutesConfig;
pub use secret::Secret;
pub use webhooks::WebhooksConfig;

use crate::settings::SocketSettings;
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, de};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use thalweg_units::{Bytes, Span};

/// A server's configuration.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct ServeConfig {
    /// Threads that serve viewers; `None` is one for each processor.
    pub workers: Option<u16>,
    /// Proxies that are believed when they say whom they forward for.
    #[serde(deserialize_with = "networks")]
    pub trusted_proxies: Vec<IpNet>,
    /// Where encoders publish.
    #[serde(deserialize_with = "rtmp")]
    pub rtmp: Vec<SocketAddr>,
    /// Where viewers play without encryption, and the sockets' options there.
    pub http: FrontConfig,
    /// Where viewers play over TLS.
    pub https: Option<TlsConfig>,
    /// HLS.
    pub hls: HlsConfig,
    /// HTTP-FLV.
    pub flv: FlvConfig,
    /// What clients may take.
    pub limits: LimitsConfig,
    /// Who may publish and play.
    pub auth: AuthConfig,
    /// Where operators ask.
    pub api: ApiConfig,
    /// Who watched what.
    pub journal: Option<JournalConfig>,
    /// Applications that are asked and notified.
    pub webhooks: WebhooksConfig,
    /// What it says of itself.
    pub log: LogConfig,
    /// Initial windows of the host's routes.
    #[serde(rename = "tcp_route")]
    pub routes: Option<RoutesConfig>,
}

/// Listeners and the options of their sockets.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct FrontConfig {
    /// The addresses.
    #[serde(deserialize_with = "addresses")]
    pub listen: Vec<SocketAddr>,
    /// Each connection begins with a PROXY header (HAProxy's), and comes from a trusted proxy.
    pub proxy_protocol: bool,
    /// The options.
    pub tcp: SocketSettings,
    /// Probes of silent connections.
    pub keepalive: KeepAlive,
}

/// Listeners with TLS.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "TlsKeys")]
pub struct TlsConfig {
    /// Listeners and options.
    pub front: FrontConfig,
    /// The chain of certificates, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
}

/// HLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HlsConfig {
    /// A segment ends at the first keyframe after this.
    pub target: Span,
    /// Segments in a playlist.
    pub window: u32,
    /// A viewer without a request for this time has gone.
    pub expiry: Span,
}

/// HTTP-FLV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct FlvConfig {
    /// Most bytes kept of a stream for viewers that join or fall behind.
    pub cache: Bytes,
    /// Most time that is kept.
    pub cache_time: Span,
    /// A viewer that takes nothing for this time is closed.
    pub stall: Span,
    /// A viewer that joins between keyframes gets the pictures since the last one with compressed timestamps, and is live then;
    /// otherwise it stays behind by the time since the keyframe.
    pub catch_up: bool,
}

/// Who may publish and play.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct AuthConfig {
    /// What publishers give as `?key=`; without it anyone publishes.
    pub publish_key: Option<Secret>,
    /// What play tokens are signed with; without it anyone plays.
    pub play_key: Option<Secret>,
    /// A second publisher of a stream replaces the first, rather than being refused.
    pub take_over: bool,
}

/// Where operators ask.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ApiConfig {
    /// The addresses.
    #[serde(deserialize_with = "addresses")]
    pub listen: Vec<SocketAddr>,
    /// The token of `Authorization: Bearer`; without it every client that reaches the address is answered.
    pub token: Option<Secret>,
}

/// Who watched what.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct JournalConfig {
    /// The file; older ones have `.1`, `.2`, … behind it.
    pub path: PathBuf,
    /// A file's size before the next one begins.
    #[serde(default = "JournalConfig::size")]
    pub size: Bytes,
    /// Files kept, the present one included.
    #[serde(default = "JournalConfig::files")]
    pub files: u32,
}

impl Default for ServeConfig {
    fn default() -> Self {
        let any = |port| SocketAddr::from(([0, 0, 0, 0], port));
        Self {
            workers: None,
            trusted_proxies: Vec::new(),
            rtmp: vec![any(1935)],
            http: FrontConfig { listen: vec![any(8080)], tcp: viewer_socket(), ..FrontConfig::default() },
            https: None,
            hls: HlsConfig::default(),
            flv: FlvConfig::default(),
            limits: LimitsConfig::default(),
            auth: AuthConfig::default(),
            api: ApiConfig::default(),
            journal: None,
            webhooks: WebhooksConfig::default(),
            log: LogConfig::default(),
            routes: None,
        }
    }
}

/// Default options of viewers' sockets: a small unsent backlog, so that a slow viewer holds little memory.
fn viewer_socket() -> SocketSettings {
    SocketSettings { notsent_lowat: Some(Bytes::new(65_536)), nodelay: Some(true), ..SocketSettings::default() }
}

impl Default for HlsConfig {
    fn default() -> Self {
        Self { target: Span::from_millis(2_000), window: 6, expiry: Span::from_millis(30_000) }
    }
}

impl Default for FlvConfig {
    fn default() -> Self {
        Self {
            cache: Bytes::new(16 << 20),
            cache_time: Span::from_millis(20_000),
            stall: Span::from_millis(20_000),
            catch_up: true,
        }
    }
}

impl Default for ApiConfig {
    fn default() -> Self {
        Self { listen: vec![SocketAddr::from(([127, 0, 0, 1], 8090))], token: None }
    }
}

impl JournalConfig {
    const fn size() -> Bytes {
        Bytes::new(64 << 20)
    }

    const fn files() -> u32 {
        4
    }
}

/// The keys of `[https]`: those of a front, and of TLS.
#[derive(Deserialize)]
struct TlsKeys {
    #[serde(default, deserialize_with = "addresses")]
    listen: Vec<SocketAddr>,
    #[serde(default)]
    proxy_protocol: bool,
    #[serde(default)]
    tcp: SocketSettings,
    #[serde(default)]
    keepalive: KeepAlive,
    certificate: PathBuf,
    key: PathBuf,
}

impl From<TlsKeys> for TlsConfig {
    fn from(keys: TlsKeys) -> Self {
        let TlsKeys { listen, proxy_protocol, tcp, keepalive, certificate, key } = keys;
        Self { front: FrontConfig { listen, proxy_protocol, tcp, keepalive }, certificate, key }
    }
}

fn rtmp<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SocketAddr>, D::Error> {
    #[derive(Deserialize)]
    struct Keys {
        #[serde(deserialize_with = "addresses")]
        listen: Vec<SocketAddr>,
    }
    Ok(Keys::deserialize(deserializer)?.listen)
}

fn addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SocketAddr>, D::Error> {
    each(deserializer, |text| {
        let wrong = |_| format!("'{text}' is no address and port, such as 0.0.0.0:8080 or [::]:8080");
        SocketAddr::from_str(text).map(crate::canonical).map_err(wrong)
    })
}

fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    each(deserializer, |text| {
        let wrong = |_| format!("'{text}' is no network such as 10.0.0.0/8 or 2001:db8::1");
        IpNet::from_str(text)
            .or_else(|_| text.parse::<IpAddr>().map(|address| address.to_canonical().into()))
            .map_err(wrong)
    })
}

fn each<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| read(text).map_err(de::Error::custom)).collect()
}
