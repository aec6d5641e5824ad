//! Any bytes as a download's journal, or as a response's status and header fields.
#![no_main]

#[path = "../bodies/get.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = bodies::get(data);
});
