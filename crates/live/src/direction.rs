//! One direction of a path in real time: frames are read from one device and written to the other when the path says so.

use crate::carrier::{BATCH_FRAMES, Carrier, HELD_MAX_BYTES, Turn, since};
use crate::frame::Frame;
use crate::frame_pool::{FramePool, Read};
use crate::lateness::Lateness;
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use thalweg_host::HostError;
use thalweg_host::poll::Waker;
use thalweg_host::tun::Tun;
use thalweg_model::{PathDirection, Step};
use thalweg_path::{Counters, Departure, OneWay, Tally, Unsupported};
use thalweg_units::{Bytes, Seed, Span};

/// One direction, driven by a [`Lane`] and looked at by others.
#[derive(Debug)]
pub(crate) struct Direction {
    state: Mutex<State>,
    /// Wakes the thread that drives it.
    pub(crate) waker: Arc<Waker>,
    is_over: AtomicBool,
}

#[derive(Debug)]
struct State {
    path: OneWay<Arc<Frame>>,
    /// The direction as asked for, with the changes since. A trace in it may be long.
    asked: Arc<PathDirection>,
    /// The shortest delay that it has had by changes and from the beginning.
    shortest_delay: Span,
    /// Time 0 of the path.
    epoch: Instant,
    lateness: Lateness,
    /// Frames that the emulator lost.
    lost: Lost,
}

/// Frames that no model of the path asked to lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lost {
    /// The device's queue was full since the emulator was too slow to read.
    pub unread: u64,
    /// The kernel refused them at the far end.
    pub refused: u64,
    /// The emulator held as much as it can.
    pub overflow: u64,
}

/// What a direction did until now.
#[derive(Debug, Clone)]
pub struct Progress {
    /// Since the path's beginning.
    pub at: Span,
    /// The direction as asked for, with the changes since.
    pub asked: Arc<PathDirection>,
    /// The shortest delay that was asked for.
    pub shortest_delay: Span,
    /// What the path counted.
    pub counters: Counters,
    /// Segments that wait at the bottleneck.
    pub queued: Tally,
    /// The most segments that waited, and the most bytes.
    pub queue_peak: (u32, Bytes),
    /// How late departures were.
    pub lateness: Lateness,
    /// What the emulator lost.
    pub lost: Lost,
}

/// Sees a frame that has come in.
pub(crate) type Arrived = Box<dyn FnMut(&Frame) + Send>;
/// Sees a frame, or a piece of one, that is about to be handed over, and its parts.
pub(crate) type Leaves = Box<dyn FnMut(&Frame, &[&[u8]]) + Send>;

/// What is done with frames besides carrying them.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) arrived: Option<Arrived>,
    pub(crate) leaves: Option<Leaves>,
}

impl Lost {
    /// All of them.
    pub const fn in_all(&self) -> u64 {
        self.unread + self.refused + self.overflow
    }
}

impl Direction {
    /// A direction whose time 0 is `epoch`.
    pub(crate) fn new(
        asked: &PathDirection,
        mtu: u16,
        seed: Seed,
        epoch: Instant,
        waker: Arc<Waker>,
    ) -> Result<Self, Unsupported> {
        let path = OneWay::new(asked, mtu, seed)?;
        let state = State {
            path,
            asked: Arc::new(asked.clone()),
            shortest_delay: asked.delay,
            epoch,
            lateness: Lateness::new(),
            lost: Lost::default(),
        };
        Ok(Self { state: Mutex::new(state), waker, is_over: AtomicBool::new(false) })
    }

    /// Changes the direction from now on.
    pub(crate) fn change(&self, step: &Step) -> Result<(), Unsupported> {
        let mut state = self.state();
        let at = state.now();
        let changed = state.path.change(&Step { at, ..step.clone() });
        if changed.is_ok() {
            state.note(step);
        }
        drop(state);
        self.waker.wake();
        changed
    }

    pub(crate) fn progress(&self) -> Progress {
        let state = self.state();
        Progress {
            at: state.now(),
            asked: Arc::clone(&state.asked),
            shortest_delay: state.shortest_delay,
            counters: *state.path.counters(),
            queued: state.path.queued(),
            queue_peak: state.path.queue_peak(),
            lateness: state.lateness.clone(),
            lost: state.lost,
        }
    }

