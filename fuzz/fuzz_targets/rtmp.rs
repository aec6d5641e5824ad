//! Any bytes behind an RTMP handshake.
#![no_main]

#[path = "../bodies/media.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = bodies::rtmp(data);
});
