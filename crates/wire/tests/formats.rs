//! Capture files of every kind that occurs: whole, cut at every byte, and hostile.

use proptest::prelude::*;
use thalweg_wire::{Capture, Damage, LinkType};

/// Builds pcapng blocks in either byte order.
#[derive(Clone, Copy)]
struct Blocks {
    big: bool,
}

impl Blocks {
    fn u16(self, n: u16) -> Vec<u8> {
        if self.big { n.to_be_bytes().to_vec() } else { n.to_le_bytes().to_vec() }
    }

    fn u32(self, n: u32) -> Vec<u8> {
        if self.big { n.to_be_bytes().to_vec() } else { n.to_le_bytes().to_vec() }
    }

    fn u64(self, n: u64) -> Vec<u8> {
        if self.big { n.to_be_bytes().to_vec() } else { n.to_le_bytes().to_vec() }
    }

    fn block(self, kind: u32, body: &[Vec<u8>]) -> Vec<u8> {
        let mut body = body.concat();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = self.u32(body.len() as u32 + 12);
        [self.u32(kind), length.clone(), body, length].concat()
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut value = value.to_vec();
        let head = [self.u16(code), self.u16(value.len() as u16)].concat();
        value.resize(value.len().next_multiple_of(4), 0);
        [head, value].concat()
    }

    fn section(self) -> Vec<u8> {
        let comment = self.option(1, b"a comment");
        self.block(0x0a0d_0d0a, &[self.u32(0x1a2b_3c4d), self.u16(1), self.u16(0), self.u64(u64::MAX), comment])
    }

    fn interface(self, link: u16, snaplen: u32, options: &[Vec<u8>]) -> Vec<u8> {
        self.block(1, &[self.u16(link), self.u16(0), self.u32(snaplen), options.concat()])
    }

    fn packet(self, interface: u32, ticks: u64, original: u32, bytes: &[u8], options: &[Vec<u8>]) -> Vec<u8> {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(4), 0);
        let head = [interface, (ticks >> 32) as u32, ticks as u32, bytes.len() as u32, original].map(|n| self.u32(n));
        self.block(6, &[head.concat(), padded, options.concat()])
    }
}

/// Number, nanoseconds, interface, original length, packets dropped before, bytes.
type Seen = (u64, u64, u32, u32, u32, Vec<u8>);

fn read(file: &[u8]) -> (Vec<Seen>, Damage) {
    let mut capture = Capture::new(file).expect("a capture");
    let mut seen = Vec::new();
    while let Some(p) = capture.next().expect("read") {
        seen.push((p.number, p.at.as_nanos(), p.interface, p.original_len, p.dropped_before, p.bytes.to_vec()));
    }
    (seen, capture.damage().clone())
}

/// Every block that occurs in files people have, in two sections of either byte order.
fn everything(big: bool) -> Vec<u8> {
    let b = Blocks { big };
    let name_resolution = b.block(4, &[b.u16(1), b.u16(8), vec![10, 0, 0, 1], b"abc\0".to_vec(), b.u16(0), b.u16(0)]);
    let secrets = b.block(10, &[b.u32(0x544c_534b), b.u32(9), b"CLIENT_RA".to_vec()]);
    let custom = b.block(0x0bad, &[b.u32(32_473), b"whatever it is".to_vec()]);
    let journal = b.block(9, &[b"MESSAGE=hello\n".to_vec()]);
    let unknown = b.block(0x8000_0001, &[vec![6; 40]]);
    let statistics = b.block(
        5,
        &[b.u32(0), b.u32(0), b.u32(0), b.option(4, &b.u64(900)), b.option(5, &b.u64(4)), b.option(7, &b.u64(2))],
    );
    let old_packet = [b.u16(1), b.u16(3), b.u32(0), b.u32(2_048), b.u32(4), b.u32(60), b"old!".to_vec()];
    let end = || b.option(0, &[]);
    [
        b.section(),
        name_resolution,
        b.interface(1, 0, &[b.option(2, b"eth0"), b.option(9, &[9]), end()]),
        // 2⁻¹⁰ s, and an offset of 100 s.
        b.interface(101, 64, &[b.option(2, b"tun0"), b.option(9, &[0x8a]), b.option(14, &b.u64(100)), end()]),
        secrets,
        b.packet(0, 5_000_000_001, 1_500, b"first", &[b.option(1, b"note"), b.option(2, &b.u32(2)), end()]),
        custom,
        b.packet(0, 5_000_000_002, 6, b"second", &[b.option(4, &b.u64(5)), end()]),
        journal,
        b.block(2, &old_packet),
        unknown,
        b.block(3, &[b.u32(3), b"abc\0".to_vec()]),
        statistics,
    ]
    .concat()
}

