//! A connection judged by what its own kernel says of it from time to time, in place of its packets.
//!
//! The kernel counts how long data was under way, and how much of that the receiver's window and the send buffer took
//! (`tcpi_busy_time`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited`; the first holds the other two: `tcp_get_info_chrono_stats`,
//! net/ipv4/tcp.c). What remains of it is the network's, and is divided by what the kernel did at each sample.

use crate::words::{percent, rate, time};
use model::{Code, Evidence, Finding, Flow, Handshake, Limits, Measured, Retransmits, Vantage, Verdict, Way};
use std::net::SocketAddr;

/// Below this gain, or this share, there is nothing to report: ../rules.
const WORTH: f64 = 0.05;
/// A round trip this many times the least one tells of a queue.
const QUEUED: f64 = 1.25;
/// `TCP_CA_Recovery` and `TCP_CA_Loss`, include/uapi/linux/tcp.h.
const CA_RECOVERY: u64 = 3;
const CA_LOSS: u64 = 4;
/// Bytes that lie unread in this share of the samples tell of a slow reader.
const UNREAD: f64 = 0.5;

/// What the kernel said of a connection at a moment; counters are since the connection began.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// Seconds since the epoch.
    pub at_s: f64,
    /// Microseconds with data under way, and of these limited by the receiver's window, and by the send buffer.
    pub busy_us: u64,
    /// Of `busy_us`, limited by the receiver's window.
    pub window_limited_us: u64,
    /// Of `busy_us`, limited by the send buffer.
    pub buffer_limited_us: u64,
    /// Payload that was acknowledged.
    pub bytes_acked: u64,
    /// Payload that was received in order.
    pub bytes_received: u64,
    /// Packets sent with payload, and those sent again.
    pub data_segments_out: u64,
    /// Packets received with payload.
    pub data_segments_in: u64,
    /// Packets sent again.
    pub sent_again: u64,
    /// Retransmission timeouts; 0 before Linux 6.7.
    pub timeouts: u64,
    /// Retransmissions that a DSACK tells were needless.
    pub needless: u64,
    /// `TCP_CA_*`.
    pub state: u64,
    /// Congestion window and its threshold, in segments.
    pub window: u64,
    /// Slow-start threshold, in segments.
    pub threshold: u64,
    /// Packets under way.
    pub in_flight: u64,
    /// Segment size, in bytes.
    pub segment: u64,
    /// Smoothed and least round trip, in microseconds.
    pub rtt_us: u64,
    /// Least round trip, in microseconds.
    pub rtt_min_us: u64,
    /// Received and not yet read by the program, in bytes.
    pub unread: u64,
}

