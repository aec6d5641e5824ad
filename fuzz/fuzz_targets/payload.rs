//! Any payload of a segment is read for a message of HTTP/1 or TLS, whole and cut in two.
#![no_main]

#[path = "../bodies/wire.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = bodies::payload(data);
});
