//! `stream`: one bulk transfer, measured where it arrives.

use super::Findings;
use super::stage::{Event, Key, Stage};
use host::HostError;
use host::tcp_info::TcpInfo;
use model::{Amount, Interval, Metric, Side, Way};
use units::Span;

/// What a program writes and reads at once: iperf3's default for TCP.
const WRITE_BYTES: usize = 128 * 1024;
const READ_BYTES: usize = 1 << 20;
const INTERVAL: Span = Span::from_millis(1_000);

/// The reader is woken about so many times a round trip, not once for each packet: a guest's wake-ups are what its real
/// time goes into, and what is unread at any moment stays below one part in so many of the window.
const READS_PER_RTT: f64 = 256.0;
/// …and for at most so much, half of what iperf3 reads at once.
const WAKE_BYTES_MAX: f64 = 65_536.0;

static PAYLOAD: [u8; WRITE_BYTES] = [0x5a; WRITE_BYTES];

struct Transfer {
    sender: Key,
    receiver: Key,
    left_to_send: Option<u64>,
    received: u64,
    began: Span,
    first_byte: Option<Span>,
    intervals: Vec<Interval>,
    counted: Counted,
    cwnd_max: u64,
    reading: Reading,
}

/// How coarsely the receiver reads: by the rate of the last stretch.
struct Reading {
    rtt_s: f64,
    since: Span,
    since_bytes: u64,
    next_bytes: u64,
}

impl Reading {
    /// Bytes over which the rate is measured.
    const STRETCH_BYTES: u64 = 1 << 20;

    fn adapt(&mut self, stage: &Stage, receiver: Key, received: u64) -> Result<(), HostError> {
        if received < self.next_bytes {
            return Ok(());
        }
        let now = stage.now();
        let seconds = Span::from_nanos(now.as_nanos() - self.since.as_nanos()).as_secs_f64();
        let per_rtt = (received - self.since_bytes) as f64 / seconds.max(1e-9) * self.rtt_s;
        stage.tcp(receiver).wake_after((per_rtt / READS_PER_RTT).clamp(1.0, WAKE_BYTES_MAX) as u32)?;
        *self = Self { since: now, since_bytes: received, next_bytes: received + Self::STRETCH_BYTES, ..*self };
        Ok(())
    }
}

/// Where the last interval ended.
struct Counted {
    at: Span,
    received: u64,
    retransmits: u64,
}

/// Runs the transfer.
pub(super) fn run(stage: &mut Stage, way: Way, amount: Amount, found: &mut Findings<'_>) -> Result<(), HostError> {
    let listener = stage.listen()?;
    let began = stage.now();
    let client = stage.connect()?;
    let mut connected_at = None;
    let server = loop {
        if let Event::Ready { key, .. } = stage.next()? {
            if key == client && connected_at.is_none() {
                stage.tcp(client).connected()?;
                connected_at = Some(stage.now());
                stage.watch(client, false, false)?;
            } else if key == listener
                && let Some(server) = stage.accept(listener)?
            {
                break server;
            }
        }
    };
    let connected = connected_at.unwrap_or(began);
    found.note_socket(Side::Client, stage.tcp(client))?;
    found.note_socket(Side::Server, stage.tcp(server))?;

    let (sender, receiver) = match way {
        Way::Down => (server, client),
        Way::Up => (client, server),
    };
    stage.watch(sender, false, true)?;
    stage.watch(receiver, true, false)?;
    let end = match amount {
        Amount::Bytes(_) => None,
        Amount::Seconds(span) => Some(Span::from_nanos(connected.as_nanos() + span.as_nanos())),
    };
    let mut transfer = Transfer {
        sender,
        receiver,
        left_to_send: match amount {
            Amount::Bytes(bytes) => Some(bytes.get()),
            Amount::Seconds(_) => None,
        },
        received: 0,
        began,
        first_byte: None,
        intervals: Vec::new(),
        counted: Counted { at: began, received: 0, retransmits: 0 },
        cwnd_max: 0,
        reading: Reading {
            rtt_s: connected.as_secs_f64() - began.as_secs_f64(),
            since: connected,
            since_bytes: 0,
            next_bytes: Reading::STRETCH_BYTES,
        },
    };
    let ended = transfer.drive(stage, amount, end)?;
    transfer.report(stage, connected, ended, found)
}

