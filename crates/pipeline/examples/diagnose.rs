//! Diagnoses captures without the command line: the verdict of each connection, the costliest first.
#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};
use thalweg_infer::CaptureDiagnosis;
use thalweg_pipeline::diagnose::{DiagnoseRequest, Sink, capture_files, diagnose_many};
use thalweg_pipeline::{Failure, Silent};

/// Prints a line for each connection.
struct Lines;

impl Sink for Lines {
    fn capture(&mut self, path: &Path, found: &CaptureDiagnosis) -> Result<(), Failure> {
        for flow in &found.report.flows {
            let code = flow.verdict.code();
            println!("{} #{} {} – {}: {code}", path.display(), flow.id, flow.client, flow.server);
        }
        Ok(())
    }

    fn failed(&mut self, _: &Path, failure: &Failure) -> Result<(), Failure> {
        println!("{}", failure.cause());
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

fn main() -> Result<(), Failure> {
    let named: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let request = DiagnoseRequest { paths: capture_files(&named), ..DiagnoseRequest::default() };
    diagnose_many(&request, vec![Box::new(Lines)], &mut Silent)?;
    Ok(())
}