/// Judges a connection between these ends by its samples; `None` when there are fewer than two, or nothing moved.
pub fn judge(id: u64, local: SocketAddr, remote: SocketAddr, samples: &[Sample]) -> Option<Flow> {
    let (first, last) = (samples.first()?, samples.last()?);
    let elapsed_s = last.at_s - first.at_s;
    let (sent, received) = (
        last.bytes_acked - first.bytes_acked.min(last.bytes_acked),
        last.bytes_received.saturating_sub(first.bytes_received),
    );
    if elapsed_s <= 0.0 || sent + received == 0 {
        return None;
    }
    // Without a SYN, a well-known port is the server's (RFC 6335 §6).
    let is_server = local.port() < 1024 && remote.port() >= 1024 || local.port() < remote.port();
    let is_sender = sent >= received;
    let sent_again = last.sent_again.saturating_sub(first.sent_again);
    let needless = last.needless.saturating_sub(first.needless);
    let timeouts = last.timeouts.saturating_sub(first.timeouts).min(sent_again);
    let limits = if is_sender { limits(samples, elapsed_s) } else { Limits::default() };
    let verdict = if is_sender { of_sender(samples, &limits, sent, elapsed_s) } else { of_receiver(samples) };
    let (client, server) = if is_server { (remote, local) } else { (local, remote) };
    let (bytes_up, bytes_down) = if is_server { (received, sent) } else { (sent, received) };
    let out = last.data_segments_out.saturating_sub(first.data_segments_out);
    let into = last.data_segments_in.saturating_sub(first.data_segments_in);
    let (packets_up, packets_down) = if is_server { (into, out) } else { (out, into) };
    Some(Flow {
        id,
        first_packet: 0,
        client: client.to_string(),
        server: server.to_string(),
        interface: None,
        vantage: if is_sender { Vantage::Sender } else { Vantage::Receiver },
        start: first.at_s,
        duration_s: elapsed_s,
        bytes_up,
        bytes_down,
        packets_up,
        packets_down,
        handshake: Handshake::default(),
        direction: if bytes_up > bytes_down { Way::Up } else { Way::Down },
        retransmits: Retransmits {
            total: sent_again,
            fast: sent_again - timeouts,
            rto: timeouts,
            tlp: 0,
            spurious: needless.min(sent_again),
            spurious_dsack: needless.min(sent_again),
            spurious_eifel: 0,
            spurious_timing: 0,
            dsacks: needless,
        },
        out_of_order: 0,
        dup_acks: 0,
        zero_windows: 0,
        window_full: 0,
        rtt_min_ms: (last.rtt_min_us > 0 && last.rtt_min_us < u64::from(u32::MAX))
            .then(|| last.rtt_min_us as f64 / 1e3),
        goodput_bps: sent.max(received) as f64 * 8.0 / elapsed_s,
        measured: Measured {
            capacity_bps: None,
            segment_bytes: last.segment,
            delivered_segment_bytes: 0,
            flight_max_bytes: samples.iter().map(|sample| sample.in_flight * sample.segment).max().unwrap_or(0),
            window_max_bytes: 0,
            send_buffer_bytes: None,
            bursts: 0,
            nagle_side: None,
        },
        policer: None,
        facts: model::Facts::default(),
        limits,
        verdict,
        findings: Vec::<Finding>::new(),
        remedies: Vec::new(),
    })
}

/// Where the time between the first sample and the last went.
fn limits(samples: &[Sample], elapsed_s: f64) -> Limits {
    let mut limits = Limits::default();
    for pair in samples.windows(2) {
        let (before, now) = (&pair[0], &pair[1]);
        let step = (now.at_s - before.at_s) / elapsed_s;
        let share = |to: u64, from: u64| (to.saturating_sub(from) as f64 / 1e6 / elapsed_s).clamp(0.0, step);
        let busy = share(now.busy_us, before.busy_us);
        let window = share(now.window_limited_us, before.window_limited_us).min(busy);
        let buffer = share(now.buffer_limited_us, before.buffer_limited_us).min(busy - window);
        limits.receive_window += window;
        limits.send_buffer += buffer;
        limits.application += step - busy;
        let network = busy - window - buffer;
        let is_queued = now.rtt_us as f64 > QUEUED * now.rtt_min_us as f64;
        *(match now.state {
            CA_LOSS => &mut limits.timeout,
            CA_RECOVERY => &mut limits.loss_recovery,
            _ if now.window < now.threshold && now.sent_again == 0 => &mut limits.slow_start,
            _ if is_queued => &mut limits.path_rate,
            _ => &mut limits.congestion_window,
        }) += network;
    }
    let total = limits.total();
    if total > 0.0 {
        // Clocks of the kernel's and of the samples differ by a little; shares add up to 1.
        for share in [
            &mut limits.application,
            &mut limits.receive_window,
            &mut limits.send_buffer,
            &mut limits.slow_start,
            &mut limits.congestion_window,
            &mut limits.path_rate,
            &mut limits.loss_recovery,
            &mut limits.timeout,
        ] {
            *share /= total;
        }
    }
    limits
}

