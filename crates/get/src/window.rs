//! What a receiving socket shows about its window, its path and its sender: what limits it at this moment.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::time::Duration;
use thalweg_host::tcp_info::TcpInfo;
use thalweg_model::GetLimit;

/// A window that holds this share of a round trip's data limits. Auto-tuning makes the window at least twice what the program read in a
/// round trip, until its limit. Source: `tcp_rcv_space_adjust` in net/ipv4/tcp_input.c.
const FULL_SHARE: f64 = 0.75;
/// A window has stopped growing if it grew by less than this factor for two round trips.
const WINDOW_GROWTH: f64 = 1.05;
/// Above this multiple of the least round-trip time, data waits in a queue of the path: a quarter, as much as windows get for it
/// (`MARGIN` of crates/tune/src/buffers.rs).
const QUEUE: f64 = 1.25;
/// Timestamps count milliseconds, so below this the receiver's round-trip time is too coarse for `QUEUE`.
/// Source: `TCP_TS_HZ` in include/net/tcp.h.
const COARSE_RTT: Duration = Duration::from_millis(5);
/// `tcpi_options`: the connection has timestamps. Source: `TCPI_OPT_TIMESTAMPS` in include/uapi/linux/tcp.h.
const TIMESTAMPS: u64 = 1;
/// The shortest time over which a rate is measured.
const MIN_MEASURE: Duration = Duration::from_millis(20);
/// Slow start is over when the rate has not grown by this factor in this many rounds.
/// Source: `bbr_full_bw_thresh` and `bbr_full_bw_cnt` in net/ipv4/tcp_bbr.c.
const START_UP_GROWTH: f64 = 1.25;
const START_UP_ROUNDS: u32 = 3;
/// A window-limited sender sends at least once a round trip. Twice that without data is a pause of the server's program.
const PAUSE_ROUND_TRIPS: u32 = 2;
/// The shortest pause: below it, this host may simply not have run the program.
const MIN_PAUSE: Duration = Duration::from_millis(20);
/// Data after a pause echoes an old timestamp, which raises the receiver's round-trip time for this many of them: it is an average with a
/// weight of 1/8. Source: `tcp_rcv_rtt_update` in net/ipv4/tcp_input.c.
const PAUSE_MEMORY: u32 = 8;
/// CUBIC regains its window K = ∛(W (1 − β) / (β C)) seconds after a loss left it W segments. Source: RFC 9438 §4.2, β = 0.7, C = 0.4.
const CUBIC_K: f64 = (1.0 - 0.7) / (0.7 * 0.4);

/// What the kernel says of a receiving socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketSample {
    /// Payload bytes that arrived.
    pub bytes: u64,
    /// Least round-trip time, as the handshake and requests measured it.
    pub min_rtt: Duration,
    /// Round-trip time as the receiver estimates it from timestamps; zero without them.
    pub receiver_rtt: Duration,
    /// Receive window, in bytes.
    pub window: u64,
    /// Segments that arrived out of order.
    pub out_of_order: u64,
    /// Payload bytes of a segment.
    pub segment: u64,
}

impl SocketSample {
    /// Asks the kernel; `None` if the socket is gone.
    pub fn of(socket: impl AsFd) -> Option<Self> {
        let info = TcpInfo::of(socket).ok()?;
        let micros = |name| Duration::from_micros(info.get(name));
        let min = info.get("tcpi_min_rtt");
        let unknown = min == 0 || min == u64::from(u32::MAX);
        // Before Linux 6.2 the kernel says what the window grows to, not its present size.
        let window = Some(info.get("tcpi_rcv_wnd")).filter(|window| *window > 0);
        // Without timestamps it is the time in which a window of data arrives, whatever the sender's rate.
        let timed = info.get("tcpi_options") & TIMESTAMPS != 0;
        Some(Self {
            bytes: info.get("tcpi_bytes_received"),
            min_rtt: if unknown { micros("tcpi_rtt") } else { Duration::from_micros(min) },
            receiver_rtt: if timed { micros("tcpi_rcv_rtt") } else { Duration::ZERO },
            window: window.unwrap_or_else(|| info.get("tcpi_rcv_ssthresh")),
            out_of_order: info.get("tcpi_rcv_ooopack"),
            segment: info.get("tcpi_rcv_mss"),
        })
    }
}

/// What limits one connection at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// `StartUp`, `ReceiveWindow`, `Path`, `Server` or `Sender`.
    pub limit: GetLimit,
    /// Bytes that arrive in a round trip.
    pub flight: u64,
}

/// Follows one connection.
#[derive(Debug, Clone, Default)]
pub struct WindowMeter {
    history: VecDeque<(Duration, u64)>,
    start_up: StartUp,
    window: u64,
    window_grew: Duration,
    recovers_until: Duration,
    paused_until: Duration,
    /// The largest window so far.
    pub window_max: u64,
    /// The least round-trip time so far.
    pub min_rtt: Duration,
    /// Segments out of order so far.
    pub out_of_order: u64,
}

