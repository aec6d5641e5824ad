//! The packets of one connection without addresses and payload: a capture that can be sent with the report of a defect.

use super::decode::CaptureDecoder;
use crate::Error;
use crate::flow::failed_flow::FailedFlow;
use crate::flow_table::TcpPacket;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thalweg_wire::pcapng::Writer;
use thalweg_wire::{Capture, LinkType};

/// Addresses for documentation (RFC 5737, RFC 3849): the client's, then the server's.
const V4: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2))];
const V6: [IpAddr; 2] = [
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)),
];

/// Copies the segments between the ends of `flow` from its first packet on: headers with other addresses, no payload.
///
/// # Errors
/// When the capture cannot be read, or the copy not be written.
pub fn copy_headers(from: impl Read, name: &str, flow: &FailedFlow, out: impl Write) -> io::Result<()> {
    let unread = |error| io::Error::other(Error::from_wire(error, name));
    let mut capture = Capture::new(from).map_err(unread)?;
    let mut decoder = CaptureDecoder::new(None);
    let mut writer = Writer::new(out, "thalweg")?;
    writer.add_interface("headers", LinkType::RAW, 0)?;
    let mut written = Ok(());
    let mut copy = |seen: TcpPacket| {
        if written.is_ok() {
            written = write(&mut writer, flow, &seen);
        }
    };
    while let Some(packet) = capture.next().map_err(unread)? {
        decoder.packet(&packet, &mut copy);
    }
    decoder.finish(&mut copy);
    written?;
    writer.finish().map(drop)
}

fn write<W: Write>(writer: &mut Writer<W>, flow: &FailedFlow, seen: &TcpPacket) -> io::Result<()> {
    let (ip, tcp) = (&seen.segment.ip, &seen.segment.tcp);
    let ends = [(ip.source, tcp.source_port), (ip.destination, tcp.destination_port)];
    let is_of_flow = ends == flow.ends || [ends[1], ends[0]] == flow.ends;
    if !is_of_flow || seen.number < flow.first_packet || seen.link_mtu.is_some() {
        return Ok(());
    }
    let [mut from, mut to] = if ip.source.is_ipv6() { V6 } else { V4 };
    if ends != flow.ends {
        (from, to) = (to, from);
    }
    let (bytes, length) = seen.segment.headers(from, to);
    writer.packet(0, seen.at, length, &bytes, None)
}
