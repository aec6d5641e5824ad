//! Mahimahi's trace files.
//!
//! Source: Netravali et al., "Mahimahi: accurate record-and-replay for HTTP", USENIX ATC 2015; its src/frontend/link_queue.cc.

use thiserror::Error;

/// Bytes a moment delivers: an IP packet of 1500 and the 4 bytes a TUN device puts before it.
pub(super) const OPPORTUNITY_BYTES: i32 = 1504;
/// What a packet takes is its IP packet and those 4 bytes: its Ethernet frame less 10.
pub(super) const FRAME_SURPLUS: i32 = 10;
/// Moments, and milliseconds, at most: two million packets a second for a quarter of an hour.
const LONGEST: usize = 1 << 24;

/// Why a trace cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    /// A moment is earlier than the one before.
    #[error("moment {0} of the trace is earlier than the one before")]
    Backwards(usize),
    /// There is nothing in it.
    #[error("the trace is empty, or all of it is at 0 ms")]
    Empty,
    /// There is too much in it.
    #[error("the trace has more than {LONGEST} moments or milliseconds")]
    TooLong,
}

/// Moments, in whole milliseconds, at each of which a link delivers [1504 bytes](self); after the last one they repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    times: Vec<u32>,
}

impl Trace {
    /// A trace of these moments, in order.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn new(times: Vec<u32>) -> Result<Self, TraceError> {
        if let Some(at) = times.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(TraceError::Backwards(at + 2));
        }
        match times.last() {
            None | Some(0) => Err(TraceError::Empty),
            Some(last) if *last as usize > LONGEST || times.len() > LONGEST => Err(TraceError::TooLong),
            Some(_) => Ok(Self { times }),
        }
    }

    /// The moments, in milliseconds.
    pub fn times(&self) -> &[u32] {
        &self.times
    }

    /// The length of the trace in milliseconds, after which it repeats.
    pub fn period_ms(&self) -> u32 {
        self.times.last().copied().unwrap_or(1)
    }

    /// For each millisecond of the period, the index of the first moment after it.
    pub(super) fn after(&self) -> Vec<u32> {
        let mut index = 0;
        let first_after = |ms: u32| {
            while self.times[index] <= ms {
                index += 1;
            }
            index as u32
        };
        (0..self.period_ms()).map(first_after).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_that_cannot_be_replayed_are_refused() {
        let trace = Trace::new(vec![0, 2, 2, 5]).expect("a trace");
        assert_eq!((trace.times(), trace.period_ms()), (&[0, 2, 2, 5][..], 5));
        assert_eq!(trace.after(), [1, 1, 3, 3, 3]);
        for (times, error) in [
            (vec![], TraceError::Empty),
            (vec![0], TraceError::Empty),
            (vec![3, 2], TraceError::Backwards(2)),
            (vec![99_999_999], TraceError::TooLong),
        ] {
            assert_eq!(Trace::new(times), Err(error));
        }
    }
}
