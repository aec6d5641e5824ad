//! What every lab kernel is made by: the configuration fragment and the patch, carried in this program.

use sha2::{Digest, Sha256};

/// The timer frequency of Debian's kernels, and so of most of the servers the lab stands for.
pub const DEFAULT_HZ: u32 = 250;

/// Timer frequencies the patch allows; the range in `kernel/lab.patch`.
pub(crate) const HZ_RANGE: std::ops::RangeInclusive<u32> = 100..=1000;

pub(crate) const PATCH: &str = include_str!("../../../../kernel/lab.patch");
const FRAGMENT: &str = include_str!("../../../../kernel/lab.config");

/// Returns the configuration fragment at a timer frequency.
pub(crate) fn fragment(hz: u32) -> String {
    let mut text = String::with_capacity(FRAGMENT.len());
    for line in FRAGMENT.lines() {
        if line.starts_with("CONFIG_HZ=") {
            text.push_str(&format!("CONFIG_HZ={hz}"));
        } else {
            text.push_str(line);
        }
        text.push('\n');
    }
    text
}

/// Returns the hash of fragment and patch at a timer frequency, in hexadecimal.
pub(crate) fn hash(hz: u32) -> String {
    let mut digest = Sha256::new();
    digest.update(fragment(hz));
    digest.update([0]);
    digest.update(PATCH);
    hex(&digest.finalize())
}

/// Returns the options that `fragment` asks for and `config`, a kernel's `.config`, does not have at that value.
///
/// Kconfig drops what it does not know or what misses a dependency without a word, so this has to be asked.
pub(crate) fn lost_options(fragment: &str, config: &str) -> Vec<String> {
    let has: std::collections::HashSet<&str> = config.lines().map(str::trim_end).collect();
    let unset = |line: &str| {
        let name = line.strip_prefix("# ")?.strip_suffix(" is not set")?;
        Some(!config.lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))))
    };
    fragment
        .lines()
        .map(str::trim_end)
        .filter(|line| match unset(line) {
            Some(met) => !met,
            None => line.starts_with("CONFIG_") && !has.contains(line),
        })
        .map(str::to_owned)
        .collect()
}

/// Returns the part of a hash that names a folder: 12 digits.
pub(crate) fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// Prints bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
