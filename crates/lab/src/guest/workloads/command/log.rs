//! What a program printed: both of its outputs in one file, in the order they came.

use crate::plan::LOG_SUFFIX;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use thalweg_host::HostError;

/// Lines of a log that a note tells.
const TAIL_LINES: usize = 5;
const TAIL_BYTES: u64 = 2048;
/// As much of a log is searched for figures.
const SEARCHED_BYTES: u64 = 64 << 20;

/// A program's log; each of its runs goes on with it.
#[derive(Debug, Default)]
pub(super) struct Log {
    path: PathBuf,
}

impl Log {
    /// The log of `host` in a folder.
    pub(super) fn at(folder: &Path, host: &str) -> Self {
        Self { path: folder.join(format!("{host}{LOG_SUFFIX}")) }
    }

    /// The file twice, to be a program's standard output and standard error.
    pub(super) fn files(&self) -> Result<(File, File), HostError> {
        let open = || {
            let file = OpenOptions::new().append(true).create(true).open(&self.path)?;
            Ok((file.try_clone()?, file))
        };
        open().map_err(|source| self.error("write", source))
    }

    /// All of it, for figures.
    pub(super) fn text(&self) -> Result<String, HostError> {
        let mut bytes = Vec::new();
        File::open(&self.path)
            .and_then(|file| file.take(SEARCHED_BYTES).read_to_end(&mut bytes))
            .map_err(|source| self.error("read", source))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Its last lines, as the end of a sentence; nothing where nothing was printed.
    pub(super) fn tail(&self) -> String {
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(&self.path)?;
            let len = file.metadata()?.len();
            file.seek(SeekFrom::Start(len.saturating_sub(TAIL_BYTES)))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        if lines.is_empty() {
            return "; it printed nothing".to_owned();
        }
        let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        format!("; its log ends with:\n  {}", last.join("\n  "))
    }

    fn error(&self, act: &str, source: io::Error) -> HostError {
        HostError { act: format!("{act} {}", self.path.display()), source }
    }
}
