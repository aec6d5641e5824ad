//! Whether a token bucket discards what is over a rate: what passed and what was lost, held against the bucket that explains it best.
//!
//! Flach et al. fill a simulated bucket at the goodput between the first loss and the last, and ask that it be emptier at losses than
//! elsewhere. Here the rate and the size of the bucket are fitted. Losses are a policer's if some bucket tells nearly all of them from passes.
//! Its rate and size are those that contradict the packets least: what passed needed tokens, and what was lost met less than it needed. A bucket that
//! is full again before every flight shows its rate only by the few packets that pass between losses, so each of them counts. A queue that overflows
//! fits as well, for it is a bucket too; but what waits in it is late by as much as the bucket is empty, and a policer delays nothing.
//!
//! Source: Flach et al., "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016, §3.

use crate::estimate::departure_times::departures;
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
/// Packets at most by which a round trip contradicts a bucket: what a queue lost besides is not the bucket's. As many as the
/// smallest bucket holds ([`MIN_BUCKET_PACKETS`]).
const MAX_CONTRADICTED: f64 = MIN_BUCKET_PACKETS;
/// How many times the goodput a policer's rate is at most. Bounds work.
const MAX_RATE_OVER_GOODPUT: f64 = 16.0;
/// Factors between the rates and between the sizes of the grids that the bucket is looked for on, and how many places of the first are looked at again.
/// A first grid as fine as the second takes three times as long for all of a diagnosis and finds rates that are no nearer: of 49 traces of Flach et al. with a
/// known policer 31 within 10 % for 30, and a mean error of 0.6 % in 20 captures of the lab either way.
const COARSE: (f64, f64) = (1.12, 1.25);
const FINE: (f64, f64) = (1.03, 1.05);
const FINEST: (f64, f64) = (1.004, 1.01);
const PLACES: usize = 32;
/// Part of what passed that the bucket must let through at least: a smaller one is contradicted by it, however well it tells which were lost. Policers of the
/// labelled set and of Flach et al. whose bucket is smaller than the smallest that is looked for let 0.93 through, all others all of it; full paths with
/// random losses reach 0.90 (`losses_on_a_full_path_are_no_policers`).
const MIN_PART_LET_THROUGH: f64 = 0.92;
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
    let departures = departures(&log.sent);
    let all = departures.as_deref().unwrap_or(&log.sent);
    let first = all.iter().position(|sent| sent.lost)?;
    let last = all.iter().rposition(|sent| sent.lost)?;
    let sent = &all[first..=last];
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
    let (rate, burst) = least_contradicted(sent, (rate, burst), (goodput, smallest), slice);
    if rate * seconds + burst < MIN_PART_LET_THROUGH * passed {
        return None;
    }
    let explained = parts(sent, rate, burst, slice);
    let delayed = delayed(sent, rate, burst);
    let waited = (peak - rtt as f64) / 1e9 * rate / burst;
    // A queue of the bucket's size delays nothing for longer than it takes to empty: what waits longer waits elsewhere.
    let as_queue = MAX_RTT_RISE_PART..=1.0 / MAX_RTT_RISE_PART;
    let queues = delayed.map_or(as_queue.contains(&waited), |delayed| delayed >= MAX_DELAYED_PART);
    if queues {
        return Some(BucketFit::Queue);
    }
    let delayed = delayed.unwrap_or(waited);
    Some(BucketFit::Policer(PolicerBucket { rate, burst, explained, delayed, losses: log.losses }))
}

fn steps(from: f64, to: f64, by: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(from), move |at| Some(at * by)).take_while(move |at| *at <= to)
}

