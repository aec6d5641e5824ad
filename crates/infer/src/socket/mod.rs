//! A connection judged by what its own kernel says of it from time to time, in place of its packets.
//!
//! The kernel counts how long data was under way, and how much of that the receiver's window and the send buffer took
//! (`tcpi_busy_time`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited`; the first holds the other two: `tcp_get_info_chrono_stats`,
//! net/ipv4/tcp.c). What remains of it is the network's, and is divided by what the kernel did at each sample.

mod causes;
mod changes;
mod figures;
mod partition;

use crate::estimate::data_phase::DataPhase;
use crate::flow::record::FlowRecord;
use crate::shared_path;
use crate::shared_path::aggregate_rate::{CarriedBytes, MAX_BINS, MIN_BINS, MIN_BYTES};
use partition::Spending;
use std::net::SocketAddr;
use thalweg_model::{
    Code, Flow, Handshake, LimitNow, Limits, Measured, Retransmits, RoundTrips, RttSource, Vantage, Verdict, Way,
};

/// What the kernel said of a connection at a moment; counters are since the connection began.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// Seconds since the epoch.
    pub at_s: f64,
    /// Microseconds with data under way.
    pub busy_us: u64,
    /// Of `busy_us`, limited by the receiver's window.
    pub window_limited_us: u64,
    /// Of `busy_us`, limited by the send buffer.
    pub buffer_limited_us: u64,
    /// Payload that was acknowledged.
    pub bytes_acked: u64,
    /// Payload that was received in order.
    pub bytes_received: u64,
    /// Packets sent with payload.
    pub data_segments_out: u64,
    /// Packets received with payload.
    pub data_segments_in: u64,
    /// Packets sent again.
    pub sent_again: u64,
    /// Retransmission timeouts; 0 before Linux 6.7.
    pub timeouts: u64,
    /// Retransmissions that a DSACK tells were needless.
    pub needless: u64,
    /// Packets that were found to have been overtaken, not lost.
    pub overtaken: u64,
    /// `TCP_CA_*`.
    pub state: u64,
    /// Congestion window, in segments.
    pub window: u64,
    /// Slow-start threshold, in segments.
    pub threshold: u64,
    /// Packets under way: neither acknowledged nor believed lost.
    pub in_flight: u64,
    /// Segment size, in bytes.
    pub segment: u64,
    /// What the program has written and the connection has not sent, in bytes.
    pub unsent: u64,
    /// What the send buffer may hold, in bytes of memory; 0 where the kernel does not tell.
    pub buffer: u64,
    /// What it holds.
    pub buffered: u64,
    /// The window the receiver gives, in bytes.
    pub peer_window: u64,
    /// Both ends scale windows.
    pub scaled: bool,
    /// The largest rate at which data was delivered lately, in bytes per second; 0 where it was the program's.
    pub delivery_rate: u64,
    /// Milliseconds since it sent data last.
    pub silent_ms: u64,
    /// Smoothed round trip, in microseconds.
    pub rtt_us: u64,
    /// By how much round trips vary, their smoothed mean deviation, in microseconds.
    pub rtt_var_us: u64,
    /// Least round trip, in microseconds.
    pub rtt_min_us: u64,
    /// Received and not yet read by the program, in bytes.
    pub unread: u64,
    /// What the receive buffer may hold, in bytes of memory; 0 where the kernel does not tell.
    pub receive_buffer: u64,
}

impl Sample {
    /// What the kernel says at a moment, seconds since the epoch: `field` gives what `TCP_INFO` and `SO_MEMINFO` tell by the kernel's names, and 0
    /// for what this kernel does not. `unread` is what lies in the socket for the program, in bytes.
    pub fn of(at_s: f64, field: impl Fn(&str) -> u64, unread: u64) -> Self {
        let gone = field("tcpi_sacked") + field("tcpi_lost");
        Self {
            at_s,
            busy_us: field("tcpi_busy_time"),
            window_limited_us: field("tcpi_rwnd_limited"),
            buffer_limited_us: field("tcpi_sndbuf_limited"),
            bytes_acked: field("tcpi_bytes_acked"),
            bytes_received: field("tcpi_bytes_received"),
            data_segments_out: field("tcpi_data_segs_out"),
            data_segments_in: field("tcpi_data_segs_in"),
            sent_again: field("tcpi_total_retrans"),
            timeouts: field("tcpi_total_rto"),
            needless: field("tcpi_dsack_dups"),
            overtaken: field("tcpi_reord_seen"),
            state: field("tcpi_ca_state"),
            window: field("tcpi_snd_cwnd"),
            threshold: field("tcpi_snd_ssthresh"),
            // `tcp_packets_in_flight`, include/net/tcp.h.
            in_flight: (field("tcpi_unacked") + field("tcpi_retrans")).saturating_sub(gone),
            segment: field("tcpi_snd_mss"),
            unsent: field("tcpi_notsent_bytes"),
            buffer: field("sk_sndbuf"),
            buffered: field("sk_wmem_queued"),
            peer_window: field("tcpi_snd_wnd"),
            scaled: field("tcpi_options") & OPTION_SCALE != 0,
            delivery_rate: if field("tcpi_delivery_rate_app_limited") == 0 { field("tcpi_delivery_rate") } else { 0 },
            silent_ms: field("tcpi_last_data_sent"),
            rtt_us: field("tcpi_rtt"),
            rtt_var_us: field("tcpi_rttvar"),
            rtt_min_us: field("tcpi_min_rtt"),
            unread,
            receive_buffer: field("sk_rcvbuf"),
        }
    }
}

