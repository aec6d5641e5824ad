//! Packets by connection.

use crate::key::Key;
use crate::places::Places;
use crate::table::Seen;

/// The packets of a while, and which of them are of one connection.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: Vec<Group>,
    places: Places,
    /// For each packet, the next of its group; [`NONE`] for the last.
    next: Vec<u32>,
}

/// The packets of one connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    pub(crate) key: Key,
    pub(crate) hash: u64,
    first: u32,
    last: u32,
}

const NONE: u32 = u32::MAX;

impl Groups {
    /// Divides these packets, instead of those before.
    pub(crate) fn divide(&mut self, seen: &[Seen]) {
        let Self { groups, places, next } = self;
        groups.clear();
        places.clear();
        next.clear();
        next.resize(seen.len(), NONE);
        let mut recent = 0;
        for (at, seen) in (0u32..).zip(seen) {
            let key = Key::of(seen.interface, &seen.segment);
            if groups.get(recent).is_none_or(|group: &Group| group.key != key) {
                let hash = key.spread();
                let known = places.find(hash, |place| groups[place as usize].key == key);
                recent = known.map_or(groups.len(), |place| place as usize);
                if known.is_none() {
                    places.insert(hash, recent as u32);
                    groups.push(Group { key, hash, first: at, last: at });
                    continue;
                }
            }
            let group = &mut groups[recent];
            next[group.last as usize] = at;
            group.last = at;
        }
    }

    /// The groups, in order of their first packets.
    pub(crate) fn all(&self) -> &[Group] {
        &self.groups
    }

    /// The packets of a group, in their order: their places among all.
    pub(crate) fn packets(&self, group: &Group) -> impl Iterator<Item = usize> {
        let mut at = group.first;
        std::iter::from_fn(move || {
            let here = at as usize;
            at = *self.next.get(here)?;
            Some(here)
        })
    }
}
