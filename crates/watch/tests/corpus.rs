//! A short run of what the fuzz targets do.

#[path = "../../../fuzz/bodies/watch.rs"]
mod bodies;
#[path = "../../../fuzz/bodies/corpus.rs"]
mod corpus;

use corpus::run;

#[test]
fn socket_filter() {
    let read = run("socket_filter", |input| bodies::socket_filter(&String::from_utf8_lossy(input)));
    assert!(read >= 15, "{read} of the corpus are filters");
}

#[test]
fn recording() {
    let read = run("recording", bodies::recording);
    assert!(read >= 15, "{read} of the corpus show sockets");
}
