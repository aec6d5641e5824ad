//! Options and routes as this machine's kernel reads them back, and their effect.

use super::*;
use crate::link::{self, End};
use crate::namespaces::inside;
use crate::netns::NetNs;
use crate::tcp_info::TcpInfo;
use crate::{route, sysctl};
use thalweg_model::{RouteFeature, RouteSettings};
use thalweg_units::{Bytes, Rate, Span};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 1);

/// A server and a client with a router between them; the server's route has metrics.
fn hosts(metrics: &RouteSettings) -> [NetNs; 3] {
    let names = ["server", "router", "client"];
    let [server, router, client] = names.map(|name| NetNs::create(name).expect("a namespace"));
    let end = |ns, name, address: Ipv4Addr| {
        let [.., net, host] = address.octets();
        End { ns, name, mac: [2, 0, 0, 0, net, host], address }
    };
    let gateways = [Ipv4Addr::new(10, 0, 1, 254), Ipv4Addr::new(10, 0, 2, 254)];
    link::connect(&end(&server, "eth0", SERVER), &end(&router, "a", gateways[0]), 1500).expect("joined");
    link::connect(&end(&router, "b", gateways[1]), &end(&client, "eth0", CLIENT), 1500).expect("joined");
    router.run(|| sysctl::write("net.ipv4.ip_forward", "1")).expect("routes");
    server.run(|| route::add(Ipv4Addr::UNSPECIFIED, 0, gateways[0], metrics)).expect("a route");
    client.run(|| route::add(Ipv4Addr::UNSPECIFIED, 0, gateways[1], &RouteSettings::default())).expect("a route");
    for ns in [&server, &router, &client] {
        ns.run(link::wait_until_operational).expect("operational");
    }
    [server, router, client]
}

/// Tries again each millisecond, for a second.
fn until<T>(mut act: impl FnMut() -> Option<T>) -> T {
    let again = || {
        act().or_else(|| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            None
        })
    };
    std::iter::repeat_with(again).take(1000).flatten().next().expect("in time")
}

/// One connection, the first bytes of which the client sends; the listener stays.
fn join(listener: &Tcp, client: &NetNs, settings: &SocketSettings, first: &[u8]) -> (Tcp, Tcp) {
    let to = SocketAddrV4::new(SERVER, 5201);
    let near = client.run(|| Tcp::connect(to, settings)).expect("connecting");
    assert_eq!(until(|| near.send(first).ok().flatten()), first.len());
    let far = until(|| listener.accept().expect("accepting"));
    (near, far)
}

#[test]
fn a_route_tells_back_its_metrics() {
    inside("socket::tests::a_route_tells_back_its_metrics", || {
        let metrics = RouteSettings {
            initcwnd: Some(20),
            initrwnd: Some(21),
            cwnd: Some(40),
            ssthresh: Some(30),
            rto_min: Some(Span::from_micros(9_500)),
            quickack: Some(true),
            congctl: Some("reno".to_owned()),
            mtu: Some(1400),
            advmss: Some(1300),
            features: vec![RouteFeature::Ecn],
        };
        let [server, _router, _client] = hosts(&metrics);
        let found = server.run(|| route::metrics(CLIENT)).expect("read");
        for (name, value) in [
            ("initcwnd", "20"),
            ("initrwnd", "21"),
            ("cwnd", "40"),
            ("ssthresh", "30"),
            ("rto_min", "10ms"),
            ("quickack", "1"),
            ("congctl", "reno"),
            ("mtu", "1400"),
            ("advmss", "1300"),
            ("features", "ecn"),
        ] {
            assert_eq!(found.get(name).map(String::as_str), Some(value), "{name} of {found:?}");
        }
    });
}

#[test]
fn a_socket_tells_back_its_options() {
    inside("socket::tests::a_socket_tells_back_its_options", || {
        link::set_up(link::LOOPBACK).expect("up");
        let settings = SocketSettings {
            nodelay: Some(true),
            max_pacing_rate: Some(Rate::from_bits_per_second(8_000_000)),
            window_clamp: Some(Bytes::new(20_000)),
            user_timeout: Some(Span::from_millis(1500)),
            quickack: Some(false),
            ..SocketSettings::default()
        };
        let listener = Tcp::listen(5201, &settings).expect("listening");
        let found = listener.read_back().expect("read");
        for (key, value) in [
            ("nodelay", "1"),
            ("max_pacing_rate", "8mbit"),
            ("window_clamp", "20000"),
            ("user_timeout", "1.5s"),
            ("fastopen", "0"),
        ] {
            assert_eq!(found.get(key).map(String::as_str), Some(value), "{key} of {found:?}");
        }
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 5201);
        let _near = Tcp::connect(to, &SocketSettings::default()).expect("connecting");
        let far = until(|| listener.accept().expect("accepting"));
        let found = far.read_back().expect("read");
        assert_eq!((found["quickack"].as_str(), found["user_timeout"].as_str()), ("0", "1.5s"), "{found:?}");
    });
}

