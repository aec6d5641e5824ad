//! Any payload of a datagram is read for a query of a name, its answer, or packets of QUIC.
#![no_main]

#[path = "../bodies/wire.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = bodies::datagram(data);
});
