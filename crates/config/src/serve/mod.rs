//! The configuration of `serve`: the fields of [`ServeConfig`], secrets that are kept elsewhere, and the bounds of values.

use crate::deserialize::deserialize;
use crate::node::{ConfigError, Node, NodeValue};
use crate::scenario::check_socket;
use std::net::SocketAddr;
use std::path::PathBuf;
use thalweg_model::{FrontConfig, KeepAlive, ServeConfig};
use thalweg_units::{Bytes, Span};

/// Keys of secrets, each a text, `{ file = … }` or `{ env = … }`.
const SECRETS: [&str; 4] = ["auth.publish_key", "auth.play_key", "api.token", "webhooks.secret"];
/// Keys of URLs, which may hold a password.
const URLS: [&str; 4] = ["on_publish", "on_play", "on_stop", "on_unpublish"];
const SECRET_BYTES_MIN: usize = 8;
/// Shorter times are slips of the unit.
const TIME_MIN: Span = Span::from_millis(100);
/// Longer segments are slips of the unit: a player is three of them behind (RFC 8216 §6.3.3).
const TARGET_MAX: Span = Span::from_millis(60_000);
/// Most segments in a playlist: players fetch all of it for each segment. The test `what_is_wrong_is_named`.
const WINDOW_MAX: u32 = 10_000;
/// Less than the head of a short request to a name of one letter: every player would be refused. The test `what_is_wrong_is_named`.
const HEAD_MIN: Bytes = Bytes::new(128);
/// Less than a keyframe: every publisher would be closed. The test `what_is_wrong_is_named`.
const GOP_MIN: Bytes = Bytes::new(16 << 10);
/// Past this, in segments, a first flight is a burst that any queue drops.
const INITIAL_WINDOW_MAX: u32 = 1_000;
/// Defaults that depend on the listener, laid below what is given.
const LISTENERS: &str = "[http]\nlisten = '0.0.0.0:8080'\ntcp = { notsent_lowat = 65536, nodelay = true }\n\
                         [https]\nlisten = '0.0.0.0:8443'\ntcp = { notsent_lowat = 65536, nodelay = true }\n";

/// Where a secret is kept when the configuration does not hold it itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A file with nothing else in it.
    File(PathBuf),
    /// A variable of the environment.
    Env(String),
}

/// Fetches a secret, or says why it cannot be had.
pub type FetchSecret<'a> = dyn Fn(&SecretSource) -> Result<String, String> + 'a;

/// Reads a configuration that holds its secrets itself; `name` is what errors call it.
///
/// # Errors
/// The line, what is wrong with it, and the nearest key there is.
pub fn parse_serve(name: &str, text: &str) -> Result<ServeConfig, ConfigError> {
    read_serve(name, text, &|_| Err("nothing is fetched here".to_owned()))
}

/// Reads a configuration; secrets that are kept elsewhere are fetched.
///
/// # Errors
/// The line, what is wrong with it, and the nearest key there is. No secret is in it.
pub fn read_serve(name: &str, text: &str, fetch: &FetchSecret<'_>) -> Result<ServeConfig, ConfigError> {
    let mut node = Node::parse(name, text).map_err(without_values)?;
    for key in SECRETS {
        fetch_secret(&mut node, key, fetch)?;
    }
    let mut listeners = Node::parse("defaults", LISTENERS)?;
    for table in ["http", "https"] {
        if let (Some(given), Some(shipped)) = (node.get_mut(table), listeners.get_mut(table)) {
            shipped.overlay(given);
            shipped.place = given.place.clone();
            std::mem::swap(given, shipped);
        }
    }
    let config: ServeConfig = deserialize(&node, "")?;
    check(&node, &config)?;
    Ok(config)
}

