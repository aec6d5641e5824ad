//! A slice of a data phase with the round trip that ends with it.

use crate::observe::time_by_limit::Slice;

/// RTT above its minimum by this part means a standing queue; Linux delay-based controls use 1/8 (`tcp_cubic` HyStart,
/// `HYSTART_DELAY_THRESH(delay_min >> 3)`).
pub(crate) const QUEUE_PART: f64 = 1.0 / 8.0;
/// And by at least this long: half the 1 ms grain of TCP timestamps, in nanoseconds.
pub(crate) const QUEUE_FLOOR_NS: f64 = 500_000.0;

#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    pub(crate) slice: Slice,
    /// Nanoseconds since the flow's first packet, at the slice's start.
    pub(crate) at: u64,
    /// The slices of the round trip that ends with this one.
    pub(crate) span: u64,
    /// Bytes per second over the round trip that ends with this slice.
    pub(crate) rate: f64,
    /// The same, and no more than what comes evenly tells: a round trip of few acknowledgements may hold one more than its part of them.
    pub(crate) evenly: f64,
    /// Largest flight in that round trip.
    pub(crate) flight: u64,
    /// The receiver's window, carried forward where the slice heard of none; without a bound before the first.
    pub(crate) window: u64,
    /// RTT, carried forward where the slice has no sample; nanoseconds.
    pub(crate) rtt: f64,
    pub(crate) lossy: bool,
    /// Part of that round trip's undecided time in which the receiver's window was full.
    pub(crate) windowed: f64,
    /// Part of it in which that was closed or shrinking.
    pub(crate) unread: f64,
    /// A queue stood all through it, and was never empty.
    pub(crate) queued: bool,
}
