//! The clock of programs, CLOCK_MONOTONIC, and that of the epoch.

use rustix::time::{ClockId, clock_gettime};

/// The time by CLOCK_MONOTONIC, in nanoseconds.
pub(super) fn monotonic_ns() -> u64 {
    ns(ClockId::Monotonic)
}

/// What the epoch's clock is ahead of it.
pub(super) fn epoch_ns() -> u64 {
    ns(ClockId::Realtime).saturating_sub(monotonic_ns())
}

fn ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
