//! A path that is running, as other threads see it.

use crate::direction::{Direction, Progress};
use crate::per_way::PerWay;
use std::sync::Arc;
use thalweg_model::{Step, Way};
use thalweg_path::Unsupported;

/// A look at a path that is running, and a hand on it.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(crate) directions: PerWay<Arc<Direction>>,
}

impl Handle {
    /// What the directions did until now.
    pub fn progress(&self) -> PerWay<Progress> {
        PerWay { down: self.directions.down.progress(), up: self.directions.up.progress() }
    }

    /// Changes a direction from now on.
    ///
    /// # Errors
    /// [`Unsupported`] if a trace gives the direction's rate.
    pub fn change(&self, way: Way, step: &Step) -> Result<(), Unsupported> {
        match way {
            Way::Down => self.directions.down.change(step),
            Way::Up => self.directions.up.change(step),
        }
    }
}
