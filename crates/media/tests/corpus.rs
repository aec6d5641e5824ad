//! A short run of what the fuzz targets do, on their corpora and on copies of those with a few bytes changed, the same every time.

use media::aac::AdtsFrames;
use media::avc::StartCodes;
use media::flv::{self, FlvReader};
use media::hls::Checker;
use media::rtmp::{Event, Limits, Session};
use media::ts::Demuxer;
use media::{Arrival, Ingest, Track, amf};
use std::fs;
use std::path::Path;

/// Changed copies of each input.
const COPIES: u64 = 400;

struct Random(u64);

impl Random {
    /// A number below `limit`. Source: Knuth's MMIX generator.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Hands each input of a target's corpus to `each`, and its copies; returns how many inputs `each` got something out of.
fn run(target: &str, each: impl Fn(&[u8]) -> usize) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut random = Random(1);
    let mut inputs: Vec<_> = fs::read_dir(&folder).expect("the corpus").map(|e| e.expect("an entry").path()).collect();
    inputs.sort();
    assert!(inputs.len() >= 20, "{} inputs in {}", inputs.len(), folder.display());
    let mut fruitful = 0;
    for path in inputs {
        let input = fs::read(&path).expect("an input");
        fruitful += usize::from(each(&input) > 0);
        for _ in 0..COPIES {
            let mut copy = input.clone();
            for _ in 0..=random.below(6) {
                if copy.is_empty() {
                    break;
                }
                let at = random.below(copy.len());
                match random.below(4) {
                    0 => copy.truncate(at),
                    1 => copy.insert(at, random.below(256) as u8),
                    2 => copy[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                    _ => copy[at] ^= 1 << random.below(8),
                }
            }
            each(&copy);
        }
    }
    fruitful
}

#[test]
fn rtmp() {
    let hello = [&[3][..], &[0; 2 * 1536]].concat();
    let fruitful = run("rtmp", |data| {
        let mut session = Session::new([7; 1536], Limits::default());
        assert_eq!(session.handle(&mut &hello[..]), Ok(None));
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
    });
    assert!(fruitful >= 9, "{fruitful}");
}

#[test]
fn amf() {
    let fruitful = run("amf", |data| {
        let Ok(values) = amf::decode(data) else { return 0 };
        let mut written = Vec::new();
        amf::encode(&values, &mut written);
        let _ = amf::decode(&written);
        values.len()
    });
    assert!(fruitful >= 15, "{fruitful}");
}

#[test]
fn flv() {
    let fruitful = run("flv", |mut input| {
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
            flv::write_unit(&unit, &mut out);
            assert!(matches!(FlvReader::new(1 << 21).read(&mut &out[..]), Ok(Some(_))));
        }
        tags
    });
    assert!(fruitful >= 12, "{fruitful}");
}

#[test]
fn ts() {
    let fruitful = run("ts", |data| {
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
    });
    assert!(fruitful >= 4, "{fruitful}");
}

#[test]
fn m3u8() {
    let fruitful = run("m3u8", |data| {
        let text = String::from_utf8_lossy(data);
        let (first, second) = text.split_once('\0').unwrap_or((&text, &text));
        let mut checker = Checker::default();
        let violations: Vec<_> = [first, second].into_iter().flat_map(|text| checker.check(text)).collect();
        assert!(violations.iter().all(|violation| !violation.to_string().is_empty()));
        usize::from(checker.last().is_some())
    });
    assert!(fruitful >= 9, "{fruitful}");
}
