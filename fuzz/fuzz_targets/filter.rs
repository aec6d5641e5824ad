//! Any text as a filter: refused with a place, or run on any frame and compiled.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::filter::Filter;
use wire::{Decoded, LinkType};

fuzz_target!(|input: (&str, &[u8])| {
    let (text, frame) = input;
    match text.parse::<Filter>() {
        Ok(filter) => {
            if let Decoded::Tcp(segment) = wire::decode(LinkType::RAW, frame, frame.len() as u32) {
                let _ = filter.matches(&segment);
            }
            if let Some(program) = filter.program(96) {
                let last = program.len() - 1;
                // Every jump stays within the program, or the kernel would refuse it.
                assert!(program.iter().enumerate().all(|(at, i)| i.code & 7 != 5 || {
                    let far = if i.code == 5 { i.k as usize } else { usize::from(i.jt.max(i.jf)) };
                    at + 1 + far <= last
                }));
            }
        }
        Err(error) => assert!(error.at <= text.chars().count() && !error.hint.is_empty()),
    }
});