#[test]
fn every_block_that_occurs() {
    for (first, second) in [(false, true), (true, false)] {
        let (seen, damage) = read(&[everything(first), everything(second)].concat());
        let nanos = 5_000_000_001;
        let section = |number, interface| {
            [
                (number, nanos, interface, 1_500, 0, b"first".to_vec()),
                (number + 1, nanos + 1, interface, 6, 5, b"second".to_vec()),
                (number + 2, 102_000_000_000, interface + 1, 60, 3, b"old!".to_vec()),
                // A simple packet has no time of its own: that of the one before.
                (number + 3, 102_000_000_000, interface, 3, 0, b"abc".to_vec()),
            ]
        };
        assert_eq!(seen, [section(1, 0), section(5, 2)].concat());
        // On each interface: the greater of what packets and what statistics say.
        assert_eq!(damage, Damage { dropped: 2 * (6 + 3), untimed: 2, ..Damage::default() });
        assert!(damage.notes()[0].contains("lost 18 packets"), "{:?}", damage.notes());
        assert!(damage.notes()[1].contains("2 packets carry no time"), "{:?}", damage.notes());
    }
}

#[test]
fn interfaces_are_described() {
    let file = everything(false);
    let mut capture = Capture::new(file.as_slice()).expect("a capture");
    while capture.next().expect("read").is_some() {}
    let told: Vec<_> = capture.interfaces().iter().map(|i| (i.name.clone(), i.link, i.snaplen)).collect();
    let name = |name: &str| Some(name.to_owned());
    assert_eq!(told, [(name("eth0"), LinkType::ETHERNET, 0), (name("tun0"), LinkType::RAW, 64)]);
}

/// pcap with two orders, two resolutions and longer records.
fn pcap(magic: u32, big: bool) -> Vec<u8> {
    let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut file = word(magic).to_vec();
    file.extend(if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] });
    file.extend([0, 0, 65_535, 1].map(word).concat());
    for n in 0..12u32 {
        file.extend([1_000 + n, 5, 30 + n, 1_500].map(word).concat());
        if magic == 0xa1b2_cd34 {
            file.extend([0; 8]);
        }
        file.extend(vec![n as u8 + 0x41; 30 + n as usize]);
    }
    file
}

fn files() -> Vec<Vec<u8>> {
    let mut files = vec![everything(false), everything(true), [everything(true), everything(false)].concat()];
    for magic in [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34] {
        files.extend([pcap(magic, false), pcap(magic, true)]);
    }
    files
}

#[test]
fn a_cut_at_every_byte_gives_the_whole_records_before_it() {
    for file in files() {
        let (whole, _) = read(&file);
        let mut last = 0;
        for at in 24..file.len() {
            let Ok(mut capture) = Capture::new(&file[..at]) else { continue };
            let mut packets = 0;
            while let Some(packet) = capture.next().expect("read") {
                assert_eq!(packet.bytes, whole[packets].5, "cut at {at}");
                packets += 1;
            }
            assert!(packets == last || packets == last + 1, "cut at {at}: {packets} after {last}");
            last = packets;
            let damage = capture.damage();
            assert_eq!((damage.resyncs, damage.skipped_bytes), (0, 0), "cut at {at}");
        }
        assert_eq!(last + usize::from(file[3] != 0x0a || last < whole.len()), whole.len());
    }
}

