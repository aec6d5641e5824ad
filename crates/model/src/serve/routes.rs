//! Initial windows of the host's routes, for as long as the server runs.

use super::set;
use crate::document::{DocumentError, Section};
use std::path::PathBuf;

/// What routes are raised to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutesConfig {
    /// Initial congestion window, in segments.
    pub initcwnd: Option<u32>,
    /// Initial receive window, in segments.
    pub initrwnd: Option<u32>,
    /// The file that says what to put back.
    pub state: PathBuf,
}

/// Past this, in segments, a first flight is a burst that any queue drops.
const MOST: u32 = 1_000;

impl RoutesConfig {
    /// The file where none is given.
    pub const STATE: &str = "/run/thalweg-routes";

    pub(super) fn read(section: &Section<'_>) -> Result<Self, DocumentError> {
        let window = |key| {
            let window: Option<u32> = section.quantity(key)?;
            match window {
                Some(0) => Err(section.error_at(key, format!("{key} is 0"))),
                Some(window) if window > MOST => Err(section.error_at(key, format!("{key} is more than {MOST}"))),
                window => Ok(window),
            }
        };
        let (initcwnd, initrwnd) = (window("initcwnd")?, window("initrwnd")?);
        let mut state = Self::STATE.into();
        set(&mut state, section.text("state")?.map(PathBuf::from));
        section.finish()?;
        if initcwnd.is_none() && initrwnd.is_none() {
            let problem = "tcp_route has neither initcwnd nor initrwnd";
            return Err(section.missing(&["initcwnd", "initrwnd"], section.error_at("initcwnd", problem)));
        }
        Ok(Self { initcwnd, initrwnd, state })
    }
}
