//! Connections made by hand, for tests.

use crate::event::packet::{Endpoint, Packet, PayloadFront};
use crate::flow_table::lifecycle::Lifecycle;
use crate::observe::Recording;
use crate::tcp::connection::Connection;
use std::net::{IpAddr, Ipv4Addr};
use thalweg_units::{SeqNum, Timestamp};
use thalweg_wire::{Flags, IpFacts, Options, Payload, Segment, Tags, TcpHeader};

pub(crate) const CLIENT: Endpoint = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 40_000);
const SERVER: Endpoint = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 443);

/// A packet of the client (`up`) or the server.
pub(crate) fn packet(up: bool, flags: u8, seq: u32, ack: u32, payload_len: u32) -> Segment {
    let (from, to) = if up { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    Segment {
        ip: IpFacts { source: from.0, destination: to.0, ttl: 64, ecn: 0, id: None },
        tcp: TcpHeader {
            source_port: from.1,
            destination_port: to.1,
            seq: SeqNum::new(seq),
            ack: SeqNum::new(ack),
            flags: Flags(flags),
            window: 60_000,
            checksum: 0,
            header_len: 20,
            options: Options::default(),
        },
        tags: Tags::default(),
        payload_len,
        payload_at: 0,
    }
}

/// A connection of these packets, a second apart.
pub(crate) fn connection(packets: &[Segment]) -> Connection {
    let seconds: Vec<(u64, Segment)> =
        (0..).zip(packets.iter().copied()).map(|(n, packet)| (n * 1_000, packet)).collect();
    connection_at(&seconds)
}

/// A connection of these packets, each with its time in milliseconds.
pub(crate) fn connection_at(packets: &[(u64, Segment)]) -> Connection {
    let plain: Vec<_> = packets.iter().map(|&(millis, segment)| (millis, segment, &b""[..])).collect();
    connection_with(&plain)
}

/// A connection of these packets, each with what its payload begins with.
pub(crate) fn connection_with(packets: &[(u64, Segment, &[u8])]) -> Connection {
    let at = |millis: u64| Timestamp::from_nanos((millis + 1_000) * 1_000_000);
    let life = Lifecycle::new(&packets[0].1);
    let packets: Vec<Packet> = (1..)
        .zip(packets)
        .map(|(number, (millis, segment, payload))| {
            let front = PayloadFront::new(Payload::read(payload));
            Packet::new(life.side_of(segment), at(*millis), number, segment, &front)
        })
        .collect();
    let mut connection = Connection::new(0, life.ends, &packets[0], Recording::Nothing);
    packets.iter().for_each(|packet| connection.packet(packet));
    connection.finish();
    connection
}
