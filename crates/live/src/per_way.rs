//! What there is of each direction.

use thalweg_model::Way;

/// One of each direction.
#[derive(Debug, Clone)]
pub struct PerWay<T> {
    /// Towards the program.
    pub down: T,
    /// From the program.
    pub up: T,
}

impl<T> PerWay<T> {
    /// That of a direction.
    pub const fn of(&mut self, way: Way) -> &mut T {
        match way {
            Way::Down => &mut self.down,
            Way::Up => &mut self.up,
        }
    }
}
