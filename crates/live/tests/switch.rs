//! A switch in real time between three hosts: what holds on any machine, however busy it is.
#![allow(missing_docs)]

mod common;

use common::inside;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_host::netns::NetNs;
use thalweg_host::tun::Tun;
use thalweg_live::{Lost, Plug, SwitchWire};
use thalweg_model::{Path, PathDirection, Switch};
use thalweg_units::{Bytes, Rate, Seed, Span};

const PORT: u16 = 9;

/// A host: its namespace and what it is plugged in by.
struct Host {
    ns: NetNs,
    plug: Plug,
}

impl Host {
    fn new(number: u8) -> Self {
        let (ns, address) = (NetNs::create("host").expect("made"), IpAddr::V4(Ipv4Addr::new(198, 18, 0, number)));
        let make = || {
            let tun = Tun::create("path0", 1500)?;
            tun.set_up(&[(address, 24)])?;
            Ok(tun)
        };
        let tun = Arc::new(ns.run(make).expect("a device"));
        Self { ns, plug: (tun, address) }
    }

    fn socket(&self) -> UdpSocket {
        let address = SocketAddr::new(self.plug.1, PORT);
        let socket = self.ns.run(|| Ok(UdpSocket::bind(address).expect("bound"))).expect("bound");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("set");
        socket
    }
}

fn switch(bits: u64, path: &Path) -> ([Host; 3], SwitchWire) {
    let hosts = [1, 2, 3].map(Host::new);
    let rate = Rate::from_bits_per_second(bits);
    let asked = Switch { rate, buffer: Bytes::new(64 << 10), shared: true, overhead: 0 };
    let plugs = hosts.iter().map(|host| host.plug.clone()).collect();
    let wire = SwitchWire::start(&asked, None, path, Seed::new(1), plugs).expect("a switch");
    (hosts, wire)
}

#[test]
fn hosts_reach_each_other_and_nothing_is_early() {
    inside("hosts_reach_each_other_and_nothing_is_early", || {
        let direction = PathDirection { delay: Span::from_millis(5), ..PathDirection::default() };
        let path = Path { down: direction.clone(), up: direction, ..Path::default() };
        let (hosts, wire) = switch(1_000_000_000, &path);
        let sockets = hosts.each_ref().map(Host::socket);
        // Each client is behind a path; the server, which is the first, is not.
        for (from, to, least) in [(0, 1, 10), (1, 0, 10), (1, 2, 20)] {
            let mut buffer = [0; 100];
            let begun = Instant::now();
            sockets[from].send_to(b"there", (hosts[to].plug.1, PORT)).expect("sent");
            let (length, whose) = sockets[to].recv_from(&mut buffer).expect("received");
            sockets[to].send_to(&buffer[..length], whose).expect("sent");
            sockets[from].recv(&mut buffer).expect("received");
            assert!(begun.elapsed() >= Duration::from_millis(least), "{from} {to}: {:?}", begun.elapsed());
        }
        let ended = wire.finish().expect("ended");
        assert_eq!(ended.ports.iter().map(|port| port.sent.packets).collect::<Vec<_>>(), [2, 3, 1]);
        assert_eq!(ended.lost, Lost::default());
    });
}

#[test]
fn two_senders_fill_one_buffer() {
    inside("two_senders_fill_one_buffer", || {
        const EACH: u64 = 100;
        let (hosts, wire) = switch(5_000_000, &Path::default());
        let sockets = hosts.each_ref().map(Host::socket);
        for _ in 0..EACH {
            for client in &sockets[1..] {
                client.send_to(&[7; 1_472], (hosts[0].plug.1, PORT)).expect("sent");
            }
        }
        let mut received = 0;
        sockets[0].set_read_timeout(Some(Duration::from_millis(500))).expect("set");
        while sockets[0].recv(&mut [0; 2_000]).is_ok() {
            received += 1;
        }
        let ended = wire.finish().expect("ended");
        let server = ended.ports[0];
        // 43 frames of 1514 bytes fit into 64 KiB.
        assert_eq!(server.peak, Bytes::new(43 * 1514));
        assert!(received >= 43 && received + server.dropped.packets == 2 * EACH, "{received}: {server:?}");
        assert_eq!(ended.lost, Lost::default());
    });
}
