//! Random numbers of the kernel.

use crate::error::HostError;
use std::fs::File;
use std::io::Read;

/// Bytes that nobody can guess.
///
/// # Errors
/// When the kernel gives none.
pub fn bytes<const N: usize>() -> Result<[u8; N], HostError> {
    let mut random = [0; N];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
    read.map_err(|source| HostError { act: "read /dev/urandom".to_owned(), source })?;
    Ok(random)
}
