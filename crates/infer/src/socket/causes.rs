//! The verdict on a connection that was sampled.

use super::changes::{restarts, smaller_segments};
use super::partition::{CA_LOSS, CA_RECOVERY, Spending, is_held_by_window};
use super::{Sample, figures};
use crate::diagnosis::finding::MIN_GAIN;
use crate::diagnosis::gain::{MIN_CAPACITY_RATIO, weight_of_time};
use crate::estimate::loss_origin;
use crate::estimate::partition::LimitShare;
use thalweg_model::{Cause, Code, Context, SlowReader, UndecidedBy, Verdict};

/// Shares of the time below this are nobody's complaint. `each_limit_is_told_and_shares_add_up` holds it.
const MIN_SHARE: f64 = 0.05;
/// Bytes that lie unread in this share of the samples tell of a slow reader. `a_receiver_tells_of_its_reader` holds it.
const UNREAD_SHARE: f64 = 0.5;
/// And this many bytes in the receive buffer's memory: half of it is what packets cost beside their bytes. `a_receiver_tells_of_its_reader` holds it.
const UNREAD_PART: u64 = 4;
/// A window that closes to this part of what it was is closed by who does not read. `each_limit_is_told_and_shares_add_up` holds it.
const CLOSED_PART: f64 = 0.5;
/// The largest window without scaling (RFC 9293 §3.1).
const UNSCALED_MAX: u64 = 65_535;
/// Part of the time at a full congestion window in which it stays as it is, for something to clamp it. `each_limit_is_told_and_shares_add_up` holds
/// it.
const CONSTANT_PART: f64 = 0.8;
/// Samples enough to say so. `each_limit_is_told_and_shares_add_up` holds it.
const MIN_SAMPLES: usize = 5;
/// Part of what was sent again that was needless, or that had been overtaken, for packets to be reordered and not lost.
/// `packets_that_overtake_make_no_queue_of_the_others_round_trip` holds it.
const NEEDLESS_PART: f64 = 0.5;
/// Part of the time from which on it is the path that holds a connection, unless it would be this many times faster without something else.
/// `a_full_path_is_the_verdict_beside_a_limit_that_costs_little` holds both.
const FULL_PATH_SHARE: f64 = 0.5;
const MIN_GAIN_BESIDE_A_FULL_PATH: f64 = 1.2;
/// What slow start loses at once where it overshoots a queue: at least this many packets, and this part of the window.
/// `slow_start_that_overshoots_loses_a_fifth_of_its_window_at_once` holds both.
const MIN_OVERSHOT_PACKETS: u64 = 8;
const OVERSHOT_PART: f64 = 0.2;

/// A cause, what it took, and whether its end gains anything.
struct Candidate {
    code: Code,
    spent: LimitShare,
    gain: Option<f64>,
}

/// Judges the data's sender, by its own kernel.
pub(super) fn of_sender(samples: &[Sample], spending: &Spending) -> Verdict {
    let all = candidates(samples, spending);
    let share = |candidate: &Candidate| spending.split.share(candidate.spent);
    let weight = |candidate: &Candidate| candidate.gain.unwrap_or_else(|| weight_of_time(share(candidate)));
    let all: Vec<Candidate> =
        all.into_iter().filter(|one| share(one) >= MIN_SHARE && weight(one) >= MIN_GAIN).collect();
    let anew = all.iter().position(|candidate| candidate.code == Code::IdleRestart);
    let most = || (0..all.len()).max_by(|a, b| weight(&all[*a]).total_cmp(&weight(&all[*b])));
    let first = anew.or_else(most).map(|at| &all[at]);
    let path = spending.split.share(spending.split.path_rate);
    let full = path >= FULL_PATH_SHARE && first.is_none_or(|first| weight(first) < MIN_GAIN_BESIDE_A_FULL_PATH);
    let (code, share, gain) = match first.filter(|_| !full) {
        Some(first) => (first.code, share(first), first.gain),
        None if path >= MIN_SHARE => (Code::PathRate, path, Some(1.0)),
        None => (Code::NothingToGain, 0.0, Some(1.0)),
    };
    let spent = first.map_or_else(LimitShare::default, |first| first.spent);
    let context = vec![Context::Kernel(figures::counters(samples, spending))];
    Verdict { context, ..Verdict::new(figures::cause(code, spent, samples, spending), share, gain) }
}

/// What may have held the sender, whatever it cost.
fn candidates(samples: &[Sample], spending: &Spending) -> Vec<Candidate> {
    let gain = |spent| gain_without(spending, spent);
    let candidate = |code, spent| Candidate { code, spent, gain: gain(spent) };
    let again = samples[samples.len() - 1].sent_again.saturating_sub(samples[0].sent_again);
    let mut all = vec![
        candidate(window_code(samples), spending.split.receive_window),
        Candidate {
            code: Code::SendBuffer,
            spent: spending.split.send_buffer,
            // A queue then is of the bursts in which a full buffer is filled again, and tells nothing of the path's rate.
            gain: gain(spending.split.send_buffer)
                .filter(|_| spending.split.share(spending.split.send_buffer) < FULL_PATH_SHARE),
        },
        candidate(Code::Application, spending.split.application),
    ];
    let restarts = restarts(samples).is_some();
    let (mut growth, mut lost, mut timeout) =
        (spending.split.slow_start, LimitShare::default(), spending.split.timeout);
    if again > 0 {
        lost = spending.split.loss_recovery.and(spending.split.congestion_window);
    } else if stays(samples) && !restarts {
        all.push(candidate(Code::CongestionWindowClamp, spending.split.congestion_window));
    } else {
        growth = growth.and(spending.split.congestion_window);
    }
    all.push(candidate(if restarts { Code::IdleRestart } else { Code::InitialWindow }, growth));
    if smaller_segments(samples).is_some() {
        timeout = timeout.and(std::mem::take(&mut lost));
        all.push(candidate(Code::PathMtuBlackHole, timeout));
    } else {
        all.push(candidate(Code::RetransmissionTimeout, timeout));
    }
    all.push(candidate(loss_code(samples), lost));
    all
}

