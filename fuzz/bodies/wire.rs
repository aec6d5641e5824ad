//! What the fuzz targets of wire do with an input, and the corpus tests, too.
#![allow(dead_code)]

use thalweg_wire::filter::Filter;
use thalweg_wire::{Capture, Decoded, Decoder, DnsMessage, LinkType, Message, Payload, QuicPackets};

/// Packets after which an input has shown what it can.
const ENOUGH: usize = 20_000;

/// Reads to the end and decodes; returns how many bytes the packets had.
fn read(file: &[u8]) -> usize {
    let Ok(mut capture) = Capture::new(file) else { return 0 };
    let mut decoder = Decoder::default();
    let mut bytes = 0;
    for _ in 0..ENOUGH {
        let Ok(Some(packet)) = capture.next() else { break };
        bytes += packet.bytes.len();
        decoder.decode(&packet, |_| {});
    }
    decoder.finish(|_| {});
    assert!(capture.damage().notes().len() <= 6);
    bytes
}

/// Any bytes behind a pcap magic: the reader ends, and gives packets within the file.
pub(crate) fn pcap(data: &[u8]) -> usize {
    let with = |magic: [u8; 4]| {
        let file = [&magic[..], data].concat();
        let bytes = read(&file);
        assert!(bytes <= file.len());
        bytes
    };
    [[0xd4, 0xc3, 0xb2, 0xa1], [0xa1, 0xb2, 0x3c, 0x4d], [0x34, 0xcd, 0xb2, 0xa1]].map(with).into_iter().sum()
}

/// Any bytes behind a section header: the reader ends, and gives packets within the file.
pub(crate) fn pcapng(data: &[u8]) -> usize {
    let header = thalweg_wire::pcapng::Writer::new(Vec::new(), "fuzz").and_then(|mut writer| {
        writer.add_interface("eth0", LinkType::ETHERNET, 0)?;
        writer.finish()
    });
    let file = [&header.expect("a vector takes every byte")[..], data].concat();
    let bytes = read(&file);
    assert!(bytes <= file.len());
    bytes
}

/// Any bytes behind the magic of a compressed file: unpacked as far as they can be, or refused, within memory.
pub(crate) fn compressed(data: &[u8]) -> usize {
    let magics = [&b""[..], b"\x1f\x8b\x08", b"\xfd7zXZ\0\0\x01\x69\x22\xde\x36", b"\x28\xb5\x2f\xfd"];
    magics.map(|magic| read(&[magic, data].concat())).into_iter().sum()
}

/// Any payload of a segment, and both halves of it: texts stay within their bounds, and no query is kept.
pub(crate) fn payload(data: &[u8]) -> usize {
    let (front, back) = data.split_at(data.len() / 2);
    let found = [data, front, back].map(Payload::read);
    for payload in &found {
        match &payload.message {
            Some(Message::Requests(all)) => {
                assert!((1..=16).contains(&all.len()));
                for request in all {
                    assert!(request.method.len() <= 20 && request.target.chars().count() <= 100);
                    assert!(!request.target.contains(['?', '#', ';', '@']) || request.target.starts_with('/'));
                    assert!(!request.target.contains(['?', '#', ';']));
                }
            }
            Some(Message::Responses(all)) => assert!((1..=16).contains(&all.len())),
            Some(Message::ClientHello(hello)) => assert!(hello.protocols.len() <= 8),
            Some(Message::ServerHello(_)) | None => {}
        }
    }
    usize::from(found[0].message.is_some() || !found[0].records.is_empty())
}

/// Any payload of a datagram: a message about names, or packets of QUIC.
pub(crate) fn datagram(data: &[u8]) -> usize {
    let packets = QuicPackets::read(data).0.count_ones() as usize;
    let Some(message) = DnsMessage::read(data) else { return packets };
    assert!(message.name.len() < 2_048 && message.addresses.len() <= 16);
    1 + packets
}

/// Any stream from or to a name server: its messages, with their lengths, are within it; returns how many are about a name.
pub(crate) fn name_stream(data: &[u8]) -> usize {
    let (mut rest, mut found) = (data, 0);
    while let Some((message, behind)) = DnsMessage::split_first(rest) {
        assert_eq!(2 + message.len() + behind.len(), rest.len());
        rest = behind;
        if let Some(message) = DnsMessage::read(message) {
            assert!(message.name.len() < 2_048 && message.addresses.len() <= 16);
            found += 1;
        }
    }
    found
}

/// Any text as a filter: refused with a place, or run on any frame and compiled.
pub(crate) fn filter(text: &str, frame: &[u8]) -> usize {
    let filter = match text.parse::<Filter>() {
        Ok(filter) => filter,
        Err(error) => {
            assert!(error.at <= text.chars().count() && !error.hint.is_empty() && !error.to_string().is_empty());
            return 0;
        }
    };
    if let Decoded::Tcp(segment) = thalweg_wire::decode(LinkType::RAW, frame, frame.len() as u32) {
        let _ = filter.matches(&segment);
    }
    if let Some(program) = filter.program(96, 256) {
        let last = program.len() - 1;
        // Every jump stays within the program, or the kernel would refuse it.
        assert!(program.iter().enumerate().all(|(at, i)| i.code & 7 != 5 || {
            let far = if i.code == 5 { i.k as usize } else { usize::from(i.jt.max(i.jf)) };
            at + 1 + far <= last
        }));
    }
    1
}
