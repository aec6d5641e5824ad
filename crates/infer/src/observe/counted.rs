//! How often something happened, and the first packets that show it.

/// Packets that are kept. Bounds memory.
const MAX_EXAMPLES: usize = 3;

/// Occurrences of one kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counted {
    pub(crate) count: u64,
    /// Numbers and times of the first packets.
    pub(crate) first: Vec<(u64, u64)>,
}

impl Counted {
    /// Counts a packet by its number and time.
    pub(crate) fn note(&mut self, number: u64, now: u64) {
        self.count += 1;
        if self.first.len() < MAX_EXAMPLES {
            self.first.push((number, now));
        }
    }
}
