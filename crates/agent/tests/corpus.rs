//! A short run of what the fuzz target of the control connection does.

#[path = "../../../fuzz/bodies/agent.rs"]
mod bodies;
#[path = "../../../fuzz/bodies/corpus.rs"]
mod corpus;

#[test]
fn agent() {
    let fruitful = corpus::run("agent", bodies::agent);
    assert!(fruitful >= 18, "{fruitful}");
}