impl WindowMeter {
    /// Takes a sample; `longest_wait` is the longest time without data since the last one.
    pub fn add(&mut self, now: Duration, sample: &SocketSample, longest_wait: Duration) -> Reading {
        let rtt = sample.min_rtt.max(Duration::from_micros(1));
        self.min_rtt = rtt;
        self.window_max = self.window_max.max(sample.window);
        if self.window_max as f64 > self.window as f64 * WINDOW_GROWTH {
            (self.window, self.window_grew) = (self.window_max, now);
        }
        let lost = sample.out_of_order > self.out_of_order;
        self.out_of_order = sample.out_of_order;
        if longest_wait > (rtt * PAUSE_ROUND_TRIPS).max(MIN_PAUSE) {
            self.paused_until = now + rtt * PAUSE_MEMORY;
        }
        let Some(rate) = self.rate(now, sample.bytes, rtt) else {
            return Reading { limit: GetLimit::StartUp, flight: 0 };
        };
        let flight = rate * rtt.as_secs_f64();
        if lost {
            self.recovers_until = self.recovers_until.max(now + recovery(flight, sample.segment, rtt));
        }
        self.start_up.add(now, rtt, rate, lost);
        let (paused, recovering) = (now < self.paused_until, now < self.recovers_until);
        let queued = rtt >= COARSE_RTT && sample.receiver_rtt.as_secs_f64() > rtt.as_secs_f64() * QUEUE;
        let settled = now >= self.window_grew + rtt * 2;
        let full = settled && self.window_max > 0 && flight >= self.window_max as f64 * FULL_SHARE;
        let limit = match () {
            () if full && !queued => GetLimit::ReceiveWindow,
            () if recovering => GetLimit::Path,
            () if paused => GetLimit::Server,
            () if queued => GetLimit::Path,
            () if !self.start_up.over => GetLimit::StartUp,
            () => GetLimit::Sender,
        };
        Reading { limit, flight: flight as u64 }
    }

    /// Bytes per second over two round trips; `None` until so much time has passed.
    fn rate(&mut self, now: Duration, bytes: u64, rtt: Duration) -> Option<f64> {
        let measure = (rtt * 2).max(MIN_MEASURE);
        self.history.push_back((now, bytes));
        while self.history.get(1).is_some_and(|&(at, _)| at + measure <= now) {
            self.history.pop_front();
        }
        let &(begin, first) = self.history.front()?;
        let passed = now.saturating_sub(begin);
        (passed >= measure).then(|| bytes.saturating_sub(first) as f64 / passed.as_secs_f64())
    }
}

/// How long a loss limits a sender: Reno adds a segment in a round trip, and CUBIC is at least as fast.
fn recovery(flight: f64, segment: u64, rtt: Duration) -> Duration {
    // 536 is the least that a host must take. Source: RFC 9293 §3.7.1.
    let segments = flight / segment.max(536) as f64;
    let reno = segments * rtt.as_secs_f64();
    Duration::from_secs_f64(reno.min((segments * CUBIC_K).cbrt()))
}

/// Whether a connection is in slow start.
#[derive(Debug, Clone, Default)]
struct StartUp {
    rate: f64,
    rounds: u32,
    next: Duration,
    over: bool,
}

impl StartUp {
    fn add(&mut self, now: Duration, rtt: Duration, rate: f64, lost: bool) {
        if self.over || now < self.next {
            return;
        }
        self.next = now + rtt;
        if rate >= self.rate * START_UP_GROWTH {
            (self.rate, self.rounds) = (rate, 0);
        } else {
            self.rounds += 1;
        }
        self.over = lost || self.rounds >= START_UP_ROUNDS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(35);

    fn sample(bytes: u64, window: u64) -> SocketSample {
        SocketSample { bytes, min_rtt: RTT, receiver_rtt: RTT, window, segment: 1_448, ..SocketSample::default() }
    }

    /// Feeds a socket that gets `flight` bytes each round trip; `with` changes a sample and gives the longest wait of its round.
    fn feed(flight: u64, window: u64, with: impl Fn(u64, &mut SocketSample) -> Duration) -> GetLimit {
        let (mut meter, mut last) = (WindowMeter::default(), GetLimit::StartUp);
        for round in 0..20 {
            let mut sample = sample(round * flight, window);
            let wait = with(round, &mut sample);
            last = meter.add(RTT * round as u32, &sample, wait).limit;
        }
        last
    }

    #[test]
    fn a_full_window_without_a_queue_limits() {
        assert_eq!(feed(2_650_000, 2_650_000, |_, _| RTT), GetLimit::ReceiveWindow);
        assert_eq!(feed(1_300_000, 2_650_000, |_, _| RTT), GetLimit::Sender, "auto-tuning leaves a window half empty");
        let queued = |_, sample: &mut SocketSample| {
            sample.receiver_rtt = Duration::from_millis(60);
            RTT
        };
        assert_eq!(feed(2_650_000, 2_650_000, queued), GetLimit::Path, "the path is full");
    }

    #[test]
    fn a_pause_is_the_server_and_a_recovery_is_the_path() {
        // Data after a pause echoes an old timestamp: that is no queue.
        let pauses = |_, sample: &mut SocketSample| {
            sample.receiver_rtt = RTT * 4;
            RTT * 3
        };
        assert_eq!(feed(400_000, 2_650_000, pauses), GetLimit::Server);
        // 40 segments a round trip and a loss each 26 of them, as with 0.1 % lost: Reno needs 40 round trips to recover.
        let loses = |round, sample: &mut SocketSample| {
            sample.out_of_order = 10 * (round / 5);
            RTT
        };
        assert_eq!(feed(40 * 1_448, 2_650_000, loses), GetLimit::Path);
        let once = |round: u64, sample: &mut SocketSample| {
            sample.out_of_order = round.min(1);
            RTT
        };
        assert_eq!(feed(10 * 1_448, 2_650_000, once), GetLimit::Sender, "one loss, long ago");
    }

    #[test]
    fn slow_start_is_a_rate_that_grows() {
        let mut meter = WindowMeter::default();
        let mut bytes = 0;
        for round in 0..8u32 {
            bytes += 14_480 << round;
            let reading = meter.add(RTT * round, &sample(bytes, 64 << 20), RTT);
            assert_eq!(reading.limit, GetLimit::StartUp, "round {round}");
        }
    }
}
