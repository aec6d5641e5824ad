//! Where and for how long a journal's changes hold: one boot, one network namespace.

use crate::error::ApplyError;

/// The boot this is.
pub(crate) fn boot_id() -> Result<String, ApplyError> {
    thalweg_host::sysctl::read("kernel.random.boot_id").map_err(ApplyError::Read)
}

/// The number of this network namespace.
pub(crate) fn namespace() -> Result<u64, ApplyError> {
    use std::os::unix::fs::MetadataExt;
    let path = "/proc/self/ns/net";
    let metadata = std::fs::metadata(path);
    metadata.map(|metadata| metadata.ino()).map_err(|source| ApplyError::Journal {
        act: "read",
        path: path.into(),
        source,
    })
}
