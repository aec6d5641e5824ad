//! Any bytes behind a section header of pcapng.
#![no_main]

#[path = "../bodies/wire.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = bodies::pcapng(data);
});
