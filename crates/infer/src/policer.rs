//! Whether a token bucket discards what is over a rate: what passed and what was lost, held against the bucket that explains it best.
//!
//! Flach et al. fill a simulated bucket at the goodput between the first loss and the last, and ask that it be emptier at losses than
//! elsewhere. Here the rate and the size of the bucket are fitted: those that tell losses from passes best are a policer's if they
//! tell nearly all. A queue that overflows fits as well, for it is a bucket too; but what waits in it is late by as much as the bucket is
//! empty, and a policer delays nothing.
//!
//! Source: Flach et al., "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016, §3.

/// Packets kept, from the first loss on: at one percent lost, eighty losses.
const MOST: usize = 1 << 13;
/// Losses enough to judge by (Flach et al. ask for 15 of each).
const ENOUGH: usize = 12;
/// In so many round trips at least (as they do).
const SLICES: usize = 3;
/// Ethernet, IP and TCP headers: what a packet costs beyond its payload.
const HEADERS: f64 = 66.0;
/// How well losses and passes must be told apart: Youden's index, 1 for all of them and 0 for chance.
const TOLD: f64 = 0.7;
/// Packets that the smallest bucket holds: in a smaller one nothing could be told, as times err by half a packet.
const SMALLEST: f64 = 4.0;
/// The same where what was lost never came to the tap, and when it left is a guess: what is missing in a row then explains itself by
/// a small bucket.
const SMALLEST_UNSEEN: f64 = 16.0;
/// By how much of a packet the bucket errs, as times are those at the tap; and of what was lost and never came there, whose time is a guess.
const ERRS: f64 = 0.5;
const ERRS_UNSEEN: f64 = 1.0;
/// Of the delay that a queue in the bucket's place would cause, the part that speaks against a policer.
const DELAYED: f64 = 0.35;

/// Round trips enough in each third for that, which are this part of the largest delay apart.
const SAMPLES: usize = 10;
const SPREAD: f64 = 0.25;
/// Without these, the part of it that the largest round trips before losses may be raised by: bursts that the bucket lets through wait behind it,
/// at less than half of that where the line is twice as fast.
const WAITED: f64 = 0.6;

/// A packet that left.
#[derive(Debug, Clone, Copy)]
struct Sent {
    at: u64,
    start: u64,
    len: u32,
    /// Microseconds until its acknowledgement; 0 is not known.
    rtt: u32,
    lost: bool,
    /// It never came to the tap.
    unseen: bool,
}

impl Sent {
    fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }

    fn carries(&self, byte: u64) -> bool {
        (self.start..self.end()).contains(&byte)
    }
}

/// What left since the first loss.
#[derive(Debug, Default)]
pub(crate) struct Log {
    sent: Vec<Sent>,
    open: bool,
    losses: usize,
    /// Some of them never came to the tap.
    missed: bool,
}

/// What the losses behind a bucket tell.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fit {
    /// It discards what is over its rate and delays nothing.
    Policer(Bucket),
    /// It is a queue: what passed was late.
    Queue,
}

/// A policer's bucket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    /// Bytes per second, headers included.
    pub(crate) rate: f64,
    /// Bytes.
    pub(crate) burst: f64,
    /// Part of the losses at an empty bucket, and of the passes at one that was not.
    pub(crate) explained: (f64, f64),
    /// Of the delay that a queue of this size would cause, the part there was.
    pub(crate) delayed: f64,
    pub(crate) losses: usize,
}

impl Bucket {
    /// The part of its rate that is payload of segments of `mss` bytes, in bytes per second.
    pub(crate) fn payload_rate(self, mss: u64) -> f64 {
        let mss = mss.max(1) as f64;
        self.rate * mss / (mss + HEADERS)
    }
}

impl Log {
    /// Whether nothing was lost yet.
    pub(crate) const fn is_closed(&self) -> bool {
        !self.open
    }

    /// The first loss: `flying` are the packets on their way, oldest first, by their first byte, length and time.
    pub(crate) fn open(&mut self, flying: impl Iterator<Item = (u64, u32, u64)>) {
        self.open = true;
        self.sent = flying
            .take(MOST)
            .map(|(start, len, at)| Sent { at, start, len, rtt: 0, lost: false, unseen: false })
            .collect();
    }

    /// A packet left.
    pub(crate) fn sent(&mut self, at: u64, start: u64, len: u32) {
        if self.open && self.sent.len() < MOST {
            self.sent.push(Sent { at, start, len, rtt: 0, lost: false, unseen: false });
        }
    }