fn of_sender(samples: &[Sample], limits: &Limits, sent: u64, elapsed_s: f64) -> Verdict {
    let (first, last) = (&samples[0], &samples[samples.len() - 1]);
    let again = last.sent_again.saturating_sub(first.sent_again);
    let queued = samples.iter().filter(|s| s.rtt_us as f64 > QUEUED * s.rtt_min_us as f64).count();
    let is_queued = 2 * queued > samples.len();
    // What windows would let through, were the other limits not there: congestion window over what was under way.
    let room = |sample: &&Sample| sample.window as f64 / sample.in_flight.max(1) as f64;
    let busy: Vec<&Sample> = samples.iter().filter(|s| s.in_flight > 0).collect();
    let room = busy.iter().map(room).sum::<f64>() / busy.len().max(1) as f64;
    let without = |share: f64, factor: f64| (1.0 - share) + share * factor.max(1.0);
    let losses = limits.loss_recovery + limits.congestion_window + limits.timeout;
    let loss_code = match (again, is_queued) {
        (0, _) => Code::Unknown,
        (_, true) => Code::CongestionLoss,
        (_, false) => Code::RandomLoss,
    };
    let candidates = [
        (Code::ReceiveWindow, limits.receive_window, Some(without(limits.receive_window, room))),
        (Code::SendBuffer, limits.send_buffer, Some(without(limits.send_buffer, room))),
        (Code::Application, limits.application, None),
        (Code::InitialWindow, limits.slow_start, None),
        (Code::PathRate, limits.path_rate, Some(1.0)),
        (Code::RetransmissionTimeout, limits.timeout, Some(1.0 / (1.0 - limits.timeout.min(0.99)))),
        (loss_code, losses - limits.timeout, None),
    ];
    let (code, share, gain) = candidates
        .into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .filter(|(_, share, _)| *share > WORTH)
        .unwrap_or((Code::NothingToGain, 0.0, Some(1.0)));
    // A limit without which the connection is no faster is none.
    let is_idle = gain.is_some_and(|gain| gain < 1.0 + WORTH) && code != Code::PathRate;
    let code = if is_idle { Code::NothingToGain } else { code };
    let claim = match code {
        Code::ReceiveWindow => format!("For {} of the time the receiver's window was full.", percent(share)),
        Code::SendBuffer => format!("For {} of the time the send buffer was full of data under way.", percent(share)),
        Code::Application => format!("For {} of the time the sending program had nothing to send.", percent(share)),
        Code::InitialWindow => format!("For {} of the time the congestion window was still growing.", percent(share)),
        Code::PathRate => {
            format!("For {} of the time the path's own rate was used up: its queue was filled.", percent(share))
        }
        Code::RetransmissionTimeout => format!("For {} of the time nothing moved until a timer fired.", percent(share)),
        Code::RandomLoss | Code::CongestionLoss => {
            format!("For {} of the time losses held the congestion window down.", percent(share))
        }
        Code::NothingToGain => "No limit costs as much as five percent.".to_owned(),
        _ => "The congestion window was full without a loss or a queue; the socket alone does not tell why.".to_owned(),
    };
    let seconds = |to: u64, from: u64| time(to.saturating_sub(from) as f64 / 1e6);
    let evidence = [
        format!(
            "the kernel had data under way for {} of {}, of that {} limited by the receiver's window and {} by the send buffer",
            seconds(last.busy_us, first.busy_us),
            time(elapsed_s),
            seconds(last.window_limited_us, first.window_limited_us),
            seconds(last.buffer_limited_us, first.buffer_limited_us),
        ),
        format!(
            "{} were acknowledged, {again} packets sent again; the round trip was {} at last and {} at best, in {} samples",
            rate(sent as f64 / elapsed_s),
            time(last.rtt_us as f64 / 1e6),
            time(last.rtt_min_us as f64 / 1e6),
            samples.len(),
        ),
    ];
    let evidence = evidence.into_iter().map(|text| Evidence { text, packets: Vec::new(), time_s: None }).collect();
    Verdict { code, share, claim, gain, evidence }
}

