//! What there is of each direction.

/// One of each direction.
#[derive(Debug, Clone)]
pub struct PerWay<T> {
    /// Towards the program.
    pub down: T,
    /// From the program.
    pub up: T,
}
