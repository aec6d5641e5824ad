//! A short run of what the fuzz target of iperf3's protocol does.

#[path = "../../../fuzz/bodies/iperf.rs"]
mod bodies;
#[path = "../../../fuzz/bodies/corpus.rs"]
mod corpus;

#[test]
fn iperf() {
    let fruitful = corpus::run("iperf", bodies::iperf);
    assert!(fruitful >= 14, "{fruitful}");
}
