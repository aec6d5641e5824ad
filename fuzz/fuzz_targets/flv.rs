//! Any bytes as FLV, and its tags as a stream: time never goes back within a track, and what is written is read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use media::flv::{self, FlvReader};
use media::{Arrival, Ingest, Track};

fuzz_target!(|data: &[u8]| {
    let (mut reader, mut ingest, mut input) = (FlvReader::new(1 << 20), Ingest::default(), data);
    let mut last = [None; 2];
    while let Ok(Some(tag)) = reader.read(&mut input) {
        let Ok(Some(Arrival::Unit(unit))) = ingest.take(&tag) else { continue };
        let last = &mut last[usize::from(unit.track == Track::Video)];
        assert!(last.is_none_or(|last| unit.dts_ms > last));
        *last = Some(unit.dts_ms);
        let mut out = Vec::new();
        flv::write_header(true, true, &mut out);
        flv::write_unit(&unit, &mut out);
        assert!(matches!(FlvReader::new(1 << 21).read(&mut &out[..]), Ok(Some(_))));
    }
});
