//! Files of every kind, whole and damaged.

use super::*;
use crate::Capture;

fn file(magic: u32, big: bool, records: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut out = Vec::new();
    out.extend(word(magic));
    out.extend(if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] });
    for n in [0, 0, 65_535, 1] {
        out.extend(word(n));
    }
    for (seconds, fraction, bytes) in records {
        for n in [*seconds, *fraction, bytes.len() as u32, bytes.len() as u32] {
            out.extend(word(n));
        }
        if magic == MODIFIED {
            out.extend([0; 8]);
        }
        out.extend(*bytes);
    }
    out
}

#[test]
fn reads_every_magic_in_both_orders() {
    for (magic, nanos) in [(MICROSECONDS, 5_000), (NANOSECONDS, 5), (MODIFIED, 5_000)] {
        for big in [false, true] {
            let file = file(magic, big, &[(1, 5, b"abc"), (2, 5, b"defg")]);
            let mut capture = Capture::new(file.as_slice()).expect("capture");
            let first = capture.next().expect("read").expect("packet");
            assert_eq!((first.at.as_nanos(), first.bytes), (1_000_000_000 + nanos, &b"abc"[..]));
            let second = capture.next().expect("read").expect("packet");
            assert_eq!(second.bytes, b"defg");
            assert!(capture.next().expect("read").is_none());
            assert_eq!(capture.damage(), &Damage::default());
        }
    }
}

#[test]
fn a_bad_length_is_stepped_over() {
    let packets: Vec<(u32, u32, &[u8])> =
        vec![(100, 1, b"one"), (100, 2, b"two"), (101, 3, b"three"), (101, 4, b"four")];
    let mut file = file(MICROSECONDS, false, &packets);
    // The second record's length becomes absurd.
    file[24 + 19 + 8..24 + 19 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut capture = Capture::new(file.as_slice()).expect("capture");
    let mut seen = Vec::new();
    while let Some(packet) = capture.next().expect("read") {
        seen.push(packet.bytes.to_vec());
    }
    assert_eq!(seen, [b"one".to_vec(), b"three".to_vec(), b"four".to_vec()]);
    assert_eq!((capture.damage().resyncs, capture.damage().skipped_bytes), (1, 19));
}

#[test]
fn a_writer_whose_two_lengths_differ_by_a_checksum_is_believed() {
    let mut file = file(MICROSECONDS, false, &[(1, 1, b"onetwo"), (1, 2, b"threes"), (1, 3, b"fourth")]);
    for record in 0..3 {
        file[24 + record * 22 + 12] = 2;
    }
    let mut capture = Capture::new(file.as_slice()).expect("capture");
    for _ in 0..3 {
        assert_eq!(capture.next().expect("read").expect("packet").original_len, 6);
    }
    assert_eq!(capture.damage(), &Damage::default());
}

#[test]
fn a_cut_file_gives_its_whole_records() {
    let file = file(MICROSECONDS, false, &[(1, 1, b"one"), (1, 2, b"two")]);
    let mut capture = Capture::new(&file[..file.len() - 1]).expect("capture");
    assert!(capture.next().expect("read").is_some());
    assert!(capture.next().expect("read").is_none());
    assert!(capture.damage().truncated);
}

fn read(file: &[u8]) -> (Vec<Vec<u8>>, Damage) {
    let mut capture = Capture::new(file).expect("capture");
    let mut seen = Vec::new();
    while let Some(packet) = capture.next().expect("read") {
        seen.push(packet.bytes.to_vec());
    }
    (seen, capture.damage().clone())
}

#[test]
fn two_lengths_with_the_same_damage_hide_no_packets() {
    let packet = [7; 900];
    let packets: Vec<(u32, u32, &[u8])> = (0..100).map(|n| (100, n, &packet[..])).collect();
    let mut file = file(MICROSECONDS, false, &packets);
    let second = 24 + 916;
    for at in [second + 8, second + 12] {
        file[at..at + 4].copy_from_slice(&60_000u32.to_le_bytes());
    }
    let (seen, damage) = read(&file);
    assert_eq!((seen.len(), damage.resyncs, damage.skipped_bytes), (99, 1, 916));
    // Long ones that are followed by records, by the end, or by a part of one are sound.
    let long = vec![7; 60_000];
    let records: [(u32, u32, &[u8]); 3] = [(1, 1, &long), (1, 2, b"two"), (1, 3, &long)];
    let file = self::file(MICROSECONDS, false, &records);
    let (seen, damage) = read(&file);
    assert_eq!((seen.len(), damage), (3, Damage::default()));
    let (seen, damage) = read(&file[..file.len() - 1]);
    assert_eq!((seen.len(), damage.truncated, damage.resyncs), (2, true, 0));
}

#[test]
fn a_writer_that_keeps_more_than_there_was_is_believed() {
    let mut file = file(MICROSECONDS, false, &[(1, 1, &[1; 60]), (1, 2, &[2; 60]), (1, 3, &[3; 60])]);
    for record in 0..3 {
        file[24 + record * 76 + 12] = 40;
    }
    let (seen, damage) = read(&file);
    assert_eq!((seen.len(), damage), (3, Damage::default()));
}

#[test]
fn longer_record_headers_behind_the_usual_magics_are_told() {
    for (magic, usual, more) in [(MICROSECONDS, 16, 4), (MICROSECONDS, 16, 8), (MODIFIED, 24, 4)] {
        for big in [false, true] {
            let packets: [(u32, u32, &[u8]); 3] =
                [(100, 1, b"one, of some length"), (100, 2, b"two"), (101, 3, b"three")];
            let plain = file(magic, big, &packets);
            let mut longer = plain[..24].to_vec();
            let mut at = 24;
            for (_, _, bytes) in packets {
                longer.extend(&plain[at..at + usual]);
                longer.extend(vec![9; more]);
                longer.extend(bytes);
                at += usual + bytes.len();
            }
            let (seen, damage) = read(&longer);
            assert_eq!((seen, damage), (packets.map(|packet| packet.2.to_vec()).to_vec(), Damage::default()));
        }
    }
}
