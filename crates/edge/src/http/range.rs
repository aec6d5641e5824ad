//! Parts of a body, and whether the asker has it already.
//!
//! Source: RFC 9110 §13.1.2 (If-None-Match), §14 (Range).

/// The part that a `Range` field asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// From this byte on to the last one, which is included; `None` is the end.
    From(u64, Option<u64>),
    /// The last bytes, this many.
    Last(u64),
}

/// What of a body is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected {
    /// All: 200.
    Whole,
    /// From a byte to before another: 206.
    Part(u64, u64),
    /// The range is past the end: 416.
    Outside,
}

impl Range {
    /// Reads a field's value. Other units, several ranges and what is no range are `None`: RFC 9110 lets a server ignore them.
    pub fn parse(value: &str) -> Option<Self> {
        let (unit, set) = value.trim().split_once('=')?;
        if !unit.trim_end().eq_ignore_ascii_case("bytes") {
            return None;
        }
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse().unwrap_or(u64::MAX))
        };
        let (first, last) = set.trim().split_once('-')?;
        match (first.trim(), last.trim()) {
            ("", last) => Some(Self::Last(number(last)?)),
            (first, "") => Some(Self::From(number(first)?, None)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::From(first, Some(last)))
            }
        }
    }

    /// What it selects of a body of `len` bytes.
    pub fn of(self, len: u64) -> Selected {
        match self {
            Self::From(first, _) if first >= len => Selected::Outside,
            Self::From(first, last) => Selected::Part(first, last.map_or(len, |last| last.saturating_add(1).min(len))),
            Self::Last(0) => Selected::Outside,
            Self::Last(_) if len == 0 => Selected::Outside,
            Self::Last(count) => Selected::Part(len.saturating_sub(count), len),
        }
    }
}

/// Whether an `If-None-Match` field holds `tag`, quotes included, by weak comparison.
pub fn matches_any(field: &str, tag: &str) -> bool {
    let strip = |text: &str| text.trim().strip_prefix("W/").unwrap_or(text.trim()).to_owned();
    field.trim() == "*" || field.split(',').any(|one| strip(one) == strip(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_select_parts() {
        for (field, len, selected) in [
            ("bytes=0-0", 10, Some(Selected::Part(0, 1))),
            ("bytes=0-", 10, Some(Selected::Part(0, 10))),
            ("bytes=2-4", 10, Some(Selected::Part(2, 5))),
            ("bytes=2-400", 10, Some(Selected::Part(2, 10))),
            ("bytes=9-9", 10, Some(Selected::Part(9, 10))),
            ("bytes=10-", 10, Some(Selected::Outside)),
            ("bytes=0-", 0, Some(Selected::Outside)),
            ("bytes=-3", 10, Some(Selected::Part(7, 10))),
            ("bytes=-30", 10, Some(Selected::Part(0, 10))),
            ("bytes=-0", 10, Some(Selected::Outside)),
            ("bytes=-1", 0, Some(Selected::Outside)),
            ("Bytes = 1-2", 10, Some(Selected::Part(1, 3))),
            ("bytes=99999999999999999999-", 10, Some(Selected::Outside)),
            ("bytes=1-99999999999999999999", 10, Some(Selected::Part(1, 10))),
            ("bytes=5-2", 10, None),
            ("bytes=1-2,4-5", 10, None),
            ("bytes=a-b", 10, None),
            ("bytes=-", 10, None),
            ("bytes=+1-2", 10, None),
            ("lines=1-2", 10, None),
            ("bytes", 10, None),
            ("", 10, None),
        ] {
            assert_eq!(Range::parse(field).map(|range| range.of(len)), selected, "{field} of {len}");
        }
    }

    #[test]
    fn tags_are_compared_weakly() {
        for (field, tag, same) in [
            ("*", "\"1\"", true),
            ("\"1\"", "\"1\"", true),
            ("W/\"1\"", "\"1\"", true),
            ("\"0\", W/\"1\" ,\"2\"", "\"1\"", true),
            ("\"11\"", "\"1\"", false),
            ("1", "\"1\"", false),
            ("", "\"1\"", false),
        ] {
            assert_eq!(matches_any(field, tag), same, "{field}");
        }
    }
}
