//! A short run of what the fuzz targets do.

#[path = "../../../fuzz/bodies/media.rs"]
mod bodies;
#[path = "../../../fuzz/bodies/corpus.rs"]
mod corpus;

use corpus::run;

/// A target: what it does, and of how many inputs of its corpus something comes.
fn check(target: &str, least: usize, body: impl Fn(&[u8]) -> usize) {
    let fruitful = run(target, body);
    assert!(fruitful >= least, "{fruitful}");
}

#[test]
fn rtmp() {
    check("rtmp", 9, bodies::rtmp);
}

#[test]
fn amf() {
    check("amf", 15, bodies::amf);
}

#[test]
fn flv() {
    check("flv", 12, bodies::flv);
}

#[test]
fn ts() {
    check("ts", 4, bodies::ts);
}

#[test]
fn m3u8() {
    check("m3u8", 9, |data| bodies::m3u8(&String::from_utf8_lossy(data)));
}
