//! Folders that hold a run while it goes on, and go with it.

use rustix::fs::{FlockOperation, StatVfsMountFlags};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const PREFIX: &str = "thalweg-run-";
const LOCK_FILE: &str = "lock";

/// A folder of one run. Removed when dropped; one whose owner was killed is removed by the next run that finds it.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Held while the owner lives: what tells a folder in use from one left behind.
    _lock: File,
}

impl Scratch {
    /// Makes a folder under `$TMPDIR`, or /tmp, after removing those left behind there.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn create() -> io::Result<Self> {
        let parent = std::env::temp_dir();
        sweep(&parent);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent)?;
        // Held before it has its name: between the two another run's sweep would take the folder for one left behind.
        let unnamed = folder.path().join("unlocked");
        let lock = File::create(&unnamed)?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
        fs::rename(unnamed, folder.path().join(LOCK_FILE))?;
        Ok(Self { path: folder.keep(), _lock: lock })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is swept up by the next run.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders in `parent` whose owners are gone.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // A folder without its lock is one just being made.
        let Ok(lock) = File::open(entry.path().join(LOCK_FILE)) else { continue };
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Where a guest's memory can be: a file system with room that may map executable pages.
///
/// # Errors
/// One sentence for each place tried, saying why it will not do.
pub(crate) fn memory_folder(needed_bytes: u64) -> Result<PathBuf, String> {
    let given = std::env::var_os("TMPDIR").map(PathBuf::from);
    let mut wrong = Vec::new();
    for folder in given.into_iter().chain(["/dev/shm", "/tmp", "/var/tmp"].map(PathBuf::from)) {
        match rustix::fs::statvfs(&folder) {
            Err(error) => wrong.push(format!("{} cannot be used: {error}", folder.display())),
            Ok(stat) if stat.f_flag.contains(StatVfsMountFlags::NOEXEC) => {
                wrong.push(format!("{} is mounted noexec", folder.display()));
            }
            Ok(stat) if stat.f_bavail * stat.f_frsize < needed_bytes => {
                let free = stat.f_bavail * stat.f_frsize / 1_000_000;
                wrong.push(format!("{} has only {free} MB free", folder.display()));
            }
            Ok(_) if rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK).is_err() => {
                wrong.push(format!("{} cannot be written to", folder.display()));
            }
            Ok(_) => return Ok(folder),
        }
    }
    Err(wrong.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_is_swept_and_what_is_in_use_is_not() {
        let parent = tempfile::tempdir().expect("a folder");
        let (dead, alive) = (parent.path().join("thalweg-run-dead"), parent.path().join("thalweg-run-alive"));
        for folder in [&dead, &alive] {
            fs::create_dir(folder).expect("made");
            fs::write(folder.join(LOCK_FILE), "").expect("written");
        }
        let held = File::open(alive.join(LOCK_FILE)).expect("open");
        rustix::fs::flock(&held, FlockOperation::LockExclusive).expect("locked");
        sweep(parent.path());
        assert!(!dead.exists() && alive.exists());
    }
}