/// The receiver's kernel knows what its own program does, and little of the sender.
fn of_receiver(samples: &[Sample]) -> Verdict {
    let unread = samples.iter().filter(|s| s.unread > 2 * s.segment.max(1_460)).count();
    let share = unread as f64 / samples.len() as f64;
    let text = format!("received data lay unread in {unread} of {} samples", samples.len());
    let evidence = vec![Evidence { text, packets: Vec::new(), time_s: None }];
    if share >= UNREAD {
        let claim =
            format!("The receiving program reads too slowly: data lay unread for {} of the time.", percent(share));
        return Verdict { code: Code::Reader, share, claim, gain: None, evidence };
    }
    let claim = "This end receives, and its program keeps up; look at the sender's end, or capture packets.".to_owned();
    Verdict { code: Code::Unknown, share: 0.0, claim, gain: None, evidence }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second of samples, ten milliseconds apart, each as `change` makes it of the moment.
    fn flow(change: impl Fn(&mut Sample, u64)) -> Flow {
        let samples: Vec<Sample> = (0..=100u64)
            .map(|n| {
                let mut sample = Sample {
                    at_s: 1e9 + n as f64 / 100.0,
                    busy_us: n * 10_000,
                    bytes_acked: n * 100_000,
                    window: 100,
                    threshold: 50,
                    in_flight: 20,
                    segment: 1_448,
                    rtt_us: 20_000,
                    rtt_min_us: 19_500,
                    ..Sample::default()
                };
                change(&mut sample, n);
                sample
            })
            .collect();
        let ends = ["10.0.0.1:443", "10.0.0.2:40000"].map(|end| end.parse().expect("an end"));
        judge(0, ends[0], ends[1], &samples).expect("a flow")
    }

    #[test]
    fn each_limit_is_told_and_shares_add_up() {
        for (code, found) in [
            (Code::ReceiveWindow, flow(|s, n| s.window_limited_us = n * 9_000)),
            (Code::SendBuffer, flow(|s, n| s.buffer_limited_us = n * 9_000)),
            (Code::Application, flow(|s, n| s.busy_us = n * 1_000)),
            (Code::InitialWindow, flow(|s, _| s.threshold = u64::from(u32::MAX))),
            (Code::PathRate, flow(|s, _| s.rtt_us = 60_000)),
            (Code::RandomLoss, flow(|s, n| s.sent_again = n)),
            (Code::CongestionLoss, flow(|s, n| (s.sent_again, s.state, s.rtt_us) = (n, CA_RECOVERY, 40_000))),
            (Code::RetransmissionTimeout, flow(|s, n| (s.sent_again, s.timeouts, s.state) = (n, n, CA_LOSS))),
            (Code::Unknown, flow(|_, _| {})),
        ] {
            assert_eq!(found.verdict.code, code, "{found:?}");
            assert!((found.limits.total() - 1.0).abs() < 1e-9, "{:?}", found.limits);
            assert_eq!((found.vantage, found.direction), (Vantage::Sender, Way::Down));
            assert_eq!((found.server.as_str(), found.bytes_down), ("10.0.0.1:443", 10_000_000));
        }
    }

    #[test]
    fn a_window_without_which_nothing_is_faster_is_no_limit() {
        let found = flow(|s, n| (s.window_limited_us, s.in_flight) = (n * 9_000, 100));
        assert_eq!(found.verdict.code, Code::NothingToGain);
    }

    #[test]
    fn a_receiver_tells_of_its_reader() {
        let receiver = |unread| flow(|s, n| (s.bytes_acked, s.bytes_received, s.unread) = (0, n * 100_000, unread));
        assert_eq!(receiver(500_000).verdict.code, Code::Reader);
        let found = receiver(0);
        assert_eq!((found.verdict.code, found.vantage, found.direction), (Code::Unknown, Vantage::Receiver, Way::Up));
    }

    #[test]
    fn counters_that_run_back_are_no_harm() {
        let found =
            flow(|s, n| (s.busy_us, s.window_limited_us, s.sent_again) = (1_000_000 - n, u64::MAX - n, 100 - n));
        assert!((found.limits.total() - 1.0).abs() < 1e-9);
        let end = "10.0.0.1:1".parse().expect("an end");
        assert!(judge(0, end, end, &[Sample::default()]).is_none());
    }
}
