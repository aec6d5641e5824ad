//! What a socket shows about its own window, path and sender.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::time::Duration;
use thalweg_host::tcp_info::TcpInfo;

/// A window that holds this share of a round trip's data limits. Auto-tuning makes the window at least twice what the program read in a
/// round trip, until its limit. Source: `tcp_rcv_space_adjust` in net/ipv4/tcp_input.c.
const FULL_SHARE: f64 = 0.75;
/// A window has stopped growing if it grew by less than this share.
const GROWTH: f64 = 1.05;
/// Above this, round trips tell of a queue on the path: a quarter, as much as windows get for it (`MARGIN` of crates/tune/src/buffers.rs).
const QUEUE: f64 = 1.25;
/// Timestamps count milliseconds, so below this the receiver's round-trip time is too coarse for `QUEUE`.
/// Source: `TCP_TS_HZ` in include/net/tcp.h.
const COARSE_RTT: Duration = Duration::from_millis(5);
/// The shortest time over which a rate is measured.
const LEAST: Duration = Duration::from_millis(20);

/// What the kernel says of a receiving socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketSample {
    /// Payload bytes that arrived.
    pub bytes: u64,
    /// Least round-trip time, as the handshake and requests measured it.
    pub min_rtt: Duration,
    /// Round-trip time as the receiver estimates it; zero without an estimate.
    pub receiver_rtt: Duration,
    /// Receive window, in bytes.
    pub window: u64,
    /// Segments that arrived out of order.
    pub out_of_order: u64,
    /// Since the last data.
    pub silent: Duration,
}

impl SocketSample {
    /// Asks the kernel; `None` if the socket is gone.
    pub fn of(socket: impl AsFd) -> Option<Self> {
        let info = TcpInfo::of(socket).ok()?;
        let micros = |name| Duration::from_micros(info.get(name));
        let min = info.get("tcpi_min_rtt");
        // Before Linux 6.2 the kernel says what the window grows to, not what it is.
        let window = Some(info.get("tcpi_rcv_wnd")).filter(|window| *window > 0);
        Some(Self {
            bytes: info.get("tcpi_bytes_received"),
            min_rtt: if min == 0 || min == u64::from(u32::MAX) {
                micros("tcpi_rtt")
            } else {
                Duration::from_micros(min)
            },
            receiver_rtt: micros("tcpi_rcv_rtt"),
            window: window.unwrap_or_else(|| info.get("tcpi_rcv_ssthresh")),
            out_of_order: info.get("tcpi_rcv_ooopack"),
            silent: Duration::from_millis(info.get("tcpi_last_data_recv")),
        })
    }
}

/// What samples of one socket tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// The window is full, has stopped growing, and the path has no queue.
    pub window_limited: bool,
    /// Data waits in a queue of the path.
    pub queued: bool,
    /// Segments came out of order since the last reading.
    pub lost: bool,
    /// Nothing came for two round trips.
    pub paused: bool,
    /// The rate still grows, as in slow start.
    pub growing: bool,
}

/// Follows one socket.
#[derive(Debug, Clone, Default)]
pub struct WindowMeter {
    history: VecDeque<(Duration, u64)>,
    window: u64,
    grown: Duration,
    /// The largest window so far.
    pub window_max: u64,
    /// The least round-trip time so far.
    pub min_rtt: Duration,
    /// Segments out of order so far.
    pub out_of_order: u64,
    rate: f64,
}

impl WindowMeter {
    /// Takes a sample.
    pub fn add(&mut self, now: Duration, sample: &SocketSample) -> Reading {
        let rtt = sample.min_rtt.max(Duration::from_micros(1));
        let measure = (rtt * 2).max(LEAST);
        self.history.push_back((now, sample.bytes));
        while self.history.get(1).is_some_and(|&(at, _)| at + measure <= now) {
            self.history.pop_front();
        }
        self.window_max = self.window_max.max(sample.window);
        if self.window_max as f64 > self.window as f64 * GROWTH {
            self.window = self.window_max;
            self.grown = now;
        }
        self.min_rtt = rtt;
        let lost = sample.out_of_order > self.out_of_order;
        self.out_of_order = sample.out_of_order;
        let queued = rtt >= COARSE_RTT && sample.receiver_rtt.as_secs_f64() > rtt.as_secs_f64() * QUEUE;
        let (begin, first) = self.history.front().copied().unwrap_or((now, sample.bytes));
        let seconds = now.saturating_sub(begin).as_secs_f64();
        if now < begin + measure || seconds <= 0.0 {
            return Reading { growing: true, queued, lost, ..Reading::default() };
        }
        let rate = sample.bytes.saturating_sub(first) as f64 / seconds;
        let growing = rate > self.rate * QUEUE;
        self.rate = rate;
        let full = rate * rtt.as_secs_f64() >= self.window_max as f64 * FULL_SHARE;
        let settled = now >= self.grown + rtt * 2;
        Reading {
            window_limited: full && settled && !queued && self.window_max > 0,
            queued,
            lost,
            paused: sample.silent > rtt * 2,
            growing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a socket that gets `flight` bytes each round trip of 35 ms.
    fn feed(flight: u64, window: u64, receiver_rtt_ms: u64) -> Reading {
        let (mut meter, mut reading, rtt) = (WindowMeter::default(), Reading::default(), Duration::from_millis(35));
        for round in 0..20 {
            let sample = SocketSample {
                bytes: u64::from(round) * flight,
                min_rtt: rtt,
                receiver_rtt: Duration::from_millis(receiver_rtt_ms),
                window,
                ..SocketSample::default()
            };
            reading = meter.add(rtt * round, &sample);
        }
        reading
    }

    #[test]
    fn a_full_window_without_a_queue_limits() {
        assert!(feed(2_650_000, 2_650_000, 36).window_limited);
        assert!(!feed(1_300_000, 2_650_000, 36).window_limited, "auto-tuning leaves a window half empty");
        let queued = feed(2_650_000, 2_650_000, 60);
        assert!(!queued.window_limited && queued.queued, "the path is full");
    }
}