/// The rate and the size of the bucket that the packets contradict least, of those that tell losses from passes; one is `near`. In bytes and seconds.
///
/// A coarse grid finds where to look, finer ones what is least there.
fn least_contradicted(sent: &[Sent], near: (f64, f64), (goodput, smallest): (f64, f64), slice: u64) -> (f64, f64) {
    let mut places: Vec<(f64, f64, f64)> = Vec::with_capacity(PLACES + 1);
    for rate in steps(goodput * 0.9, goodput * MAX_RATE_OVER_GOODPUT, COARSE.0) {
        for burst in steps(smallest, smallest * 512.0, COARSE.1) {
            let most = places.get(PLACES - 1).map_or(f64::INFINITY, |place| place.0);
            let packets = contradicted(sent, rate, burst, slice, most);
            if packets < most {
                places.insert(places.partition_point(|place| place.0 <= packets), (packets, rate, burst));
                places.truncate(PLACES);
            }
        }
    }
    let mut best = (contradicted(sent, near.0, near.1, slice, f64::INFINITY), near.0, near.1);
    let mut around = |(rate, burst): (f64, f64), reach: (f64, f64), step: (f64, f64)| {
        for rate in steps(rate / reach.0, rate * reach.0, step.0) {
            for burst in steps((burst / reach.1).max(smallest), burst * reach.1, step.1) {
                let packets = contradicted(sent, rate, burst, slice, best.0);
                if packets < best.0 && youden(sent, rate, burst, slice) >= MIN_YOUDEN_INDEX {
                    best = (packets, rate, burst);
                }
            }
        }
        (best.1, best.2)
    };
    let mut least = near;
    for (_, rate, burst) in places {
        least = around((rate, burst), (COARSE.0.sqrt(), COARSE.1.sqrt()), FINE);
    }
    around(least, FINE, FINEST)
}

/// Packets that contradict the bucket, each by the part of it for which there were too few tokens if it passed, or too many if it was lost. No round
/// trip counts for more than [`MAX_CONTRADICTED`]: a queue that slow start overran lost many at once. Stops beyond `most`.
fn contradicted(sent: &[Sent], rate: f64, burst: f64, slice: u64, most: f64) -> f64 {
    let (mut packets, mut here, mut until) = (0.0, 0.0f64, 0u64);
    for (packet, tokens) in levels(sent, rate, burst) {
        let size = f64::from(packet.len) + HEADER_BYTES;
        let wrong = if packet.lost { tokens - size } else { size - tokens };
        if wrong > 0.0 {
            if packet.at >= until {
                (here, until) = (0.0, packet.at + slice);
            }
            let more = (wrong / size).min(1.0).min(MAX_CONTRADICTED - here);
            here += more;
            packets += more;
            if packets > most {
                break;
            }
        }
    }
    packets
}

/// The packets, each with the tokens before it.
fn levels(sent: &[Sent], rate: f64, burst: f64) -> impl Iterator<Item = (&Sent, f64)> {
    let (mut left, mut at) = (0.0f64, sent[0].at);
    sent.iter().map(move |packet| {
        let tokens = (left + (packet.at.saturating_sub(at)) as f64 / 1e9 * rate).min(burst);
        at = packet.at;
        let size = f64::from(packet.len) + HEADER_BYTES;
        // What contradicts the bucket corrects it: an error of the rate must not add up.
        left = if packet.lost { tokens.min(size) } else { (tokens - size).max(0.0) };
        (packet, tokens)
    })
}

