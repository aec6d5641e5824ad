//! Every setting of Linux that bears on TCP, as data: what it means, its default by kernel version, who reads it, what it costs.
//!
//! The data is in `crates/tune/catalogue/*.toml`. A test holds it against `/proc/sys` of the host and of the lab kernels.

mod entry;
mod lookup;
mod raw;
mod text;

pub use entry::{Entry, Kind, Outside, Removed, Scope, SettingsReport, Shape, Vendor};
pub use lookup::{Known, find, is_number_list, known, same_value, sysctl, words};
pub use text::{explain, explain_known};

use std::sync::LazyLock;

/// The whole catalogue.
#[derive(Debug)]
pub struct Catalogue {
    /// Settings that a mainline kernel has, by kind and name.
    pub entries: Vec<Entry>,
    /// Names that only vendors' kernels have.
    pub vendors: Vec<Vendor>,
    /// Names that mainline had once.
    pub removed: Vec<Removed>,
    /// Sysctls below `net.` that are not TCP's.
    pub outside: Vec<Outside>,
}

/// The catalogue, read once from the data in the program.
pub fn catalogue() -> &'static Catalogue {
    static CATALOGUE: LazyLock<Catalogue> =
        LazyLock::new(|| raw::read().expect("invariant: the data in the program is as the tests read it"));
    &CATALOGUE
}

#[cfg(test)]
mod tests;
