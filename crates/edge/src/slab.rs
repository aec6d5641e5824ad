//! Connections by token: an index and its generation, so that a late event finds no other connection.

/// What is kept under tokens.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<(u32, Option<Box<T>>)>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }

    /// Keeps a value; its token.
    pub(crate) fn insert(&mut self, value: T) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push((0, None));
            self.entries.len() as u32 - 1
        });
        let entry = &mut self.entries[index as usize];
        entry.0 = entry.0.wrapping_add(1);
        entry.1 = Some(Box::new(value));
        u64::from(entry.0) << 32 | u64::from(index)
    }

    pub(crate) fn get(&mut self, token: u64) -> Option<&mut T> {
        let entry = self.entries.get_mut(token as u32 as usize)?;
        if u64::from(entry.0) == token >> 32 { entry.1.as_deref_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, token: u64) -> Option<Box<T>> {
        let entry = self.entries.get_mut(token as u32 as usize).filter(|entry| u64::from(entry.0) == token >> 32)?;
        let value = entry.1.take()?;
        self.free.push(token as u32);
        Some(value)
    }

    /// All tokens.
    pub(crate) fn tokens(&self) -> Vec<u64> {
        let all = self.entries.iter().enumerate().filter(|(_, entry)| entry.1.is_some());
        all.map(|(index, entry)| u64::from(entry.0) << 32 | index as u64).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_one_value() {
        let mut slab = Slab::new();
        let (one, two) = (slab.insert(1), slab.insert(2));
        assert_eq!((slab.get(one).copied(), slab.get(two).copied(), slab.len()), (Some(1), Some(2), 2));
        assert_eq!(slab.remove(one).as_deref(), Some(&1));
        let three = slab.insert(3);
        assert!(three != one && slab.get(one).is_none() && slab.remove(one).is_none());
        assert_eq!((slab.get(three).copied(), slab.tokens().len(), slab.len()), (Some(3), 2, 2));
    }
}
