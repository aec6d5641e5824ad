//! Any bytes behind the magic of a compressed file: unpacked as far as they can be, or refused, within memory.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// Packets after which an input has shown what it can.
const ENOUGH: usize = 100_000;

fuzz_target!(|data: &[u8]| {
    for magic in [&b""[..], b"\x1f\x8b\x08", b"\xfd7zXZ\0\0\x01\x69\x22\xde\x36", b"\x28\xb5\x2f\xfd"] {
        let file = [magic, data].concat();
        let Ok(mut capture) = wire::Capture::new(file.as_slice()) else { continue };
        let mut decoder = wire::Decoder::default();
        for _ in 0..ENOUGH {
            let Ok(Some(packet)) = capture.next() else { break };
            decoder.decode(&packet, |_| {});
        }
    }
});
