//! Any bytes as AMF values.
#![no_main]

#[path = "../bodies/media.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = bodies::amf(data);
});
