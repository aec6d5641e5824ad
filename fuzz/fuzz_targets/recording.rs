//! Any bytes as a line of a recording of sockets.
#![no_main]

#[path = "../bodies/watch.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = bodies::recording(data);
});
