//! Programs at work between two namespaces. Where a kernel has no `fq`, or lets nobody load programs, that is said.

use super::*;
use crate::capture::Capture;
use crate::filter::{self, Direction, Police, Policed};
use crate::link::{self, End};
use crate::namespaces::{inside, skip};
use crate::netns::NetNs;
use crate::socket::Tcp;
use crate::sysctl;
use rustix::time::{ClockId, clock_gettime};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::thread::sleep;
use std::time::Duration;
use thalweg_model::SocketSettings;
use thalweg_units::{Bytes, Rate, Span};

/// Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;

pub(super) struct Pair {
    pub(super) near: NetNs,
    pub(super) far: NetNs,
    pub(super) to: Ipv4Addr,
}

/// Two hosts with a link between them; each pair has a network of its own, so that ports of several can share a buffer.
pub(super) fn pair(net: u8) -> Pair {
    let [near, far] = ["near", "far"].map(|name| NetNs::create(name).expect("a namespace"));
    for ns in [&near, &far] {
        // No packets of IPv6's own, where there is IPv6.
        let _ = ns.run(|| sysctl::write("net.ipv6.conf.default.disable_ipv6", "1"));
    }
    let [from, to] = [1, 2].map(|host| Ipv4Addr::new(10, 0, net, host));
    let end = |ns, host, address| End { ns, name: "eth0", mac: [2, 0, 0, 0, net, host], address };
    link::connect(&end(&near, 1, from), &end(&far, 2, to), 1500).expect("joined");
    for ns in [&near, &far] {
        ns.run(|| link::offloads_off("eth0")).expect("off");
        ns.run(link::wait_until_operational).expect("operational");
    }
    Pair { near, far, to }
}

pub(super) fn eth0() -> u32 {
    link::index("eth0").expect("a device")
}

impl Pair {
    /// Sends frames of these lengths at once.
    pub(super) fn send(&self, frames: impl IntoIterator<Item = usize>) {
        for len in frames {
            // A socket for each, so that no send buffer holds one back.
            let socket = self.near.run(|| Ok(UdpSocket::bind("0.0.0.0:0"))).expect("in").expect("bound");
            socket.send_to(&vec![0; len - HEADERS], (self.to, 9)).expect("sent");
        }
    }

    fn capture(&self) -> Capture {
        self.far.run(|| Capture::start(eth0(), 4096)).expect("capturing")
    }

    fn attach(&self, link: &Serializer) -> bool {
        match self.near.run(|| link.attach(eth0(), 1)) {
            Err(error) if error.source.raw_os_error() == Some(libc::ENOENT) => {
                skip("this kernel has no fq");
                return false;
            }
            result => result.expect("attached"),
        }
        self.far.run(|| link.attach_peer(eth0(), 1)).expect("attached");
        true
    }
}

/// Times, in nanoseconds since the epoch, and lengths of the UDP packets to port 9.
pub(super) fn arrivals(capture: &mut Capture) -> Vec<(u64, u32)> {
    let mut found = Vec::new();
    let each = |packet: crate::capture::Captured<'_>| {
        if !packet.outgoing && packet.bytes.get(23) == Some(&17) && packet.bytes.get(36..38) == Some(&[0, 9]) {
            found.push((packet.at.as_nanos(), packet.original_len));
        }
        Ok::<(), HostError>(())
    };
    capture.drain(each).expect("drained");
    found
}

/// What this process may not load it may not test.
pub(super) fn loaded<T>(result: Result<T, HostError>) -> Option<T> {
    match result {
        Err(error) if error.source.raw_os_error() == Some(libc::EPERM) => {
            skip("programs cannot be loaded here");
            None
        }
        result => Some(result.expect("loaded")),
    }
}