/// `TCPI_OPT_WSCALE`, include/uapi/linux/tcp.h.
const OPTION_SCALE: u64 = 4;

/// A connection of this host's, and what its kernel said of it.
#[derive(Debug)]
pub struct Sampled {
    /// The number in its report.
    pub id: u64,
    /// This host's end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// In the order of time.
    pub samples: Vec<Sample>,
}

/// Judges a host's connections, and those between the same two hosts by what they share; the costliest come first. Those that had fewer than two
/// samples, or moved nothing, are left out.
pub fn diagnose(all: &[Sampled]) -> Vec<Box<Flow>> {
    let finished = |one: &Sampled| {
        let flow = judge(one.id, one.local, one.remote, &one.samples)?;
        let carried = Some(&flow).filter(|flow| flow.vantage == Vantage::Sender).and_then(|_| carried(&one.samples));
        let phase = DataPhase { took: flow.duration_s, least: flow.rtt_min_ms.unwrap_or(0.0) / 1e3 };
        Some(FlowRecord { phase, other_phase: None, interface: 0, flow: Box::new(flow), carried, series: None })
    };
    let mut found: Vec<FlowRecord> = all.iter().filter_map(finished).collect();
    shared_path::judge(&mut found.iter_mut().map(FlowRecord::sharer).collect::<Vec<_>>());
    // A stable sort: those that cost the same stay in the order in which they were given.
    found.sort_by_cached_key(FlowRecord::cost);
    found.into_iter().map(|one| one.flow).collect()
}

/// What limited a sender between its samples: shares of the time; all zero for fewer than two samples.
pub fn limits(samples: &[Sample]) -> Limits {
    if samples.len() < 2 {
        return Limits::default();
    }
    let mut limits = Spending::of(samples).split.limits();
    if limits.receive_window > 0.0 && causes::window_code(samples) == Code::Reader {
        limits.reader = std::mem::take(&mut limits.receive_window);
    }
    limits
}

/// The verdict on a connection that is not over, by its samples alone; `None` when there are fewer than two, or nothing moved and nothing
/// waited.
pub fn verdict(samples: &[Sample]) -> Option<Verdict> {
    let (first, last) = (samples.first()?, samples.last()?);
    let sent = last.bytes_acked.saturating_sub(first.bytes_acked);
    let received = last.bytes_received.saturating_sub(first.bytes_received);
    let is_busy = last.busy_us > first.busy_us;
    if last.at_s <= first.at_s {
        None
    } else if sent < received || sent == 0 && !is_busy && last.unread > 0 {
        Some(causes::of_receiver(samples))
    } else {
        (sent > 0 || is_busy).then(|| causes::of_sender(samples, &Spending::of(samples)))
    }
}

/// What limited a connection most between its samples; `None` for one that sent nothing and had nothing to send, unless its own program does
/// not read.
pub fn limit_now(samples: &[Sample]) -> Option<LimitNow> {
    let (before, now) = (samples.first()?, samples.last()?);
    if now.at_s <= before.at_s {
        return None;
    }
    let is_busy = now.bytes_acked > before.bytes_acked || now.busy_us > before.busy_us || now.unsent > 0;
    let limits = if is_busy {
        limits(samples)
    } else {
        let verdict = verdict(samples).filter(|verdict| verdict.code() == Code::Reader)?;
        Limits { reader: verdict.share, application: 1.0 - verdict.share, ..Limits::default() }
    };
    LimitNow::largest_of(limits)
}

/// What a sender carried, in as many bins as it has samples, or as may be; `None` where that was little.
fn carried(samples: &[Sample]) -> Option<CarriedBytes> {
    let (first, last) = (samples.first()?, samples.last()?);
    let nanos = |sample: &Sample| (sample.at_s.max(0.0) * 1e9) as u64;
    let (start, end) = (nanos(first), nanos(last));
    let count = (samples.len() as u64 - 1).min(MAX_BINS);
    if count < MIN_BINS || last.bytes_acked.saturating_sub(first.bytes_acked) < MIN_BYTES {
        return None;
    }
    let width = end.checked_sub(start)?.checked_div(count)?.max(1);
    let mut bins = vec![0.0; count as usize].into_boxed_slice();
    for pair in samples.windows(2) {
        let bytes = pair[1].bytes_acked.saturating_sub(pair[0].bytes_acked) as f32;
        let (from, to) = (nanos(&pair[0]).saturating_sub(start), nanos(&pair[1]).saturating_sub(start));
        let middle = (from + to.saturating_sub(from) / 2) / width;
        bins[middle.min(count - 1) as usize] += bytes;
    }
    Some(CarriedBytes { start, width, bins })
}

