//! Any frame of any link type is decoded or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, u32, &[u8])| {
    let (link, length, bytes) = input;
    let link = thalweg_wire::LinkType(link % 300);
    let _ = thalweg_wire::decode(link, bytes, length);
    // The same frame cut in two, so that parts of one packet meet.
    let mut decoder = thalweg_wire::Decoder::default();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    for (number, bytes) in [(1, bytes), (2, first), (3, second), (4, bytes)] {
        let at = thalweg_units::Timestamp::from_nanos(u64::from(length));
        let packet =
            thalweg_wire::Packet { number, at, interface: 0, link, original_len: length, dropped_before: 0, bytes };
        decoder.decode(&packet, |_| {});
    }
});