    /// Ends the thread that drives it.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.waker.wake();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic of another thread leaves figures that are still worth reading.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A direction with its devices, and what is done besides.
pub(crate) struct Lane {
    direction: Arc<Direction>,
    from: Arc<Tun>,
    to: Arc<Tun>,
    hooks: Hooks,
}

impl Lane {
    pub(crate) fn new(direction: &Arc<Direction>, from: &Arc<Tun>, to: &Arc<Tun>, hooks: Hooks) -> Self {
        let (direction, from, to) = (Arc::clone(direction), Arc::clone(from), Arc::clone(to));
        Self { direction, from, to, hooks }
    }

    /// Does what [`Carrier::turn`] says.
    fn turn(&mut self, readable: &mut bool, pool: &mut FramePool) -> Result<Turn, HostError> {
        let mut state = self.direction.state();
        let has_released = state.release(&self.to, pool, &mut self.hooks)?;
        *readable = *readable && !state.take_in(&self.from, pool, &mut self.hooks)?;
        Ok(Turn::new(has_released, state.epoch, state.path.poll_timeout()))
    }
}

impl Carrier for Vec<Lane> {
    fn devices(&self) -> Vec<Arc<Tun>> {
        self.iter().map(|lane| Arc::clone(&lane.from)).collect()
    }

    fn is_over(&self) -> bool {
        self.iter().all(|lane| lane.direction.is_over.load(Ordering::Relaxed))
    }

    fn turn(&mut self, readable: &mut [bool], pool: &mut FramePool) -> Result<Turn, HostError> {
        let mut turns = self.iter_mut().zip(readable).map(|(lane, readable)| lane.turn(readable, pool));
        turns.try_fold(Turn::default(), |all, turn| Ok(all.and(turn?)))
    }
}

/// Writes what has left the path; returns how many segments the kernel refused.
pub(crate) fn write(
    departure: &Departure<Arc<Frame>>,
    to: &Tun,
    leaves: Option<&mut Leaves>,
) -> Result<u64, HostError> {
    let Departure { data: frame, segments, is_marked, flipped_bit, .. } = departure;
    let piece = frame.piece(segments, *is_marked, *flipped_bit);
    let parts = piece.parts();
    if let Some(leaves) = leaves {
        leaves(frame, &parts);
    }
    let is_taken = to.write(&parts.map(IoSlice::new))?;
    Ok(if is_taken { 0 } else { u64::from(segments.end - segments.start) })
}

impl State {
    /// Takes a change into what is asked for.
    fn note(&mut self, Step { rate, delay, loss, .. }: &Step) {
        let asked = Arc::make_mut(&mut self.asked);
        asked.rate = rate.or(asked.rate);
        asked.delay = delay.unwrap_or(asked.delay);
        self.shortest_delay = self.shortest_delay.min(asked.delay);
        loss.iter().for_each(|loss| asked.loss.clone_from(loss));
    }

    fn now(&self) -> Span {
        since(self.epoch)
    }

    /// Hands over what has left the path; returns whether anything has.
    fn release(&mut self, to: &Tun, pool: &mut FramePool, hooks: &mut Hooks) -> Result<bool, HostError> {
        let mut any = false;
        let mut now = self.now();
        while let Some(departure) = self.path.poll_departure(now) {
            any = true;
            self.hand_over(departure, to, pool, hooks)?;
            now = self.now();
        }
        Ok(any)
    }

    fn hand_over(
        &mut self,
        departure: Departure<Arc<Frame>>,
        to: &Tun,
        pool: &mut FramePool,
        hooks: &mut Hooks,
    ) -> Result<(), HostError> {
        self.lateness.record(self.now().saturating_sub(departure.at));
        self.lost.refused += write(&departure, to, hooks.leaves.as_mut())?;
        pool.take_back(departure.data);
        Ok(())
    }

    /// Takes in frames that wait; returns whether none is left.
    fn take_in(&mut self, from: &Tun, pool: &mut FramePool, hooks: &mut Hooks) -> Result<bool, HostError> {
        for _ in 0..BATCH_FRAMES {
            match pool.read(from)? {
                Read::Empty => return Ok(true),
                Read::Foreign => {}
                Read::Frame(frame) if self.path.counters().held_bytes() > HELD_MAX_BYTES => {
                    self.lost.overflow += 1;
                    pool.take_back(frame);
                }
                Read::Frame(frame) => {
                    if let Some(arrived) = &mut hooks.arrived {
                        arrived(&frame);
                    }
                    let packet = frame.packet(Arc::clone(&frame));
                    self.path.handle_packet(self.now(), packet);
                }
            }
        }
        Ok(false)
    }
}
