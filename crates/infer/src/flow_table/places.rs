//! Where connections are: from what a key hashes to, to a number.

/// The places of connections among others, in open addressing: eight bytes each, so that those of many connections stay in a cache.
///
/// Keys are not kept here. Whoever looks one up tells the keys' owner to compare those whose hashes begin alike.
#[derive(Debug, Default)]
pub(crate) struct FlowIndex {
    /// A power of two, or none.
    cells: Vec<Cell>,
    taken: usize,
}

/// The upper half of a hash, whose first bits are the cell where a search begins; and a place, [`FREE`] where there is none.
#[derive(Debug, Clone, Copy)]
struct Cell {
    print: u32,
    place: u32,
}

/// No place.
const FREE: u32 = u32::MAX;
/// Cells to begin with.
const FIRST: usize = 64;

impl FlowIndex {
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.taken
    }

    /// The cell where a search for this print begins.
    fn home(&self, print: u32) -> usize {
        (print >> (32 - self.cells.len().trailing_zeros())) as usize
    }

    /// The place that `is_it` is true of, among those whose hashes begin alike.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.cell(hash, is_it).map(|at| self.cells[at].place)
    }

    #[inline]
    fn cell(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<usize> {
        let print = (hash >> 32) as u32;
        let last = self.cells.len().checked_sub(1)?;
        let mut at = self.home(print);
        loop {
            let cell = self.cells[at];
            if cell.place == FREE {
                return None;
            }
            if cell.print == print && is_it(cell.place) {
                return Some(at);
            }
            at = (at + 1) & last;
        }
    }

    /// Adds a place, which must not be here yet.
    pub(crate) fn insert(&mut self, hash: u64, place: u32) {
        if self.taken * 4 >= self.cells.len() * 3 {
            let more = (self.cells.len() * 2).max(FIRST);
            let cells = std::mem::replace(&mut self.cells, vec![Cell { print: 0, place: FREE }; more]);
            cells.into_iter().filter(|cell| cell.place != FREE).for_each(|cell| self.put(cell));
        }
        self.taken += 1;
        self.put(Cell { print: (hash >> 32) as u32, place });
    }

    fn put(&mut self, cell: Cell) {
        let last = self.cells.len() - 1;
        let mut at = self.home(cell.print);
        while self.cells[at].place != FREE {
            at = (at + 1) & last;
        }
        self.cells[at] = cell;
    }

    /// Removes a place that was added with this hash.
    pub(crate) fn remove(&mut self, hash: u64, place: u32) {
        let Some(mut hole) = self.cell(hash, |other| other == place) else { return };
        let last = self.cells.len() - 1;
        self.taken -= 1;
        // What was displaced moves back, so that no search ends at the hole before it.
        let mut at = hole;
        loop {
            at = (at + 1) & last;
            let cell = self.cells[at];
            if cell.place == FREE {
                break;
            }
            let from_home = at.wrapping_sub(self.home(cell.print)) & last;
            if from_home >= at.wrapping_sub(hole) & last {
                self.cells[hole] = cell;
                hole = at;
            }
        }
        self.cells[hole].place = FREE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Keys whose hashes meet at the ends of the table and are equal at times, among them.
        #[test]
        fn agrees_with_a_map(ops in proptest::collection::vec((any::<bool>(), 0u32..200), 0..800)) {
            let hash = |key: u32| match key % 4 {
                0 => u64::MAX,
                1 => u64::from(u32::MAX - key) << 32,
                2 => u64::from(key) << 33,
                _ => u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            };
            let (mut places, mut map) = (FlowIndex::default(), BTreeMap::new());
            for (n, (add, key)) in ops.into_iter().enumerate() {
                let n = n as u32;
                match (add, map.get(&key).copied()) {
                    (true, None) => {
                        map.insert(key, n);
                        places.insert(hash(key), n);
                    }
                    (false, Some(place)) => {
                        map.remove(&key);
                        places.remove(hash(key), place);
                    }
                    _ => {}
                }
                for key in 0..200 {
                    let wanted = map.get(&key).copied();
                    prop_assert_eq!(places.find(hash(key), |place| wanted == Some(place)), wanted);
                }
            }
        }
    }
}
