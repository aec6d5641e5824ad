//! How a server of live streams is set up; every key has a default, and one that is not known is refused.

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
pub use secret::{FetchSecret, Secret, SecretSource};
pub use webhooks::WebhooksConfig;

use crate::document::{DocumentError, Node, Section};
use crate::scenario::read_socket;
use crate::settings::SocketSettings;
use ipnet::IpNet;
use secret::secret;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use thalweg_units::{Bytes, Span};

/// A server's configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ServeConfig {
    /// Threads that serve viewers; `None` is one for each processor.
    pub workers: Option<u16>,
    /// Proxies that are believed when they say whom they forward for.
    pub trusted_proxies: Vec<IpNet>,
    /// Where encoders publish.
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
    pub routes: Option<RoutesConfig>,
}

/// Listeners and the options of their sockets.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FrontConfig {
    /// The addresses.
    pub listen: Vec<SocketAddr>,
    /// Each connection begins with a PROXY header (HAProxy's), and comes from a trusted proxy.
    pub proxy_protocol: bool,
    /// The options.
    pub tcp: SocketSettings,
    /// Probes of silent connections.
    pub keepalive: KeepAlive,
}

/// Listeners with TLS.
#[derive(Debug, Clone, PartialEq)]
pub struct TlsConfig {
    /// Listeners and options.
    pub front: FrontConfig,
    /// The chain of certificates, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
}

/// HLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HlsConfig {
    /// A segment ends at the first keyframe after this.
    pub target: Span,
    /// Segments in a playlist.
    pub window: u32,
    /// A viewer without a request for this time has gone.
    pub expiry: Span,
}

/// HTTP-FLV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthConfig {
    /// What publishers give as `?key=`; without it anyone publishes.
    pub publish_key: Option<Secret>,
    /// What play tokens are signed with; without it anyone plays.
    pub play_key: Option<Secret>,
    /// A second publisher of a stream replaces the first, rather than being refused.
    pub take_over: bool,
}

/// Where operators ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiConfig {
    /// The addresses.
    pub listen: Vec<SocketAddr>,
    /// The token of `Authorization: Bearer`; without it every client that reaches the address is answered.
    pub token: Option<Secret>,
}

/// Who watched what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalConfig {
    /// The file; older ones have `.1`, `.2`, … behind it.
    pub path: PathBuf,
    /// A file's size before the next one begins.
    pub size: Bytes,
    /// Files kept, the present one included.
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
            hls: HlsConfig { target: Span::from_millis(2_000), window: 6, expiry: Span::from_millis(30_000) },
            flv: FlvConfig {
                cache: Bytes::new(16 << 20),
                cache_time: Span::from_millis(20_000),
                stall: Span::from_millis(20_000),
                catch_up: true,
            },
            limits: LimitsConfig::default(),
            auth: AuthConfig::default(),
            api: ApiConfig { listen: vec![SocketAddr::from(([127, 0, 0, 1], 8090))], token: None },
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

impl ServeConfig {
    /// Reads a TOML text that holds its secrets itself; `name` is what errors call it.
    ///
    /// # Errors
    /// The line, what is wrong with it, and the nearest key there is.
    pub fn parse(name: &str, text: &str) -> Result<Self, DocumentError> {
        Self::read(name, text, &|_| Err("nothing is fetched here".to_owned()))
    }

