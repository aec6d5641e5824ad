//! Where the bytes go: a partial file with a journal that becomes the file at the end, or a stream.
//!
//! The order of writes makes every moment a safe one: data is synced before a journal names it, a journal replaces the one before
//! it as a whole, and the file gets its name only when all of it is synced.

use crate::checksum::{Checksum, Hasher, Kind};
use crate::error::GetError;
use crate::journal::{Journal, sync_folder};
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is appended to the name of a file that is not whole.
const PART: &str = ".part";
/// What is appended to the name of the partial file for its journal.
const JOURNAL: &str = ".json";

/// A file that is not whole yet, locked against another download of it.
#[derive(Debug)]
pub struct PartialFile {
    target: PathBuf,
    part: PathBuf,
    journal: PathBuf,
    file: Arc<File>,
    force: bool,
}

impl PartialFile {
    /// Opens or makes the partial file of `target`, and reads its journal.
    ///
    /// # Errors
    /// When the file itself is there and `force` is not given, when another download has it, or when the disk refuses.
    pub fn open(target: &Path, force: bool) -> Result<(Self, Option<Journal>), GetError> {
        if !force && target.symlink_metadata().is_ok() {
            return Err(GetError::Exists { path: target.to_owned() });
        }
        let append = |path: &Path, ending: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        let part = append(target, PART);
        let journal = append(&part, JOURNAL);
        let disk = |act| GetError::disk(act, &part);
        let is_new = part.symlink_metadata().is_err();
        if is_new {
            // It would describe another file: one that was completed and renamed.
            remove(&journal).map_err(GetError::disk("remove", &journal))?;
        }
        // A symbolic link in its place would lead the data elsewhere.
        let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        let mut options = OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
        let file = options.read(true).write(true).create(true).truncate(false).open(&part).map_err(disk("open"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(GetError::Busy { path: part }),
            // File systems without locks, as some network ones.
            Err(_) => {}
        }
        let len = file.metadata().map_err(disk("read the size of"))?.len();
        let found = Journal::read(&journal).map_err(GetError::disk("read", &journal))?;
        let found = found.filter(|found| found.done.end() <= len);
        let this = Self { target: target.to_owned(), part, journal, file: Arc::new(file), force };
        Ok((this, found))
    }

    /// Forgets what is there.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn restart(&self) -> Result<(), GetError> {
        // The journal goes first: it must never describe what is not there.
        remove(&self.journal)
            .and_then(|()| sync_folder(&self.part))
            .map_err(GetError::disk("remove", &self.journal))?;
        self.file.set_len(0).map_err(GetError::disk("empty", &self.part))
    }

    /// Writes bytes at their place.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<(), GetError> {
        self.file.write_all_at(bytes, at).map_err(GetError::disk("write", &self.part))
    }

    /// What makes a journal durable; it can run in another thread.
    pub fn checkpoint(&self, journal: Journal) -> impl FnOnce() -> Result<(), GetError> + Send + use<> {
        let (file, part, path) = (Arc::clone(&self.file), self.part.clone(), self.journal.clone());
        move || {
            file.sync_data().map_err(GetError::disk("sync", &part))?;
            journal.write(&path).map_err(GetError::disk("write", &path))
        }
    }

    /// The checksum of what is there.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn checksum(&self, kind: Kind) -> Result<Checksum, GetError> {
        let file = File::open(&self.part);
        file.and_then(|file| Hasher::of(kind, file)).map_err(GetError::disk("read", &self.part))
    }

    /// Makes it the file: all `total` bytes are there.
    ///
    /// # Errors
    /// When the disk refuses, or the file came into being meanwhile and `force` is not given.
    pub fn finish(self, total: u64) -> Result<PathBuf, GetError> {
        let disk = |act| GetError::disk(act, &self.part);
        self.file.set_len(total).map_err(disk("set the size of"))?;
        self.file.sync_all().map_err(disk("sync"))?;
        let flags = if self.force { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match renameat_with(CWD, &self.part, CWD, &self.target, flags) {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => return Err(GetError::Exists { path: self.target }),
            // File systems that know no such flag.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) if self.target.symlink_metadata().is_err() => {
                fs::rename(&self.part, &self.target).map_err(disk("rename"))?;
            }
            Err(error) => return Err(disk("rename")(error.into())),
        }
        sync_folder(&self.target).map_err(GetError::disk("sync the folder of", &self.target))?;
        remove(&self.journal).map_err(GetError::disk("remove", &self.journal))?;
        Ok(self.target)
    }

    /// Removes it: its content is not what it should be.
    pub fn discard(self) {
        // What cannot be removed is found and judged again by the next download.
        let _ = remove(&self.journal);
        let _ = remove(&self.part);
    }

    /// Its name, for messages.
    pub fn path(&self) -> &Path {
        &self.part
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Where the bytes go.
#[derive(Debug)]
pub enum Sink {
    /// A file.
    File(PartialFile),
    /// Standard output or a file that is no regular one, in order.
    Stream {
        /// It.
        to: File,
        /// Bytes written.
        written: u64,
        /// Their checksums so far.
        hashers: Vec<Hasher>,
    },
    /// Nowhere: measures only.
    Nowhere,
}

impl Sink {
    /// Writes bytes at their place.
    ///
    /// # Errors
    /// When it refuses them.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), GetError> {
        match self {
            Self::File(file) => file.write(at, bytes),
            Self::Stream { to, written, hashers } => {
                debug_assert_eq!(at, *written);
                to.write_all(bytes).map_err(|source| GetError::Stream { source })?;
                hashers.iter_mut().for_each(|hasher| hasher.update(bytes));
                *written += bytes.len() as u64;
                Ok(())
            }
            Self::Nowhere => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Validator;
    use crate::range_set::RangeSet;

    fn journal(done: RangeSet) -> Journal {
        Journal::new(10, Validator::ETag("\"1\"".to_owned()), done)
    }

    #[test]
    fn a_partial_file_is_resumed_and_then_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("a");
        let (part, found) = PartialFile::open(&target, false).expect("opened");
        assert!(found.is_none());
        assert!(matches!(PartialFile::open(&target, false), Err(GetError::Busy { .. })), "one download at a time");
        part.write(5, b"56789").expect("written");
        part.checkpoint(journal(RangeSet::of(5, 10)))().expect("synced");
        drop(part);
        let (part, found) = PartialFile::open(&target, false).expect("opened");
        assert_eq!(found, Some(journal(RangeSet::of(5, 10))));
        part.write(0, b"01234").expect("written");
        part.finish(10).expect("whole");
        assert_eq!(fs::read(&target).expect("a file"), b"0123456789");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing else is left");
        assert!(matches!(PartialFile::open(&target, false), Err(GetError::Exists { .. })));
    }

    #[test]
    fn a_journal_without_its_data_counts_for_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("a");
        fs::write(folder.path().join("a.part.json"), journal(RangeSet::of(0, 10)).text()).expect("written");
        assert!(PartialFile::open(&target, false).expect("opened").1.is_none(), "left by a file that was renamed");
        fs::write(folder.path().join("a.part.json"), journal(RangeSet::of(0, 10)).text()).expect("written");
        assert!(PartialFile::open(&target, false).expect("opened").1.is_none(), "the data is shorter");
    }

    #[test]
    fn a_file_that_came_meanwhile_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("a");
        let (part, _) = PartialFile::open(&target, false).expect("opened");
        fs::write(&target, "theirs").expect("written");
        assert!(matches!(part.finish(0), Err(GetError::Exists { .. })));
        assert_eq!(fs::read(&target).expect("a file"), b"theirs");
    }
}