impl Transfer {
    fn drive(&mut self, stage: &mut Stage, amount: Amount, end: Option<Span>) -> Result<Span, HostError> {
        let mut next = Span::from_nanos(self.began.as_nanos() + INTERVAL.as_nanos());
        loop {
            stage.set_timer(end.map_or(next, |end| end.min(next)), None)?;
            loop {
                match stage.next()? {
                    Event::Timer => break,
                    Event::Ready { key, readable: true, .. } if key == self.receiver => {
                        let count = stage.tcp(key).discard(READ_BYTES)?;
                        if self.first_byte.is_none() && count.is_some_and(|count| count > 0) {
                            self.first_byte = Some(stage.now());
                        }
                        self.received += count.unwrap_or(0) as u64;
                        self.reading.adapt(stage, key, self.received)?;
                        if let Amount::Bytes(bytes) = amount {
                            stage.done = self.received as f64 / bytes.get() as f64;
                            if self.received >= bytes.get() || count == Some(0) {
                                let now = stage.now();
                                self.count(stage, now)?;
                                return Ok(now);
                            }
                        }
                    }
                    Event::Ready { key, writable: true, .. } if key == self.sender => self.send(stage)?,
                    Event::Ready { .. } => {}
                }
            }
            let now = end.map_or(next, |end| end.min(next));
            if let (Amount::Seconds(span), Some(end)) = (amount, end) {
                stage.done = 1.0 - (end.as_secs_f64() - now.as_secs_f64()) / span.as_secs_f64();
            }
            self.count(stage, now)?;
            if end == Some(now) {
                return Ok(now);
            }
            next = Span::from_nanos(next.as_nanos() + INTERVAL.as_nanos());
        }
    }

    fn send(&mut self, stage: &mut Stage) -> Result<(), HostError> {
        loop {
            let most = self.left_to_send.map_or(WRITE_BYTES, |left| left.min(WRITE_BYTES as u64) as usize);
            if most == 0 {
                stage.tcp(self.sender).finish()?;
                return stage.watch(self.sender, false, false);
            }
            match stage.tcp(self.sender).send(&PAYLOAD[..most])? {
                None => return Ok(()),
                Some(sent) => self.left_to_send = self.left_to_send.map(|left| left - sent as u64),
            }
        }
    }

    /// Ends an interval at `now`.
    fn count(&mut self, stage: &Stage, now: Span) -> Result<(), HostError> {
        let info = TcpInfo::of(stage.tcp(self.sender))?;
        let retransmits = info.get("tcpi_total_retrans");
        let bytes = self.received - self.counted.received;
        let seconds = now.as_secs_f64() - self.counted.at.as_secs_f64();
        self.cwnd_max = self.cwnd_max.max(info.get("tcpi_snd_cwnd"));
        let since = |at: Span| Span::from_nanos(at.as_nanos() - self.began.as_nanos()).as_secs_f64();
        self.intervals.push(Interval {
            start_s: since(self.counted.at),
            end_s: since(now),
            bytes,
            goodput_bps: if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 },
            retransmits: retransmits - self.counted.retransmits,
            cwnd_packets: info.get("tcpi_snd_cwnd") as u32,
            rtt_ms: info.get("tcpi_rtt") as f64 / 1e3,
        });
        self.counted = Counted { at: now, received: self.received, retransmits };
        Ok(())
    }

    fn report(self, stage: &Stage, connected: Span, ended: Span, found: &mut Findings<'_>) -> Result<(), HostError> {
        let since = |at: Span| Span::from_nanos(at.as_nanos() - self.began.as_nanos());
        let info = TcpInfo::of(stage.tcp(self.sender))?;
        let metrics = &mut found.metrics;
        let mut put = |name: &str, metric: Metric| metrics.insert(name.to_owned(), metric);
        put("bytes", Metric::Count(self.received));
        put("duration_s", Metric::One(since(ended).as_secs_f64()));
        put("goodput_bps", Metric::One(self.received as f64 * 8.0 / since(ended).as_secs_f64()));
        if let Some(first) = self.intervals.first().filter(|first| first.end_s >= INTERVAL.as_secs_f64())
            && since(ended).as_secs_f64() > first.end_s
        {
            let steady = (self.received - first.bytes) as f64 * 8.0 / (since(ended).as_secs_f64() - first.end_s);
            put("goodput_steady_bps", Metric::One(steady));
        }
        put("connect_ms", Metric::One(since(connected).as_millis_f64()));
        if let Some(at) = self.first_byte {
            put("first_byte_ms", Metric::One(since(at).as_millis_f64()));
        }
        super::sender_metrics(&info, metrics);
        metrics.insert("cwnd_max_packets".to_owned(), Metric::Count(self.cwnd_max));
        found.intervals = self.intervals;
        Ok(())
    }
}