    /// Reads a TOML text; secrets that are kept elsewhere are fetched.
    ///
    /// # Errors
    /// The line, what is wrong with it, and the nearest key there is. No secret is in it.
    pub fn read(name: &str, text: &str, fetch: &FetchSecret<'_>) -> Result<Self, DocumentError> {
        let node = Node::parse(name, text).map_err(without_values)?;
        let root = Section::new(&node, "")?;
        let mut config = Self::default();
        config.workers = root.quantity("workers")?.or(config.workers);
        config.trusted_proxies = networks(&root, "trusted_proxies")?;
        if let Some(section) = root.section("rtmp")? {
            set(&mut config.rtmp, addresses(&section, "listen")?);
            section.finish()?;
        }
        if let Some(section) = root.section("http")? {
            front(&section, &config.trusted_proxies, &mut config.http)?;
            section.finish()?;
        }
        if let Some(section) = root.section("https")? {
            config.https = Some(TlsConfig::read(&section, &config.trusted_proxies)?);
        }
        if let Some(section) = root.section("hls")? {
            let hls = &mut config.hls;
            set(&mut hls.target, time(&section, "target")?);
            set(&mut hls.window, at_least(&section, "window", 3)?);
            set(&mut hls.expiry, time(&section, "expiry")?);
            section.finish()?;
        }
        if let Some(section) = root.section("flv")? {
            let flv = &mut config.flv;
            set(&mut flv.cache, section.quantity("cache")?);
            set(&mut flv.cache_time, time(&section, "cache_time")?);
            set(&mut flv.stall, time(&section, "stall")?);
            set(&mut flv.catch_up, section.flag("catch_up")?);
            section.finish()?;
        }
        if let Some(section) = root.section("limits")? {
            config.limits.read(&section)?;
        }
        if let Some(section) = root.section("auth")? {
            config.auth.publish_key = secret(&section, "publish_key", fetch)?;
            config.auth.play_key = secret(&section, "play_key", fetch)?;
            set(&mut config.auth.take_over, section.flag("take_over")?);
            section.finish()?;
        }
        if let Some(section) = root.section("api")? {
            config.api.read(&section, fetch)?;
        }
        if let Some(section) = root.section("journal")? {
            config.journal = Some(JournalConfig::read(&section)?);
        }
        if let Some(section) = root.section("webhooks")? {
            config.webhooks.read(&section, fetch)?;
        }
        if let Some(section) = root.section("tcp_route")? {
            config.routes = Some(RoutesConfig::read(&section)?);
        }
        if let Some(section) = root.section("log")? {
            config.log.read(&section)?;
        }
        root.finish()?;
        Ok(config)
    }
}

impl TlsConfig {
    fn read(section: &Section<'_>, trusted: &[IpNet]) -> Result<Self, DocumentError> {
        let listen = vec![SocketAddr::from(([0, 0, 0, 0], 8443))];
        let mut own = FrontConfig { listen, tcp: viewer_socket(), ..FrontConfig::default() };
        front(section, trusted, &mut own)?;
        let (certificate, key) = (section.text("certificate")?, section.text("key")?);
        let certificate = section.require("certificate", certificate)?.into();
        let key = section.require("key", key)?.into();
        section.finish()?;
        Ok(Self { front: own, certificate, key })
    }
}

impl ApiConfig {
    fn read(&mut self, section: &Section<'_>, fetch: &FetchSecret<'_>) -> Result<(), DocumentError> {
        set(&mut self.listen, addresses(section, "listen")?);
        self.token = secret(section, "token", fetch)?;
        let open = self.listen.iter().find(|address| !address.ip().is_loopback());
        if let (Some(address), None) = (open, &self.token) {
            return Err(section
                .error_at("listen", format!("{address} can be reached from elsewhere, and api.token is not set")));
        }
        section.finish()
    }
}

