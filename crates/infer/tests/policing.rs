//! The labelled policing set: chunks of transfers through policers, shapers and random loss, seen at the sender.
//!
//! The set is not in this repository, so these tests run by name:
//! `THALWEG_CAPTURES=FOLDER cargo test --release -p thalweg-infer --test policing -- --ignored`, with the set and its `manifest.tsv` in
//! `FOLDER/policing`. `crates/thalweg/tests/rules.rs` judges a policer of the lab in every test run. A chunk is what follows one request
//! of the client, as its authors count; each is diagnosed alone, with the connection's handshake.
//!
//! Source: USC-NSL/policing-detection; Flach et al., SIGCOMM 2016.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use thalweg_wire::{Capture, Decoded};

/// The port of the set's server.
const SERVER: u16 = 1234;

/// Of one kind: chunks, those with anything sent again, those taken for policed, and the errors of their rates.
#[derive(Debug, Default)]
struct Found {
    chunks: usize,
    lossy: usize,
    policed: usize,
    errors: Vec<f64>,
}

/// The folder that `THALWEG_CAPTURES` names, which has the set in `policing`.
fn folder() -> PathBuf {
    let folder = std::env::var_os("THALWEG_CAPTURES").expect("THALWEG_CAPTURES names a folder of captures");
    Path::new(&folder).join("policing")
}

/// The chunks of a capture's connection, each as a capture of its own.
fn chunks(path: &Path) -> Vec<Vec<u8>> {
    let mut capture = Capture::new(File::open(path).expect("a file")).expect("a capture");
    let header = [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat();
    let (mut handshake, mut chunks): (Vec<u8>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
    while let Some(packet) = capture.next().expect("readable") {
        let Decoded::Tcp(segment) = thalweg_wire::decode(packet.link, packet.bytes, packet.original_len) else {
            continue;
        };
        let is_up = segment.tcp.destination_port == SERVER;
        if !is_up && segment.tcp.source_port != SERVER {
            continue;
        }
        let nanos = packet.at.as_nanos();
        let (seconds, rest) = ((nanos / 1_000_000_000) as u32, (nanos % 1_000_000_000) as u32);
        let mut record = [seconds, rest, packet.bytes.len() as u32, packet.original_len].map(u32::to_le_bytes).concat();
        record.extend_from_slice(packet.bytes);
        if segment.tcp.flags.has(thalweg_wire::Flags::SYN) {
            handshake.extend_from_slice(&record);
        }
        if is_up && segment.payload_len > 0 {
            chunks.push([header.as_slice(), &handshake].concat());
        }
        if let Some(chunk) = chunks.last_mut() {
            chunk.extend_from_slice(&record);
        }
    }
    chunks
}

#[test]
#[ignore = "needs THALWEG_CAPTURES, a folder with the labelled policing set"]
#[expect(clippy::print_stdout, reason = "the table is in docs/verdicts.md")]
fn policers_are_told_from_shapers_and_random_loss() {
    let folder = folder();
    let manifest = std::fs::read_to_string(folder.join("manifest.tsv")).expect("the manifest");
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    for line in manifest.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (kind, rate, connections) = (fields[1], fields[2].parse::<f64>().expect("a rate"), fields[6]);
        if connections != "1" {
            continue;
        }
        for chunk in chunks(&folder.join(fields[0])) {
            let report = thalweg_infer::diagnose_reader(chunk.as_slice(), fields[0]).expect("a capture").report;
            let flow = report.flows.iter().max_by_key(|flow| flow.bytes_down).expect("a flow");
            let of = found.entry(kind.to_owned()).or_default();
            of.chunks += 1;
            of.lossy += usize::from(flow.retransmits.total > 0);
            if let Some(bucket) = flow.policer {
                of.policed += 1;
                of.errors.push((bucket.rate_bps / rate - 1.0).abs());
            }
        }
    }
    for (kind, of) in &mut found {
        of.errors.sort_unstable_by(f64::total_cmp);
        let median = of.errors.get(of.errors.len() / 2).copied().unwrap_or_default();
        println!("| {kind} | {} | {} | {} | {:.2} % |", of.chunks, of.lossy, of.policed, 100.0 * median);
    }
    let part = |kind: &str| found[kind].policed as f64 / found[kind].chunks as f64;
    // The authors' own detector: 75.6 % found, 2.8 % of shaped and 0.14 % of random loss taken for policed, 4.7 % off the rate.
    assert!(part("policed") > 0.756, "found: {}", part("policed"));
    assert!(part("shaped") <= 0.028, "shaped: {}", part("shaped"));
    assert!(part("random-loss") <= 0.0014, "random loss: {}", part("random-loss"));
    let errors = &found["policed"].errors;
    assert!(errors[errors.len() / 2] < 0.047, "off by {}", errors[errors.len() / 2]);
}

/// What the program tells of a whole capture: the policer, and no more to gain than it lets through.
#[test]
#[ignore = "needs THALWEG_CAPTURES, a folder with the labelled policing set"]
fn behind_one_policer_the_verdict_is_the_policer() {
    let folder = folder();
    let manifest = std::fs::read_to_string(folder.join("manifest.tsv")).expect("the manifest");
    let (mut policed, mut told, mut beyond) = (0, 0, Vec::new());
    for line in manifest.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        if fields[1] != "policed" || fields[6] != "1" {
            continue;
        }
        let file = File::open(folder.join(fields[0])).expect("a file");
        let report = thalweg_infer::diagnose_reader(file, fields[0]).expect("a capture").report;
        let flow = report.flows.iter().max_by_key(|flow| flow.bytes_down).expect("a flow");
        policed += 1;
        told += usize::from(flow.verdict.code() == thalweg_model::Code::Policer);
        let gains = flow.findings.iter().map(|finding| finding.verdict.gain).chain([flow.verdict.gain]);
        let Some(bucket) = flow.policer else { continue };
        let most = (bucket.rate_bps / flow.goodput_bps).max(1.0) * 1.01;
        beyond.extend(gains.flatten().filter(|&gain| gain > most).map(|gain| (fields[0].to_owned(), gain, most)));
    }
    assert!(policed == 14 && told >= 13, "{told} of {policed}");
    assert!(beyond.is_empty(), "{beyond:?}");
}