#[test]
fn a_rate_spaces_packets_to_the_clocks_tick() {
    inside("bpf::tests::a_rate_spaces_packets_to_the_clocks_tick", || {
        crate::guest::wait_for_fine_timers();
        let pair = pair(1);
        for (bits, overhead, len, gap) in [
            (8_000_000, 0, 1500, 1_500_000.0),
            (8_000_000, 24, 1500, 1_524_000.0),
            (3_000_000_000, 24, 1514, 1538.0 / 0.375),
        ] {
            let rate = Service::Rate { rate: Rate::from_bits_per_second(bits), overhead };
            let Some(link) = loaded(Serializer::load(&rate, Occupancy::default(), None)) else { return };
            if !pair.attach(&link) {
                return;
            }
            let mut capture = pair.capture();
            pair.send([len; 100]);
            sleep(Duration::from_millis(400));
            let found = arrivals(&mut capture);
            assert_eq!(found.len(), 100);
            // The lab's clock has a tick of 256 ns, and a timer may go off one late; nothing adds up over the packets.
            for (at, (time, _)) in found.iter().enumerate() {
                let wanted = found[0].0 as f64 + at as f64 * gap;
                assert!((*time as f64 - wanted).abs() <= 512.0, "packet {at} of {bits} b/s at {time}, not {wanted}");
            }
            let counters = link.counters().expect("read");
            let peak = Bytes::new(100 * len as u64);
            assert_eq!((counters.packets, counters.peak, counters.waiting), (100, peak, Bytes::new(0)), "{counters:?}");
            for ns in [&pair.near, &pair.far] {
                ns.run(|| filter::detach_all(eth0())).expect("detached");
            }
        }
    });
}

#[test]
fn ports_share_a_buffer_to_the_byte() {
    inside("bpf::tests::ports_share_a_buffer_to_the_byte", || {
        let pairs = [pair(1), pair(2)];
        let Some(buffer) = loaded(Buffer::new(Bytes::new(131_072))) else { return };
        let rate = Service::Rate { rate: Rate::from_bits_per_second(1_000_000), overhead: 0 };
        let own = Occupancy { bytes: None, packets: Some(60) };
        let load = |_| Serializer::load(&rate, own, Some(buffer.clone())).expect("loaded");
        let links = [0, 1].map(load);
        if !pairs.iter().zip(&links).all(|(pair, link)| pair.attach(link)) {
            return;
        }
        let mut captures = [pairs[0].capture(), pairs[1].capture()];
        pairs[0].send([1500; 100]);
        pairs[1].send([1500; 100]);
        let [first, second] = [links[0].counters().expect("read"), links[1].counters().expect("read")];
        // 60 by the port's own limit, and as many as the shared memory holds: ⌊131072 / 1500⌋ = 87.
        assert_eq!((first.packets, second.packets, first.drops, second.drops), (60, 27, 40, 73));
        assert_eq!(buffer.used().expect("read"), (Bytes::new(87 * 1500), Bytes::new(87 * 1500)));
        // What is left holds one small packet, and no byte more.
        let left = 131_072 - 87 * 1500;
        pairs[1].send([left + 1, left]);
        assert_eq!(links[1].counters().expect("read").packets, 28);
        sleep(Duration::from_secs(1));
        assert_eq!(captures.each_mut().map(|capture| arrivals(capture).len()), [60, 28]);
        assert_eq!(buffer.used().expect("read"), (Bytes::new(0), Bytes::new(131_072)));
    });
}

/// When Mahimahi's link-shell lets packets go that come at these times, in milliseconds: its `LinkQueue::rationalize`,
/// opportunity by opportunity. A packet takes its frame less 10 bytes: its IP packet and 4 bytes of the TUN device.
fn mahimahi(trace: &[u32], packets: &[(f64, u32)]) -> Vec<u32> {
    let mut gone = Vec::new();
    let (mut transit, mut base, mut next) = (0, 0, 0);
    while gone.len() < packets.len() {
        let now = base + trace[next];
        next += 1;
        if next == trace.len() {
            (next, base) = (0, base + trace[trace.len() - 1]);
        }
        let mut left = 1504;
        while left > 0 && gone.len() < packets.len() {
            if transit == 0 {
                if packets[gone.len()].0 >= f64::from(now) {
                    break;
                }
                transit = packets[gone.len()].1 - 10;
            }
            let sent = left.min(transit);
            (left, transit) = (left - sent, transit - sent);
            if transit == 0 {
                gone.push(now);
            }
        }
    }
    gone
}