impl JournalConfig {
    fn read(section: &Section<'_>) -> Result<Self, DocumentError> {
        let path = section.text("path")?;
        let mut journal = Self { path: section.require("path", path)?.into(), size: Bytes::new(64 << 20), files: 4 };
        set(&mut journal.size, section.quantity("size")?);
        set(&mut journal.files, at_least(section, "files", 1)?);
        section.finish()?;
        Ok(journal)
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn front(section: &Section<'_>, trusted: &[IpNet], into: &mut FrontConfig) -> Result<(), DocumentError> {
    set(&mut into.listen, addresses(section, "listen")?);
    set(&mut into.proxy_protocol, section.flag("proxy_protocol")?);
    if into.proxy_protocol && trusted.is_empty() {
        return Err(
            section.error_at("proxy_protocol", "proxy_protocol is of no use while trusted_proxies names nobody")
        );
    }
    into.keepalive.read(section)?;
    if let Some(tcp) = section.section("tcp")? {
        let given = read_socket(&tcp)?;
        if given.quickack.is_some() {
            return Err(
                tcp.error_at("quickack", "tcp.quickack is of no use on a listener: the kernel leaves it by itself")
            );
        }
        tcp.finish()?;
        let shipped = std::mem::take(&mut into.tcp);
        into.tcp = SocketSettings {
            notsent_lowat: given.notsent_lowat.or(shipped.notsent_lowat),
            nodelay: given.nodelay.or(shipped.nodelay),
            ..given
        };
    }
    Ok(())
}

fn addresses(section: &Section<'_>, key: &str) -> Result<Option<Vec<SocketAddr>>, DocumentError> {
    let wrong = |text: &str| format!("'{text}' is no address and port, such as 0.0.0.0:8080 or [::]:8080");
    let Some(texts) = section.texts(key)? else { return Ok(None) };
    let read = |text: &&str| SocketAddr::from_str(text).map_err(|_| section.error_at(key, wrong(text)));
    texts.iter().map(read).collect::<Result<_, _>>().map(Some)
}

fn networks(section: &Section<'_>, key: &str) -> Result<Vec<IpNet>, DocumentError> {
    let read = |text: &&str| {
        let one = || text.parse::<IpAddr>().map(IpNet::from);
        let wrong = |_| section.error_at(key, format!("'{text}' is no network such as 10.0.0.0/8 or 2001:db8::1"));
        IpNet::from_str(text).or_else(|_| one()).map_err(wrong)
    };
    section.texts(key)?.unwrap_or_default().iter().map(read).collect()
}

fn time(section: &Section<'_>, key: &str) -> Result<Option<Span>, DocumentError> {
    let span: Option<Span> = section.quantity(key)?;
    match span {
        Some(span) if span < Span::from_millis(100) => Err(section.error_at(key, format!("{key} is less than 100ms"))),
        span => Ok(span),
    }
}

fn at_least(section: &Section<'_>, key: &str, least: u32) -> Result<Option<u32>, DocumentError> {
    let number: Option<u32> = section.quantity(key)?;
    match number {
        Some(number) if number < least => Err(section.error_at(key, format!("{key} is less than {least}"))),
        number => Ok(number),
    }
}

/// An error that quotes a line of the file, without what is assigned there: it may be a secret.
fn without_values(mut error: DocumentError) -> DocumentError {
    if let Some(at) = error.problem.find(" in '")
        && let Some(end) = error.problem[at + 5..].find(['=', '\'', '"'])
    {
        error.problem.truncate(at + 5 + end);
        error.problem.push_str("…'");
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        ServeConfig::parse("edge.toml", text).expect_err(text).to_string()
    }

    #[test]
    fn nothing_given_is_the_default() {
        assert_eq!(ServeConfig::parse("edge.toml", "").expect("read"), ServeConfig::default());
        assert_eq!(ServeConfig::parse("edge.toml", "[http.tcp]\n[hls]\n").expect("read"), ServeConfig::default());
    }

    #[test]
    fn the_book_holds_every_key_as_shipped() {
        let book = include_str!("../../../../docs/serve.md");
        let text = book.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the keys");
        let fetch = |_: &SecretSource| Ok("a-long-secret".to_owned());
        let read = ServeConfig::read("serve.md", text, &fetch).expect("read");
        let shipped = ServeConfig::default();
        assert_eq!(
            (read.http, read.hls, read.flv, read.limits),
            (shipped.http, shipped.hls, shipped.flv, shipped.limits)
        );
        let hooks = WebhooksConfig {
            on_publish: read.webhooks.on_publish.clone(),
            on_play: read.webhooks.on_play.clone(),
            on_stop: read.webhooks.on_stop.clone(),
            on_unpublish: read.webhooks.on_unpublish.clone(),
            secret: read.webhooks.secret.clone(),
            ..shipped.webhooks
        };
        assert_eq!((&read.webhooks, read.log), (&hooks, shipped.log));
        assert!(hooks.on_publish.is_some() && hooks.on_stop.is_some() && hooks.secret.is_some());
        assert_eq!(
            read.routes.map(|routes| (routes.initcwnd, routes.state)),
            Some((Some(30), "/run/thalweg-routes".into()))
        );
        assert!(read.rtmp == shipped.rtmp && read.api.listen == shipped.api.listen && read.journal.is_some());
    }

    #[test]
    fn what_is_given_is_kept() {
        let text = "workers = 2\n[http]\nlisten = ['[::]:80', '0.0.0.0:80']\ntcp = { congestion = 'bbr', sndbuf = '128KiB' }\n\
                    [https]\ncertificate = 'c.pem'\nkey = 'k.pem'\n[hls]\ntarget = '4s'\nwindow = 3\n[auth]\nplay_key = 'a-long-key'\n\
                    [journal]\npath = '/x'\nfiles = 2";
        let config = ServeConfig::parse("edge.toml", text).expect("read");
        assert_eq!((config.workers, config.http.listen.len()), (Some(2), 2));
        assert_eq!(config.http.tcp.congestion.as_deref(), Some("bbr"));
        assert_eq!(config.http.tcp.notsent_lowat, Some(Bytes::new(65_536)));
        assert_eq!(config.https.expect("TLS").front.listen[0].port(), 8443);
        assert_eq!((config.hls.target, config.hls.window), (Span::from_millis(4_000), 3));
        assert_eq!(config.journal.expect("a journal").files, 2);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, problem) in [
            ("[htp]", "edge.toml:1: unknown key 'htp'\n\nhint: did you mean 'http'?"),
            ("[hls]\ntraget = '2s'", "edge.toml:2: unknown key 'hls.traget'\n\nhint: did you mean 'target'?"),
            ("[http]\nlisten = 'here'", "is no address and port"),
            ("[http]\ntcp = { congestin = 'bbr' }", "unknown key 'http.tcp.congestin'"),
            ("[hls]\nwindow = 2", "less than 3"),
            ("[hls]\ntarget = '1ms'", "less than 100ms"),
            ("[https]\ncertificate = 'c'", "'https.key' is missing"),
            ("[api]\nlisten = '0.0.0.0:1'", "0.0.0.0:1 can be reached from elsewhere, and api.token is not set"),
            ("[auth]\nplay_key = 'short'", "fewer than 8"),
            ("workers = -1", "cannot be read"),
            ("[http]\nkeepalive = { idle = '0s' }", "idle is not between 1s and 32767s"),
            ("[http.keepalive]\ncount = 200", "count is more than 127"),
            ("trusted_proxies = ['10.0.0.0/33']", "is no network such as"),
            ("[https]\ncertificate = 'c'\nkey = 'k'\nproxy_protocol = true", "trusted_proxies names nobody"),
            ("[webhooks]\non_play = 'ftp://x'", "no URL such as http"),
            ("[webhooks]\non_play = 'http://'", "no URL such as http"),
            ("[webhooks]\nfail = 'ajar'", "fail is 'open' or 'closed'"),
            ("[webhooks]\nretries = 11", "more than 10"),
            ("[webhooks]\non_pley = 'http://a'", "did you mean 'on_play'"),
            ("[tcp_route]\ninitcwnd = 0", "initcwnd is 0"),
            ("[tcp_route]\ninitcwnd = 2000", "more than 1000"),
            ("[tcp_route]\ninitcwd = 30", "did you mean 'initcwnd'"),
            ("[tcp_route]", "has neither initcwnd nor initrwnd"),
            ("[limits]\npublish_bitrate = 'much'", "'limits.publish_bitrate' cannot be read"),
            ("[log]\nlevel = 'loud'", "it is error, warn, info or debug"),
            ("[log]\nformat = 'xml'", "it is text or json"),
            ("[auth]\nplay_key = { file = 'a', env = 'b' }", "has one of 'file' and 'env'"),
            ("[auth]\nplay_key = { fil = 'a' }", "has one of 'file' and 'env'"),
            ("[auth]\nplay_key = { file = 'a' }", "play_key cannot be had: nothing is fetched here"),
        ] {
            assert!(error(text).contains(problem), "{text}: {}", error(text));
        }
    }

    #[test]
    fn a_secret_is_fetched_and_never_seen() {
        let text = "[auth]\npublish_key = { file = '/run/key' }\nplay_key = { env = 'KEY' }\n[api]\ntoken = 'the-third-secret'\n\
                    [webhooks]\non_play = 'http://u:the-fourth-secret@h/'\nsecret = 'the-fifth-secret'";
        let fetch = |source: &SecretSource| match source {
            SecretSource::File(path) if path.ends_with("key") => Ok("the-first-secret".to_owned()),
            SecretSource::Env(name) if name == "KEY" => Ok("the-second-secret".to_owned()),
            other => Err(format!("{other:?}")),
        };
        let config = ServeConfig::read("edge.toml", text, &fetch).expect("read");
        assert_eq!(config.auth.publish_key.as_deref(), Some("the-first-secret"));
        assert_eq!(config.auth.play_key.as_deref(), Some("the-second-secret"));
        let seen = format!("{config:?} {config:#?}");
        assert!(!seen.contains("-secret"), "{seen}");
        // A line that cannot be read is quoted, but not what is assigned in it.
        let broken = error("[auth]\nplay_key = 'my-own-secret");
        assert!(broken.contains("in 'play_key") && !broken.contains("my-own-secret"), "{broken}");
        let broken = error("[auth]\nplay_key 'my-own-secret'");
        assert!(!broken.contains("my-own-secret"), "{broken}");
    }
}
