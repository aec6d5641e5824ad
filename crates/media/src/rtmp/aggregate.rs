//! Aggregate messages (§7.1.6): FLV tags in a row.

use crate::{Tag, TagKind};

/// What is left of an aggregate message.
#[derive(Debug)]
pub(super) struct Aggregate {
    payload: Vec<u8>,
    at: usize,
    timestamp_ms: u32,
    /// The first tag's own timestamp: the others count from it.
    first_ms: Option<u32>,
}

/// Type, length, timestamp, stream.
const HEADER: usize = 11;
/// How long the tag was, behind it.
const TRAILER: usize = 4;

impl Aggregate {
    pub(super) const fn new(timestamp_ms: u32, payload: Vec<u8>) -> Self {
        Self { payload, at: 0, timestamp_ms, first_ms: None }
    }
}

impl Iterator for Aggregate {
    type Item = Tag;

    fn next(&mut self) -> Option<Tag> {
        loop {
            let rest = self.payload.get(self.at..)?;
            let (header, body) = rest.split_at_checked(HEADER)?;
            let length = u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
            let payload = body.get(..length)?;
            let own_ms = u32::from_be_bytes([header[7], header[4], header[5], header[6]]);
            let first_ms = *self.first_ms.get_or_insert(own_ms);
            self.at += HEADER + length + TRAILER;
            if let Some(kind) = TagKind::from_number(header[0]) {
                let timestamp_ms = self.timestamp_ms.wrapping_add(own_ms.wrapping_sub(first_ms));
                return Some(Tag { kind, timestamp_ms, payload: payload.to_vec() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_count_from_the_first_one() {
        let mut payload = b"\x08\0\0\x01\0\0\x0a\0\0\0\0a\0\0\0\x0c".to_vec();
        payload.extend(b"\x63\0\0\x01\0\0\x0a\0\0\0\0x\0\0\0\x0c");
        payload.extend(b"\x09\0\0\x02\0\0\x1e\0\0\0\0bc\0\0\0\x0d");
        payload.extend(b"\x09\0\0\x09cut");
        let tags: Vec<Tag> = Aggregate::new(500, payload).collect();
        assert_eq!(
            tags,
            [
                Tag { kind: TagKind::Audio, timestamp_ms: 500, payload: b"a".to_vec() },
                Tag { kind: TagKind::Video, timestamp_ms: 520, payload: b"bc".to_vec() },
            ]
        );
    }
}
