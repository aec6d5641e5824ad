//! Any bytes as what a client or a server of trains and topics sends on the control connection.
#![no_main]

#[path = "../bodies/agent.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = bodies::agent(data);
});
