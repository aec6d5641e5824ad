//! A bounded cache of answers with an expiry.

use std::collections::HashMap;
use std::time::Instant;

/// What makes a question, as SHA-256: a question may be long.
pub(super) type Key = [u8; 32];

/// Two halves: when the young one is full it becomes the old one, whose answers are forgotten together.
#[derive(Debug, Default)]
pub(super) struct Cache {
    young: HashMap<Key, (bool, Instant)>,
    old: HashMap<Key, (bool, Instant)>,
}

impl Cache {
    /// The answer, where it is known and still good at `now`.
    pub(super) fn get(&self, key: &Key, now: Instant) -> Option<bool> {
        let found = self.young.get(key).or_else(|| self.old.get(key));
        found.filter(|(_, until)| now < *until).map(|(is_yes, _)| *is_yes)
    }

    /// Remembers an answer; `most` are kept.
    pub(super) fn put(&mut self, key: Key, is_yes: bool, until: Instant, most: usize) {
        if self.young.len() >= most.div_ceil(2) {
            self.old = std::mem::take(&mut self.young);
        }
        if most > 0 {
            self.young.insert(key, (is_yes, until));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn answers_are_good_for_a_while_and_bounded() {
        let mut cache = Cache::default();
        let now = Instant::now();
        let key = |number: u8| [number; 32];
        for number in 0..100 {
            cache.put(key(number), number % 2 == 0, now + Duration::from_secs(1), 10);
            assert_eq!(cache.get(&key(number), now), Some(number % 2 == 0));
            assert!(cache.young.len() + cache.old.len() <= 10);
        }
        assert_eq!(cache.get(&key(98), now + Duration::from_secs(1)), None, "it is no longer good");
        assert_eq!(cache.get(&key(1), now), None, "it was forgotten");
        cache.put(key(200), true, now, 0);
        assert_eq!(cache.get(&key(200), now), None);
    }
}
