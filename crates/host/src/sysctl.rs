//! Sysctls of the current network namespace.

use crate::error::{HostError, wrap};
use crate::refusal::explain;
use std::fs;
use std::io;
use std::path::PathBuf;
use thalweg_model::Setting;

fn path(name: &str) -> PathBuf {
    ["/proc/sys".to_owned(), name.replace('.', "/")].iter().collect()
}

/// Reads a sysctl by its dotted name; tabs between its numbers become spaces.
///
/// # Errors
/// When this kernel has none of that name.
pub fn read(name: &str) -> Result<String, HostError> {
    let text = wrap(fs::read_to_string(path(name)), || format!("read the sysctl '{name}'"))?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Sets a sysctl and returns what the kernel made of it.
///
/// # Errors
/// When this kernel has none of that name, or refuses the value.
pub fn write(name: &str, value: &str) -> Result<String, HostError> {
    let result = fs::write(path(name), value).map_err(|error| match error.kind() {
        // A name that the kernel looks up, such as that of a congestion control.
        io::ErrorKind::NotFound if path(name).exists() => {
            io::Error::new(error.kind(), format!("this kernel has no '{value}', and no module of it"))
        }
        io::ErrorKind::NotFound => {
            io::Error::new(error.kind(), "this kernel has no such sysctl, or not in a network namespace")
        }
        _ if is_read_only(name) => io::Error::new(error.kind(), "it is read-only in this network namespace"),
        _ => error,
    });
    let setting = Setting::Sysctl(name.to_owned());
    wrap(result, || format!("set the sysctl '{name}' to '{value}'"))
        .map_err(|error| explain(error, &setting, value))?;
    read(name)
}

/// Whether the kernel lets nobody write a sysctl here, as those of the whole host in a network namespace of one's own.
pub fn is_read_only(name: &str) -> bool {
    fs::metadata(path(name)).is_ok_and(|file| file.permissions().readonly())
}
