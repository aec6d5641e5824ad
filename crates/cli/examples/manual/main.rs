//! Writes the man pages and the shells' completions into a folder: `cargo run -p thalweg-cli --example manual -- FOLDER`.

mod pages;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return said("usage: manual FOLDER", 2);
    };
    match pages::write(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => said(&format!("cannot write the manual into {}: {error}", folder.display()), 3),
    }
}

#[expect(clippy::print_stderr, reason = "an error of a tool that only the packaging runs")]
fn said(text: &str, code: u8) -> ExitCode {
    eprintln!("{text}");
    ExitCode::from(code)
}
