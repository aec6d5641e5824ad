//! Names in the BPF file system, by which programs and maps outlive the process that made them.
//!
//! Source: bpf(2), `BPF_OBJ_PIN` and `BPF_OBJ_GET`.

use super::{bpf, pointer};
use crate::error::HostError;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const BPF_OBJ_PIN: libc::c_int = 6;
const BPF_OBJ_GET: libc::c_int = 7;

/// Gives an object a name.
pub(super) fn put(object: BorrowedFd<'_>, path: &Path) -> Result<(), HostError> {
    let name = c_string(path)?;
    let mut attributes = [pointer(name.as_ptr()), object.as_raw_fd() as u64];
    bpf(BPF_OBJ_PIN, &mut attributes, || format!("pin {}", path.display())).map(drop)
}

/// The object of this name.
pub(super) fn get(path: &Path) -> Result<OwnedFd, HostError> {
    let name = c_string(path)?;
    let mut attributes = [pointer(name.as_ptr()), 0];
    let fd = bpf(BPF_OBJ_GET, &mut attributes, || format!("open {}", path.display()))?;
    // SAFETY: the descriptor was just made and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn c_string(path: &Path) -> Result<CString, HostError> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|error| HostError { act: format!("use the name {}", path.display()), source: io::Error::other(error) })
}
