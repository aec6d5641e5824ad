//! A short run of what the fuzz targets do.

#[path = "../../../fuzz/bodies/wire.rs"]
mod bodies;
#[path = "../../../fuzz/bodies/corpus.rs"]
mod corpus;

use corpus::run;

#[test]
fn pcap() {
    run("pcap", bodies::pcap);
}

#[test]
fn pcapng() {
    run("pcapng", bodies::pcapng);
}

#[test]
fn compressed() {
    run("compressed", bodies::compressed);
}

#[test]
fn datagram() {
    assert!(run("datagram", bodies::datagram) >= 19, "all but four that are damaged have something");
}

#[test]
fn name_stream() {
    assert_eq!(run("name_stream", bodies::name_stream), 22, "each has a message");
}

#[test]
fn payload() {
    assert_eq!(run("payload", bodies::payload), 26, "each has a message or a record");
}

#[test]
fn filter() {
    run("filter", |input| bodies::filter(&String::from_utf8_lossy(input), &[]));
}
