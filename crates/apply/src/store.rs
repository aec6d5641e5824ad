//! The folder of journals: files that are whole or not there, and a lock that dies with its owner.

use crate::error::ApplyError;
use crate::journal::Journal;
use crate::state::State;
use crate::{Step, Watch};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The largest journal that is read, in bytes.
const JOURNAL_MAX: u64 = 16 << 20;
/// A file that is there while an application is open: what the boot unit looks for.
pub(crate) const PENDING: &str = "pending";
const LOCK: &str = "lock";

/// The folder of journals.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

/// The folder, with its lock held.
#[derive(Debug)]
pub struct Locked {
    store: Store,
    _lock: File,
}

impl Store {
    /// Where journals are kept unless something else is said.
    pub const DEFAULT: &str = "/var/lib/thalweg/tune";

    /// The folder at `path`, made when it is first written to.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { folder: path.into() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes the lock, waiting for it where `wait` says so.
    ///
    /// # Errors
    /// When another process has it, or the folder cannot be made.
    pub fn lock(&self, wait: bool) -> Result<Locked, ApplyError> {
        fs::create_dir_all(&self.folder)
            .map_err(|source| self.failed("make the folder", self.folder.clone(), source))?;
        let path = self.folder.join(LOCK);
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = file.map_err(|source| self.failed("open the lock", path.clone(), source))?;
        let how = if wait { FlockOperation::LockExclusive } else { FlockOperation::NonBlockingLockExclusive };
        match flock(&file, how) {
            Ok(()) => {
                self.sweep();
                Ok(Locked { store: self.clone(), _lock: file })
            }
            Err(rustix::io::Errno::WOULDBLOCK) => Err(ApplyError::InUse),
            Err(error) => Err(self.failed("lock", path, error.into())),
        }
    }

    /// Removes what an owner that was killed left: nobody else writes while the lock is held.
    fn sweep(&self) {
        for path in fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "new") {
                let _ = fs::remove_file(path);
            }
        }
        self.unmark();
    }

    /// Removes the mark where no application is open.
    fn unmark(&self) {
        if self.all().is_ok_and(|all| !all.iter().any(|journal| journal.state.is_open())) {
            let _ = fs::remove_file(self.folder.join(PENDING));
        }
    }

    /// Every journal, the oldest first.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn all(&self) -> Result<Vec<Journal>, ApplyError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(self.failed("read the folder", self.folder.clone(), source)),
        };
        let paths = entries.flatten().map(|entry| entry.path());
        let mut found = Vec::new();
        for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "json")) {
            found.push(self.read(&path)?);
        }
        found.sort_by(|one: &Journal, other| (one.at_s, &one.id).cmp(&(other.at_s, &other.id)));
        Ok(found)
    }

    /// The journal of that name, or the newest one that is open where none is given.
    ///
    /// # Errors
    /// When there is none.
    pub fn journal(&self, id: Option<&str>) -> Result<Journal, ApplyError> {
        let all = self.all()?;
        if let Some(id) = id {
            return all.into_iter().find(|journal| journal.id == id).ok_or_else(|| ApplyError::Unknown(id.to_owned()));
        }
        let confirmed = all.iter().rfind(|journal| journal.state == State::Confirmed).map(|journal| journal.id.clone());
        all.into_iter().rfind(|journal| journal.state.is_open()).ok_or(ApplyError::NoneWaits { confirmed })
    }

    fn read(&self, path: &Path) -> Result<Journal, ApplyError> {
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(JOURNAL_MAX).read_to_end(&mut bytes));
        read.map_err(|source| self.failed("read", path.to_path_buf(), source))?;
        let broken = |reason: String| ApplyError::Broken { path: path.to_path_buf(), reason };
        let journal: Journal = serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
        if journal.schema == Journal::SCHEMA {
            Ok(journal)
        } else {
            Err(broken(format!("its schema is '{}'", journal.schema)))
        }
    }

    fn failed(&self, act: &'static str, path: PathBuf, source: io::Error) -> ApplyError {
        ApplyError::Journal { act, path, source }
    }
}

impl Locked {
    /// The folder.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// Makes a journal durable: it is whole on the disk, under its name, when this returns; before, the one before it is.
    ///
    /// # Errors
    /// When it cannot be written; then nothing has changed.
    pub(crate) fn save(&self, journal: &Journal, watch: &mut impl Watch) -> Result<(), ApplyError> {
        let path = self.store.folder.join(format!("{}.json", journal.id));
        let temporary = self.store.folder.join(format!("{}.new", journal.id));
        let failed = |source| self.store.failed("write the journal", path.clone(), source);
        // The mark comes first and goes last, so that a journal that is open never lacks it.
        let pending = self.store.folder.join(PENDING);
        if journal.state.is_open() {
            File::create(&pending).map_err(failed)?;
        }
        let text = serde_json::to_vec_pretty(journal).map_err(|error| failed(error.into()))?;
        let write = |watch: &mut _| -> io::Result<()> {
            Watch::at(watch, Step::BeforeJournal)?;
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
            file.write_all(&text)?;
            Watch::at(watch, Step::JournalWritten)?;
            file.sync_all()?;
            Watch::at(watch, Step::JournalSynced)?;
            fs::rename(&temporary, &path)?;
            File::open(&self.store.folder)?.sync_all()?;
            Watch::at(watch, Step::JournalDurable)
        };
        let written = write_with(watch, write).map_err(failed);
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        self.store.unmark();
        written
    }
}

/// Lends the watch to a closure.
fn write_with<W: Watch>(watch: &mut W, write: impl Fn(&mut W) -> io::Result<()>) -> io::Result<()> {
    write(watch)
}
