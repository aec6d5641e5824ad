//! Finding a name, and what it is where it is no setting.

use super::catalogue;
use super::entry::{Entry, Kind, Outside, Removed, Shape, Vendor};
use std::collections::HashMap;
use std::sync::LazyLock;
use thalweg_model::since::Release;

/// What a name is.
#[derive(Debug, Clone, Copy)]
pub enum Known {
    /// A setting of mainline kernels.
    Setting(&'static Entry),
    /// A name that only a vendor's kernels have.
    Vendor(&'static Vendor),
    /// A name that mainline had once.
    Removed(&'static Removed),
    /// A sysctl that is not TCP's.
    Outside(&'static Outside),
    /// One or two letters away from a setting.
    Mistyped(&'static Entry),
    /// Nothing that is known.
    Unknown,
}

/// How many letters may be wrong in a name for it to be taken for mistyped.
const LETTERS: usize = 2;

/// What a sysctl's name is: dotted, or as a path below `/proc/sys`.
pub fn known(name: &str) -> Known {
    let name = dotted(name);
    let catalogue = catalogue();
    if let Some(entry) = sysctl(&name) {
        return Known::Setting(entry);
    }
    if let Some(vendor) = catalogue.vendors.iter().find(|vendor| vendor.name == name) {
        return Known::Vendor(vendor);
    }
    if let Some(removed) = catalogue.removed.iter().find(|removed| removed.name == name) {
        return Known::Removed(removed);
    }
    if let Some(outside) = catalogue.outside.iter().find(|one| one.begin.iter().any(|begin| name.starts_with(begin))) {
        return Known::Outside(outside);
    }
    let near = by_name()
        .values()
        // Names whose lengths differ by more are farther away, and the distance takes long.
        .filter(|entry| entry.name.len().abs_diff(name.len()) <= LETTERS)
        .map(|entry| (strsim::damerau_levenshtein(&entry.name, &name), *entry))
        .filter(|(letters, _)| *letters <= LETTERS)
        .min_by_key(|(letters, entry)| (*letters, &entry.name));
    near.map_or(Known::Unknown, |(_, entry)| Known::Mistyped(entry))
}

/// The entry of a sysctl by its whole dotted name.
pub fn sysctl(name: &str) -> Option<&'static Entry> {
    by_name().get(name).copied()
}

/// Sysctls by their whole names.
fn by_name() -> &'static HashMap<&'static str, &'static Entry> {
    static BY_NAME: LazyLock<HashMap<&str, &Entry>> = LazyLock::new(|| {
        let sysctls = catalogue().entries.iter().filter(|entry| entry.kind == Kind::Sysctl);
        sysctls.map(|entry| (entry.name.as_str(), entry)).collect()
    });
    &BY_NAME
}

/// Every setting that goes by this name: whole, the last part of a sysctl's, a scenario's, or `KIND:NAME`; letters' case does not
/// matter.
pub fn find(name: &str) -> Vec<&'static Entry> {
    let (kind, name) = match name.split_once(':') {
        Some((kind, rest)) => (Kind::ALL.into_iter().find(|known| known.name() == kind), rest),
        None => (None, name),
    };
    let name = dotted(name);
    let is = |entry: &&Entry| {
        let names = [Some(entry.name.as_str()), Some(entry.short_name()), entry.scenario.as_deref()];
        kind.is_none_or(|kind| kind == entry.kind)
            && names.iter().flatten().any(|known| known.eq_ignore_ascii_case(&name))
    };
    catalogue().entries.iter().filter(is).collect()
}

/// `net/ipv4/tcp_rmem` and `/proc/sys/net/ipv4/tcp_rmem` as `net.ipv4.tcp_rmem`.
fn dotted(name: &str) -> String {
    let name = name.trim();
    if !name.contains('/') {
        return name.to_owned();
    }
    name.trim_start_matches("/proc/sys").trim_start_matches('/').replace('/', ".")
}

/// Whether two values of a setting are the same to the kernel: by their words, and masks without their leading zeros.
pub fn same_value(entry: &Entry, one: &str, other: &str) -> bool {
    if entry.shape == Shape::Mask {
        let bare = |text: &str| text.replace(',', "").trim_start_matches('0').to_owned();
        return bare(one.trim()) == bare(other.trim());
    }
    words(one) == words(other)
}

/// The words of a value.
pub fn words(value: &str) -> Vec<&str> {
    value.split_whitespace().collect()
}

/// Whether a value has as many numbers as its shape asks for.
pub const fn is_number_list(shape: Shape) -> Option<usize> {
    match shape {
        Shape::Flag | Shape::Integer | Shape::Bits => Some(1),
        Shape::Pair => Some(2),
        Shape::Triple => Some(3),
        _ => None,
    }
}

impl Entry {
    /// The numbers of a value; `None` where it is not that many numbers.
    pub fn numbers(&self, value: &str) -> Option<Vec<i128>> {
        let count = is_number_list(self.shape)?;
        let numbers: Option<Vec<i128>> = words(value).into_iter().map(number).collect();
        numbers.filter(|numbers| numbers.len() == count)
    }

    /// Why the kernel refuses this value, or what is wrong with one that it takes; `None` where nothing speaks against it.
    pub fn refuses(&self, value: &str, kernel: Option<Release>) -> Option<String> {
        let Self { name, shape, .. } = self;
        if !self.is_on(kernel) {
            let (major, minor) = self.since.unwrap_or_default();
            return Some(format!("{name} is not in this kernel; Linux {major}.{minor} is the first that has it"));
        }
        if self.kind == Kind::Sysctl && self.scope == super::Scope::ReadOnly {
            return Some(format!("{name} is read-only"));
        }
        let Some(count) = is_number_list(*shape) else {
            let one_word = *shape == Shape::Word && words(value).len() != 1;
            return one_word.then(|| format!("{name} takes one word, not '{value}'"));
        };
        let Some(numbers) = self.numbers(value) else {
            let what = if count == 1 { "a number".to_owned() } else { format!("{count} numbers") };
            return Some(format!("{name} takes {what}, not '{value}'"));
        };
        if let Some(odd) = self.outside_range(&numbers) {
            let [least, most] = self.range.unwrap_or_default();
            return Some(format!("{name} is from {least} to {most}, not {odd}"));
        }
        if let Some(bits) = self.bits
            && let Some(odd) = numbers.iter().find(|number| **number < 0 || **number & !i128::from(bits) != 0)
        {
            return Some(format!("{name} is a sum of the bits in {bits:#x}, and {odd} has others"));
        }
        None
    }

    /// Whether the kernel writes the value all the same: numbers that are missing stay, and bits without a meaning are not checked.
    ///
    /// Source: kernel/sysctl.c, `do_proc_dointvec`.
    pub fn is_written(&self, value: &str) -> bool {
        let words = words(value);
        let numbers: Option<Vec<i128>> = words.iter().map(|word| number(word)).collect();
        is_number_list(self.shape).is_some()
            && numbers.is_some_and(|numbers| !numbers.is_empty() && self.outside_range(&numbers).is_none())
    }

    fn outside_range(&self, numbers: &[i128]) -> Option<i128> {
        let [least, most] = self.range?;
        numbers.iter().copied().find(|number| !(i128::from(least)..=i128::from(most)).contains(number))
    }
}

/// A decimal or hexadecimal number.
fn number(word: &str) -> Option<i128> {
    match word.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}
