//! The clocks, and reckoning with their times.

use rustix::time::ClockId;
use thalweg_units::Span;

/// The kernel's monotonic clock. Reading it moves virtual time by 256 ns.
pub(super) fn monotonic() -> Span {
    read(ClockId::Monotonic)
}

/// The clock of the day: what kernels stamp packets with.
pub(super) fn real_time() -> Span {
    read(ClockId::Realtime)
}

/// `at` and so much later.
pub(super) const fn plus(at: Span, span: Span) -> Span {
    Span::from_nanos(at.as_nanos() + span.as_nanos())
}

/// From `before` to `at`; nothing where that is negative.
pub(super) const fn minus(at: Span, before: Span) -> Span {
    Span::from_nanos(at.as_nanos().saturating_sub(before.as_nanos()))
}

fn read(clock: ClockId) -> Span {
    let now = rustix::time::clock_gettime(clock);
    Span::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}
