//! Why a scenario gave no report.

use crate::boot::BootError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a scenario gave no report.
#[derive(Debug, Error)]
pub enum LabError {
    /// A guest gave no result.
    #[error("arm '{arm}': {source}")]
    Guest {
        /// Its arm.
        arm: String,
        /// Why.
        source: BootError,
    },
    /// A result could not be kept.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl LabError {
    /// Whether the user stopped the run.
    pub const fn is_stop(&self) -> bool {
        matches!(self, Self::Guest { source: BootError::Stopped, .. })
    }
}
