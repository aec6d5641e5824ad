//! `stream`: bulk transfers, measured where they arrive.

mod pace;
mod transfer;

use crate::guest::clock::{minus, plus};
use crate::guest::event_loop::{Event, EventLoop, Key};
use crate::guest::hosts::{HostId, SERVER};
use crate::guest::metrics::{self, percentiles};
use crate::guest::workload::{Findings, RunningWorkload};
use crate::quantiles::median;
use std::collections::HashMap;
use std::net::SocketAddrV4;
use thalweg_host::HostError;
use thalweg_model::{Amount, Interval, Metric, Metrics, Stream, Way};
use thalweg_units::Span;
use transfer::Transfer;

const INTERVAL: Span = Span::from_millis(1_000);
/// Data behind a loss of the first second is read in the second one, in a burst above the path's rate. In less time than this such a burst,
/// not the path, decides the rate after the first second. Test: `the_steady_rate_needs_time_after_the_first_second`.
const STEADY_LEAST: Span = Span::from_millis(500);
const TICK: u64 = 0;
const END: u64 = 1;
const PRODUCE: u64 = 2;

/// All transfers of a `stream`.
pub(super) struct Streams {
    spec: Stream,
    clients: Vec<HostId>,
    port: u16,
    listener: Option<Key>,
    began: Span,
    transfers: Vec<Transfer>,
    /// Where a client's socket is, by its own address: how an accepted one finds its transfer.
    by_address: HashMap<SocketAddrV4, usize>,
    by_key: HashMap<Key, usize>,
    intervals: Vec<Interval>,
    counted: Counted,
    ended: Option<Span>,
    over: usize,
}

/// Where the last interval ended.
#[derive(Debug, Default)]
struct Counted {
    at: Span,
    received: u64,
    retransmits: u64,
}

impl Streams {
    pub(super) fn new(spec: Stream, clients: Vec<HostId>, port: u16) -> Self {
        Self {
            spec,
            clients,
            port,
            listener: None,
            began: Span::ZERO,
            transfers: Vec::new(),
            by_address: HashMap::new(),
            by_key: HashMap::new(),
            intervals: Vec::new(),
            counted: Counted::default(),
            ended: None,
            over: 0,
        }
    }

    fn received(&self) -> u64 {
        self.transfers.iter().map(|transfer| transfer.received).sum()
    }

    /// Both ends of a transfer are there: the data goes.
    fn joined(&mut self, event_loop: &mut EventLoop, at: usize) -> Result<(), HostError> {
        self.transfers[at].start(event_loop, self.spec.direction)?;
        if self.transfers.iter().all(Transfer::is_joined)
            && let Amount::Seconds(span) = self.spec.amount
        {
            let connected = self.transfers.iter().filter_map(|transfer| transfer.connected).max();
            event_loop.wake_at(plus(connected.unwrap_or(self.began), span), END);
        }
        Ok(())
    }

