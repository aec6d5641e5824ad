//! Captures packed by each program, whole, cut, damaged, and asking for too much.

use crate::{Capture, Error, LinkType, pcapng};
use std::io::{self, Read, Write};
use thalweg_units::Timestamp;

fn capture(packets: u64) -> Vec<u8> {
    let mut writer = pcapng::Writer::new(Vec::new(), "test").expect("vec");
    writer.add_interface("eth0", LinkType::ETHERNET, 0).expect("vec");
    for n in 0..packets {
        // Incompressible enough that blocks of the compressed file are many.
        let bytes: Vec<u8> =
            (0..200u64).map(|i| (n.wrapping_mul(2_654_435_761).wrapping_add(i * i * n) >> 7) as u8).collect();
        writer.packet(0, Timestamp::from_nanos(n), 200, &bytes, None).expect("vec");
    }
    writer.finish().expect("vec")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("vec");
    encoder.finish().expect("vec")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).expect("vec");
    encoder.finish().expect("vec")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).expect("vec")
}

type Pack = fn(&[u8]) -> Vec<u8>;

const PACKERS: [(&str, Pack); 3] = [("gzip", gzip), ("xz", xz), ("zstd", zstd)];

/// Packets that were read, and the notes.
fn read(bytes: &[u8]) -> Result<(u64, Vec<String>), Error> {
    let mut capture = Capture::new(bytes)?;
    let mut packets = 0;
    while capture.next()?.is_some() {
        packets += 1;
    }
    Ok((packets, capture.damage().notes()))
}

#[test]
fn each_kind_is_unpacked_and_in_several_parts_too() {
    let file = capture(500);
    for (name, pack) in PACKERS {
        assert_eq!(read(&pack(&file)).expect(name), (500, vec![]), "{name}");
        let (first, second) = file.split_at(7_777);
        let parts = [pack(first), pack(second)].concat();
        assert_eq!(read(&parts).expect(name), (500, vec![]), "{name} in two parts");
    }
    // A skippable frame first, as pzstd writes.
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9][..], &zstd(&file)].concat();
    assert_eq!(read(&skippable).expect("zstd"), (500, vec![]));
}

#[test]
fn a_cut_file_gives_what_was_there_and_says_so() {
    let file = capture(3_000);
    for (name, pack) in PACKERS {
        let packed = pack(&file);
        let mut last = 0;
        for tenths in 5..10 {
            let (packets, notes) = read(&packed[..packed.len() * tenths / 10]).expect(name);
            assert!(packets >= last && packets < 3_000, "{name}: {packets}");
            assert!(notes.len() == 1 && notes[0].contains(name) && notes[0].contains("cut or damaged"), "{notes:?}");
            last = packets;
        }
        assert!(last > 1_000, "{name}: {last}");
    }
}

#[test]
fn cuts_at_every_byte_and_damage_at_every_byte_end() {
    let file = capture(12);
    for (name, pack) in PACKERS {
        let packed = pack(&file);
        for at in 0..packed.len() {
            match read(&packed[..at]) {
                Ok((packets, notes)) => assert!(packets <= 12 && !notes.is_empty(), "{name} cut at {at}: {packets}"),
                Err(Error::NotACapture { looks_like }) => assert!(!looks_like.is_empty()),
                Err(error) => panic!("{name} cut at {at}: {error}"),
            }
            let mut damaged = packed.clone();
            damaged[at] ^= 0x55;
            if let Ok((packets, _)) = read(&damaged) {
                assert!(packets <= 13, "{name} damaged at {at}: {packets}");
            }
        }
    }
}

#[test]
fn what_is_packed_but_no_capture_is_named() {
    for (name, pack) in PACKERS {
        let error = read(&pack(b"hello, hello, hello")).expect_err("no capture").to_string();
        assert!(error.contains(&format!("{name}-compressed data that holds text")), "{error}");
    }
    let error = read(b"\x1f\x8b\x08\0").expect_err("no capture").to_string();
    assert!(error.contains("gzip-compressed data that is cut or damaged"), "{error}");
}

#[test]
fn a_window_past_the_limit_is_refused() {
    // A frame header that asks for a window of 2 GiB: windowLog 31 is exponent 21 (RFC 8878 §3.1.1.1.2).
    let hungry = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x01, 0x00, 0x00];
    let error = read(&hungry).expect_err("refused").to_string();
    assert!(error.contains("zstd-compressed") && error.contains("memory"), "{error}");
    // An xz block that asks for a dictionary of 4 GiB: the stream header has 12 bytes, then the block header's size, flags, the
    // filter, the length of its properties, and the dictionary's size (.xz file format 1.2.0, §3.1).
    let mut packed = xz(&capture(1));
    assert_eq!(packed[14..16], [0x21, 1]);
    packed[16] = 40;
    let mut checksum = flate2::Crc::new();
    checksum.update(&packed[12..20]);
    packed[20..24].copy_from_slice(&checksum.sum().to_le_bytes());
    let error = read(&packed).expect_err("refused").to_string();
    assert!(error.contains("xz-compressed") && error.contains("memory"), "{error}");
}

/// Errors of the reader below are errors, not damage.
#[test]
fn the_readers_own_errors_stay_errors() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(5))
        }
    }
    for (name, pack) in PACKERS {
        let packed = pack(&capture(1_000));
        let half = packed[..packed.len() / 2].to_vec();
        let mut found = None;
        match Capture::new(io::Cursor::new(half).chain(Failing)) {
            Err(error) => found = Some(error),
            Ok(mut capture) => {
                while found.is_none() {
                    match capture.next() {
                        Ok(Some(_)) => {}
                        Ok(None) => panic!("{name}: no error"),
                        Err(error) => found = Some(error),
                    }
                }
            }
        }
        assert!(matches!(found, Some(Error::Read(_))), "{name}: {found:?}");
    }
}
