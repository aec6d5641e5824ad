//! Any bytes behind the magic of a compressed file.
#![no_main]

#[path = "../bodies/wire.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = bodies::compressed(data);
});
