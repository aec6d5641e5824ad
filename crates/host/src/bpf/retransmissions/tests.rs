//! A connection whose data vanishes between two namespaces.

use super::*;
use crate::bpf::BlackHole;
use crate::bpf::tests::{eth0, loaded, pair};
use crate::filter::{self, Direction};
use crate::namespaces::inside;
use crate::tcp_info::TcpInfo;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

#[test]
fn what_is_sent_again_is_seen_in_its_namespace_alone() {
    inside("bpf::retransmissions::tests::what_is_sent_again_is_seen_in_its_namespace_alone", || {
        let pair = pair(15);
        let Some(mut here) = loaded(pair.near.run(Retransmissions::start)) else { return };
        let mut there = pair.far.run(Retransmissions::start).expect("started");
        let listener = pair.far.run(|| Ok(TcpListener::bind((pair.to, 0)).expect("a port"))).expect("in");
        let at = listener.local_addr().expect("an address");
        let mut stream = pair.near.run(|| Ok(TcpStream::connect(at).expect("connected"))).expect("in");
        assert!(here.read().is_empty(), "nothing is lost yet");
        let hole = BlackHole::load(500).expect("loaded");
        pair.far.run(|| filter::attach(eth0(), Direction::Ingress, 1, hole.program())).expect("attached");
        let epoch = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after it").as_nanos();
        let from = epoch();
        // Some of it leaves as one buffer of several segments.
        stream.write_all(&[7; 40_000]).expect("written");
        // Timers expire after some 200, 600 and 1,500 ms: none while the two counts are read.
        std::thread::sleep(Duration::from_millis(1_000));
        let found = here.read();
        assert!(found.len() >= 2, "{found:?}");
        for one in &found {
            assert_eq!((one.local, one.peer), (stream.local_addr().expect("an end"), at));
            let at = u128::from(one.at.as_nanos());
            assert!(at + 50_000_000 >= from && at <= epoch() + 50_000_000, "{one:?}");
            assert!(one.round_trip.as_nanos() > 0 && one.round_trip < Span::from_millis(100), "{one:?}");
        }
        let segments: u64 = found.iter().map(|one| one.segments).sum();
        assert_eq!(segments, TcpInfo::of(&stream).expect("read").get("tcpi_total_retrans"), "{found:?}");
        assert!(found.iter().any(|one| one.kind == RetransmissionKind::Timeout), "{found:?}");
        assert!(found.iter().all(|one| one.kind != RetransmissionKind::Syn), "{found:?}");
        assert!(there.read().is_empty());
        assert_eq!((here.lost(), there.lost()), (0, 0));
    });
}

#[test]
fn a_record_of_no_known_family_is_none() {
    let mut record = [0; RECORD_LEN];
    assert_eq!(decoded(&record, 0), None);
    record[FAMILY as usize] = libc::AF_INET6 as u8;
    record[LOCAL as usize + 10..LOCAL as usize + 16].copy_from_slice(&[0xff, 0xff, 192, 0, 2, 1]);
    record[PEER_PORT as usize + 1] = 80;
    record[SEGMENTS as usize..][..2].copy_from_slice(&3u16.to_ne_bytes());
    let one = decoded(&record, 5).expect("a segment");
    assert_eq!((one.local, one.peer.port()), ("192.0.2.1:0".parse().expect("an end"), 80));
    assert_eq!((one.kind, one.at, one.segments), (RetransmissionKind::Probe, Timestamp::from_nanos(5), 3));
    assert_eq!(one.round_trip.as_nanos(), 0);
}
