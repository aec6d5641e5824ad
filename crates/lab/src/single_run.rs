//! What one run left.

use serde::{Deserialize, Serialize};
use thalweg_model::{Interval, LiveReport, RunFigures, SettingsReport};

/// One arm's one repeat.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SingleRun {
    /// Which it is, and what it measured.
    pub figures: RunFigures,
    /// Its seed.
    pub seed: u64,
    /// The capture's file name within the run's folder.
    pub capture: Option<String>,
    /// The socket samples' file name within the run's folder.
    pub samples: Option<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) capture_dropped: u32,
    /// How true it was, where it was in real time.
    #[serde(default)]
    pub(crate) live: Option<LiveReport>,
    /// Kept of an arm's first run alone.
    pub(crate) first: Option<(SettingsReport, Vec<Interval>)>,
}
