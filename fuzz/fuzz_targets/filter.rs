//! Any text as a filter, on any frame.
#![no_main]

#[path = "../bodies/wire.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &[u8])| {
    let _ = bodies::filter(input.0, input.1);
});
