//! What the receiver's window tells of the buffer behind it.
//!
//! Source: Linux `tcp_select_initial_window` for the window scale, `tcp_rcv_space_adjust` for how a buffer tunes itself: each round
//! trip to twice what the program read in the last one, up to the third figure of `tcp_rmem`. SO_RCVBUF ends that.

use crate::event::Limit;
use crate::observe::window_growth::MIN_GROWTH_DIVISOR;
use crate::tcp::sender::Sender;
use thalweg_model::BufferState;

/// Part of the phase the window must be small in for its reader to be slow.
const MIN_SMALL_WINDOW_SHARE: f64 = 0.05;
/// Times the window was full after it had stopped growing for its size to be a limit.
const MIN_FULL_WINDOWS: u64 = 16;
/// Growth up to this is a fixed buffer's: the part of it that is offered rises from a half to three quarters as its packets prove full
/// (Linux `scaling_ratio`). One that tunes itself starts with 64 KiB and doubles.
const MAX_FIXED_GROWTH: f64 = 1.6;

/// The least and the bound of what the receiver's buffer may grow to, from its window scale: the kernel takes the largest of the third
/// figure of `tcp_rmem` and `core.rmem_max`, or what the program set, and 2^15 shifted up is the largest power of two below it. The
/// scale is at most 14, so that has no bound.
pub(crate) fn bound(shift: u8) -> (u64, Option<u64>) {
    (if shift == 0 { 0 } else { 1 << (15 + shift) }, (shift < 14).then(|| 1 << (16 + shift)))
}

/// What the window showed of its buffer; `None` where it was neither full nor growing nor closing.
pub(crate) fn state(sender: &Sender) -> Option<BufferState> {
    let growth = &sender.observers.window_growth;
    let line = &sender.observers.time;
    let all = line.total();
    if line.time[Limit::Reader as usize] as f64 > MIN_SMALL_WINDOW_SHARE * all as f64 {
        return Some(BufferState::ReaderSlow);
    }
    let end = sender.clocks.last_delivery?;
    let rtt = sender.rtt.mean()?;
    if growth.full_since < MIN_FULL_WINDOWS {
        // It grew while there were round trips left for it to grow in.
        let grows = growth.first.is_some_and(|first| growth.largest > first + first / MIN_GROWTH_DIVISOR)
            && end.saturating_sub(growth.grown_at) as f64 <= 3.0 * rtt;
        return grows.then_some(BufferState::Growing);
    }
    let fixed = growth.first.is_some_and(|first| growth.largest as f64 <= MAX_FIXED_GROWTH * first as f64);
    Some(if fixed { BufferState::Fixed } else { BufferState::Capped })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_scale_bounds_the_buffer() {
        assert_eq!(bound(7), (4 << 20, Some(8 << 20)));
        assert_eq!(bound(0), (0, Some(65_536)));
        assert_eq!(bound(14), (512 << 20, None));
    }
}