#[test]
fn a_trace_delivers_as_mahimahi_does() {
    inside("bpf::tests::a_trace_delivers_as_mahimahi_does", || {
        let pair = pair(1);
        let times = [0, 3, 7, 7, 8, 15, 16, 16, 16, 40];
        let clock = |id| {
            let now = clock_gettime(id);
            now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
        };
        let begins = clock(ClockId::Monotonic) + 5_000_000;
        let epoch = clock(ClockId::Realtime) + 5_000_000;
        let trace = Trace::new(times.to_vec()).expect("a trace");
        let service = Service::Trace { trace, begins: Span::from_nanos(begins) };
        let Some(link) = loaded(Serializer::load(&service, Occupancy::default(), None)) else { return };
        if !pair.attach(&link) {
            return;
        }
        let mut capture = pair.capture();
        let mut sent = Vec::new();
        for (wait, frames) in [
            (5_200, &[1514usize, 1514, 514, 514, 514, 100][..]),
            (20_000, &[1514, 100, 1000]),
            (9_000, &[60; 40]),
            (31_000, &[1514; 12]),
            (80_000, &[700, 700, 700, 700]),
        ] {
            sleep(Duration::from_micros(wait));
            let now = (clock(ClockId::Monotonic) as f64 - begins as f64) / 1e6;
            sent.extend(frames.iter().map(|len| (now, *len as u32)));
            pair.send(frames.iter().copied());
        }
        sleep(Duration::from_millis(200));
        let found: Vec<u32> = arrivals(&mut capture)
            .iter()
            .map(|(at, _)| {
                let nanos = *at as f64 - epoch as f64;
                let ms = (nanos / 1e6).round();
                assert!((nanos - ms * 1e6).abs() < 10_000.0, "{nanos} ns is at no whole millisecond");
                ms as u32
            })
            .collect();
        assert_eq!(found, mahimahi(&times, &sent));
        assert_eq!(link.counters().expect("read").drops, 0);
    });
}

#[test]
fn listed_segments_are_dropped_and_no_others() {
    inside("bpf::tests::listed_segments_are_dropped_and_no_others", || {
        let pair = pair(1);
        let Some(program) = loaded(DropSegments::load(Counted::DataSegments, &[3, 17, 18])) else { return };
        let every = DropSegments::load(Counted::Packets, &[]).expect("loaded");
        pair.far.run(|| filter::attach(eth0(), Direction::Ingress, 1, program.program())).expect("attached");
        pair.far.run(|| filter::attach(eth0(), Direction::Ingress, 2, every.program())).expect("attached");
        let settings = SocketSettings { nodelay: Some(true), ..SocketSettings::default() };
        let listener = pair.far.run(|| Tcp::listen(5201, &settings)).expect("listening");
        let near = pair.near.run(|| Tcp::connect(SocketAddrV4::new(pair.to, 5201), &settings)).expect("connecting");
        sleep(Duration::from_millis(20));
        let far = listener.accept().expect("accepting").expect("a connection");
        let mut got = 0;
        for number in 1..=30 {
            assert_eq!(near.send(&[1; 100]).expect("sent"), Some(100));
            for _ in 0..3000 {
                got += far.discard(1 << 20).expect("received").unwrap_or(0);
                if got == 100 * number {
                    break;
                }
                sleep(Duration::from_millis(1));
            }
            assert_eq!(got, 100 * number);
        }
        // 30 segments, and one more for each of the dropped; the retransmission of the 17th is the 18th.
        assert_eq!(program.counters().expect("read"), Dropped { counted: 33, dropped: 3 });
        // What the first filter left, and the two empty segments of the handshake.
        assert_eq!(every.counters().expect("read"), Dropped { counted: 33 - 3 + 2, dropped: 0 });
    });
}

#[test]
fn a_black_hole_swallows_by_length() {
    inside("bpf::tests::a_black_hole_swallows_by_length", || {
        let pair = pair(1);
        let Some(hole) = loaded(BlackHole::load(1400)) else { return };
        pair.near.run(|| filter::attach(eth0(), Direction::Egress, 1, hole.program())).expect("attached");
        let mut capture = pair.capture();
        pair.send([1413, 1414, 1415, 1514, 60]);
        sleep(Duration::from_millis(20));
        let lengths: Vec<u32> = arrivals(&mut capture).iter().map(|(_, len)| *len).collect();
        assert_eq!(lengths, [1413, 1414, 60]);
    });
}

#[test]
fn a_policer_lets_its_burst_pass() {
    inside("bpf::tests::a_policer_lets_its_burst_pass", || {
        let pair = pair(1);
        let police = Police { rate: Rate::from_bits_per_second(1_200_000), burst: Bytes::new(15_000) };
        match pair.far.run(|| filter::police(eth0(), Direction::Ingress, 1, &police)) {
            Err(error) if error.source.raw_os_error() == Some(libc::ENOENT) => {
                return skip("this kernel has no police");
            }
            result => result.expect("attached"),
        }
        // On the way in the Ethernet header is off already.
        pair.send([1514; 30]);
        sleep(Duration::from_millis(5));
        let seen = pair.far.run(|| filter::policed(eth0(), Direction::Ingress)).expect("read");
        assert_eq!(seen, Policed { packets: 30, bytes: Bytes::new(45_000), drops: 20 });
    });
}