    /// `[from, to)` left in packets of `mss` that the tap never saw, since `after` and before `now`. They are taken to have followed what
    /// was seen before them at the distance of that: what empties a bucket is a burst.
    pub(crate) fn missed(&mut self, after: u64, now: u64, from: u64, to: u64, mss: u64) {
        self.open = true;
        self.missed = true;
        let even = now.saturating_sub(after) / ((to - from) / mss + 1);
        let before = match self.sent.as_slice() {
            [.., a, b] if b.at == after => b.at - a.at,
            _ => 0,
        };
        for (n, start) in (from..to).step_by(mss as usize).enumerate().take(MOST - self.sent.len()) {
            self.losses += 1;
            let at = after + even.min(before) * (n as u64 + 1);
            self.sent.push(Sent { at, start, len: mss.min(to - start) as u32, rtt: 0, lost: true, unseen: true });
        }
    }

    /// `[start, end)` is sent again: what carried it last is lost. Of a burst that was handed down whole, that is the part alone.
    pub(crate) fn sent_again(&mut self, start: u64, end: u64) {
        let last = self.sent.iter().rposition(|sent| sent.carries(start));
        let Some(n) = last.filter(|&n| !self.sent[n].lost) else { return };
        self.losses += 1;
        let whole = self.sent[n];
        let cuts = [whole.start, start, end.min(whole.end()), whole.end()];
        let parts = cuts.windows(2).zip([false, true, false]).filter(|(cut, _)| cut[0] < cut[1]);
        let parts = parts.map(|(cut, lost)| Sent { start: cut[0], len: (cut[1] - cut[0]) as u32, lost, ..whole });
        self.sent.splice(n..=n, parts);
        // As many as are kept at most, the lost ones too.
        self.sent.truncate(MOST);
    }

    /// `[start, …)` had arrived all the same, or came late: it was not lost.
    pub(crate) fn arrived(&mut self, start: u64) {
        let found = self.sent.iter_mut().rev().find(|sent| sent.lost && sent.carries(start));
        if let Some(sent) = found {
            (sent.lost, sent.unseen) = (false, false);
            self.losses -= 1;
        }
    }

    /// The packet that left at `at` was acknowledged after `rtt`, both in nanoseconds.
    pub(crate) fn timed(&mut self, at: u64, rtt: u64) {
        let n = self.sent.partition_point(|sent| sent.at < at);
        if let Some(sent) = self.sent.get_mut(n).filter(|sent| sent.at == at) {
            sent.rtt = (rtt / 1_000).clamp(1, u64::from(u32::MAX)) as u32;
        }
    }

    /// The bucket that explains the losses; `None` where none does.
    ///
    /// `rtt` is the least round trip, `peak` what it is on average at most just before losses, in nanoseconds; `closed` where what is missing
    /// left no room, as only a queue closes it.
    pub(crate) fn bucket(&self, rtt: u64, peak: f64, closed: bool) -> Option<Fit> {
        if self.losses < ENOUGH {
            return None;
        }
        let first = self.sent.iter().position(|sent| sent.lost)?;
        let last = self.sent.iter().rposition(|sent| sent.lost)?;
        let sent = &self.sent[first..=last];
        let seconds = (sent.last()?.at - sent.first()?.at) as f64 / 1e9;
        let passed: f64 = sent.iter().filter(|sent| !sent.lost).map(|sent| f64::from(sent.len) + HEADERS).sum();
        let slice = rtt.max(1_000_000);
        if seconds <= 0.0 || passed <= 0.0 || lossy_slices(sent, slice) < SLICES {
            return None;
        }
        let goodput = passed / seconds;
        let size = sent.iter().map(|sent| f64::from(sent.len) + HEADERS).fold(0.0, f64::max);
        // Tokens that a full bucket turned away make the rate larger than the goodput.
        let mut best = (f64::NEG_INFINITY, goodput, size);
        let smallest = size * if self.missed { SMALLEST_UNSEEN } else { SMALLEST };
        for rate in steps(goodput * 0.9, goodput * 4.0, 1.06) {
            for burst in steps(smallest, 2048.0 * size, 2.0) {
                let index = youden(sent, rate, burst, slice);
                if index > best.0 + 1e-6 {
                    best = (index, rate, burst);
                }
            }
        }
        let (_, near, burst) = best;
        for rate in steps(near / 1.06, near * 1.06, 1.01) {
            for burst in steps((burst / 1.5).max(smallest), burst * 1.5, 1.2) {
                let index = youden(sent, rate, burst, slice);
                if index > best.0 + 1e-6 {
                    best = (index, rate, burst);
                }
            }
        }
        let (index, rate, burst) = best;
        if index < TOLD {
            return None;
        }
        let explained = parts(sent, rate, burst, slice);
        let delayed = delayed(sent, rate, burst);
        let waited = (peak - rtt as f64) / 1e9 * rate / burst;
        let queues = closed || delayed.map_or(waited >= WAITED, |delayed| delayed >= DELAYED);
        if queues {
            return Some(Fit::Queue);
        }
        let delayed = delayed.unwrap_or(waited);
        Some(Fit::Policer(Bucket { rate, burst, explained, delayed, losses: self.losses }))
    }
}

