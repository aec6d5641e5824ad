//! What `--json` prints is what its schema says. Diagnoses and runs of the lab are held against theirs in `rules.rs`, fixes in `main_job.rs`,
//! and applications of settings in `tune.rs`.
//!
//! Needs the lab kernel 6.12, which `./x test` builds first.

mod common;
#[path = "common/schemas.rs"]
mod schemas;

use common::json;
use schemas::Schemas;
use std::fs;

#[test]
fn documents_are_as_their_schemas_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("host"), "net.ipv4.tcp_sack = 1\nnet.core.somaxconn = 4096\n").expect("written");
    let plan = ["tune", "plan", "--from", "host", "--purpose", "live-edge", "--rtt", "100ms", "--rate", "8mbit"];
    let mut schemas = Schemas::default();
    for args in [
        &["explain"][..],
        &["explain", "receive-window"],
        &["explain", "tcp_rmem"],
        &["explain", "net.ipv4.tcp_tw_recycle"],
        &["lab", "list"],
        &["lab", "kernel", "list"],
        &["lab", "kernel", "build", "6.12"],
        &["path", "list"],
        &["tune", "list"],
        &["tune", "list", "--all"],
        &["tune", "show", "--from", "host"],
        &["tune", "log", "--state", "state"],
        &["watch", "--once"],
        &plan,
    ] {
        schemas.check(&json(folder, args));
    }
}

#[test]
fn runs_and_their_comparison_are_as_their_schemas_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut schemas = Schemas::default();
    for out in ["one", "two"] {
        schemas.check(&json(folder, &["lab", "run", "rto-min", "--repeat", "2", "--seed", "3", "--out", out]));
    }
    schemas.check(&json(folder, &["lab", "compare", "one", "two"]));
}
