//! Any bytes as HTTP requests, or as a PROXY header.
#![no_main]

#[path = "../bodies/http.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = bodies::http(data);
});
