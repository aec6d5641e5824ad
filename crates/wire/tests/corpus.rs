//! A short run of what the fuzz targets do, on their corpora and on copies of those with a few bytes changed, the same every time.

use std::fs;
use std::path::Path;
use wire::filter::Filter;
use wire::{Capture, Decoder};

/// Changed copies of each input.
const COPIES: u64 = 400;
const MOST_PACKETS: usize = 20_000;

struct Random(u64);

impl Random {
    /// A number below `limit`. Source: Knuth's MMIX generator.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Hands each input of a target's corpus to `each`, and its copies.
fn run(target: &str, each: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut random = Random(1);
    let mut inputs: Vec<_> = fs::read_dir(&folder).expect("the corpus").map(|e| e.expect("an entry").path()).collect();
    inputs.sort();
    assert!(inputs.len() >= 20, "{} inputs in {}", inputs.len(), folder.display());
    for path in inputs {
        let input = fs::read(&path).expect("an input");
        each(&input);
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
}

/// Reads to the end and decodes; what is given lies within the file, unless that is compressed.
fn read(file: &[u8], is_plain: bool) {
    let Ok(mut capture) = Capture::new(file) else { return };
    let mut decoder = Decoder::default();
    let mut bytes = 0;
    for _ in 0..MOST_PACKETS {
        let Ok(Some(packet)) = capture.next() else { break };
        bytes += packet.bytes.len();
        decoder.decode(&packet, |_| {});
    }
    assert!(!is_plain || bytes <= file.len());
    assert!(capture.damage().notes().len() <= 5);
}

#[test]
fn pcap() {
    run("pcap", |input| {
        for magic in [[0xd4, 0xc3, 0xb2, 0xa1], [0xa1, 0xb2, 0x3c, 0x4d], [0x34, 0xcd, 0xb2, 0xa1]] {
            read(&[&magic[..], input].concat(), true);
        }
    });
}

#[test]
fn pcapng() {
    let header = wire::pcapng::Writer::new(Vec::new(), "fuzz").and_then(|mut writer| {
        writer.add_interface("eth0", wire::LinkType::ETHERNET, 0)?;
        writer.finish()
    });
    let header = header.expect("a vector takes every byte");
    run("pcapng", |input| read(&[&header, input].concat(), true));
}

#[test]
fn compressed() {
    run("compressed", |input| read(input, false));
}

#[test]
fn filter() {
    run("filter", |input| {
        let text = String::from_utf8_lossy(input);
        match text.parse::<Filter>() {
            Ok(filter) => drop(filter.program(96)),
            Err(error) => {
                assert!(error.at <= text.chars().count() && !error.hint.is_empty() && !error.to_string().is_empty())
            }
        }
    });
}
