//! Any payload of a segment is read for a message of HTTP/1 or TLS, whole and cut in two.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../bodies/wire.rs"]
mod bodies;

fuzz_target!(|data: &[u8]| {
    bodies::payload(data);
});