/// A wrong bit anywhere loses the record it is in, and those that a length grown by it covers: records are tiny here.
#[test]
fn damage_at_every_byte_loses_little() {
    for file in files().into_iter().skip(3) {
        let (whole, _) = read(&file);
        for at in 24..file.len() {
            for bit in [0x01, 0x40, 0x80] {
                let mut damaged = file.clone();
                damaged[at] ^= bit;
                let (seen, damage) = read(&damaged);
                assert!(
                    seen.len() + 7 >= whole.len() && seen.len() <= whole.len(),
                    "byte {at}: {} {damage:?}",
                    seen.len()
                );
                let lost = whole.iter().filter(|(.., bytes)| !seen.iter().any(|(.., other)| other == bytes)).count();
                assert!(lost <= 7, "byte {at} bit {bit:#x}: {lost} lost, {damage:?}");
            }
        }
    }
    // Interfaces and sections are few and nothing can be read without them, so only the packets' blocks are damaged here.
    for big in [false, true] {
        let b = Blocks { big };
        let head = [b.section(), b.interface(1, 0, &[])].concat();
        let packets: Vec<u8> = (0..8u8).flat_map(|n| b.packet(0, u64::from(n), 40, &[n + 0x41; 40], &[])).collect();
        let file = [head.clone(), packets].concat();
        for at in head.len()..file.len() {
            for bit in [0x01, 0x40, 0x80] {
                let mut damaged = file.clone();
                damaged[at] ^= bit;
                let (seen, damage) = read(&damaged);
                assert!(seen.len() >= 7 && seen.len() <= 8, "byte {at} bit {bit:#x}: {} {damage:?}", seen.len());
            }
        }
    }
}

#[test]
fn a_length_that_swallows_what_follows_is_found_out() {
    // Plausible to look at, but records lie within what it claims.
    let mut file = pcap(0xa1b2_c3d4, false);
    file[24 + 8..24 + 12].copy_from_slice(&60_000u32.to_le_bytes());
    file[24 + 12..24 + 16].copy_from_slice(&60_000u32.to_le_bytes());
    let (seen, damage) = read(&file);
    assert_eq!((seen.len(), damage.resyncs, damage.truncated), (11, 1, false));
    let b = Blocks { big: false };
    let packets: Vec<u8> = (0..8u8).flat_map(|n| b.packet(0, u64::from(n), 40, &[n; 40], &[])).collect();
    let mut file = [b.section(), b.interface(1, 0, &[]), packets].concat();
    let third = file.len() - 6 * 72;
    file[third + 4..third + 8].copy_from_slice(&5_000_000u32.to_le_bytes());
    let (seen, damage) = read(&file);
    assert_eq!((seen.len(), damage.resyncs, damage.truncated), (7, 1, false));
}

#[test]
fn hostile_blocks_are_refused() {
    let b = Blocks { big: false };
    let head = [b.section(), b.interface(1, 0, &[])].concat();
    for hostile in [
        // Interfaces that are not there, captured lengths past the block, options past the block, no length, huge lengths.
        b.packet(u32::MAX, 0, 4, b"abcd", &[]),
        b.block(6, &[[0u32, 0, 0, u32::MAX, u32::MAX].map(|n| b.u32(n)).concat()]),
        b.block(6, &[[0u32, 0, 0, 0, 0].map(|n| b.u32(n)).concat(), b.option(4, &[1]), b.u16(4), b.u16(u16::MAX)]),
        b.block(6, &[vec![0; 8]]),
        b.block(3, &[]),
        b.block(5, &[b.u32(u32::MAX), b.u64(0), b.option(5, &b.u64(u64::MAX))]),
        b.block(1, &[]),
        [b.u32(6), b.u32(0), b.u32(0)].concat(),
        [b.u32(6), b.u32(u32::MAX), b.u32(0)].concat(),
        [b.u32(6), b.u32(16 << 20), b.u32(0)].concat(),
    ] {
        let after = b.packet(0, 1, 4, b"good", &[]);
        let (seen, damage) = read(&[head.clone(), hostile, after].concat());
        assert!(seen.iter().any(|(.., bytes)| bytes == b"good"), "{seen:?} {damage:?}");
        assert!(seen.len() <= 2 && damage.dropped == 0, "{seen:?} {damage:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_behind_any_head(
        which in 0usize..9,
        keep in 24usize..120,
        tail in proptest::collection::vec(any::<u8>(), 0..2_000),
    ) {
        let head = files()[which].clone();
        let file = [&head[..keep.min(head.len())], &tail].concat();
        let Ok(mut capture) = Capture::new(file.as_slice()) else { return Ok(()) };
        let mut bytes = 0;
        while let Some(packet) = capture.next().expect("read") {
            bytes += packet.bytes.len();
        }
        prop_assert!(bytes <= file.len());
        prop_assert!(capture.damage().skipped_bytes <= file.len() as u64);
    }
}
