//! Where results, notes and failures go: data to stdout, the rest to stderr.

use crate::args::{Color, Global};
use crate::failure::Failure;
use anyhow::anyhow;
use rustix::termios::{isatty, tcgetwinsize};
use std::io::{self, Write};

/// What was chosen for output, resolved once.
#[derive(Debug)]
pub(crate) struct Output {
    /// One JSON document instead of text.
    pub(crate) json: bool,
    /// Progress may be shown.
    pub(crate) progress: bool,
    /// Escape codes may be used on stdout.
    pub(crate) color: bool,
    /// Columns of the terminal.
    pub(crate) width: usize,
    /// No notes.
    pub(crate) quiet: bool,
}

/// Columns where stdout is no terminal.
const DEFAULT_WIDTH: usize = 100;

impl Output {
    /// Resolves the options against the terminal and the environment (<https://no-color.org>).
    pub(crate) fn new(global: &Global) -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let color = match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => !no_color && isatty(io::stdout()),
        };
        let width = tcgetwinsize(io::stdout()).map_or(DEFAULT_WIDTH, |size| usize::from(size.ws_col).max(40));
        Self {
            json: global.json,
            progress: !global.quiet && !global.no_progress && isatty(io::stderr()),
            color,
            width,
            quiet: global.quiet,
        }
    }

    /// Prints a result. A reader that went away (`| head`) is no failure; a disk that is full is one, as the result is lost.
    pub(crate) fn result(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(end.as_bytes()));
        printed(written.and_then(|()| out.flush()))
    }

    /// Prints a JSON document.
    pub(crate) fn json_result(&self, document: &impl serde::Serialize) -> Result<(), Failure> {
        self.result(&thalweg_report::json::to_string(document).map_err(Failure::host)?)
    }

    /// Prints a note, unless notes are not wanted.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }

    /// Prints a failure.
    pub(crate) fn failure(&self, failure: &Failure) {
        say(&format!("thalweg: {failure}"));
    }
}

/// What became of writing to stdout.
pub(crate) fn printed(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::host(anyhow!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// A line on stderr. Where that cannot be written there is nobody to tell; the exit code still does.
fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
