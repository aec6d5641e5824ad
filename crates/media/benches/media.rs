//! How fast the paths are that every byte of a stream takes: chunks in, FLV tags and MPEG-TS out. Bytes of payload a second, the best
//! of seven rounds, since other work on the machine only slows a round down.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use thalweg_media::rtmp::{ChunkReader, ChunkWriter, MessageKind};
use thalweg_media::ts::{Demuxer, Muxer};
use thalweg_media::{AacConfig, AvcConfig, Config, Track, Unit, flv};

const ROUNDS: usize = 7;
/// Ten seconds of 3 Mb/s: pictures of 15 kB, 25 a second, and sound of 340 bytes, 47 a second.
const PICTURES: usize = 250;

fn units() -> Vec<Unit> {
    let mut units = Vec::new();
    for at in 0..PICTURES as u64 {
        let keyframe = at % 50 == 0;
        let length = if keyframe { 60_000 } else { 14_000u32 };
        let mut payload = length.to_be_bytes().to_vec();
        payload.push(if keyframe { 0x65 } else { 0x41 });
        payload.extend((1..length).map(|at| (at * 31 % 251) as u8 | 1));
        let unit = |track, dts_ms, payload: Vec<u8>| Unit {
            track,
            dts_ms,
            cts_ms: 0,
            keyframe: keyframe || track == Track::Audio,
            discontinuity: false,
            payload: payload.into(),
        };
        units.push(unit(Track::Video, at * 40, payload));
        for frame in 0..2 {
            units.push(unit(Track::Audio, at * 40 + frame * 21, vec![0x55; 340]));
        }
    }
    units
}

/// Prints the best rate of `round`, which handles `bytes` of payload and returns something that depends on them all.
fn measure(name: &str, bytes: usize, mut round: impl FnMut() -> usize) {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        black_box(round());
        best = best.min(begin.elapsed().as_secs_f64());
    }
    println!("{name:<34} {:>7.2} GB/s", bytes as f64 / best / 1e9);
}

fn main() {
    let units = units();
    let bytes: usize = units.iter().map(|unit| unit.payload.len()).sum();
    let avc = AvcConfig::of(b"\x67\x42\xc0\x1e\xda", b"\x68\xce").expect("sets");
    let aac = AacConfig::low_complexity(48_000, 2).expect("a rate");
    let mut out = Vec::with_capacity(2 * bytes);
    measure("memcpy", bytes, || {
        out.clear();
        units.iter().for_each(|unit| out.extend_from_slice(&unit.payload));
        out.len()
    });
    measure("FLV, writing units", bytes, || {
        out.clear();
        units.iter().for_each(|unit| flv::write_unit(unit, None, &mut out));
        out.len()
    });
    let mut muxer = Muxer::default();
    muxer.config(&Config::Avc(Arc::new(avc)));
    muxer.config(&Config::Aac(Arc::new(aac)));
    let mut mux = |out: &mut Vec<u8>| {
        out.clear();
        muxer.begin(out);
        units.iter().for_each(|unit| muxer.write(unit, out));
        muxer.flush(out);
        out.len()
    };
    measure("MPEG-TS, writing units", bytes, || mux(&mut out));
    let mut counter = Demuxer::new(1 << 20);
    measure("MPEG-TS, written and taken apart", bytes, || {
        // Its counters go on from round to round, as the muxer's do.
        mux(&mut out);
        let (mut input, mut sum) = (&out[..], 0);
        while let Some(pes) = counter.read(&mut input).expect("a stream") {
            sum += pes.payload.len();
        }
        while let Some(pes) = counter.finish().expect("a stream") {
            sum += pes.payload.len();
        }
        sum
    });
    for size in [128, 4096, 65_536] {
        let mut writer = ChunkWriter::default();
        writer.set_chunk_size(size);
        let mut chunks = Vec::new();
        for unit in &units {
            writer.write(6, MessageKind::Video, unit.dts_ms as u32, 1, &unit.payload, &mut chunks);
        }
        measure(&format!("RTMP, reading chunks of {size}"), bytes, || {
            let mut reader = ChunkReader::new(8 << 20);
            reader.set_chunk_size(size).expect("a size");
            let mut sum = 0;
            // As much as a socket gives at once.
            for mut input in chunks.chunks(64 << 10) {
                while let Some(message) = reader.read(&mut input).expect("chunks") {
                    sum += message.payload.len();
                }
            }
            sum
        });
    }
}
