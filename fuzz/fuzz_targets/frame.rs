//! Any frame of any link type is decoded or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, u32, &[u8])| {
    let (link, length, bytes) = input;
    let _ = wire::decode(wire::LinkType(link % 300), bytes, length);
});
