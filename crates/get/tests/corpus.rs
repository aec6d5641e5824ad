//! A short run of what the fuzz target of a download's parsers does.

#[path = "../../../fuzz/bodies/get.rs"]
mod bodies;
#[path = "../../../fuzz/bodies/corpus.rs"]
mod corpus;

#[test]
fn get() {
    let fruitful = corpus::run("get", bodies::get);
    assert!(fruitful >= 11, "{fruitful}");
}
