//! Any bytes as what an iperf3 client or server sends on the control connection and in datagrams.
#![no_main]

#[path = "../bodies/iperf.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = bodies::iperf(data);
});
