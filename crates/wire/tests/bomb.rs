//! A file that unpacks to very much takes no more memory than any other. Alone in its process, whose memory is what is measured.

use std::io::Write;
use thalweg_units::Timestamp;
use thalweg_wire::{Capture, LinkType, pcapng};

const UNPACKED: usize = 64 << 20;

#[test]
fn a_bomb_takes_no_memory() {
    let mut writer = pcapng::Writer::new(Vec::new(), "test").expect("vec");
    writer.add_interface("eth0", LinkType::ETHERNET, 0).expect("vec");
    writer.packet(0, Timestamp::from_nanos(1), 60, &[0; 60], None).expect("vec");
    let head = writer.finish().expect("vec");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 0);
    let mut zstd = zstd::Encoder::new(Vec::new(), 1).expect("an encoder");
    let zeroes = vec![0; 1 << 20];
    for to in [&mut gzip as &mut dyn Write, &mut xz, &mut zstd] {
        to.write_all(&head).expect("vec");
        for _ in 0..UNPACKED / zeroes.len() {
            to.write_all(&zeroes).expect("vec");
        }
    }
    for packed in [gzip.finish(), xz.finish(), zstd.finish()] {
        let packed = packed.expect("vec");
        assert!(packed.len() < UNPACKED / 60, "{}", packed.len());
        let before = most_kib();
        let mut capture = Capture::new(packed.as_slice()).expect("a capture");
        let mut packets = 0;
        while capture.next().expect("read").is_some() {
            packets += 1;
        }
        assert_eq!(packets, 1);
        assert!(capture.damage().skipped_bytes >= UNPACKED as u64 - 4, "{:?}", capture.damage());
        let taken = most_kib() - before;
        assert!(taken < 24 << 10, "{taken} KiB");
    }
}

/// The most this process ever had in memory, in KiB.
fn most_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}
