//! Any bytes behind an RTMP handshake: the session ends or goes on, and holds no more than its limits say.
#![no_main]

use libfuzzer_sys::fuzz_target;
use media::rtmp::{Event, Limits, Session};

fuzz_target!(|data: &[u8]| {
    let mut session = Session::new([7; 1536], Limits::default());
    let hello = [&[3][..], &[0; 2 * 1536]].concat();
    assert_eq!(session.handle(&mut &hello[..]), Ok(None));
    // In pieces, as a socket gives them.
    let (piece, data) = data.split_first().map_or((1, data), |(&first, rest)| (usize::from(first) + 1, rest));
    for mut input in data.chunks(piece) {
        loop {
            match session.handle(&mut input) {
                Ok(Some(Event::Publish { .. })) => session.accept(),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        assert!(session.output().len() < 80 << 10);
    }
});
