//! Initial windows of the host's routes, for as long as the server runs.

use serde::Deserialize;
use std::path::PathBuf;

/// What routes are raised to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RoutesConfig {
    /// Initial congestion window, in segments.
    pub initcwnd: Option<u32>,
    /// Initial receive window, in segments.
    pub initrwnd: Option<u32>,
    /// The file that says what to put back.
    #[serde(default = "RoutesConfig::state")]
    pub state: PathBuf,
}

impl RoutesConfig {
    /// The file where none is given.
    pub const STATE: &str = "/run/thalweg-routes";

    fn state() -> PathBuf {
        Self::STATE.into()
    }
}
