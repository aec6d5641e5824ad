//! Any two texts as successive playlists.
#![no_main]

#[path = "../bodies/media.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &str| {
    let _ = bodies::m3u8(data);
});
