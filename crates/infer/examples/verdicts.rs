//! The verdict of every connection of some captures, a line each: `cargo run --release -p thalweg-infer --example verdicts -- *.pcapng`.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    for name in std::env::args().skip(1) {
        for flow in thalweg_infer::diagnose_file(Path::new(&name))?.report.flows {
            let findings: Vec<&str> = flow.findings.iter().map(|finding| finding.code().as_str()).collect();
            println!("{name}\t{}\t{}\t{}", flow.id, flow.verdict.code().as_str(), findings.join(" "));
        }
    }
    Ok(())
}
