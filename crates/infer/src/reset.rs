//! Reuse of memory: an analysis that is over leaves its buffers to the next one.
//!
//! Allocating them again takes a tenth of the analysis of short connections.

use std::collections::VecDeque;

/// Most entries whose memory is kept: a short connection's. Bounds memory.
const MAX_KEPT: usize = 256;

/// What can begin again in the memory it has.
pub(crate) trait Reset {
    /// Empties it.
    fn reset(&mut self);
}

impl<T> Reset for Vec<T> {
    fn reset(&mut self) {
        if self.capacity() > MAX_KEPT { *self = Self::new() } else { self.clear() }
    }
}

impl<T> Reset for VecDeque<T> {
    fn reset(&mut self) {
        if self.capacity() > MAX_KEPT { *self = Self::new() } else { self.clear() }
    }
}

/// Sets all fields to their defaults but the named ones, which are reset.
macro_rules! reset_keeping {
    ($this:ident, $($kept:ident),+) => {{
        $(let mut $kept = std::mem::take(&mut $this.$kept);
        $crate::reset::Reset::reset(&mut $kept);)+
        *$this = Self { $($kept,)+ ..Self::default() };
    }};
}
pub(crate) use reset_keeping;
