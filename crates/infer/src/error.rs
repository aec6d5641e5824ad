//! Why a capture could not be diagnosed.

use thiserror::Error;

/// Why a capture could not be diagnosed.
#[derive(Debug, Error)]
pub enum Error {
    /// The file could not be opened.
    #[error("cannot open {path}: {cause}")]
    Open {
        /// The file.
        path: String,
        /// Why not.
        cause: std::io::Error,
    },
    /// Reading failed.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// The file.
        path: String,
        /// Why not.
        cause: std::io::Error,
    },
    /// The file is of another kind.
    #[error("{path} is not a pcap or pcapng capture: it looks like {looks_like}")]
    NotACapture {
        /// The file.
        path: String,
        /// What it looks like.
        looks_like: String,
    },
}

impl Error {
    /// The same, for the file at `path`.
    pub fn from_wire(error: thalweg_wire::Error, path: &str) -> Self {
        let path = path.to_owned();
        match error {
            thalweg_wire::Error::Read(cause) => Self::Read { path, cause },
            thalweg_wire::Error::NotACapture { looks_like } => Self::NotACapture { path, looks_like },
        }
    }
}
