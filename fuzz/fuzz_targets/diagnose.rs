//! Any bytes, as a whole capture.
#![no_main]

#[path = "../bodies/infer.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = bodies::diagnose(data);
});
