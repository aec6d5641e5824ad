//! Whether a queue overflowed where packets were lost, or they were lost without one.

use crate::estimate::capacity::ShownRates;
use crate::estimate::round_trips::{PLATEAU, RoundTrips};
use crate::estimate::token_bucket::{self, BucketFit, PolicerBucket};
use crate::estimate::view::{QUEUE_FLOOR_NS, QUEUE_PART};
use crate::event::{Accuracy, RetransmitKind};
use crate::observe::rtt_before_loss::RttBeforeLoss;
use crate::tcp::recovery::Loss;
use crate::tcp::sender::Sender;

/// How steep the ranks before losses must be for a queue, where the density of a rank r is a·rᵃ⁻¹: its likeliest a is what is compared, and 1
/// is chance. The sum of −ln r is Erlang's then, so chance is as steep for one loss in seven, for two in 16, for five in 150, for ten in
/// 5,000. In the labelled set random losses reach 2.4, and overflows begin at 6.
const MIN_RANK_STEEPNESS: f64 = 4.0;
/// And of at least this many losses, which chance makes as steep in one of 76: where others share the queue it stands nearly always, and most round
/// trips are long. `chance_seldom_puts_losses_behind_the_longest_round_trips` holds the number.
const MIN_RANK_STEEPNESS_SHARED: f64 = 3.0;
const MIN_LOSSES_SHARED: usize = 6;
/// The least that a rank tells: one loss after the longest round trip of all is not infinitely sure.
const RANK_DOUBT: f64 = 0.1;
/// A queue that overflows is as long each time: its length varies by what arrives at once. In the labelled set by 8 %, from queues of 12
/// packets on.
const MAX_QUEUE_DEVIATION: f64 = 0.25;
const MIN_ALIKE_SHARE: f64 = 2.0 / 3.0;
/// So many losses that are not so speak against any queue: one that overflows shows in a fifth of as many.
const MIN_LOSSES_AGAINST_QUEUE: usize = 10;
/// It holds as many packets at least. What bursts add to a round trip before a policer drops them is less.
const MIN_QUEUE_PACKETS: f64 = 4.0;
/// Elsewhere than at the sender round trips are measured by timestamps, which Linux counts in milliseconds (`TCP_TS_HZ`): only the first packet of
/// each tells.
const TICK_NS: f64 = 1e6;
/// Ethernet, IP and TCP headers: 14, 20 and 32 bytes with timestamps (RFC 7323 §3.2).
const HEADER_BYTES: f64 = 66.0;
/// Where the shortest quarter of the round trips is longer than the least by this part of what the longest are, a queue always stands, and
/// ranks tell nothing: all packets see it.
const STANDING_QUEUE_PART: f64 = 0.6;
/// How many times as long as round trips vary by from packet to packet a queue of a policer's size would delay them, at least, for it to be seen
/// that there is none: five times and more behind policers of our lab, three and less behind short queues.
const QUEUE_SHOWS_JITTERS: f64 = 4.0;
/// Segments beyond its rate that come out of a queue in a millisecond: one that began before it, and half of one for the tap's clock.
/// `causes_that_are_known_are_named_at_both_ends` fails without it (`path-rate-without-timestamps`).
const MAX_EVEN_EXCESS_SEGMENTS: f64 = 1.5;

/// What the losses of a flow came from.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LossOrigin {
    /// Numbers of losses without a queue before them, and with one.
    pub(crate) random: usize,
    pub(crate) congested: usize,
    /// The token bucket that discards what is over its rate.
    pub(crate) bucket: Option<PolicerBucket>,
    /// Mean of the largest round trips just before losses, in nanoseconds.
    pub(crate) rtt_peak: Option<f64>,
}

