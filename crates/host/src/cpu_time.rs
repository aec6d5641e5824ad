//! How long a thread and the programs it started have computed.
//!
//! Source: getrusage(2).

use std::time::Duration;

/// Time on a processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In the program.
    pub user: Duration,
    /// In the kernel, on the program's behalf.
    pub system: Duration,
}

impl CpuTime {
    /// What the calling thread has taken (`RUSAGE_THREAD`); zero where the kernel does not say.
    pub fn of_thread() -> Self {
        Self::of(libc::RUSAGE_THREAD)
    }

    /// What programs that this process started and waited for have taken (`RUSAGE_CHILDREN`); zero where the kernel does not say.
    pub fn of_children() -> Self {
        Self::of(libc::RUSAGE_CHILDREN)
    }

    fn of(whom: libc::c_int) -> Self {
        // SAFETY: `rusage` is plain data for which zeroes are valid, and it outlives the call.
        let (result, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::getrusage(whom, &raw mut usage), usage)
        };
        if result < 0 {
            return Self::default();
        }
        let time = |value: libc::timeval| {
            Duration::from_secs(value.tv_sec.unsigned_abs()) + Duration::from_micros(value.tv_usec.unsigned_abs())
        };
        Self { user: time(usage.ru_utime), system: time(usage.ru_stime) }
    }

    /// What was taken since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self { user: self.user.saturating_sub(before.user), system: self.system.saturating_sub(before.system) }
    }

    /// The sum of two threads' times.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { user: self.user + other.user, system: self.system + other.system }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_thread_takes_time() {
        let before = CpuTime::of_thread();
        let begun = std::time::Instant::now();
        let mut sum = 0u64;
        while begun.elapsed() < Duration::from_millis(30) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let taken = CpuTime::of_thread().since(before);
        assert!(taken.user + taken.system > Duration::ZERO, "{taken:?}");
        assert_eq!(taken.and(CpuTime::default()), taken);
    }
}
