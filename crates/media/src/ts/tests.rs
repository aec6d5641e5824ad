//! What is muxed comes apart as it was.

use super::*;
use crate::aac::AdtsFrames;
use crate::avc::StartCodes;
use crate::{AacConfig, AvcConfig, Config, Track, Unit};
use proptest::prelude::*;
use std::sync::Arc;

const SPS: &[u8] = b"\x67\x42\xc0\x1e\xda";
const PPS: &[u8] = b"\x68\xce";

fn muxer(video: bool, audio: bool) -> Muxer {
    let mut muxer = Muxer::default();
    if video {
        muxer.config(&Config::Avc(Arc::new(AvcConfig::of(SPS, PPS).expect("a configuration"))));
    }
    if audio {
        muxer.config(&Config::Aac(Arc::new(AacConfig::low_complexity(48_000, 2).expect("a configuration"))));
    }
    muxer
}

fn picture(dts_ms: u64, cts_ms: i32, keyframe: bool, nal: &[u8]) -> Unit {
    let payload = [&(nal.len() as u32).to_be_bytes()[..], nal].concat().into();
    Unit { track: Track::Video, dts_ms, cts_ms, keyframe, discontinuity: false, payload }
}

fn sound(dts_ms: u64, frame: &[u8]) -> Unit {
    Unit { track: Track::Audio, dts_ms, cts_ms: 0, keyframe: true, discontinuity: false, payload: frame.into() }
}

fn read_all(demuxer: &mut Demuxer, mut input: &[u8]) -> Result<Vec<Pes>, TsError> {
    let mut all = Vec::new();
    while let Some(pes) = demuxer.read(&mut input)? {
        all.push(pes);
    }
    while let Some(pes) = demuxer.finish()? {
        all.push(pes);
    }
    Ok(all)
}

#[test]
fn a_keyframe_carries_its_parameter_sets() {
    let mut muxer = muxer(true, false);
    let mut out = Vec::new();
    muxer.begin(&mut out);
    muxer.write(&picture(1000, 80, true, b"\x65key"), &mut out);
    muxer.write(&picture(1040, -300, false, b"\x41next"), &mut out);
    muxer.flush(&mut out);
    assert_eq!(out.len() % PACKET, 0);
    let all = read_all(&mut Demuxer::new(1000), &out).expect("a stream");
    let nals: Vec<Vec<&[u8]>> = all.iter().map(|pes| StartCodes::new(&pes.payload).collect()).collect();
    assert_eq!(nals, [vec![b"\x09\xf0".as_slice(), SPS, PPS, b"\x65key"], vec![b"\x09\xf0".as_slice(), b"\x41next"]]);
    let dts = 126_000 + 1000 * 90;
    assert_eq!((all[0].dts, all[0].pts, all[0].pcr), (dts, dts + 80 * 90, Some(dts - 63_000)));
    assert!(all[0].random_access && !all[1].random_access);
    // Shown before it is decoded, and before the last one: no later than it has to be.
    assert_eq!((all[1].dts, all[1].pts), (dts + 1, dts + 1));
}

#[test]
fn negative_composition_times_move_decoding_as_a_whole() {
    let mut muxer = muxer(true, false);
    let mut out = Vec::new();
    muxer.begin(&mut out);
    let shown: Vec<i64> = (0..40).map(|at| 1_000 + at * 40 + [0, 80, -80, -40][at as usize % 4]).collect();
    for (at, shown_ms) in (0..).zip(&shown) {
        let dts_ms = 1_000 + at * 40;
        muxer.write(&picture(dts_ms, (shown_ms - dts_ms as i64) as i32, at == 0, b"\x41a"), &mut out);
    }
    muxer.flush(&mut out);
    let all = read_all(&mut Demuxer::new(1000), &out).expect("a stream");
    assert!(all.windows(2).all(|two| two[0].dts < two[1].dts), "decoding goes on");
    assert!(all.iter().all(|pes| pes.dts <= pes.pts));
    let steady = all.iter().zip(&shown).skip(5);
    assert!(steady.clone().all(|(pes, shown_ms)| pes.pts as i64 == 126_000 + shown_ms * 90), "shown when it is due");
    assert!(steady.zip(5..).all(|((pes, _), at)| pes.dts == 126_000 + (1_000 + at * 40 - 80) * 90));
}