/// Judges the losses of a flow by two observations: the round trips just before losses, and the token bucket that explains losses and passes
/// best.
///
/// The round trips decide between a queue and none if they are sure; a policer must fit where no queue is sure, and be large enough for a queue of
/// its size to show; a bucket that fits and is none is a queue.
pub(crate) fn judge(rounds: &RoundTrips<'_>, rates: &ShownRates) -> LossOrigin {
    let sender = rounds.sender;
    let rtt_peak = mean_peak(sender, rounds);
    let Queues { random, congested, overflow } = by_round_trips(rounds, rates);
    let none = LossOrigin { random, congested, bucket: None, rtt_peak };
    // Where ACKs wait, it is not known whether a queue stood before the losses.
    if rounds.ack_wait.is_some() {
        return none;
    }
    // Where more packets came late than are taken for lost, those are late as well, as far as it is known. A policer delays none.
    if sender.scoreboard.out_of_order > sender.observers.policer_log.losses as u64 {
        return none;
    }
    let min = sender.rtt.min.unwrap_or(0);
    let fit = token_bucket::fit(&sender.observers.policer_log, min, rtt_peak.unwrap_or(0.0));
    let evenly = fit.is_some_and(|fit| passes_evenly(fit, sender, rates));
    match fit {
        // What comes evenly out of a queue keeps any bucket of its rate at one packet, and whatever is lost meets it nearly empty. One of a higher rate
        // than ever came out of it holds nothing.
        Some(BucketFit::Policer(bucket))
            if stands_in_queue(rounds) && (evenly || is_never_reached(bucket, sender, rates)) =>
        {
            none
        }
        Some(BucketFit::Policer(bucket))
            if (!evenly || sender.rtt.is_of_data())
                && overflow != Some(true)
                && bucket.burst / bucket.rate * 1e9 >= QUEUE_SHOWS_JITTERS * rounds.jitter() =>
        {
            LossOrigin { bucket: Some(bucket), ..none }
        }
        Some(_) if overflow != Some(false) => LossOrigin { random: 0, congested: congested + random, ..none },
        _ => none,
    }
}

/// Whether a queue of the path's holds data on average.
fn stands_in_queue(rounds: &RoundTrips<'_>) -> bool {
    let rtt = &rounds.sender.rtt;
    rtt.is_of_data() && rtt.mean().is_some_and(|mean| rounds.is_queued(mean))
}

/// Whether a bucket's rate is higher than all that came through shows.
fn is_never_reached(bucket: PolicerBucket, sender: &Sender, rates: &ShownRates) -> bool {
    let most = rates.plateau.unwrap_or(f64::INFINITY).max(rates.trains.unwrap_or(0.0));
    bucket.payload_rate(sender.space.mss) > most
}

/// Whether what passed a bucket came at its rate, as out of a queue: a policer lets it through at the line's.
fn passes_evenly(fit: BucketFit, sender: &Sender, rates: &ShownRates) -> bool {
    let BucketFit::Policer(bucket) = fit else { return false };
    let (rate, mss) = (bucket.payload_rate(sender.space.mss), sender.space.mss as f64);
    let most_in_1_ms = sender.observers.microbursts.peaks().0 as f64;
    rates.trains.is_some_and(|trains| trains <= rate / PLATEAU)
        && most_in_1_ms <= rate * 1e-3 + MAX_EVEN_EXCESS_SEGMENTS * mss
}

/// What the round trips before losses say.
#[derive(Debug, Clone, Copy, Default)]
struct Queues {
    random: usize,
    congested: usize,
    /// The round trips just before losses are the longest, and alike: nothing but a queue makes them so. Or they are, of enough losses,
    /// as all others are, and no queue did; `None` where neither is sure.
    overflow: Option<bool>,
}

/// What a full packet takes on the path, in nanoseconds, by the largest rate that it showed.
fn packet_nanos(sender: &Sender, rates: &ShownRates) -> f64 {
    let rate = rates.plateau.unwrap_or(0.0).max(rates.trains.unwrap_or(0.0));
    (sender.space.mss as f64 + HEADER_BYTES) / rate.max(1.0) * 1e9
}

/// Judges the losses that acknowledgements reported by the round trips before them.
fn by_round_trips(rounds: &RoundTrips<'_>, rates: &ShownRates) -> Queues {
    let sender = rounds.sender;
    let losses: Vec<&Loss> = sender.losses.episodes.iter().filter(|loss| loss.kind == RetransmitKind::Fast).collect();
    let rtt = &sender.rtt;
    let count = losses.len();
    let Some(min) = rtt.min.map(|min| min as f64) else {
        return Queues { random: count, ..Queues::default() };
    };
    let [low, high] = rtt.percentiles([0.25, 0.95]);
    let packet = packet_nanos(sender, rates);
    let is_queue = |over: f64| over >= (min * QUEUE_PART / 2.0).max(QUEUE_FLOOR_NS);
    let always = low - min >= STANDING_QUEUE_PART * (high - min);
    match of_heights(&sender.observers.rtt_before_loss, min, packet) {
        Some(true) => return Queues { congested: count, random: 0, overflow: Some(true) },
        Some(false) if !(always && is_queue(low - min)) => {
            let overflow =
                (sender.observers.rtt_before_loss.before_losses().count() >= MIN_LOSSES_AGAINST_QUEUE).then_some(false);
            return Queues { random: count, congested: 0, overflow };
        }
        _ => {}
    }
    let congested = losses
        .iter()
        .filter(|loss| {
            let over = loss.rtt_before - min;
            // At least half of what the queue ever was. With random delays and no queue, the smoothed round trip stays near
            // the middle of its range.
            let standing = is_queue(over) && over >= 0.5 * (high - min);
            let at_rate = rates.plateau.zip(rates.trains).is_none_or(|(plateau, trains)| {
                rounds.rate_at(loss.at) >= 0.5 * plateau.max(trains.min(plateau * 1.5))
            });
            standing && at_rate
        })
        .count();
    Queues { random: count - congested, congested, overflow: None }
}

