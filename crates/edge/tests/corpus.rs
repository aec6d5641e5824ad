//! A short run of what the fuzz target of the HTTP front does.

#[path = "../../../fuzz/bodies/http.rs"]
mod bodies;
#[path = "../../../fuzz/bodies/corpus.rs"]
mod corpus;

#[test]
fn http() {
    let fruitful = corpus::run("http", bodies::http);
    assert!(fruitful >= 15, "{fruitful}");
}
