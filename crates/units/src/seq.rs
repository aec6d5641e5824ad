//! TCP sequence numbers.

use std::cmp::Ordering;
use std::fmt;

/// A TCP sequence number: arithmetic and order are modulo 2³².
///
/// Source: RFC 9293 §3.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SeqNum(u32);

impl SeqNum {
    /// The number as it is on the wire.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number as it is on the wire.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// `self + bytes`, modulo 2³².
    #[must_use]
    pub const fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// The signed distance from `earlier` to `self`, right while the two are less than 2³¹ apart.
    pub const fn since(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }

    /// Whether `self` comes before `other`.
    pub const fn before(self, other: Self) -> bool {
        self.since(other) < 0
    }

    /// The order of two numbers less than 2³¹ apart.
    pub fn compare(self, other: Self) -> Ordering {
        self.since(other).cmp(&0)
    }
}

impl fmt::Display for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let before = SeqNum::new(u32::MAX - 10);
        let after = before.add(20);
        assert!(before.before(after) && !after.before(before));
        assert_eq!(after.since(before), 20);
        assert_eq!(before.compare(after), Ordering::Less);
    }
}
