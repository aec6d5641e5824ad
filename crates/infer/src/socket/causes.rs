//! The verdict on a connection that was sampled.

use super::Sample;
use super::partition::{CA_LOSS, CA_RECOVERY, Spending};
use crate::diagnosis::finding::{MIN_GAIN, fact};
use crate::diagnosis::gain::{FASTER, weight_of_time};
use crate::diagnosis::words::{count, percent, rate, time};
use crate::estimate::loss_origin;
use crate::estimate::partition::LimitShare;
use thalweg_model::{Code, Verdict};

/// Shares of the time below this are nobody's complaint.
const LEAST: f64 = 0.05;
/// Bytes that lie unread in this share of the samples tell of a slow reader.
const UNREAD: f64 = 0.5;
/// And so many bytes in the receive buffer's memory: half of it is what packets cost beside their bytes.
const UNREAD_PART: u64 = 4;
/// A window that closes to this part of what it was is closed by who does not read.
const CLOSES: f64 = 0.5;
/// The largest window without scaling (RFC 9293 §3.1).
const UNSCALED: u64 = 65_535;
/// Part of the time at a full congestion window in which it stays as it is, for something to clamp it.
const STAYS: f64 = 0.8;
/// Samples enough to say so.
const FEWEST: usize = 5;
/// Part of what was sent again that was needless, or that had been overtaken, for packets to be reordered and not lost.
const NEEDLESS: f64 = 0.5;
/// Pauses after which the window began anew, and the segments sent after each, at the least, for that to cost round trips: twice the ten that it
/// begins with (RFC 6928).
const RESTARTS: usize = 2;
const BURST: u64 = 20;
/// Part of the time from which on it is the path that holds a connection, unless it would be so many times faster without something else.
const MOSTLY: f64 = 0.5;
const BESIDE_A_FULL_PATH: f64 = 1.2;
/// What slow start loses at once where it overshoots a queue: at least so many packets, and this part of the window.
const MANY: u64 = 8;
const OVERSHOT: f64 = 0.2;

/// A cause, what it took, and whether its end gains anything.
struct Candidate {
    code: Code,
    spent: LimitShare,
    gain: Option<f64>,
}

/// Judges the data's sender, by its own kernel.
pub(super) fn of_sender(samples: &[Sample], spending: &Spending) -> Verdict {
    let gain = |spent| gain_without(spending, spent);
    let candidate = |code, spent| Candidate { code, spent, gain: gain(spent) };
    let again = samples[samples.len() - 1].sent_again.saturating_sub(samples[0].sent_again);
    let mut all = vec![
        candidate(window_code(samples), spending.receive_window),
        Candidate {
            code: Code::SendBuffer,
            spent: spending.send_buffer,
            // A queue then is of the bursts in which a full buffer is filled again, and tells nothing of the path's rate.
            gain: gain(spending.send_buffer).filter(|_| spending.share(spending.send_buffer) < MOSTLY),
        },
        candidate(Code::Application, spending.application),
    ];
    let restarts = restarts(samples);
    let (mut growth, mut lost, mut timeout) = (spending.slow_start, LimitShare::default(), spending.timeout);
    if again > 0 {
        lost = spending.loss_recovery.and(spending.congestion_window);
    } else if stays(samples) && !restarts {
        all.push(candidate(Code::CongestionWindowClamp, spending.congestion_window));
    } else {
        growth = growth.and(spending.congestion_window);
    }
    all.push(candidate(if restarts { Code::IdleRestart } else { Code::InitialWindow }, growth));
    if is_black_hole(samples) {
        timeout = timeout.and(std::mem::take(&mut lost));
        all.push(candidate(Code::PathMtuBlackHole, timeout));
    } else {
        all.push(candidate(Code::RetransmissionTimeout, timeout));
    }
    all.push(candidate(loss_code(samples), lost));
    let share = |candidate: &Candidate| spending.share(candidate.spent);
    let weight = |candidate: &Candidate| candidate.gain.unwrap_or_else(|| weight_of_time(share(candidate)));
    all.retain(|candidate| share(candidate) >= LEAST && weight(candidate) >= MIN_GAIN);
    let anew = all.iter().position(|candidate| candidate.code == Code::IdleRestart);
    let most = || (0..all.len()).max_by(|a, b| weight(&all[*a]).total_cmp(&weight(&all[*b])));
    let first = anew.or_else(most).map(|at| &all[at]);
    let path = spending.share(spending.path_rate);
    let full = path >= MOSTLY && first.is_none_or(|first| weight(first) < BESIDE_A_FULL_PATH);
    let (code, share, gain) = match first.filter(|_| !full) {
        Some(first) => (first.code, share(first), first.gain),
        None if path >= LEAST => (Code::PathRate, path, Some(1.0)),
        None => (Code::NothingToGain, 0.0, Some(1.0)),
    };
    Verdict {
        code,
        share,
        claim: claim(code, share),
        gain,
        weight: None,
        evidence: evidence(samples, spending, code, again),
    }
}

