//! Any bytes behind a pcap magic.
#![no_main]

#[path = "../bodies/wire.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = bodies::pcap(data);
});