#[test]
fn a_keyframe_with_one_kind_of_parameter_sets_has_the_other() {
    let mut muxer = muxer(true, false);
    let mut out = Vec::new();
    muxer.begin(&mut out);
    let mut unit = picture(1000, 0, true, SPS);
    unit.payload = [&unit.payload[..], b"\0\0\0\x04\x65key"].concat().into();
    muxer.write(&unit, &mut out);
    let all = read_all(&mut Demuxer::new(1000), &out).expect("a stream");
    let nals: Vec<&[u8]> = StartCodes::new(&all[0].payload).collect();
    assert_eq!(nals, [b"\x09\xf0".as_slice(), SPS, PPS, SPS, b"\x65key"]);
}

#[test]
fn sound_is_gathered_and_has_the_clock_where_there_is_no_picture() {
    let mut muxer = muxer(false, true);
    let mut out = Vec::new();
    muxer.begin(&mut out);
    for at in 0..7 {
        muxer.write(&sound(1000 + at * 64 / 3, &[at as u8; 300]), &mut out);
    }
    // A gap, so that the two that are gathered end.
    muxer.write(&sound(2000, &[7; 300]), &mut out);
    muxer.flush(&mut out);
    let all = read_all(&mut Demuxer::new(10_000), &out).expect("a stream");
    let frames: Vec<usize> = all.iter().map(|pes| AdtsFrames::new(&pes.payload).count()).collect();
    assert_eq!(frames, [4, 3, 1]);
    assert!(all.iter().all(|pes| pes.pcr == Some(pes.pts - 63_000)));
    assert_eq!(all[2].pts, 126_000 + 2000 * 90);
}

/// The clock references in packets, in ticks.
fn references(bytes: &[u8]) -> Vec<u64> {
    let is_there = |packet: &&[u8]| packet[3] & 0x20 != 0 && packet[4] > 0 && packet[5] & 0x10 != 0;
    let reference = |packet: &[u8]| {
        let high = u32::from_be_bytes([packet[6], packet[7], packet[8], packet[9]]);
        u64::from(high) << 1 | u64::from(packet[10] >> 7)
    };
    bytes.chunks(PACKET).filter(is_there).map(reference).collect()
}

#[test]
fn clock_references_are_a_tenth_of_a_second_apart() {
    // A picture a second with sound, and a second without any; and sound alone, with frames of 21 and of 128 ms.
    for (video, sample_rate, frame_us) in [(true, 48_000, 21_333), (false, 48_000, 21_333), (false, 8_000, 128_000)] {
        let mut muxer = muxer(video, false);
        let sound_config = AacConfig::low_complexity(sample_rate, 1).expect("a configuration");
        muxer.config(&Config::Aac(Arc::new(sound_config)));
        let mut out = Vec::new();
        for segment in 0..3 {
            muxer.begin(&mut out);
            let begin_ms = segment * 4_000;
            let mut sound_us = 0;
            for at_ms in (0..4_000).step_by(1_000) {
                if video {
                    muxer.write(&picture(begin_ms + at_ms, 0, at_ms == 0, b"\x65a"), &mut out);
                }
                while sound_us < (at_ms + 1_000) * 1_000 && at_ms < 3_000 {
                    muxer.write(&sound(begin_ms + sound_us / 1_000, &[1; 100]), &mut out);
                    sound_us += frame_us;
                }
            }
            muxer.flush(&mut out);
        }
        let found = references(&out);
        let apart: Vec<u64> = found.windows(2).map(|two| two[1] - two[0]).collect();
        assert!(apart.iter().all(|&apart| apart <= 9_000), "{video} {sample_rate}: {apart:?}");
        assert!(found[found.len() - 1] - found[0] > 10 * 90_000);
        let all = read_all(&mut Demuxer::new(10_000), &out).expect("a stream");
        assert!(all.iter().all(|pes| pes.pcr.is_none_or(|pcr| pcr < pes.dts)));
    }
}

