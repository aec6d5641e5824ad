//! What the fuzz targets of media do with an input, and the corpus tests, too. Each returns how much it got out of it.
#![allow(dead_code)]

use thalweg_media::aac::AdtsFrames;
use thalweg_media::avc::StartCodes;
use thalweg_media::flv::{self, FlvReader};
use thalweg_media::hls::Checker;
use thalweg_media::rtmp::{Event, Limits, Session};
use thalweg_media::ts::Demuxer;
use thalweg_media::{Arrival, Ingest, Track};

/// Any bytes as AMF values: refused, or values that can be written and read.
pub(crate) fn amf(data: &[u8]) -> usize {
    let Ok(values) = thalweg_media::amf::decode(data) else { return 0 };
    let mut written = Vec::new();
    thalweg_media::amf::encode(&values, &mut written);
    // What AMF 3 nests or AMF 0 leaves open may be too much for one message; it never panics.
    let _ = thalweg_media::amf::decode(&written);
    values.len()
}

/// Any bytes as FLV, and its tags as a stream: time never goes back within a track, and what is written is read again.
pub(crate) fn flv(mut input: &[u8]) -> usize {
    let (mut reader, mut ingest) = (FlvReader::new(1 << 20), Ingest::default());
    let (mut last, mut tags) = ([None; 2], 0);
    while let Ok(Some(tag)) = reader.read(&mut input) {
        tags += 1;
        let Ok(Some(Arrival::Unit(unit))) = ingest.take(&tag) else { continue };
        let last = &mut last[usize::from(unit.track == Track::Video)];
        assert!(last.is_none_or(|last| unit.dts_ms > last));
        *last = Some(unit.dts_ms);
        let mut out = Vec::new();
        flv::write_header(true, true, &mut out);
        flv::write_unit(&unit, None, &mut out);
        assert!(matches!(FlvReader::new(1 << 21).read(&mut &out[..]), Ok(Some(_))));
    }
    tags
}

/// Any two texts as successive playlists: what is wrong with them is said.
pub(crate) fn m3u8(data: &str) -> usize {
    let mut checker = Checker::default();
    let (first, second) = data.split_once('\0').unwrap_or((data, data));
    for text in [first, second] {
        for violation in checker.check(text) {
            assert!(!violation.to_string().is_empty());
        }
    }
    usize::from(checker.last().is_some())
}

/// Any bytes behind an RTMP handshake: the session ends or goes on, and holds no more than its limits say.
pub(crate) fn rtmp(data: &[u8]) -> usize {
    let mut session = Session::new([7; 1536], Limits::default());
    let hello = [&[3][..], &[0; 2 * 1536]].concat();
    assert_eq!(session.handle(&mut &hello[..]), Ok(None));
    // In pieces, as a socket gives them.
    let (piece, data) = data.split_first().map_or((1, data), |(&first, rest)| (usize::from(first) + 1, rest));
    let mut events = 0;
    for mut input in data.chunks(piece) {
        loop {
            match session.handle(&mut input) {
                Ok(Some(Event::Publish { .. })) => session.accept(),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return events,
            }
            events += 1;
        }
        assert!(session.output().len() < 80 << 10);
    }
    events
}

/// Any bytes as MPEG-TS: taken apart, or refused.
pub(crate) fn ts(data: &[u8]) -> usize {
    let (mut demuxer, mut input, mut bytes) = (Demuxer::new(1 << 20), data, 0);
    while let Ok(Some(pes)) = demuxer.read(&mut input) {
        bytes += pes.payload.len();
        let _ = StartCodes::new(&pes.payload).count() + AdtsFrames::new(&pes.payload).count();
    }
    while let Ok(Some(pes)) = demuxer.finish() {
        bytes += pes.payload.len();
    }
    assert!(bytes <= data.len());
    bytes
}