/// Whether the round trips before losses are a full queue's; `None` where there are none.
fn of_heights(heights: &RttBeforeLoss, min: f64, packet: f64) -> Option<bool> {
    let ranks = heights.ranks();
    if ranks.is_empty() {
        return None;
    }
    let mut over: Vec<f64> = heights.before_losses().map(|nanos| nanos - min).collect();
    over.sort_unstable_by(f64::total_cmp);
    let median = over[over.len() / 2];
    let error = if heights.accuracy == Accuracy::Exact { 0.0 } else { TICK_NS };
    let alike = over.iter().filter(|over| (*over - median).abs() <= error.max(MAX_QUEUE_DEVIATION * median)).count();
    let as_ever = alike as f64 >= MIN_ALIKE_SHARE * over.len() as f64;
    let tall = if over.len() == 1 { median + error } else { median };
    Some(are_highest(&ranks) && as_ever && tall >= MIN_QUEUE_PACKETS * packet)
}

/// Whether round trips of these ranks, from 0 of the shortest of all to 1 of the longest, are among the longest: more than chance makes them.
pub(crate) fn are_highest(ranks: &[f64]) -> bool {
    let steep = ranks.len() as f64 / (RANK_DOUBT - ranks.iter().map(|rank| rank.max(1e-3).ln()).sum::<f64>());
    steep >= if ranks.len() >= MIN_LOSSES_SHARED { MIN_RANK_STEEPNESS_SHARED } else { MIN_RANK_STEEPNESS }
}

/// Mean of the largest round trips just before losses, in nanoseconds; `None` without such samples.
fn mean_peak(sender: &Sender, rounds: &RoundTrips<'_>) -> Option<f64> {
    let losses = sender.losses.episodes.iter().filter(|loss| loss.kind == RetransmitKind::Fast);
    let peaks: Vec<f64> = losses.map(|loss| rounds.rtt_peak(loss.at)).filter(|peak| *peak > 0.0).collect();
    (!peaks.is_empty()).then(|| peaks.iter().sum::<f64>() / peaks.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probability that ranks of chance are as steep: the sum of their −ln is at most n / steepness − RANK_DOUBT, which Erlang's distribution gives.
    fn chance(losses: usize, steepness: f64) -> f64 {
        let most = losses as f64 / steepness - RANK_DOUBT;
        let (mut term, mut sum) = (1.0, 0.0);
        for k in 1..=losses {
            sum += term;
            term *= most / k as f64;
        }
        1.0 - (-most).exp() * sum
    }

    #[test]
    fn chance_seldom_puts_losses_behind_the_longest_round_trips() {
        for (losses, one_in) in [(1, 7.0), (2, 16.0), (5, 150.0), (10, 5_000.0)] {
            let found = chance(losses, MIN_RANK_STEEPNESS) * one_in;
            assert!((0.8..1.2).contains(&found), "{losses}: {found}");
        }
        let shared = |losses| chance(losses, MIN_RANK_STEEPNESS_SHARED);
        assert!((shared(MIN_LOSSES_SHARED) * 76.0 - 1.0).abs() < 0.02, "{}", shared(MIN_LOSSES_SHARED));
        assert!(shared(MIN_LOSSES_SHARED - 1) > 0.02, "a loss less is as steep too often");
        let ranks = |losses, rank: f64| vec![rank; losses];
        assert!(are_highest(&ranks(MIN_LOSSES_SHARED, 0.74)) && !are_highest(&ranks(MIN_LOSSES_SHARED - 1, 0.74)));
    }
}
