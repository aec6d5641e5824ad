//! Round trips between a tap and a far sender, from timestamp echoes.
//!
//! Source: Kathleen Nichols, pping: the first packet with a TSval to the first of the other direction that echoes it.

use std::collections::VecDeque;

/// TSvals awaiting their echo; a window of a thousand acknowledgements of different milliseconds is a second long.
const MOST_WAITING: usize = 1_024;
/// Samples the current round trip is the least of: paced or idle senders answer late, never early.
const RECENT: usize = 16;
const FEW: usize = 4;

/// Echoes of one receiver's timestamps by its sender.
#[derive(Debug, Default)]
pub(crate) struct Echo {
    waiting: VecDeque<(u32, u64)>,
    newest: Option<u32>,
    /// The latest, in a ring.
    recent: [u64; RECENT],
    pub(crate) samples: u64,
    pub(crate) min: Option<u64>,
}

impl Echo {
    /// Begins anew, in the room of its list.
    pub(crate) fn renew(&mut self) {
        *self = Self { waiting: crate::room::of_queue(&mut self.waiting), ..Self::default() };
    }

    /// The receiver sent `tsval`.
    pub(crate) fn sent(&mut self, now: u64, tsval: u32) {
        if self.newest.is_some_and(|newest| (tsval.wrapping_sub(newest) as i32) <= 0) {
            return;
        }
        self.newest = Some(tsval);
        if self.waiting.len() >= MOST_WAITING {
            self.waiting.pop_front();
        }
        if self.waiting.capacity() == 0 {
            self.waiting.reserve(16);
        }
        self.waiting.push_back((tsval, now));
    }

    /// The sender echoed `tsecr`; gives the round trip where this is the first echo.
    pub(crate) fn echoed(&mut self, now: u64, tsecr: u32) -> Option<u64> {
        while let Some(&(tsval, at)) = self.waiting.front() {
            match (tsval.wrapping_sub(tsecr) as i32).signum() {
                -1 => {
                    self.waiting.pop_front();
                }
                0 => {
                    self.waiting.pop_front();
                    let sample = now.saturating_sub(at);
                    self.recent[self.samples as usize % RECENT] = sample;
                    self.samples += 1;
                    self.min = Some(self.min.map_or(sample, |min| min.min(sample)));
                    return Some(sample);
                }
                _ => return None,
            }
        }
        None
    }

    /// The round trip now: the least of the recent samples. The first few often hold the time the application took to answer,
    /// and a handshake the time of an address resolution, so until there are a few more the `handshake`'s counts as one.
    pub(crate) fn current(&self, handshake: Option<u64>) -> Option<u64> {
        let count = (self.samples as usize).min(RECENT);
        let least = self.recent[..count].iter().min().copied()?;
        Some(if count < FEW { handshake.map_or(least, |handshake| handshake.min(least)) } else { least })
    }
}
