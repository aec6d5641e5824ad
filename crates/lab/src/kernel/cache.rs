//! The folder of installed kernels: what is in it, who may add to it, and how a kernel gets in whole or not at all.

use super::Kernel;
use super::error::KernelError;
use super::release::Release;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// `kernel.json`: what an installed kernel was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// [`SCHEMA`].
    pub(crate) schema: String,
    /// The release, without the lab's suffix.
    pub(crate) release: String,
    /// Timer frequency.
    pub(crate) hz: u32,
    /// Hash of configuration fragment and patch.
    pub(crate) recipe: String,
    /// What was compiled.
    pub(crate) source: SourceRecord,
    /// When, in seconds of Unix time.
    pub(crate) built_unix_s: u64,
}

/// The source of an installed kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SourceRecord {
    /// Whether it is Debian's package, rather than a source that was given.
    pub(crate) packaged: bool,
    /// Where it was.
    pub(crate) path: PathBuf,
    /// SHA-256 of a tar file; of a tree, of its files' names, sizes and times.
    pub(crate) hash: String,
}

/// A kernel that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installed {
    pub(crate) kernel: Kernel,
    pub(crate) release: Release,
    pub(crate) record: Record,
}

/// The folder of kernels.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    pub(crate) root: PathBuf,
}

/// The right to add to the folder of kernels; given back when dropped, and by the system when its holder dies.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Cache {
    /// This user's folder, which may not exist yet. A relative path in a variable counts for nothing.
    ///
    /// Source: XDG Base Directory Specification 0.8, `XDG_CACHE_HOME`.
    pub(crate) fn of_user() -> Result<Self, KernelError> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
        Ok(Self::at(base.ok_or(KernelError::NoCache)?.join("thalweg/kernels")))
    }

    pub(crate) const fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// The installed kernels, newest release first.
    pub(crate) fn installed(&self) -> Result<Vec<Installed>, KernelError> {
        let act = || KernelError::io(format!("list the lab kernels in {}", self.root.display()));
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(act())?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let id = entry.map_err(act())?.file_name();
            found.extend(id.to_str().filter(|id| !id.starts_with('.')).and_then(|id| self.entry(id)));
        }
        found.sort_by(|a, b| b.release.cmp(&a.release).then_with(|| a.kernel.id.cmp(&b.kernel.id)));
        Ok(found)
    }

    /// The kernel of an id, when it is there and whole.
    pub(crate) fn entry(&self, id: &str) -> Option<Installed> {
        let folder = self.root.join(id);
        let record: Record = serde_json::from_slice(&fs::read(folder.join(RECORD)).ok()?).ok()?;
        let path = folder.join(BINARY);
        let runs = path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o100 != 0);
        let release = Release::parse(&record.release)?;
        (record.schema == SCHEMA && runs).then(|| Installed {
            kernel: Kernel { release: record.release.clone(), id: id.to_owned(), path },
            release,
            record,
        })
    }

    /// Takes the lock, which one builder at a time holds; makes the folder first. `waits` is told once, when another
    /// holds it.
    pub(crate) fn lock(&self, interrupt: &AtomicBool, mut waits: impl FnMut()) -> Result<Lock, KernelError> {
        fs::create_dir_all(&self.root).map_err(KernelError::io(format!("make the folder {}", self.root.display())))?;
        let path = self.root.join(".lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(KernelError::io(format!("open {}", path.display())))?;
        let mut told = false;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(Errno::WOULDBLOCK) => (),
                Err(error) => return Err(KernelError::io(format!("lock {}", path.display()))(error.into())),
            }
            if !std::mem::replace(&mut told, true) {
                waits();
            }
            if interrupt.load(Ordering::Relaxed) {
                return Err(KernelError::Interrupted);
            }
            std::thread::sleep(LOCK_POLL);
        }
    }

    /// Removes what dead builders left. Holding the lock proves that they are dead: a builder holds it all along.
    pub(crate) fn sweep(&self, _lock: &Lock) -> Result<(), KernelError> {
        let act = || KernelError::io(format!("clean up {}", self.root.display()));
        for entry in fs::read_dir(&self.root).map_err(act())? {
            let entry = entry.map_err(act())?;
            if entry.file_name().to_string_lossy().starts_with(BUILDING) {
                remove(&entry.path()).map_err(act())?;
            }
        }
        Ok(())
    }

    /// Makes an empty folder to build in, on the disk of the kernels; it is removed when dropped.
    pub(crate) fn workshop(&self, _lock: &Lock) -> Result<Workshop, KernelError> {
        let path = self.root.join(format!("{BUILDING}{}", std::process::id()));
        fs::create_dir(&path).map_err(KernelError::io(format!("make the folder {}", path.display())))?;
        Ok(Workshop { path })
    }

    /// Moves a finished folder into place under its id, in one step, after all of it is on the disk.
    ///
    /// What may stand there already is damaged, or it would have been used, and goes.
    pub(crate) fn place(&self, _lock: &Lock, finished: &Path, id: &str) -> Result<Installed, KernelError> {
        let target = self.root.join(id);
        let act = || KernelError::io(format!("install the kernel in {}", target.display()));
        for name in [BINARY, CONFIG, RECORD] {
            sync(&finished.join(name)).map_err(act())?;
        }
        sync(finished).map_err(act())?;
        if target.exists() {
            remove(&target).map_err(act())?;
        }
        fs::rename(finished, &target).map_err(act())?;
        sync(&self.root).map_err(act())?;
        self.entry(id).ok_or_else(|| act()(io::Error::other("the installed files cannot be read back")))
    }
}

/// A folder to build in, removed with all it holds when dropped.
#[derive(Debug)]
pub(crate) struct Workshop {
    pub(crate) path: PathBuf,
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // What cannot be removed now, the next builder's sweep tries again and reports.
        let _ = remove(&self.path);
    }
}

/// Removes a folder; tries again while the last programs of a killed build may still write to it.
fn remove(path: &Path) -> io::Result<()> {
    let mut tries = 0;
    loop {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty && tries < 10 => {
                tries += 1;
                std::thread::sleep(LOCK_POLL);
            }
            other => return other,
        }
    }
}

fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

pub(crate) const SCHEMA: &str = "thalweg.kernel/1";
pub(crate) const BINARY: &str = "linux";
pub(crate) const CONFIG: &str = ".config";
pub(crate) const RECORD: &str = "kernel.json";
/// How the names of folders begin that are being built in; the dot hides them from [`Cache::installed`].
pub(crate) const BUILDING: &str = ".building-";
const LOCK_POLL: Duration = Duration::from_millis(200);
