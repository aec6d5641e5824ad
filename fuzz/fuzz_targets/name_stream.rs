//! Any stream of TCP is read for queries of names and their answers.
#![no_main]

#[path = "../bodies/wire.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = bodies::name_stream(data);
});
