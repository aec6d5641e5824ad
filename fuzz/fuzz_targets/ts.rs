//! Any bytes as MPEG-TS: taken apart, or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use media::aac::AdtsFrames;
use media::avc::StartCodes;
use media::ts::Demuxer;

fuzz_target!(|data: &[u8]| {
    let (mut demuxer, mut input, mut bytes) = (Demuxer::new(1 << 20), data, 0);
    while let Ok(Some(pes)) = demuxer.read(&mut input) {
        bytes += pes.payload.len();
        let _ = StartCodes::new(&pes.payload).count() + AdtsFrames::new(&pes.payload).count();
    }
    while let Ok(Some(pes)) = demuxer.finish() {
        bytes += pes.payload.len();
    }
    assert!(bytes <= data.len());
});
