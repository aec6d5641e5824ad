//! The three numbers of `tcp_rmem` and `tcp_wmem`: what a socket keeps, begins with, and may grow to.

use crate::catalogue::Entry;
use thalweg_model::since::Release;

/// A socket keeps a page under memory pressure by default. Source: net/ipv4/tcp.c, `tcp_init`.
pub(crate) const FLOOR_MAX_BYTES: u64 = 64 << 10;
/// Eight times the larger of the kernel's own beginnings, 131,072 bytes. Source: net/ipv4/tcp.c, `tcp_init`.
pub(crate) const START_MAX_BYTES: u64 = 1 << 20;

/// The value with what does harm replaced by the kernel's default: a text that is no three numbers, a floor or a beginning that is large,
/// numbers that fall. `None` where the kernel has no default that holds for every host.
pub(crate) fn mended(entry: &Entry, value: &str, kernel: Option<Release>) -> Option<[u64; 3]> {
    let default @ [least_by_default, start_by_default, most_by_default] = three(entry, entry.default_on(kernel)?)?;
    let [least, start, most] = three(entry, value).unwrap_or(default);
    let least = if least <= FLOOR_MAX_BYTES { least } else { least_by_default };
    let start = if (least..START_MAX_BYTES).contains(&start) { start } else { start_by_default.max(least) };
    Some([least, start, if most > start { most } else { most_by_default }])
}

fn three(entry: &Entry, value: &str) -> Option<[u64; 3]> {
    let numbers: Option<Vec<u64>> = entry.numbers(value)?.into_iter().map(|number| number.try_into().ok()).collect();
    numbers?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::sysctl;

    #[test]
    fn what_does_harm_becomes_the_default() {
        let wmem = sysctl("net.ipv4.tcp_wmem").expect("known");
        for (value, wanted) in [
            ("4096 16384 4194304", [4096, 16384, 4_194_304]),
            ("8192 65536 16777216", [8192, 65536, 16_777_216]),
            ("8388608 1048576 16777216", [4096, 16384, 16_777_216]),
            ("87380 65536 4194304", [4096, 65536, 4_194_304]),
            ("4096 65536 16384", [4096, 65536, 4_194_304]),
            ("4096 16384 16384", [4096, 16384, 4_194_304]),
            ("a b c", [4096, 16384, 4_194_304]),
            ("4096 16384", [4096, 16384, 4_194_304]),
        ] {
            assert_eq!(mended(wmem, value, Some((6, 12))), Some(wanted), "{value}");
        }
        assert_eq!(mended(sysctl("net.ipv4.tcp_mem").expect("known"), "3 2 1", None), None);
    }
}
