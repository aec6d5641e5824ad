//! The journal: which ranges of which version are on the disk.

use crate::fields::Validator;
use crate::range_set::RangeSet;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// The version of the format.
const VERSION: u32 = 1;
/// A journal has one range for each cut; a larger file is none of ours.
const LARGEST: u64 = 4 << 20;

/// What is known of a partial file. It names no URL: that may hold a secret, and another mirror may have the same object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    version: u32,
    /// Bytes of the whole object.
    pub total: u64,
    /// Which version of it.
    pub validator: Validator,
    /// What is on the disk, synced.
    pub done: RangeSet,
}

impl Journal {
    /// A journal of what is done.
    pub const fn new(total: u64, validator: Validator, done: RangeSet) -> Self {
        Self { version: VERSION, total, validator, done }
    }

    /// Reads its text; `None` if it is none, or contradicts itself.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let journal: Self = serde_json::from_slice(text).ok()?;
        let fits = journal.version == VERSION && journal.done.is_valid() && journal.done.end() <= journal.total;
        fits.then_some(journal)
    }

    /// Its text.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("invariant: the journal's types are JSON")
    }

    /// Reads a journal's file; `None` if there is none that makes sense.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(metadata) if metadata.len() > LARGEST => Ok(None),
            Ok(_) => Ok(Self::parse(&fs::read(path)?)),
        }
    }

    /// Replaces the journal's file. At any moment, also after a power failure, it holds the old journal or the new one.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let new = path.with_extension("json.new");
        let mut file = File::create(&new)?;
        file.write_all(self.text().as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        sync_folder(path)
    }
}

/// Makes the names in a file's folder durable.
///
/// # Errors
/// When the folder cannot be opened or synced.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn journal(ranges: &[(u64, u64)]) -> Journal {
        let mut done = RangeSet::default();
        ranges.iter().for_each(|&(start, len)| done.insert(start, start + len));
        Journal::new(1 << 40, Validator::ETag("\"x\"".to_owned()), done)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(ranges in prop::collection::vec((0u64..1_000_000, 1u64..1_000), 0..50)) {
            let journal = journal(&ranges);
            prop_assert_eq!(Journal::parse(journal.text().as_bytes()), Some(journal));
        }

        /// A torn or a changed journal is refused or still makes sense; it never claims bytes past the end.
        #[test]
        fn any_bytes_are_refused_or_make_sense(cut in 0usize..200, at in 0usize..200, byte in any::<u8>()) {
            let mut text = journal(&[(0, 10), (50, 10)]).text().into_bytes();
            let len = text.len();
            text[at % len] = byte;
            text.truncate(len - cut % len);
            if let Some(read) = Journal::parse(&text) {
                prop_assert!(read.done.is_valid() && read.done.end() <= read.total);
            }
        }
    }

    #[test]
    fn a_journal_that_contradicts_itself_is_none() {
        for text in [
            r#"{"version":1,"total":10,"validator":{"etag":"x"},"done":[[5,11]]}"#,
            r#"{"version":1,"total":10,"validator":{"etag":"x"},"done":[[5,6],[6,7]]}"#,
            r#"{"version":1,"total":10,"validator":{"etag":"x"},"done":[[6,5]]}"#,
            r#"{"version":2,"total":10,"validator":{"etag":"x"},"done":[]}"#,
            "",
            "null",
            "[]",
        ] {
            assert_eq!(Journal::parse(text.as_bytes()), None, "{text}");
        }
    }
}
