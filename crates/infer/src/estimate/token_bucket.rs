//! Whether a token bucket discards what is over a rate: what passed and what was lost, held against the bucket that explains it best.
//!
//! Flach et al. fill a simulated bucket at the goodput between the first loss and the last, and ask that it be emptier at losses than
//! elsewhere. Here the rate and the size of the bucket are fitted: those that tell losses from passes best are a policer's if they
//! tell nearly all. A queue that overflows fits as well, for it is a bucket too; but what waits in it is late by as much as the bucket is
//! empty, and a policer delays nothing.
//!
//! Source: Flach et al., "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016, §3.

use crate::observe::policer_log::{PolicerLog, Sent};

/// Losses enough to judge by (Flach et al. ask for 15 of each).
const MIN_LOSSES: usize = 12;
/// In this many round trips at least (as they do).
const MIN_LOSSY_ROUND_TRIPS: usize = 3;
/// Ethernet, IP and TCP headers: what a packet costs beyond its payload. They are 14, 20 and 32 bytes with timestamps (RFC 7323 §3.2).
const HEADER_BYTES: f64 = 66.0;
/// How well it must distinguish losses and passes: Youden's index, 1 for all of them and 0 for chance.
const MIN_YOUDEN_INDEX: f64 = 0.7;
/// Packets that the smallest bucket holds: a smaller one is not recognized, as times err by half a packet.
const MIN_BUCKET_PACKETS: f64 = 4.0;
/// The same where what was lost never came to the tap, and when it left is a guess: what is missing in a row then explains itself by
/// a small bucket.
const MIN_BUCKET_PACKETS_UNSEEN: f64 = 16.0;
/// By how much of a packet the bucket errs, as times are those at the tap; and of what was lost and never came there, whose time is a guess.
const BUCKET_ERROR_PACKETS: f64 = 0.5;
const BUCKET_ERROR_PACKETS_UNSEEN: f64 = 1.0;
/// Of the delay that a queue in the bucket's place would cause, the part that speaks against a policer.
const MAX_DELAYED_PART: f64 = 0.35;

/// Round trips enough in each third for that, which are this part of the largest delay apart.
const MIN_RTT_SAMPLES: usize = 10;
const MIN_DELAY_SPREAD: f64 = 0.25;
/// Without these, the part of it that the largest round trips before losses may be raised by: bursts that the bucket lets through wait behind it,
/// at less than half of that where the line is twice as fast.
const MAX_RTT_RISE_PART: f64 = 0.6;

/// What the losses behind a bucket tell.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BucketFit {
    /// It discards what is over its rate and delays nothing.
    Policer(PolicerBucket),
    /// It is a queue: what passed was late.
    Queue,
}

/// A policer's bucket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PolicerBucket {
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

impl PolicerBucket {
    /// The part of its rate that is payload of segments of `mss` bytes, in bytes per second.
    pub(crate) fn payload_rate(self, mss: u64) -> f64 {
        let mss = mss.max(1) as f64;
        self.rate * mss / (mss + HEADER_BYTES)
    }
}

/// The bucket that explains the losses; `None` where none does.
///
/// `rtt` is the least round trip, `peak` what it is on average at most just before losses, in nanoseconds.
pub(crate) fn fit(log: &PolicerLog, rtt: u64, peak: f64) -> Option<BucketFit> {
    if log.losses < MIN_LOSSES {
        return None;
    }
    let first = log.sent.iter().position(|sent| sent.lost)?;
    let last = log.sent.iter().rposition(|sent| sent.lost)?;
    let sent = &log.sent[first..=last];
    let seconds = (sent.last()?.at - sent.first()?.at) as f64 / 1e9;
    let passed: f64 = sent.iter().filter(|sent| !sent.lost).map(|sent| f64::from(sent.len) + HEADER_BYTES).sum();
    let slice = rtt.max(1_000_000);
    if seconds <= 0.0 || passed <= 0.0 || lossy_slices(sent, slice) < MIN_LOSSY_ROUND_TRIPS {
        return None;
    }
    let goodput = passed / seconds;
    let size = sent.iter().map(|sent| f64::from(sent.len) + HEADER_BYTES).fold(0.0, f64::max);
    // Tokens that a full bucket turned away make the rate larger than the goodput.
    let mut best = (f64::NEG_INFINITY, goodput, size);
    let smallest = size * if log.missed { MIN_BUCKET_PACKETS_UNSEEN } else { MIN_BUCKET_PACKETS };
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
    if index < MIN_YOUDEN_INDEX {
        return None;
    }
    let explained = parts(sent, rate, burst, slice);
    let delayed = delayed(sent, rate, burst);
    let waited = (peak - rtt as f64) / 1e9 * rate / burst;
    let queues = delayed.map_or(waited >= MAX_RTT_RISE_PART, |delayed| delayed >= MAX_DELAYED_PART);
    if queues {
        return Some(BucketFit::Queue);
    }
    let delayed = delayed.unwrap_or(waited);
    Some(BucketFit::Policer(PolicerBucket { rate, burst, explained, delayed, losses: log.losses }))
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
        let size = f64::from(packet.len) + HEADER_BYTES;
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
        let size = f64::from(packet.len) + HEADER_BYTES;
        let slack = size * if packet.unseen { BUCKET_ERROR_PACKETS_UNSEEN } else { BUCKET_ERROR_PACKETS };
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
    if third < MIN_RTT_SAMPLES {
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
    (expected >= MIN_DELAY_SPREAD * burst / rate && part > -MAX_DELAYED_PART).then_some(part)
}
