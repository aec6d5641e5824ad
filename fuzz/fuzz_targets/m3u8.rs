//! Any two texts as successive playlists: what is wrong with them is said.
#![no_main]

use libfuzzer_sys::fuzz_target;
use media::hls::Checker;

fuzz_target!(|data: &str| {
    let mut checker = Checker::default();
    let (first, second) = data.split_once('\u{0}').unwrap_or((data, data));
    for text in [first, second] {
        for violation in checker.check(text) {
            assert!(!violation.to_string().is_empty());
        }
    }
});
