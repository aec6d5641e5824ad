//! Tests of reading the configuration of `serve`.

use super::*;
use thalweg_model::WebhooksConfig;
use thalweg_units::Bytes;

fn error(text: &str) -> String {
    parse_serve("edge.toml", text).expect_err(text).to_string()
}

#[test]
fn nothing_given_is_the_default() {
    assert_eq!(parse_serve("edge.toml", "").expect("read"), ServeConfig::default());
    assert_eq!(parse_serve("edge.toml", "[http.tcp]\n[hls]\n").expect("read"), ServeConfig::default());
}

#[test]
fn the_book_holds_every_key_as_shipped() {
    let book = include_str!("../../../../docs/serve.md");
    let text = book.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the keys");
    let fetch = |_: &SecretSource| Ok("a-long-secret".to_owned());
    let read = read_serve("serve.md", text, &fetch).expect("read");
    let shipped = ServeConfig::default();
    assert_eq!((read.http, read.hls, read.flv, read.limits), (shipped.http, shipped.hls, shipped.flv, shipped.limits));
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
    let config = parse_serve("edge.toml", text).expect("read");
    assert_eq!((config.workers, config.http.listen.len()), (Some(2), 2));
    assert_eq!(config.http.tcp.congestion.as_deref(), Some("bbr"));
    assert_eq!(config.http.tcp.notsent_lowat, Some(Bytes::new(65_536)));
    assert_eq!(config.https.expect("TLS").front.listen[0].port(), 8443);
    assert_eq!((config.hls.target, config.hls.window), (Span::from_millis(4_000), 3));
    assert_eq!(config.journal.expect("a journal").files, 2);
}

#[test]
fn an_address_of_ipv4_is_the_same_mapped_into_ipv6() {
    let text = "trusted_proxies = '::ffff:10.0.0.1'\n[api]\nlisten = '[::ffff:127.0.0.1]:8090'\n\
                [http]\nlisten = ['[::ffff:192.0.2.1]:80', '[fe80::1%3]:80', '[::1]:80']";
    let config = parse_serve("edge.toml", text).expect("read");
    assert_eq!(config.api.listen, ["127.0.0.1:8090".parse().expect("an address")]);
    let http: Vec<String> = config.http.listen.iter().map(ToString::to_string).collect();
    assert_eq!(http, ["192.0.2.1:80", "[fe80::1%3]:80", "[::1]:80"]);
    assert_eq!(config.trusted_proxies, ["10.0.0.1/32".parse().expect("a network")]);
}

#[test]
fn what_is_wrong_is_named() {
    for (text, problem) in [
        ("[htp]", "edge.toml:1: unknown key 'htp'\n\nhint: did you mean 'http'?"),
        ("[hls]\ntraget = '2s'", "edge.toml:2: unknown key 'hls.traget'\n\nhint: did you mean 'target'?"),
        ("[http]\nlisten = 'here'", "is no address and port"),
        ("[http]\nlisten = '127.0.0.1:1935'", "127.0.0.1:1935 is in use by rtmp.listen, which has 0.0.0.0:1935"),
        ("[http]\nlisten = ['[::]:80', '[::]:80']", "[::]:80 is in use by http.listen, which has [::]:80"),
        ("[api]\nlisten = '127.0.0.1:8080'", "127.0.0.1:8080 is in use by http.listen, which has 0.0.0.0:8080"),
        ("[http]\ntcp = { congestin = 'bbr' }", "unknown key 'http.tcp.congestin'"),
        ("[http]\ntcp = { force = true }", "tcp.force is of no use without tcp.sndbuf or tcp.rcvbuf"),
        ("[api]\nlisten = '[::ffff:192.0.2.1]:1'", "192.0.2.1:1 can be reached from elsewhere"),
        ("[http]\nlisten = '[::ffff:127.0.0.1]:1935'", "127.0.0.1:1935 is in use by rtmp.listen"),
        ("[hls]\nwindow = 2", "less than 3"),
        ("[hls]\nwindow = 100000", "edge.toml:2: window is more than 10000"),
        ("[hls]\ntarget = '2h'", "edge.toml:2: target is more than 60s"),
        ("workers = 0", "edge.toml:1: workers is less than 1"),
        ("[limits]\nhead = '10B'", "edge.toml:2: head is less than"),
        ("[limits]\ngop_bytes = '64'", "edge.toml:2: gop_bytes is less than"),
        ("[http]\nlisten = []", "edge.toml:2: http.listen and https.listen are empty: nobody could play"),
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
    let config = read_serve("edge.toml", text, &fetch).expect("read");
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
