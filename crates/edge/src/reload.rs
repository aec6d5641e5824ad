//! Another configuration for a server that runs: what it takes as it is, and what it would have to be started again for.

use thalweg_model::{FrontConfig, HostSettings, ServeConfig, Setting, SocketSettings};

/// The configuration to go on with, and by their keys those parts of `new` that need a restart: they stay as they are.
pub(crate) fn merge(present: &ServeConfig, new: ServeConfig) -> (ServeConfig, Vec<String>) {
    let mut restart = Vec::new();
    let mut next = new;
    let mut keep = |key: &str, is_other: bool| {
        if is_other {
            restart.push(key.to_owned());
        }
        is_other
    };
    if keep("workers", next.workers != present.workers) {
        next.workers = present.workers;
    }
    if keep("rtmp.listen", next.rtmp != present.rtmp) {
        next.rtmp.clone_from(&present.rtmp);
    }
    if keep("http.listen", next.http.listen != present.http.listen) {
        next.http.listen.clone_from(&present.http.listen);
    }
    match (&mut next.https, &present.https) {
        (Some(next), Some(present)) => {
            if keep("https.listen", next.front.listen != present.front.listen) {
                next.front.listen.clone_from(&present.front.listen);
            }
        }
        (None, None) => {}
        _ => {
            keep("https", true);
            next.https.clone_from(&present.https);
        }
    }
    if keep("api.listen", next.api.listen != present.api.listen) {
        next.api.listen.clone_from(&present.api.listen);
    }
    if keep("tcp_route", next.routes != present.routes) {
        next.routes.clone_from(&present.routes);
    }
    if keep("journal", next.journal != present.journal) {
        next.journal.clone_from(&present.journal);
    }
    if keep("http.proxy_protocol", next.http.proxy_protocol != present.http.proxy_protocol) {
        next.http.proxy_protocol = present.http.proxy_protocol;
    }
    if let (Some(next), Some(present)) = (&mut next.https, &present.https)
        && keep("https.proxy_protocol", next.front.proxy_protocol != present.front.proxy_protocol)
    {
        next.front.proxy_protocol = present.front.proxy_protocol;
    }
    let tls = |config: &ServeConfig| config.https.as_ref().map(|tls| tls.front.clone()).unwrap_or_default();
    restart.extend(removed("http", &present.http, &next.http));
    restart.extend(removed("https", &tls(present), &tls(&next)));
    (next, restart)
}

/// Options that were set and are not given any more: what they were before, only a new socket has.
fn removed(name: &str, present: &FrontConfig, next: &FrontConfig) -> Vec<String> {
    let [was, is] = [&present.tcp, &next.tcp].map(names);
    was.into_iter().filter(|option| !is.contains(option)).map(|option| format!("{name}.tcp.{option}")).collect()
}

fn names(socket: &SocketSettings) -> Vec<String> {
    let settings = HostSettings { socket: socket.clone(), ..HostSettings::default() };
    let name = |setting| match setting {
        Setting::Socket(name) => Some(name),
        _ => None,
    };
    settings.given().into_iter().filter_map(|(setting, _)| name(setting)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(present: &str, new: &str) -> (ServeConfig, Vec<String>) {
        let parse = |text| thalweg_config::parse_serve("test", text).expect("read");
        merge(&parse(present), parse(new))
    }

    #[test]
    fn what_needs_a_restart_is_named_and_stays() {
        let (next, restart) = merged("", "[limits]\nstreams = 7\n[auth]\nplay_key = 'a-long-key'\n[hls]\nwindow = 9");
        assert!(restart.is_empty() && next.limits.streams == 7 && next.hls.window == 9 && next.auth.play_key.is_some());
        let (next, restart) = merged(
            "[http]\ntcp = { congestion = 'bbr', sndbuf = '1MiB' }",
            "workers = 3\n[http]\nlisten = '127.0.0.1:1'\ntcp = { sndbuf = '2MiB' }\n[https]\ncertificate = 'c'\nkey = 'k'\n\
             [rtmp]\nlisten = '127.0.0.1:2'\n[api]\nlisten = '127.0.0.1:3'\n[journal]\npath = 'x'\n[tcp_route]\ninitcwnd = 9",
        );
        let wanted = [
            "workers",
            "rtmp.listen",
            "http.listen",
            "https",
            "api.listen",
            "tcp_route",
            "journal",
            "http.tcp.congestion",
        ];
        assert_eq!(restart, wanted);
        let shipped = ServeConfig::default();
        assert_eq!((next.workers, next.rtmp, next.http.listen), (None, shipped.rtmp, shipped.http.listen));
        assert!(next.https.is_none() && next.journal.is_none() && next.api.listen == shipped.api.listen);
        assert_eq!(next.http.tcp.sndbuf.map(thalweg_units::Bytes::get), Some(2 << 20));
    }
}