#[test]
fn damage_is_told() {
    let mut muxer = muxer(true, false);
    let mut out = Vec::new();
    muxer.begin(&mut out);
    muxer.write(&picture(0, 0, true, &[0x65; 1000]), &mut out);
    let whole = |bytes: &[u8]| read_all(&mut Demuxer::new(10_000), bytes);
    assert_eq!(whole(&out).expect("a stream").len(), 1);
    let without = [&out[..3 * PACKET], &out[4 * PACKET..]].concat();
    assert_eq!(whole(&without), Err(TsError::Continuity { pid: 0x100, expected: 1, found: 2 }));
    assert_eq!(whole(&out[2 * PACKET..]), Err(TsError::Early(0x100)));
    assert_eq!(whole(&out[1..]), Err(TsError::Sync(0x40)));
    assert_eq!(whole(&out[..out.len() - 1]), Err(TsError::Cut));
    assert_eq!(read_all(&mut Demuxer::new(500), &out), Err(TsError::Long(0x100)));
    let mut flipped = out.clone();
    flipped[PACKET + 20] ^= 1;
    assert_eq!(whole(&flipped), Err(TsError::Checksum(0x1000)));
}

#[test]
fn timestamps_wrap_after_a_day() {
    let mut muxer = muxer(true, false);
    let mut out = Vec::new();
    muxer.begin(&mut out);
    muxer.write(&picture((1 << 33) / 90, 0, true, b"\x65"), &mut out);
    let all = read_all(&mut Demuxer::new(1000), &out).expect("a stream");
    assert_eq!(all[0].pts, ((1u64 << 33) / 90 * 90 + 126_000) % (1 << 33));
}

proptest! {
    #[test]
    fn every_length_comes_back(lengths in prop::collection::vec((any::<bool>(), 1usize..2000), 1..40)) {
        let mut muxer = muxer(true, true);
        let mut demuxer = Demuxer::new(100_000);
        let (mut sent, mut came) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for (segment, part) in lengths.chunks(7).enumerate() {
            let mut out = Vec::new();
            muxer.begin(&mut out);
            for (at, &(video, length)) in part.iter().enumerate() {
                let dts_ms = (segment * 1000 + at * 20) as u64;
                // No start code and no zero at the end: those are another layer's.
                let body = vec![0x41; length];
                let unit = if video { picture(dts_ms, 40, false, &body) } else { sound(dts_ms, &body) };
                muxer.write(&unit, &mut out);
                sent[usize::from(video)].push(length);
            }
            muxer.flush(&mut out);
            prop_assert_eq!(out.len() % PACKET, 0);
            for pes in read_all(&mut demuxer, &out).expect("a stream") {
                match pes.track {
                    Track::Video => came[1].extend(StartCodes::new(&pes.payload).skip(1).map(<[u8]>::len)),
                    Track::Audio => came[0].extend(AdtsFrames::new(&pes.payload).map(|(_, frame)| frame.len())),
                }
            }
        }
        prop_assert_eq!(sent, came);
    }

    #[test]
    fn nothing_panics(parts in prop::collection::vec((0usize..188, any::<u8>()), 0..30)) {
        let mut muxer = muxer(true, true);
        let mut out = Vec::new();
        muxer.begin(&mut out);
        for at in 0..3 {
            muxer.write(&picture(at * 40, 0, true, &[0x65; 400]), &mut out);
            muxer.write(&sound(at * 40, &[1; 100]), &mut out);
        }
        muxer.flush(&mut out);
        for (at, (place, byte)) in parts.into_iter().enumerate() {
            let packets = out.len() / PACKET;
            out[at % packets * PACKET + place] = byte;
        }
        let _ = read_all(&mut Demuxer::new(1000), &out);
    }
}
