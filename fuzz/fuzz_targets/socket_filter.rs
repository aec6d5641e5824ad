//! Any text as a filter of sockets.
#![no_main]

#[path = "../bodies/watch.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = bodies::socket_filter(text);
});
