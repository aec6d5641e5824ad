//! Any bytes behind a pcap magic: the reader ends, and gives packets within the file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for magic in [[0xd4, 0xc3, 0xb2, 0xa1], [0xa1, 0xb2, 0x3c, 0x4d], [0x34, 0xcd, 0xb2, 0xa1]] {
        let file = [&magic[..], data].concat();
        let Ok(mut capture) = wire::Capture::new(file.as_slice()) else { continue };
        let mut bytes = 0;
        while let Ok(Some(packet)) = capture.next() {
            bytes += packet.bytes.len();
        }
        assert!(bytes <= file.len());
    }
});