/// Replaces a secret that is kept elsewhere by its text.
fn fetch_secret(root: &mut Node, key: &str, fetch: &FetchSecret<'_>) -> Result<(), ConfigError> {
    let (table, name) = key.split_once('.').unwrap_or(("", key));
    let Some(node) = root.get_mut(table).and_then(|table| table.get_mut(name)) else { return Ok(()) };
    if let NodeValue::Table(entries) = &node.value {
        let texts: Vec<(&str, &NodeValue)> = entries.iter().map(|(name, node)| (name.as_str(), &node.value)).collect();
        let source = match texts.as_slice() {
            [("file", NodeValue::Text(path))] => SecretSource::File(path.into()),
            [("env", NodeValue::Text(variable))] => SecretSource::Env(variable.clone()),
            _ => return Err(node.error(format!("{name} is a text, or has one of 'file' and 'env'"), None)),
        };
        let text = fetch(&source).map_err(|why| node.error(format!("{name} cannot be had: {why}"), None))?;
        node.value = NodeValue::Text(text);
    }
    match &node.value {
        NodeValue::Text(text) | NodeValue::Number(text) if text.len() < SECRET_BYTES_MIN => {
            Err(node.error(format!("{name} has fewer than {SECRET_BYTES_MIN} characters"), None))
        }
        _ => Ok(()),
    }
}

fn check(root: &Node, config: &ServeConfig) -> Result<(), ConfigError> {
    let refuse = |key: &str, problem: String| Err(root.at(key).error(problem, None));
    let ServeConfig { hls, flv, limits, webhooks, .. } = config;
    check_front(root, "http", &config.http, config)?;
    if let Some(https) = &config.https {
        check_front(root, "https", &https.front, config)?;
    }
    for (key, time) in [
        ("hls.target", hls.target),
        ("hls.expiry", hls.expiry),
        ("flv.cache_time", flv.cache_time),
        ("flv.stall", flv.stall),
        ("limits.publish_silence", limits.publish_silence),
        ("limits.publish_return", limits.publish_return),
        ("limits.gop", limits.gop),
        ("limits.head_time", limits.head_time),
        ("limits.keep_alive", limits.keep_alive),
        ("limits.write_stall", limits.write_stall),
        ("webhooks.timeout", webhooks.timeout),
    ] {
        if time < TIME_MIN {
            return refuse(key, format!("{} is less than {TIME_MIN}", last(key)));
        }
    }
    for (key, number, least, most) in [
        ("workers", config.workers.map_or(1, u32::from), 1, u32::MAX),
        ("hls.window", hls.window, 3, WINDOW_MAX),
        ("limits.connections", limits.connections, 1, u32::MAX),
        ("limits.per_address", limits.per_address, 1, u32::MAX),
        ("limits.viewers", limits.viewers, 1, u32::MAX),
        ("limits.viewers_per_address", limits.viewers_per_address, 1, u32::MAX),
        ("limits.request_rate", limits.request_rate, 1, u32::MAX),
        ("limits.streams", limits.streams, 1, u32::MAX),
        ("journal.files", config.journal.as_ref().map_or(1, |journal| journal.files), 1, u32::MAX),
        ("webhooks.retries", webhooks.retries, 0, 10),
        ("webhooks.queue", webhooks.queue, 1, u32::MAX),
        ("webhooks.connections", webhooks.connections, 1, 64),
        ("log.rate", config.log.rate, 1, u32::MAX),
    ] {
        within(root, key, number, least, most)?;
    }
    if hls.target > TARGET_MAX {
        return refuse("hls.target", format!("target is more than {TARGET_MAX}"));
    }
    for (key, bytes, least) in [("limits.head", limits.head, HEAD_MIN), ("limits.gop_bytes", limits.gop_bytes, GOP_MIN)]
    {
        if bytes < least {
            return refuse(key, format!("{} is less than {least}", last(key)));
        }
    }
    if config.http.listen.is_empty() && config.https.as_ref().is_none_or(|https| https.front.listen.is_empty()) {
        return refuse("http.listen", "http.listen and https.listen are empty: nobody could play".to_owned());
    }
    let open = config.api.listen.iter().find(|address| !address.ip().is_loopback());
    if let (Some(address), None) = (open, &config.api.token) {
        return refuse("api.listen", format!("{address} can be reached from elsewhere, and api.token is not set"));
    }
    check_addresses(root, config)?;
    let urls = [&webhooks.on_publish, &webhooks.on_play, &webhooks.on_stop, &webhooks.on_unpublish];
    for (key, url) in URLS.into_iter().zip(urls) {
        if url.as_deref().is_some_and(|url| !is_url(url)) {
            let problem = format!("{key} is no URL such as http://127.0.0.1:9000/hook");
            return refuse(&format!("webhooks.{key}"), problem);
        }
    }
    if let Some(routes) = &config.routes {
        for (key, window) in [("tcp_route.initcwnd", routes.initcwnd), ("tcp_route.initrwnd", routes.initrwnd)] {
            match window {
                Some(0) => return refuse(key, format!("{} is 0", last(key))),
                Some(window) => within(root, key, window, 1, INITIAL_WINDOW_MAX)?,
                None => {}
            }
        }
        if routes.initcwnd.is_none() && routes.initrwnd.is_none() {
            return refuse("tcp_route", "tcp_route has neither initcwnd nor initrwnd".to_owned());
        }
    }
    Ok(())
}