/// How many times faster it would have been, had what `spent` covers gone as fast as data was seen to; `None` where it was never seen to go
/// clearly faster than on average, so that the path's rate is not known.
fn gain_without(spending: &Spending, spent: LimitShare) -> Option<f64> {
    let (seen, rate, all) = (spending.seen(), spending.rate(), spending.seconds());
    if spending.capacity().is_none() && seen < FASTER * rate.max(1.0) {
        return None;
    }
    let instead = all - spent.seconds + spent.bytes / seen.max(1.0);
    Some((all / instead.max(all * 1e-3)).clamp(1.0, (seen / rate.max(1.0)).max(1.0)))
}

/// Which of its receiver's limits a window is that was full.
fn window_code(samples: &[Sample]) -> Code {
    let largest = samples.iter().map(|sample| sample.peer_window).max().unwrap_or(0);
    let mut most = 0;
    let (mut limited, mut closed) = (0, 0);
    for pair in samples.windows(2) {
        most = most.max(pair[1].peer_window);
        if pair[1].window_limited_us > pair[0].window_limited_us {
            limited += 1;
            closed += usize::from((pair[1].peer_window as f64) < CLOSES * most as f64);
        }
    }
    if !samples[0].scaled && (1..=UNSCALED).contains(&largest) {
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
    all >= FEWEST && same as f64 >= STAYS * all as f64
}

/// Whether the window began anew after pauses (RFC 5681 §4.1): it is smaller than before, and nothing was lost.
fn restarts(samples: &[Sample]) -> bool {
    let (first, last) = (&samples[0], &samples[samples.len() - 1]);
    // Nothing was under way: it is no congestion control that takes its own window back (BBR, each ten seconds).
    let anew = |pair: &&[Sample]| {
        let is_less = pair[1].window < pair[0].window && pair[0].in_flight == 0;
        is_less && pair[1].sent_again == pair[0].sent_again && pair[1].state == 0
    };
    let times = samples.windows(2).filter(anew).count();
    let bytes = last.bytes_acked.saturating_sub(first.bytes_acked);
    times >= RESTARTS && bytes / times as u64 >= BURST * last.segment
}

/// Whether segments became smaller after timeouts: `tcp_mtu_probing` found that larger ones vanish.
fn is_black_hole(samples: &[Sample]) -> bool {
    let timed_out = samples.iter().position(|sample| sample.state == CA_LOSS);
    timed_out.is_some_and(|at| samples[at..].iter().any(|sample| sample.segment < samples[at].segment))
}

/// What losses come from: the round trips before them are the longest there are where a queue overflowed.
fn loss_code(samples: &[Sample]) -> Code {
    let (first, last) = (&samples[0], &samples[samples.len() - 1]);
    let since = |counter: fn(&Sample) -> u64| counter(last).saturating_sub(counter(first)) as f64;
    let again = since(|sample| sample.sent_again);
    if since(|sample| sample.needless).max(since(|sample| sample.overtaken)) >= NEEDLESS * again.max(1.0) {
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
        grew && pair[1].state != CA_LOSS && lost >= MANY && lost as f64 >= OVERSHOT * pair[0].window as f64
    })
}

