//! Waiting for a packet's time more exactly than the kernel wakes a sleeping thread.

use std::time::Duration;
use thalweg_host::HostError;
use thalweg_units::Span;

/// How long before a packet is due the thread stops sleeping. A sleeper wakes 40 to 70 µs late on a virtual machine whose
/// processors were idle.
const AWAKE_BEFORE: Span = Span::from_micros(200);
/// The thread may be awake and wait for one part in this many of its time.
const PARTS: u64 = 100;

/// Sleeps until shortly before a packet is due, and then stays awake as long as it may.
#[derive(Debug, Default)]
pub(crate) struct BusyPoll {
    /// The thread sleeps until packets are due before this time.
    sleeps_until: Span,
}

impl BusyPoll {
    /// Waits until `due`, or until something comes in. `sleep` waits for that, for at most the time given, and returns whether it
    /// did; `now` reads the clock that `due` is of.
    pub(crate) fn wait(
        &mut self,
        due: Option<Span>,
        now: impl Fn() -> Span,
        mut sleep: impl FnMut(Option<Duration>) -> Result<bool, HostError>,
    ) -> Result<(), HostError> {
        let Some(due) = due else { return sleep(None).map(drop) };
        let awake_from = due.saturating_sub(AWAKE_BEFORE);
        let left = |until: Span| Some(until.saturating_sub(now()).to_duration());
        if awake_from < self.sleeps_until {
            return sleep(left(due)).map(drop);
        }
        let mut has_come = sleep(left(awake_from))?;
        let begun = now();
        while !has_come && now() < due {
            has_come = sleep(Some(Duration::ZERO))?;
        }
        self.sleeps_until = begun + Span::from_nanos(now().saturating_sub(begun).as_nanos() * PARTS);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::os::fd::AsFd;
    use std::time::Instant;
    use thalweg_host::poll::{self, Waker};

    fn clock() -> impl Fn() -> Span {
        let begun = Instant::now();
        move || Span::from_nanos(begun.elapsed().as_nanos() as u64)
    }

    fn thread_time() -> Span {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Span::from_secs_f64(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
    }

    #[test]
    fn it_is_never_early_and_seldom_awake() {
        let (waker, now) = (Waker::new().expect("made"), clock());
        let mut poll = BusyPoll::default();
        let before = thread_time();
        for turn in 1..=40u64 {
            let due = Span::from_millis(5 * turn);
            let sleep = |most| poll::wait_readable([waker.as_fd()], most).map(|[readable]| readable);
            poll.wait(Some(due), &now, sleep).expect("waited");
            assert!(now() >= due);
        }
        // A part in a hundred of 200 ms, and what some hundred system calls take.
        let awake = thread_time().saturating_sub(before);
        assert!(awake < Span::from_millis(20), "{awake}");
    }

    #[test]
    fn what_comes_in_ends_it() {
        let now = clock();
        for due in [None, Some(Span::from_micros(50)), Some(Span::from_millis(100_000))] {
            let mut calls = 0;
            let sleep = |_| {
                calls += 1;
                Ok(true)
            };
            BusyPoll::default().wait(due, &now, sleep).expect("waited");
            assert_eq!(calls, 1);
        }
    }

    #[test]
    fn a_busy_link_is_slept_through() {
        // The clock stands still while it sleeps, and moves on by 10 µs with each look.
        let at = Cell::new(0);
        let now = || {
            at.set(at.get() + 10);
            Span::from_micros(at.get())
        };
        let mut poll = BusyPoll::default();
        let (mut slept, mut awake) = (0, 0);
        for _ in 0..1_000 {
            let due = Some(now() + Span::from_micros(120));
            let sleep = |most: Option<Duration>| {
                let most = most.expect("a time");
                *if most.is_zero() { &mut awake } else { &mut slept } += 1;
                at.set(at.get() + most.as_micros() as u64);
                Ok(false)
            };
            poll.wait(due, now, sleep).expect("waited");
        }
        assert!(awake > 0 && awake * 5 < slept, "{slept} {awake}");
    }
}