/// Refuses an address that two listeners have: the kernel would give each of them a part of the connections.
fn check_addresses(root: &Node, config: &ServeConfig) -> Result<(), ConfigError> {
    let https = config.https.as_ref().map_or(&[][..], |https| &https.front.listen);
    let tables =
        [("rtmp", &config.rtmp[..]), ("http", &config.http.listen), ("https", https), ("api", &config.api.listen)];
    let mut before: Vec<(&str, SocketAddr)> = Vec::new();
    for (table, addresses) in tables {
        // Port 0 is any free one.
        for &address in addresses.iter().filter(|address| address.port() != 0) {
            let covers =
                |one: SocketAddr, other: SocketAddr| one.ip().is_unspecified() && one.is_ipv4() == other.is_ipv4();
            let meets = |&&(of, other): &&(&str, SocketAddr)| {
                let overlaps = of != table && (covers(address, other) || covers(other, address));
                address == other || address.port() == other.port() && overlaps
            };
            if let Some((of, other)) = before.iter().find(meets) {
                let problem = format!("{address} is in use by {of}.listen, which has {other}");
                return Err(root.at(&format!("{table}.listen")).error(problem, None));
            }
            before.push((table, address));
        }
    }
    Ok(())
}

fn check_front(root: &Node, table: &str, front: &FrontConfig, config: &ServeConfig) -> Result<(), ConfigError> {
    let node = root.at(table);
    if front.proxy_protocol && config.trusted_proxies.is_empty() {
        let problem = "proxy_protocol is of no use while trusted_proxies names nobody";
        return Err(node.at("proxy_protocol").error(problem, None));
    }
    if front.tcp.quickack.is_some() {
        let problem = "tcp.quickack is of no use on a listener: the kernel leaves it by itself";
        return Err(node.at("tcp.quickack").error(problem, None));
    }
    if front.tcp.force == Some(true) && front.tcp.sndbuf.is_none() && front.tcp.rcvbuf.is_none() {
        let problem = "tcp.force is of no use without tcp.sndbuf or tcp.rcvbuf, whose sizes it forces";
        return Err(node.at("tcp.force").error(problem, None));
    }
    check_socket(node.at("tcp"), &front.tcp)?;
    let KeepAlive { idle, interval, count } = front.keepalive;
    // Source: include/net/tcp.h, MAX_TCP_KEEPIDLE, MAX_TCP_KEEPINTVL and MAX_TCP_KEEPCNT.
    for (key, time) in [("keepalive.idle", idle), ("keepalive.interval", interval)] {
        if !(1.0..=32_767.0).contains(&time.as_secs_f64()) {
            return Err(node.at(key).error(format!("{} is not between 1s and 32767s", last(key)), None));
        }
    }
    within(node, "keepalive.count", count, 1, 127)
}

fn within(node: &Node, key: &str, number: u32, least: u32, most: u32) -> Result<(), ConfigError> {
    let refuse = |problem: String| Err(node.at(key).error(problem, None));
    match number {
        few if few < least => refuse(format!("{} is less than {least}", last(key))),
        many if many > most => refuse(format!("{} is more than {most}", last(key))),
        _ => Ok(()),
    }
}

/// The last part of a dotted key.
fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    !host.rsplit('@').next().unwrap_or_default().is_empty()
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// An error that quotes a line of the file, without what is assigned there: it may be a secret.
fn without_values(mut error: ConfigError) -> ConfigError {
    if let Some(at) = error.problem.find(" in '")
        && let Some(end) = error.problem[at + 5..].find(['=', '\'', '"'])
    {
        error.problem.truncate(at + 5 + end);
        error.problem.push_str("…'");
    }
    error
}

#[cfg(test)]
mod tests;
