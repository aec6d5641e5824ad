//! The thread that carries frames: it hands over what is due, takes in what waits, and sleeps in between.

use crate::busy_poll::BusyPoll;
use crate::frame_pool::FramePool;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;
use thalweg_host::HostError;
use thalweg_host::poll::{self, Sources, Waker};
use thalweg_host::tun::Tun;
use thalweg_units::Span;

/// Frames read before what is due is written: a device's queue is emptied in turns with the other side's needs.
pub(crate) const BATCH_FRAMES: usize = 16;
/// After packets have left, the thread sleeps at least this long, so that a busy link's packets leave several at a time. It is
/// a quarter of the lateness that a path is allowed.
pub(crate) const SPACING: Span = Span::from_micros(25);
/// Bytes a carrier holds at most: 10 Gb/s for 0.8 s.
pub(crate) const HELD_MAX_BYTES: u64 = 1 << 30;

/// What a thread carries frames for.
pub(crate) trait Carrier {
    /// The devices that frames are read from.
    fn devices(&self) -> Vec<Arc<Tun>>;

    /// Whether the thread is to end.
    fn is_over(&self) -> bool;

    /// Hands over what is due, and takes in what waits at the devices that are `readable`, in the order of [`Self::devices`]; those of
    /// which nothing is left to read no longer are. Returns when it is to be called next if nothing comes in.
    fn turn(&mut self, readable: &mut [bool], pool: &mut FramePool) -> Result<Option<Span>, HostError>;
}

/// Carries frames until the carrier is over. Its times are counted from `epoch`; `waker` is woken when it has changed.
pub(crate) fn carry(mut carrier: impl Carrier, waker: &Waker, epoch: Instant) -> Result<(), HostError> {
    poll::wake_on_time();
    let devices = carrier.devices();
    let mut sources = Sources::new(devices.iter().map(|device| device.as_fd()).chain([waker.as_fd()]));
    let mut readable = vec![true; devices.len()];
    let mut pool = FramePool::default();
    let mut busy_poll = BusyPoll::default();
    while !carrier.is_over() {
        let due = carrier.turn(&mut readable, &mut pool)?;
        if readable.contains(&true) || due.is_some_and(|due| due <= since(epoch)) {
            continue;
        }
        let sleep = |most| {
            let mut ready = sources.wait(most)?;
            readable.iter_mut().zip(&mut ready).for_each(|(device, ready)| *device = ready);
            let is_woken = ready.next().is_some_and(|ready| ready);
            if is_woken {
                waker.clear();
            }
            Ok(is_woken || readable.contains(&true))
        };
        busy_poll.wait(due, || since(epoch), sleep)?;
    }
    Ok(())
}

/// The time from `epoch` until now.
pub(crate) fn since(epoch: Instant) -> Span {
    Span::from_nanos(u64::try_from(epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
