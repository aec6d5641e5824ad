//! The `[client]` and `[server]` of a scenario: the fields of [`HostSettings`], and the bounds of their values.

use crate::deserialize::deserialize;
use crate::node::{ConfigError, Node, NodeValue};
use thalweg_model::{HostSettings, RouteSettings, SocketSettings};
use thalweg_units::{Bytes, Span};

/// The kernel's default, and the most it lets a socket have. Source: include/net/tcp.h, `TCP_RTO_MIN`, `TCP_DELACK_MAX`.
const SOCKET_TIMER_MAX: Span = Span::from_millis(200);

pub(super) fn read(node: &Node, title: &str) -> Result<HostSettings, ConfigError> {
    if let Some(NodeValue::Table(sysctls)) = node.get("sysctl").map(|node| &node.value) {
        sysctls.iter().try_for_each(|(name, node)| check_sysctl(name, node))?;
    }
    let mut host: HostSettings = deserialize(node, title)?;
    let mut features = Vec::new();
    for feature in std::mem::take(&mut host.route.features) {
        if !features.contains(&feature) {
            features.push(feature);
        }
    }
    host.route.features = features;
    check_route(node.at("route"), &host.route)?;
    let saved = host.sysctl.get("net.ipv4.tcp_no_ssthresh_metrics_save").is_some_and(|value| value.trim() == "0");
    if host.route.ssthresh.is_some() && !saved {
        let hint = "add sysctl.\"net.ipv4.tcp_no_ssthresh_metrics_save\" = 0".to_owned();
        return Err(node.at("route.ssthresh").error("the kernel would ignore 'route.ssthresh'", Some(hint)));
    }
    check_socket(node.at("socket"), &host.socket)?;
    Ok(host)
}

fn check_sysctl(name: &str, node: &Node) -> Result<(), ConfigError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if name.starts_with("net.") && name.bytes().all(is_plain) && !name.contains("..") {
        return Ok(());
    }
    let hint = "quote the whole name: sysctl.\"net.ipv4.tcp_rmem\" = \"4096 131072 6291456\"".to_owned();
    Err(node.error(format!("'{name}' is no network sysctl"), Some(hint)))
}

fn check_route(node: &Node, route: &RouteSettings) -> Result<(), ConfigError> {
    let windows = [
        ("initcwnd", route.initcwnd),
        ("initrwnd", route.initrwnd),
        ("cwnd", route.cwnd),
        ("ssthresh", route.ssthresh),
    ];
    if let Some((key, _)) = windows.into_iter().find(|(_, packets)| *packets == Some(0)) {
        return Err(node.at(key).error(format!("'route.{key}' must be more than nothing"), None));
    }
    // The least IPv4 forwards, and the most the kernel takes. Source: net/ipv4/metrics.c.
    for (key, value, least, most) in [("mtu", route.mtu, 68, 65_520), ("advmss", route.advmss, 1, 65_495)] {
        if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
            let problem = format!("'route.{key}' of {value} is not between {least} and {most}");
            return Err(node.at(key).error(problem, None));
        }
    }
    let is_out_of_range = |span: &Span| *span == Span::ZERO || span.as_micros().div_ceil(1000) > u64::from(u32::MAX);
    if let Some(span) = route.rto_min.filter(is_out_of_range) {
        let problem = format!("'route.rto_min' of {span} is not between 1ms and 4294967s");
        return Err(node.at("rto_min").error(problem, None));
    }
    Ok(())
}

/// Checks the bounds of socket options; `node` is their table.
pub(crate) fn check_socket(node: &Node, socket: &SocketSettings) -> Result<(), ConfigError> {
    for (key, value, least, most) in [
        ("rto_min", socket.rto_min, Span::from_micros(1), SOCKET_TIMER_MAX),
        ("delack_max", socket.delack_max, Span::from_micros(1), SOCKET_TIMER_MAX),
        ("user_timeout", socket.user_timeout, Span::from_millis(1), Span::from_millis(i32::MAX as u64)),
    ] {
        if let Some(span) = value.filter(|span| *span < least || *span > most) {
            let problem = format!("'socket.{key}' of {span} is not between {least} and {most}");
            return Err(node.at(key).error(problem, None));
        }
    }
    if socket.window_clamp == Some(Bytes::new(0)) {
        return Err(node.at("window_clamp").error("'socket.window_clamp' must be more than nothing", None));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_model::RouteFeature;

    fn host(text: &str) -> Result<HostSettings, ConfigError> {
        read(&Node::parse("x.toml", text).expect("TOML"), "server")
    }

    #[test]
    fn every_key_is_read() {
        let text = r#"
            sysctl."net.ipv4.tcp_no_ssthresh_metrics_save" = 0
            route = { initcwnd = 10, initrwnd = 11, cwnd = 12, ssthresh = 13, rto_min = "10ms", quickack = true, congctl = "bbr", mtu = 1400, advmss = 1300, features = ["ecn"] }
            socket = { congestion = "cubic", sndbuf = 1, rcvbuf = 2, notsent_lowat = 3, nodelay = true, max_pacing_rate = "1mbit", fastopen = true, window_clamp = "64KiB", rto_min = "5ms", delack_max = "1ms", user_timeout = "3s", quickack = false }
        "#;
        let found = host(text).expect("valid");
        assert_eq!(found.given().len(), 23);
        assert_eq!(found.socket.fastopen, Some(1024));
        assert_eq!(host("route.features = \"ecn tcp_usec_ts ecn\"").expect("valid").route.features, RouteFeature::ALL);
        assert_eq!(host("socket.fastopen = 3").expect("valid").socket.fastopen, Some(3));
    }

    #[test]
    fn values_out_of_range_are_refused_with_what_to_do() {
        for (text, problem, hint) in [
            ("route.rto_min = \"5000000s\"", "'server.route.rto_min'", ""),
            ("route.rto_min = 0", "not between 1ms", ""),
            ("route.features = [\"ecm\"]", "'ecm' is no features", "did you mean 'ecn'?"),
            ("route.features = [1]", "'1' is no features", "known: ecn"),
            ("route.mtu = 40", "'route.mtu' of 40 is not between 68 and 65520", ""),
            ("route.ssthresh = 10", "would ignore", "tcp_no_ssthresh_metrics_save"),
            ("route.cwnd = 0", "more than nothing", ""),
            ("route.initcwd = 10", "unknown key", "did you mean 'initcwnd'?"),
            ("socket.rto_min = \"1s\"", "not between 1us and 200ms", ""),
            ("socket.user_timeout = \"10us\"", "not between 1ms", ""),
            ("socket.fastopen = \"many\"", "cannot be read", ""),
            ("socket.window_clamp = 0", "more than nothing", ""),
        ] {
            let error = host(text).expect_err(text);
            let all = format!("{} {}", error.problem, error.hint.unwrap_or_default());
            let wanted = problem.trim_start_matches("'server.");
            assert!(all.contains(wanted) && all.contains(hint), "{text}: {all}");
        }
    }
}
