//! The allocator of the program, mimalloc.

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// How long freed pages are kept before the kernel gets them back, in milliseconds; -1: for ever. The crate names no experimental options.
/// Source: `mi_option_purge_delay` in mimalloc.h.
const PURGE_DELAY: mi_option_t = 15;

/// Keeps what is freed from now on for later allocations, instead of giving it back to the kernel: for a command that soon ends and allocates
/// as much again. Memory stays below its highest so far.
pub fn keep_freed_memory() {
    // SAFETY: sets a number that the allocator reads atomically.
    unsafe { mi_option_set(PURGE_DELAY, -1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libmimalloc_sys::mi_option_get;

    #[test]
    fn the_option_is_the_one_that_is_meant() {
        // SAFETY: reads a number.
        let read = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(read(), 1_000, "its default, which no other option has");
        keep_freed_memory();
        assert_eq!(read(), -1);
    }
}