/// Parts of the losses that met too few tokens, and of the passes that met enough. Round trips with losses weigh alike: one in which a
/// growing window overran a queue says no more than another.
fn parts(sent: &[Sent], rate: f64, burst: f64, slice: u64) -> (f64, f64) {
    let (mut slices, mut explained, mut passed, mut free) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
    let (mut lost_here, mut explained_here, mut until) = (0.0f64, 0.0f64, 0u64);
    for (packet, tokens) in levels(sent, rate, burst) {
        let size = f64::from(packet.len) + HEADER_BYTES;
        let slack = size * if packet.unseen { BUCKET_ERROR_PACKETS_UNSEEN } else { BUCKET_ERROR_PACKETS };
        if !packet.lost {
            passed += 1.0;
            free += f64::from(u8::from(tokens > size - slack));
            continue;
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
    }
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
    for (packet, tokens) in levels(sent, rate, burst) {
        if !packet.lost && packet.rtt > 0 {
            seen.push(((burst - tokens) / rate, f64::from(packet.rtt) / 1e6));
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: u64 = 50_000_000;
    const SEGMENT: u32 = 1448;
    /// A line of 100 Mb/s.
    const GAP: u64 = 121_120;

    /// A sender that halves its window after a loss and else lets it grow by a sixteenth, one flight each round trip; `passes` gets when a packet left.
    fn log(flights: u64, mut passes: impl FnMut(u64) -> bool) -> PolicerLog {
        let (mut log, mut window) = (PolicerLog::default(), 64.0f64);
        for flight in 0..flights {
            let mut lossy = false;
            for n in 0..window as u64 {
                let at = flight * RTT + n * GAP;
                let lost = !passes(at);
                log.losses += usize::from(lost);
                lossy |= lost;
                let start = log.sent.len() as u64 * u64::from(SEGMENT);
                log.sent.push(Sent { at, start, len: SEGMENT, rtt: 0, lost, unseen: false, left_us: 0 });
            }
            window = if lossy { (window / 2.0).max(4.0) } else { window * 17.0 / 16.0 };
        }
        log
    }

    /// What a bucket of this rate, in Mb/s, and size lets pass.
    fn policed(mbps: f64, burst: f64) -> PolicerLog {
        let (rate, size) = (mbps / 8e3, f64::from(SEGMENT) + HEADER_BYTES);
        let (mut tokens, mut last) = (burst, 0);
        log(120, |at| {
            tokens = (tokens + (at - last) as f64 * rate).min(burst);
            last = at;
            let passes = tokens >= size;
            tokens -= if passes { size } else { 0.0 };
            passes
        })
    }

    fn fitted(log: &PolicerLog) -> Option<(f64, f64)> {
        match fit(log, RTT, RTT as f64)? {
            BucketFit::Policer(bucket) => Some((bucket.rate * 8e-6, bucket.burst)),
            BucketFit::Queue => None,
        }
    }

    /// Asserts that a bucket's rate is found within 5 %, and its size within two packets.
    fn is_found(mbps: f64, burst: f64) {
        let (rate, size) = fitted(&policed(mbps, burst)).expect("a policer");
        assert!((rate / mbps - 1.0).abs() < 0.05, "{mbps} Mb/s, {burst}: {rate}");
        assert!((size - burst).abs() < 2.0 * 1514.0, "{mbps} Mb/s, {burst}: {size}");
    }

    #[test]
    fn a_bucket_that_is_full_before_every_flight_shows_its_rate() {
        // A seventh to a sixteenth of what the rate carries in a round trip.
        [(16.0, 15e3), (40.0, 25e3), (40.0, 15e3)].into_iter().for_each(|(mbps, burst)| is_found(mbps, burst));
    }

    #[test]
    fn a_bucket_that_is_seldom_full_again_shows_its_rate() {
        // As much as the rate carries in a round trip, and twice that.
        [(3.0, 20e3), (3.0, 40e3), (8.0, 50e3), (8.0, 75e3)]
            .into_iter()
            .for_each(|(mbps, burst)| is_found(mbps, burst));
    }

    #[test]
    fn losses_of_a_full_queue_do_not_change_the_bucket() {
        // Slow start overran a queue before the bucket was empty: a hundred packets at once that no bucket explains.
        let mut log = policed(8.0, 50e3);
        let first = log.sent.iter().position(|sent| sent.lost).expect("a loss");
        let before = (0..100).map(|n| Sent { at: n * 1_000, lost: true, ..log.sent[first] }).collect::<Vec<_>>();
        log.losses += before.len();
        log.sent.iter_mut().for_each(|sent| sent.at += 10 * RTT);
        log.sent.splice(0..0, before);
        let (rate, _) = fitted(&log).expect("a policer");
        assert!((rate / 8.0 - 1.0).abs() < 0.05, "{rate}");
    }

    #[test]
    fn losses_of_chance_are_no_buckets() {
        let mut state = 1u64;
        let random = log(120, |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            !(state >> 33).is_multiple_of(100)
        });
        assert!(random.losses >= MIN_LOSSES && fitted(&random).is_none());
    }
}
