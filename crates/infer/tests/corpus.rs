//! A short run of what the fuzz target does, on captures of the lab with losses, reordering and duplicates, at both ends.

#[path = "../../../fuzz/bodies/infer.rs"]
mod bodies;
#[path = "../../../fuzz/bodies/corpus.rs"]
mod corpus;

#[test]
fn diagnose() {
    assert_eq!(corpus::run("diagnose", bodies::diagnose), 20, "each has a connection");
}
