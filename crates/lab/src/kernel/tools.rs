//! What a build needs of this host: programs, and room on the disk.

use super::error::{KernelError, Missing};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Checks that the programs of a build are there, all of them at once, so that one installation mends it.
///
/// # Errors
/// [`KernelError::MissingTools`].
pub(crate) fn check_programs(wants_xz: bool) -> Result<(), KernelError> {
    let folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let missing = missing_programs(&folders, wants_xz);
    if missing.is_empty() { Ok(()) } else { Err(KernelError::MissingTools(missing)) }
}

pub(crate) fn missing_programs(folders: &[PathBuf], wants_xz: bool) -> Vec<Missing> {
    let there = |tool: &str| {
        folders.iter().any(|folder| {
            folder.join(tool).metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
        })
    };
    PROGRAMS.into_iter().filter(|one| wants_xz || one.tool != "xz").filter(|one| !there(one.tool)).collect()
}

/// Checks that a folder, which exists, has room.
///
/// # Errors
/// [`KernelError::DiskSpace`].
pub(crate) fn check_space(folder: &Path, needed_bytes: u64) -> Result<(), KernelError> {
    let stat = rustix::fs::statvfs(folder)
        .map_err(|error| KernelError::io(format!("ask for the free space of {}", folder.display()))(error.into()))?;
    let free_bytes = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free_bytes < needed_bytes {
        return Err(KernelError::DiskSpace { path: folder.to_owned(), needed_bytes, free_bytes });
    }
    Ok(())
}

const PROGRAMS: [Missing; 9] = [
    Missing { tool: "make", package: "build-essential" },
    Missing { tool: "gcc", package: "build-essential" },
    Missing { tool: "ld", package: "build-essential" },
    Missing { tool: "bc", package: "bc" },
    Missing { tool: "bison", package: "bison" },
    Missing { tool: "flex", package: "flex" },
    Missing { tool: "patch", package: "patch" },
    Missing { tool: "tar", package: "tar" },
    Missing { tool: "xz", package: "xz-utils" },
];