fn claim(code: Code, share: f64) -> String {
    let share = percent(share);
    match code {
        Code::ReceiveWindow => format!("For {share} of the time the receiver's window was full."),
        Code::WindowScalingMissing => {
            format!(
                "For {share} of the time the receiver's window was full, which cannot pass 64 KiB: an end does not scale windows."
            )
        }
        Code::Reader => {
            format!("For {share} of the time the receiver's window was full or closed: its program reads too slowly.")
        }
        Code::SendBuffer => format!("For {share} of the time the send buffer was full of data under way."),
        Code::Application => format!("For {share} of the time the sending program had nothing to send."),
        Code::InitialWindow => format!("For {share} of the time the congestion window was still growing."),
        Code::IdleRestart => {
            format!("After pauses the congestion window began anew: for {share} of the time it was growing again.")
        }
        Code::CongestionWindowClamp => {
            format!(
                "For {share} of the time the congestion window was full, and never grew though nothing was lost: it is clamped."
            )
        }
        Code::PathRate => format!("For {share} of the time the path's own rate was used up."),
        Code::RetransmissionTimeout => format!("For {share} of the time nothing moved until a timer fired."),
        Code::PathMtuBlackHole => {
            format!(
                "For {share} of the time segments vanished until smaller ones were sent: the path drops large packets."
            )
        }
        Code::RandomLoss => {
            format!("For {share} of the time losses held the congestion window down, with no queue before them.")
        }
        Code::CongestionLoss => {
            format!("For {share} of the time losses of a full queue held the congestion window down.")
        }
        Code::Reordering => {
            format!(
                "For {share} of the time what was taken for losses held the congestion window down; those packets had been overtaken."
            )
        }
        _ => "No limit costs as much as five percent.".to_owned(),
    }
}

fn evidence(samples: &[Sample], spending: &Spending, code: Code, again: u64) -> Vec<thalweg_model::Evidence> {
    let (first, last) = (&samples[0], &samples[samples.len() - 1]);
    let seconds = |to: u64, from: u64| time(to.saturating_sub(from) as f64 / 1e6);
    let mut found = vec![
        format!(
            "the kernel had data under way for {} of {}, of that {} limited by the receiver's window and {} by the send buffer",
            seconds(last.busy_us, first.busy_us),
            time(last.at_s - first.at_s),
            seconds(last.window_limited_us, first.window_limited_us),
            seconds(last.buffer_limited_us, first.buffer_limited_us),
        ),
        format!(
            "{} were acknowledged, {} sent again; the round trip was {} at last and {} at best, in {} samples",
            rate(spending.rate()),
            count(again, "packet"),
            time(last.rtt_us as f64 / 1e6),
            time(last.rtt_min_us as f64 / 1e6),
            samples.len(),
        ),
    ];
    if matches!(code, Code::RandomLoss | Code::CongestionLoss) {
        found.push("a policer looks the same from a socket: capture at the sender to tell".to_owned());
    }
    if code == Code::RetransmissionTimeout {
        found.push(
            "why packets and their repetitions are lost a socket does not tell: capture at the sender".to_owned(),
        );
    }
    found.into_iter().map(fact).collect()
}

/// The receiver's kernel knows what its own program does, and little of the sender.
pub(super) fn of_receiver(samples: &[Sample]) -> Verdict {
    // What comes fast is never all read; what fills a part of the buffer closes the window.
    let lies = |s: &&Sample| s.unread > (2 * s.segment.max(1_460)).max(s.receive_buffer / UNREAD_PART);
    let unread = samples.iter().filter(lies).count();
    let share = unread as f64 / samples.len() as f64;
    let evidence = vec![fact(format!("received data lay unread in {unread} of {} samples", samples.len()))];
    if share >= UNREAD {
        let claim =
            format!("The receiving program reads too slowly: data lay unread for {} of the time.", percent(share));
        return Verdict { code: Code::Reader, share, claim, gain: None, weight: None, evidence };
    }
    let claim = "This end receives, and its program keeps up; look at the sender's end, or capture packets.".to_owned();
    Verdict { code: Code::Unknown, share: 0.0, claim, gain: None, weight: None, evidence }
}