    /// Ends an interval at `now`.
    fn count(&mut self, event_loop: &EventLoop, now: Span) -> Result<(), HostError> {
        let received = self.received();
        let bytes = received - self.counted.received;
        let (mut retransmits, mut cwnd, mut rtt_us) = (0, 0, Vec::new());
        for transfer in self.transfers.iter_mut().filter(|transfer| transfer.is_joined()) {
            let info = transfer.observe(event_loop)?;
            retransmits += info.get("tcpi_total_retrans");
            cwnd += info.get("tcpi_snd_cwnd");
            rtt_us.push(info.get("tcpi_rtt") as f64);
        }
        let seconds = minus(now, self.counted.at).as_secs_f64();
        self.intervals.push(Interval {
            start_s: minus(self.counted.at, self.began).as_secs_f64(),
            end_s: minus(now, self.began).as_secs_f64(),
            bytes,
            goodput_bps: if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 },
            retransmits: retransmits - self.counted.retransmits,
            cwnd_packets: cwnd as u32,
            rtt_ms: median(&rtt_us) / 1e3,
        });
        self.counted = Counted { at: now, received, retransmits };
        Ok(())
    }

    /// A transfer's end can be read or written.
    fn go_on(&mut self, event_loop: &mut EventLoop, at: usize, key: Key, ready: (bool, bool)) -> Result<(), HostError> {
        let transfer = &mut self.transfers[at];
        let whole = match ready {
            (true, _) if transfer.is_receiver(key) => transfer.receive(event_loop),
            (_, true) if transfer.is_sender(key) => transfer.send(event_loop).map(|()| false),
            _ => return Ok(()),
        };
        self.settle(event_loop, at, whole)
    }

    /// Takes note of how a step of a transfer went: whether it was its last, or the connection broke.
    fn settle(
        &mut self,
        event_loop: &mut EventLoop,
        at: usize,
        whole: Result<bool, HostError>,
    ) -> Result<(), HostError> {
        let over = match whole {
            Ok(whole) => whole,
            Err(error) => {
                self.transfers[at].break_off(event_loop, error)?;
                self.by_key.retain(|_, of| *of != at);
                true
            }
        };
        if over && self.transfers[at].ends() {
            self.over += 1;
            if self.over == self.transfers.len() && self.ended.is_none() {
                let now = event_loop.now();
                self.end(event_loop, now)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, event_loop: &EventLoop, now: Span) -> Result<(), HostError> {
        self.count(event_loop, now)?;
        self.ended = Some(now);
        self.transfers.iter().try_for_each(|transfer| transfer.stop(event_loop))
    }
}

impl RunningWorkload for Streams {
    fn begin(&mut self, event_loop: &mut EventLoop) -> Result<(), HostError> {
        self.listener = Some(event_loop.listen(SERVER, self.port)?);
        self.began = event_loop.now();
        self.counted.at = self.began;
        let share = match self.spec.amount {
            Amount::Bytes(bytes) => Some(bytes.get().div_ceil(u64::from(self.spec.parallel))),
            Amount::Seconds(_) => None,
        };
        for client in self.clients.clone() {
            for _ in 0..self.spec.parallel {
                let key = event_loop.connect(client, SERVER, self.port)?;
                let at = self.transfers.len();
                self.by_address.insert(event_loop.local(key)?, at);
                self.by_key.insert(key, at);
                self.transfers.push(Transfer::new(key, share, &self.spec)?);
            }
        }
        event_loop.wake_at(plus(self.began, INTERVAL), TICK);
        if self.spec.pace.is_some() {
            event_loop.wake_at(plus(self.began, pace::EVERY), PRODUCE);
        }
        Ok(())
    }

    fn handle(&mut self, event_loop: &mut EventLoop, event: Event) -> Result<(), HostError> {
        match event {
            Event::Timer { token: TICK } => {
                let now = plus(self.counted.at, INTERVAL);
                self.count(event_loop, now)?;
                event_loop.wake_at(plus(now, INTERVAL), TICK);
            }
            Event::Timer { token: PRODUCE } => {
                let now = event_loop.now();
                for at in 0..self.transfers.len() {
                    let produced = self.transfers[at].produce(event_loop, now).map(|()| false);
                    self.settle(event_loop, at, produced)?;
                }
                event_loop.wake_at(plus(now, pace::EVERY), PRODUCE);
            }
            Event::Timer { .. } => {
                let now = event_loop.now();
                self.end(event_loop, now)?;
            }
            Event::Ready { key, .. } if Some(key) == self.listener => {
                while let Some(server) = event_loop.accept(key)? {
                    let Some(&at) = self.by_address.get(&event_loop.peer(server)?) else { continue };
                    self.by_key.insert(server, at);
                    self.transfers[at].server = Some(server);
                    if self.transfers[at].is_joined() {
                        self.joined(event_loop, at)?;
                    }
                }
            }
            Event::Ready { key, readable, writable } => {
                let Some(&at) = self.by_key.get(&key) else { return Ok(()) };
                let transfer = &mut self.transfers[at];
                if key == transfer.client && transfer.connected.is_none() {
                    event_loop.connected(key)?;
                    transfer.connected = Some(event_loop.now());
                    event_loop.watch(key, false, false)?;
                    if transfer.is_joined() {
                        self.joined(event_loop, at)?;
                    }
                } else {
                    self.go_on(event_loop, at, key, (readable, writable))?;
                }
            }
            Event::Start => {}
        }
        Ok(())
    }

    fn done(&self, now: Span) -> f64 {
        match self.spec.amount {
            Amount::Bytes(bytes) => self.received() as f64 / (bytes.get() as f64 * self.clients.len() as f64),
            Amount::Seconds(span) => minus(now, self.began).as_secs_f64() / span.as_secs_f64(),
        }
    }

    fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    fn report(&mut self, event_loop: &mut EventLoop) -> Result<Findings, HostError> {
        let ended = self.ended.unwrap_or_else(|| event_loop.now());
        let (seconds, received) = (minus(ended, self.began).as_secs_f64(), self.received());
        let mut metrics = Metrics::new();
        let mut put = |name: &str, metric: Metric| metrics.insert(name.to_owned(), metric);
        put("bytes", Metric::Count(received));
        put("duration_s", Metric::One(seconds));
        put("goodput_bps", Metric::One(received as f64 * 8.0 / seconds));
        if let Some(steady) = self.intervals.first().and_then(|first| steady_bps(first, received, seconds)) {
            put("goodput_steady_bps", Metric::One(steady));
        }
        let since = |at: Span| minus(at, self.began).as_millis_f64();
        let times = |of: &dyn Fn(&Transfer) -> Option<Span>| self.transfers.iter().filter_map(of).map(since).collect();
        put("connect_ms", metrics::one_or_percentiles(times(&|transfer| transfer.connected)));
        put("first_byte_ms", metrics::one_or_percentiles(times(&|transfer| transfer.first_byte)));
        if self.transfers.len() > 1 {
            let rates: Vec<f64> = self.transfers.iter().map(|one| one.received as f64 * 8.0 / seconds).collect();
            put("fairness", Metric::One(metrics::fairness(&rates)));
            put("flow_goodput_bps", percentiles(rates));
        }
        let broken: Vec<Span> = self.transfers.iter().filter_map(|one| one.broken.map(|(at, _)| at)).collect();
        if !broken.is_empty() {
            put("broken_connections", Metric::Count(broken.len() as u64));
            put("broken_ms", metrics::one_or_percentiles(broken.into_iter().map(since).collect()));
        }
        let mut infos = Vec::new();
        for transfer in self.transfers.iter_mut().filter(|transfer| transfer.is_joined()) {
            infos.push(transfer.observe(event_loop)?);
        }
        metrics::sender_metrics(&infos, &mut metrics);
        let cwnd_max = self.transfers.iter().map(|transfer| transfer.cwnd_max).max().unwrap_or(0);
        metrics.insert("cwnd_max_packets".to_owned(), Metric::Count(cwnd_max));
        let produced: Vec<_> = self.transfers.iter().filter_map(|transfer| transfer.production.as_ref()).collect();
        pace::report(&produced, &mut metrics);
        Ok(Findings { metrics, intervals: std::mem::take(&mut self.intervals), notes: Vec::new() })
    }
}

/// The goodput after the first second of a run that took `seconds`; `None` if less than [`STEADY_LEAST`] follows it.
fn steady_bps(first: &Interval, received: u64, seconds: f64) -> Option<f64> {
    let after = seconds - first.end_s;
    let is_whole = first.end_s >= INTERVAL.as_secs_f64();
    (is_whole && after >= STEADY_LEAST.as_secs_f64()).then(|| (received - first.bytes) as f64 * 8.0 / after)
}

/// The end that sends and the one that receives.
const fn ends(way: Way, client: Key, server: Key) -> (Key, Key) {
    match way {
        Way::Down => (server, client),
        Way::Up => (client, server),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steady_rate_needs_time_after_the_first_second() {
        let interval = |end_s: f64, bytes: u64| Interval {
            start_s: 0.0,
            end_s,
            bytes,
            goodput_bps: bytes as f64 * 8.0 / end_s,
            retransmits: 0,
            cwnd_packets: 10,
            rtt_ms: 40.0,
        };
        // 2.1 MB over 20 Mb/s with a loss just before the first second ends: 100 ms later the rest would be 44.8 Mb/s.
        assert_eq!(steady_bps(&interval(1.0, 1_540_000), 2_100_000, 1.1), None);
        assert_eq!(steady_bps(&interval(1.0, 1_500_000), 2_500_000, 1.5), Some(16e6));
        assert_eq!(steady_bps(&interval(0.9, 1_000_000), 1_000_000, 0.9), None);
    }
}