/// Judges a connection between these ends by its samples; `None` when there are fewer than two, or nothing moved and nothing was tried again.
fn judge(id: u64, local: SocketAddr, remote: SocketAddr, samples: &[Sample]) -> Option<Flow> {
    let (first, last) = (samples.first()?, samples.last()?);
    let elapsed_s = last.at_s - first.at_s;
    let sent = last.bytes_acked.saturating_sub(first.bytes_acked);
    let received = last.bytes_received.saturating_sub(first.bytes_received);
    let sent_again = last.sent_again.saturating_sub(first.sent_again);
    if elapsed_s <= 0.0 || sent + received + sent_again == 0 {
        return None;
    }
    // Without a SYN, a well-known port is the server's (RFC 6335 §6).
    let is_server = local.port() < 1024 && remote.port() >= 1024 || local.port() < remote.port();
    let is_sender = sent >= received;
    let spending = is_sender.then(|| Spending::of(samples));
    let mut limits = spending.as_ref().map_or_else(Limits::default, |spending| spending.split.limits());
    let verdict = match &spending {
        Some(spending) => causes::of_sender(samples, spending),
        None => causes::of_receiver(samples),
    };
    if is_sender && verdict.code() == Code::Reader {
        limits.reader = std::mem::take(&mut limits.receive_window);
    }
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
        retransmits: retransmits(first, last),
        out_of_order: 0,
        dup_acks: 0,
        zero_windows: 0,
        window_full: 0,
        rtt_min_ms: (last.rtt_min_us > 0 && last.rtt_min_us < u64::from(u32::MAX))
            .then(|| last.rtt_min_us as f64 / 1e3),
        goodput_bps: sent.max(received) as f64 * 8.0 / elapsed_s,
        phase_s: elapsed_s,
        measured: Measured {
            capacity_bps: spending.as_ref().and_then(Spending::capacity).map(|bytes| bytes * 8.0),
            fastest_bps: None,
            first_bps: None,
            link_mtu_bytes: None,
            segment_bytes: last.segment,
            delivered_segment_bytes: 0,
            flight_max_bytes: samples.iter().map(|sample| sample.in_flight * sample.segment).max().unwrap_or(0),
            window_max_bytes: samples.iter().map(|sample| sample.peer_window).max().unwrap_or(0),
            send_buffer_bytes: samples.iter().map(|sample| sample.buffer).max().filter(|&buffer| buffer > 0),
            bursts: 0,
            nagle_side: None,
        },
        policer: None,
        facts: thalweg_model::Facts { rtt: round_trips(samples).map(Box::new), ..thalweg_model::Facts::default() },
        life: None,
        application: None,
        limits,
        verdict,
        findings: Vec::new(),
        other_direction: None,
        remedies: Vec::new(),
        intervals: Vec::new(),
    })
}

/// What was sent again from one sample to the other.
fn retransmits(first: &Sample, last: &Sample) -> Retransmits {
    let total = last.sent_again.saturating_sub(first.sent_again);
    let needless = last.needless.saturating_sub(first.needless);
    let rto = last.timeouts.saturating_sub(first.timeouts).min(total);
    Retransmits {
        total,
        fast: total - rto,
        rto,
        tlp: 0,
        spurious: needless.min(total),
        spurious_dsack: needless.min(total),
        spurious_eifel: 0,
        spurious_timing: 0,
        dsacks: needless,
    }
}

/// The round trips, as the kernel smooths them from acknowledgements.
fn round_trips(samples: &[Sample]) -> Option<RoundTrips> {
    let mut all: Vec<f64> = samples.iter().filter(|s| s.rtt_us > 0).map(|s| s.rtt_us as f64 / 1e3).collect();
    all.sort_unstable_by(f64::total_cmp);
    let last = all.len().checked_sub(1)?;
    let at = |part: f64| all[(last as f64 * part).round() as usize];
    let (mut bytes, mut waited) = (0.0, 0.0);
    for pair in samples.windows(2) {
        let delivered = pair[1].bytes_acked.saturating_sub(pair[0].bytes_acked) as f64;
        bytes += delivered;
        waited += delivered * pair[1].rtt_us as f64 / 1e3;
    }
    Some(RoundTrips {
        source: RttSource::Acknowledgements,
        samples: all.len() as u64,
        p50_ms: at(0.5),
        p90_ms: at(0.9),
        p99_ms: at(0.99),
        max_ms: at(1.0),
        loaded_ms: (bytes > 0.0).then(|| waited / bytes),
        timestamps_min_ms: None,
        ack_wait_ms: None,
    })
}

#[cfg(test)]
mod tests;
