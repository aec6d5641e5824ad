//! Files that have their names only when they are whole.

use crate::failure::Failure;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 1 << 20;

/// Writes a text file.
///
/// # Errors
/// When it cannot be written; nothing is left then.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fill(path, |file| file.write_all(text.as_bytes()).map_err(|error| failed(path, &error)))
}

/// Writes a file by `fill`.
///
/// # Errors
/// What `fill` says, or that the file cannot be written; nothing is left then.
pub fn fill<T>(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> Result<T, Failure>) -> Result<T, Failure> {
    let partial = self::partial(path);
    let written = File::create(&partial).map_err(|error| failed(path, &error)).and_then(|file| {
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, file);
        let done = fill(&mut file)?;
        file.flush().and_then(|()| fs::rename(&partial, path)).map_err(|error| failed(path, &error))?;
        Ok(done)
    });
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Where a file grows until it is whole.
#[must_use]
pub fn partial(path: &Path) -> PathBuf {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    PathBuf::from(partial)
}

/// That a file cannot be written.
pub fn failed(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::host(format!("cannot write {}: {error}", path.display()))
}
