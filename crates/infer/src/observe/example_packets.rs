//! Packets that evidence points at.

use crate::event::Advertised;

/// Examples of one kind. Bounds memory.
const MAX_EXAMPLES: usize = 3;

/// Moments worth pointing at.
#[derive(Debug, Default)]
pub(crate) struct ExamplePackets {
    /// First packets that filled the window: number and time.
    pub(crate) window_full: Vec<(u64, u64)>,
    pub(crate) zero_window: Vec<(u64, u64)>,
    pub(crate) largest_window: Option<(u64, u64)>,
    /// Acknowledgements with blocks about data that was never sent.
    pub(crate) foreign_blocks: Vec<(u64, u64)>,
}

impl ExamplePackets {
    /// A packet filled the window.
    pub(crate) fn full_window(&mut self, number: u64, now: u64) {
        push(&mut self.window_full, number, now);
    }

    /// An acknowledgement has a block about data that was never sent.
    pub(crate) fn foreign_block(&mut self, number: u64, now: u64) {
        push(&mut self.foreign_blocks, number, now);
    }

    /// An acknowledgement advertised this window.
    pub(crate) fn window(&mut self, number: u64, now: u64, window: &Advertised) {
        if window.is_largest {
            self.largest_window = Some((number, now));
        }
        if window.bytes == 0 {
            push(&mut self.zero_window, number, now);
        }
    }
}

fn push(examples: &mut Vec<(u64, u64)>, number: u64, now: u64) {
    if examples.len() < MAX_EXAMPLES {
        examples.push((number, now));
    }
}