/// How many times faster it would have been, had what `spent` covers gone as fast as data was seen to; `None` where it was never seen to go
/// clearly faster than on average, so that the path's rate is not known.
fn gain_without(spending: &Spending, spent: LimitShare) -> Option<f64> {
    let (seen, rate, all) = (spending.seen(), spending.rate(), spending.split.seconds());
    if spending.capacity().is_none() && seen < MIN_CAPACITY_RATIO * rate.max(1.0) {
        return None;
    }
    let instead = all - spent.seconds + spent.bytes / seen.max(1.0);
    Some((all / instead.max(all * 1e-3)).clamp(1.0, (seen / rate.max(1.0)).max(1.0)))
}

/// Which of its receiver's limits a window is that was full.
pub(super) fn window_code(samples: &[Sample]) -> Code {
    let largest = samples.iter().map(|sample| sample.peer_window).max().unwrap_or(0);
    let mut most = 0;
    let (mut limited, mut closed) = (0, 0);
    for pair in samples.windows(2) {
        most = most.max(pair[1].peer_window);
        if is_held_by_window(&pair[0], &pair[1]) {
            limited += 1;
            closed += usize::from((pair[1].peer_window as f64) < CLOSED_PART * most as f64);
        }
    }
    if !samples[0].scaled && (1..=UNSCALED_MAX).contains(&largest) {
        Code::WindowScalingMissing
    } else if 4 * closed > limited {
        Code::Reader
    } else {
        Code::ReceiveWindow
    }
}

/// Whether the congestion window stays as it is while it is full.
fn stays(samples: &[Sample]) -> bool {
    let full = samples.windows(2).filter(|pair| pair[1].in_flight * 10 >= pair[1].window * 9);
    let (mut all, mut same) = (0usize, 0usize);
    for pair in full {
        all += 1;
        same += usize::from(pair[0].window == pair[1].window);
    }
    all >= MIN_SAMPLES && same as f64 >= CONSTANT_PART * all as f64
}

/// What losses come from: the round trips before them are the longest there are where a queue overflowed.
fn loss_code(samples: &[Sample]) -> Code {
    let (first, last) = (&samples[0], &samples[samples.len() - 1]);
    let since = |counter: fn(&Sample) -> u64| counter(last).saturating_sub(counter(first)) as f64;
    let again = since(|sample| sample.sent_again);
    if since(|sample| sample.needless).max(since(|sample| sample.overtaken)) >= NEEDLESS_PART * again.max(1.0) {
        return Code::Reordering;
    }
    let mut all: Vec<u64> = samples.iter().map(|sample| sample.rtt_us).collect();
    all.sort_unstable();
    let rank = |rtt_us: u64| {
        let (below, to) = (all.partition_point(|&other| other < rtt_us), all.partition_point(|&other| other <= rtt_us));
        (below + to) as f64 / (2 * all.len()) as f64
    };
    let before_losses: Vec<f64> = samples
        .windows(2)
        .filter(|pair| pair[1].sent_again > pair[0].sent_again && !matches!(pair[0].state, CA_RECOVERY | CA_LOSS))
        .map(|pair| rank(pair[0].rtt_us))
        .collect();
    if overshoots(samples) || loss_origin::are_highest(&before_losses) {
        Code::CongestionLoss
    } else {
        Code::RandomLoss
    }
}

/// Whether slow start lost a large part of its window at once, as it does where a queue is full.
fn overshoots(samples: &[Sample]) -> bool {
    samples.windows(2).any(|pair| {
        let lost = pair[1].sent_again.saturating_sub(pair[0].sent_again);
        let grew = pair[0].window < pair[0].threshold && pair[0].state == 0;
        grew && pair[1].state != CA_LOSS
            && lost >= MIN_OVERSHOT_PACKETS
            && lost as f64 >= OVERSHOT_PART * pair[0].window as f64
    })
}

/// The receiver's kernel knows what its own program does, and little of the sender.
pub(super) fn of_receiver(samples: &[Sample]) -> Verdict {
    // What comes fast is never all read; what fills a part of the buffer closes the window.
    let lies = |s: &&Sample| s.unread > (2 * s.segment.max(1_460)).max(s.receive_buffer / UNREAD_PART);
    let unread = samples.iter().filter(lies).count();
    let share = unread as f64 / samples.len() as f64;
    let (samples, unread) = (samples.len() as u64, unread as u64);
    if share >= UNREAD_SHARE {
        return Verdict::new(Cause::Reader(SlowReader::Unread { samples: unread, of: samples }), share, None);
    }
    Verdict::new(Cause::Unknown(UndecidedBy::ReceivingEnd { unread_samples: unread, samples }), 0.0, None)
}
