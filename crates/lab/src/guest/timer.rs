//! Timers that can be polled, on the monotonic clock.

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::os::fd::OwnedFd;
use thalweg_host::HostError;
use thalweg_units::Span;

/// A timer that is not set.
pub(super) fn timer() -> Result<OwnedFd, HostError> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    call(rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags), "make a timer")
}

/// Lets the timer go off at `first`, and then `every` so often, or not again where that is zero.
pub(super) fn set_time(timer: &OwnedFd, first: Span, every: Span) -> Result<(), HostError> {
    let spec = |span: Span| Timespec {
        tv_sec: (span.as_nanos() / 1_000_000_000) as i64,
        tv_nsec: (span.as_nanos() % 1_000_000_000) as i64,
    };
    let when = Itimerspec { it_interval: spec(every), it_value: spec(first) };
    call(rustix::time::timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &when), "set a timer").map(drop)
}

/// Says how often the timer went off since the last call.
pub(super) fn clear(timer: &OwnedFd) -> u64 {
    let mut count = [0u8; 8];
    // Would-block means another event of the same batch cleared it.
    let _ = rustix::io::read(timer, &mut count);
    u64::from_ne_bytes(count)
}

fn call<T>(result: rustix::io::Result<T>, act: &str) -> Result<T, HostError> {
    result.map_err(|errno| HostError { act: act.to_owned(), source: errno.into() })
}