fn steps(from: f64, to: f64, by: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(from), move |at| Some(at * by)).take_while(move |at| *at <= to)
}

/// Follows the bucket over the packets; `see` gets each with the tokens before it.
fn follow(sent: &[Sent], rate: f64, burst: f64, mut see: impl FnMut(&Sent, f64)) {
    let (mut tokens, mut at) = (0.0f64, sent[0].at);
    for packet in sent {
        tokens = (tokens + (packet.at.saturating_sub(at)) as f64 / 1e9 * rate).min(burst);
        at = packet.at;
        see(packet, tokens);
        let size = f64::from(packet.len) + HEADERS;
        // What contradicts the bucket corrects it: an error of the rate must not add up.
        tokens = if packet.lost { tokens.min(size) } else { (tokens - size).max(0.0) };
    }
}

/// Parts of the losses that met too few tokens, and of the passes that met enough. Round trips with losses weigh alike: one in which a
/// growing window overran a queue says no more than another.
fn parts(sent: &[Sent], rate: f64, burst: f64, slice: u64) -> (f64, f64) {
    let (mut slices, mut explained, mut passed, mut free) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
    let (mut lost_here, mut explained_here, mut until) = (0.0f64, 0.0f64, 0u64);
    follow(sent, rate, burst, |packet, tokens| {
        let size = f64::from(packet.len) + HEADERS;
        let slack = size * if packet.unseen { ERRS_UNSEEN } else { ERRS };
        if !packet.lost {
            passed += 1.0;
            free += f64::from(u8::from(tokens > size - slack));
            return;
        }
        if packet.at >= until {
            if lost_here > 0.0 {
                slices += 1.0;
                explained += explained_here / lost_here;
            }
            (lost_here, explained_here, until) = (0.0, 0.0, packet.at + slice);
        }
        lost_here += 1.0;
        explained_here += f64::from(u8::from(tokens < size + slack));
    });
    if lost_here > 0.0 {
        slices += 1.0;
        explained += explained_here / lost_here;
    }
    (explained / slices.max(1.0), free / passed.max(1.0))
}

/// Round trips with losses.
fn lossy_slices(sent: &[Sent], slice: u64) -> usize {
    let (mut count, mut until) = (0, 0u64);
    for packet in sent.iter().filter(|packet| packet.lost) {
        if packet.at >= until {
            count += 1;
            until = packet.at + slice;
        }
    }
    count
}

fn youden(sent: &[Sent], rate: f64, burst: f64, slice: u64) -> f64 {
    let (explained, free) = parts(sent, rate, burst, slice);
    explained + free - 1.0
}

/// Of the delay that a queue in the bucket's place would cause, the part there was: between the packets that met the fullest third of
/// tokens and those that met the emptiest. `None` where the samples do not tell.
fn delayed(sent: &[Sent], rate: f64, burst: f64) -> Option<f64> {
    let mut seen: Vec<(f64, f64)> = Vec::new();
    follow(sent, rate, burst, |packet, tokens| {
        if !packet.lost && packet.rtt > 0 {
            seen.push(((burst - tokens) / rate, f64::from(packet.rtt) / 1e6));
        }
    });
    let third = seen.len() / 3;
    if third < SAMPLES {
        return None;
    }
    seen.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mean = |of: &[(f64, f64)]| {
        let n = of.len() as f64;
        (of.iter().map(|s| s.0).sum::<f64>() / n, of.iter().map(|s| s.1).sum::<f64>() / n)
    };
    let (short, long) = (mean(&seen[..third]), mean(&seen[seen.len() - third..]));
    let expected = long.0 - short.0;
    let part = (long.1 - short.1) / expected.max(1e-9);
    (expected >= SPREAD * burst / rate && part > -DELAYED).then_some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_burst_handed_down_whole_the_part_that_is_sent_again_is_lost() {
        let mut log = Log::default();
        log.open(std::iter::once((0, 14_480, 5)));
        log.sent_again(2_896, 4_344);
        let parts: Vec<_> = log.sent.iter().map(|sent| (sent.start, sent.len, sent.lost)).collect();
        assert_eq!(parts, [(0, 2_896, false), (2_896, 1_448, true), (4_344, 10_136, false)]);
        // Another part, the same once more, and one that begins where it was handed down.
        log.sent_again(13_032, 20_000);
        log.sent_again(2_896, 4_344);
        log.sent_again(0, 1_448);
        assert_eq!((log.losses, log.sent.len()), (3, 5));
        log.arrived(13_032);
        assert_eq!((log.losses, log.sent.iter().filter(|sent| sent.lost).count()), (2, 2));
        assert_eq!(log.sent.iter().map(|sent| sent.len).sum::<u32>(), 14_480);
    }
}