#[test]
fn timers_are_set_or_refused_with_the_first_kernel() {
    inside("socket::tests::timers_are_set_or_refused_with_the_first_kernel", || {
        let settings = SocketSettings {
            rto_min: Some(Span::from_millis(20)),
            delack_max: Some(Span::from_millis(40)),
            ..SocketSettings::default()
        };
        match Tcp::listen(5201, &settings) {
            Ok(listener) => {
                let found = listener.read_back().expect("read");
                assert_eq!((found["rto_min"].as_str(), found["delack_max"].as_str()), ("20ms", "40ms"));
            }
            Err(error) => {
                let text = error.to_string();
                let wanted = "cannot set TCP_RTO_MIN_US to 20000: this is Linux 6.";
                let first = "Linux 6.15 is the first that has it";
                assert!(text.starts_with(wanted) && text.ends_with(first), "{text}");
            }
        }
    });
}

#[test]
fn a_fast_open_carries_data_in_the_second_syn() {
    inside("socket::tests::a_fast_open_carries_data_in_the_second_syn", || {
        let [server, _router, client] = hosts(&RouteSettings::default());
        let settings = SocketSettings { fastopen: Some(16), ..SocketSettings::default() };
        server.run(|| sysctl::write("net.ipv4.tcp_fastopen", "1")).expect("set");
        let refused = server.run(|| Tcp::listen(5201, &settings)).expect_err("a listener needs 2").to_string();
        assert!(refused.contains("a listener needs 2 in net.ipv4.tcp_fastopen, which is 1"), "{refused}");
        server.run(|| sysctl::write("net.ipv4.tcp_fastopen", "3")).expect("set");
        let listener = server.run(|| Tcp::listen(5201, &settings)).expect("listening");
        assert_eq!(listener.read_back().expect("read")["fastopen"], "16");
        for carried in ["false", "true"] {
            let (near, far) = join(&listener, &client, &settings, b"hello");
            assert_eq!(until(|| far.discard(100).expect("received")), 5);
            assert_eq!(near.read_back().expect("read")["fastopen"], carried);
        }
    });
}

#[test]
fn a_route_clamps_the_window_once_its_metrics_are_known() {
    inside("socket::tests::a_route_clamps_the_window_once_its_metrics_are_known", || {
        // BBR, some machines' default, has no threshold.
        let congctl = Some("reno".to_owned());
        let metrics = RouteSettings { cwnd: Some(7), ssthresh: Some(5), congctl, ..RouteSettings::default() };
        let [server, _router, client] = hosts(&metrics);
        server.run(|| sysctl::write("net.ipv4.tcp_no_ssthresh_metrics_save", "0")).expect("set");
        server.run(|| sysctl::write("net.ipv4.tcp_no_metrics_save", "0")).expect("set");
        route::learn(&server, &client, SERVER).expect("learned");
        let listener = server.run(|| Tcp::listen(5201, &SocketSettings::default())).expect("listening");
        let (near, far) = join(&listener, &client, &SocketSettings::default(), b"hello");
        assert_eq!(TcpInfo::of(&far).expect("told").get("tcpi_snd_ssthresh"), 5);
        for _ in 0..200 {
            far.send(&[0; 60_000]).expect("sent");
            until(|| near.discard(1 << 20).expect("received"));
        }
        let cwnd = TcpInfo::of(&far).expect("told").get("tcpi_snd_cwnd");
        assert_eq!(cwnd, 7);
    });
}

#[test]
fn a_file_is_sent_and_the_queue_is_counted() {
    inside("socket::tests::a_file_is_sent_and_the_queue_is_counted", || {
        use std::io::Write;
        let [server, _router, client] = hosts(&RouteSettings::default());
        let listener = server.run(|| Tcp::listen(5201, &SocketSettings::default())).expect("listening");
        let settings = SocketSettings { rcvbuf: Some(Bytes::new(4096)), ..SocketSettings::default() };
        let (near, far) = join(&listener, &client, &settings, b"hello");
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&[7; 100_000]).expect("written");
        let sent = until(|| far.send_file(&file, 40_000, 1 << 20).expect("sent"));
        assert!(sent <= 60_000, "{sent}");
        assert_eq!(far.send_file(&file, 100_000, 1).expect("sent"), Some(0));
        // The receiver's window is far smaller than that.
        let (unsent, unacked) = (far.unsent().expect("told"), far.unacked().expect("told"));
        assert!(0 < unsent && unsent <= unacked && unacked as usize <= sent, "{unsent} of {unacked} of {sent}");
        let mut got = 0;
        while got < sent {
            got += until(|| near.discard(1 << 20).expect("received"));
        }
        until(|| (far.unacked().expect("told") == 0).then_some(()));
        assert_eq!(far.unsent().expect("told"), 0);
    });
}
