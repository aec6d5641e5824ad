//! The `[client]` and `[server]` of a scenario.

use super::unknown;
use crate::document::{DocumentError, NodeValue, Section};
use crate::settings::{HostSettings, RouteFeature, RouteSettings, SocketSettings};
use thalweg_units::{Bytes, Span};

/// The kernel's default, and the most it lets a socket have. Source: include/net/tcp.h, `TCP_RTO_MIN`, `TCP_DELACK_MAX`.
const SOCKET_TIMER_MAX: Span = Span::from_millis(200);
/// What `fastopen = true` lets wait.
const FASTOPEN_QUEUE: u32 = 1024;

pub(super) fn read(section: &Section<'_>) -> Result<HostSettings, DocumentError> {
    let mut host = HostSettings::default();
    if let Some(sysctl) = section.section("sysctl")? {
        for (key, node) in sysctl.entries() {
            let fine = key.starts_with("net.")
                && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
            if !fine || key.contains("..") {
                return Err(node.error(
                    format!("'{key}' is no network sysctl"),
                    Some("quote the whole name: sysctl.\"net.ipv4.tcp_rmem\" = \"4096 131072 6291456\"".to_owned()),
                ));
            }
            host.sysctl.insert(key.clone(), sysctl.require(key, sysctl.text(key)?)?.to_owned());
        }
    }
    if let Some(section) = section.section("route")? {
        host.route = route(&section)?;
        let saved = host.sysctl.get("net.ipv4.tcp_no_ssthresh_metrics_save").is_some_and(|value| value.trim() == "0");
        if host.route.ssthresh.is_some() && !saved {
            let mut error = section.error_at("ssthresh", "the kernel would ignore 'route.ssthresh'");
            error.hint = Some("add sysctl.\"net.ipv4.tcp_no_ssthresh_metrics_save\" = 0".to_owned());
            return Err(error);
        }
        section.finish()?;
    }
    if let Some(section) = section.section("socket")? {
        host.socket = socket(&section)?;
        section.finish()?;
    }
    section.finish()?;
    Ok(host)
}

fn route(section: &Section<'_>) -> Result<RouteSettings, DocumentError> {
    let positive = |key: &str| -> Result<Option<u32>, DocumentError> {
        match section.quantity(key)? {
            Some(0) => Err(section.error_at(key, format!("'route.{key}' must be more than nothing"))),
            value => Ok(value),
        }
    };
    let within = |key: &str, least: u32, most: u32| -> Result<Option<u32>, DocumentError> {
        match section.quantity::<u32>(key)? {
            Some(value) if !(least..=most).contains(&value) => {
                Err(section.error_at(key, format!("'route.{key}' of {value} is not between {least} and {most}")))
            }
            value => Ok(value),
        }
    };
    let rto_min = section.quantity::<Span>("rto_min")?;
    if let Some(span) = rto_min
        && (span == Span::ZERO || span.as_micros().div_ceil(1000) > u64::from(u32::MAX))
    {
        return Err(section.error_at("rto_min", format!("'route.rto_min' of {span} is not between 1ms and 4294967s")));
    }
    Ok(RouteSettings {
        initcwnd: positive("initcwnd")?,
        initrwnd: positive("initrwnd")?,
        cwnd: positive("cwnd")?,
        ssthresh: positive("ssthresh")?,
        rto_min,
        quickack: section.flag("quickack")?,
        congctl: section.text("congctl")?.map(str::to_owned),
        // The least IPv4 forwards, and the most the kernel takes. Source: net/ipv4/metrics.c.
        mtu: within("mtu", 68, 65_520)?,
        advmss: within("advmss", 1, 65_495)?,
        features: features(section)?,
    })
}

fn features(section: &Section<'_>) -> Result<Vec<RouteFeature>, DocumentError> {
    let words: Vec<&str> = match section.node("features").map(|node| (&node.value, node)) {
        None => return Ok(Vec::new()),
        Some((NodeValue::Text(text), _)) => text.split_whitespace().collect(),
        Some((NodeValue::List(nodes), _)) => nodes
            .iter()
            .map(|node| match &node.value {
                NodeValue::Text(text) => Ok(text.as_str()),
                _ => Err(node.error("a feature is a word", Some("known: ecn, tcp_usec_ts".to_owned()))),
            })
            .collect::<Result<_, _>>()?,
        Some((_, node)) => return Err(node.error("'route.features' must be a list of words", None)),
    };
    let mut found = Vec::new();
    for word in words {
        let names = RouteFeature::ALL.map(RouteFeature::name);
        let Some(feature) = RouteFeature::ALL.into_iter().find(|feature| feature.name() == word) else {
            return Err(unknown(section, "features", word, &names));
        };
        if !found.contains(&feature) {
            found.push(feature);
        }
    }
    Ok(found)
}

/// Reads the options of sockets.
pub(crate) fn socket(section: &Section<'_>) -> Result<SocketSettings, DocumentError> {
    let timer = |key: &str, least: Span, most: Span| -> Result<Option<Span>, DocumentError> {
        match section.quantity::<Span>(key)? {
            Some(span) if span < least || span > most => {
                Err(section.error_at(key, format!("'socket.{key}' of {span} is not between {least} and {most}")))
            }
            value => Ok(value),
        }
    };
    let fastopen = match section.node("fastopen").map(|node| &node.value) {
        None => None,
        Some(NodeValue::Flag(flag)) => Some(if *flag { FASTOPEN_QUEUE } else { 0 }),
        Some(_) => section.quantity("fastopen")?,
    };
    let window_clamp = section.quantity::<Bytes>("window_clamp")?;
    if window_clamp == Some(Bytes::new(0)) {
        return Err(section.error_at("window_clamp", "'socket.window_clamp' must be more than nothing"));
    }
    Ok(SocketSettings {
        congestion: section.text("congestion")?.map(str::to_owned),
        sndbuf: section.quantity("sndbuf")?,
        rcvbuf: section.quantity("rcvbuf")?,
        force: section.flag("force")?,
        notsent_lowat: section.quantity("notsent_lowat")?,
        nodelay: section.flag("nodelay")?,
        max_pacing_rate: section.quantity("max_pacing_rate")?,
        fastopen,
        window_clamp,
        rto_min: timer("rto_min", Span::from_micros(1), SOCKET_TIMER_MAX)?,
        delack_max: timer("delack_max", Span::from_micros(1), SOCKET_TIMER_MAX)?,
        user_timeout: timer("user_timeout", Span::from_millis(1), Span::from_millis(i32::MAX as u64))?,
        quickack: section.flag("quickack")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Node;

    fn host(text: &str) -> Result<HostSettings, DocumentError> {
        let node = Node::parse("x.toml", text).expect("TOML");
        read(&Section::new(&node, "server").expect("a table"))
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
            ("route.features = [1]", "a feature is a word", "known: ecn"),
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
