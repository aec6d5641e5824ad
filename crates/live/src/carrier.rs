//! What frames are carried for: a path, or a switch.

use crate::frame_pool::FramePool;
use std::sync::Arc;
use std::time::Instant;
use thalweg_host::HostError;
use thalweg_host::tun::Tun;
use thalweg_units::Span;

/// Frames read before what is due is written: a device's queue is emptied in turns with the other side's needs.
pub(crate) const BATCH_FRAMES: usize = 16;
/// Bytes a carrier holds at most: 10 Gb/s for 0.8 s.
pub(crate) const HELD_MAX_BYTES: u64 = 1 << 30;

/// What a thread carries frames for.
pub(crate) trait Carrier: Send {
    /// The devices that frames are read from.
    fn devices(&self) -> Vec<Arc<Tun>>;

    /// Whether it is to end.
    fn is_over(&self) -> bool;

    /// Hands over what is due, and takes in what waits at the devices that are `readable`, in the order of [`Self::devices`]; those of
    /// which nothing is left to read no longer are.
    fn turn(&mut self, readable: &mut [bool], pool: &mut FramePool) -> Result<Turn, HostError>;
}

/// What a carrier did, and what is next.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Turn {
    /// Packets have left.
    pub(crate) has_released: bool,
    /// When the next one leaves if nothing comes in.
    pub(crate) due: Option<Instant>,
}

impl Turn {
    /// What a carrier did whose time 0 is `epoch` and whose next packet leaves at `due`.
    pub(crate) fn new(has_released: bool, epoch: Instant, due: Option<Span>) -> Self {
        Self { has_released, due: due.and_then(|due| epoch.checked_add(due.to_duration())) }
    }

    /// What two carriers did together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { has_released: self.has_released || other.has_released, due: earlier(self.due, other.due) }
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// The time from `epoch` until now.
pub(crate) fn since(epoch: Instant) -> Span {
    between(epoch, Instant::now())
}

pub(crate) fn between(epoch: Instant, at: Instant) -> Span {
    Span::from_nanos(u64::try_from(at.saturating_duration_since(epoch).as_nanos()).unwrap_or(u64::MAX))
}
