//! The host's settings of TCP, for the namespaces of a path: a new namespace has the kernel's defaults for most of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use thalweg_host::sysctl;

const FOLDER: &str = "/proc/sys/net/ipv4";

/// Names and values of all `net.ipv4.tcp_*`.
#[derive(Debug, Clone)]
pub(crate) struct TcpSettings {
    values: Vec<(String, String)>,
}

impl TcpSettings {
    /// Those of the current network namespace.
    pub(crate) fn read() -> Self {
        let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
        // What nobody may write is no setting.
        let settings =
            entries.filter(|entry| entry.metadata().is_ok_and(|data| data.permissions().mode() & 0o200 != 0));
        let names = settings.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> =
            names.filter(|name| name.starts_with("tcp_")).map(|name| format!("net.ipv4.{name}")).collect();
        names.sort();
        let values = names.into_iter().filter_map(|name| sysctl::read(&name).ok().map(|value| (name, value)));
        Self { values: values.collect() }
    }

    /// Sets those that differ in the current network namespace; returns the names of those that the kernel refused.
    pub(crate) fn apply(&self) -> Vec<String> {
        // The secret of Fast Open's cookies reads as zeroes to others.
        let differs = |(name, value): &&(String, String)| {
            name != "net.ipv4.tcp_fastopen_key" && sysctl::read(name).is_ok_and(|own| own != *value)
        };
        let refused = |(name, value): &(String, String)| sysctl::write(name, value).is_err().then(|| name.clone());
        self.values.iter().filter(differs).filter_map(refused).collect()
    }
}
