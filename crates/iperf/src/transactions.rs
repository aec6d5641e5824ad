//! The client of transactions: each stream sends a request, waits for the whole response, and begins again.

use crate::client::connect;
use crate::error::IperfError;
use crate::protocol::exchange::{Exchange, NOT_ADMITTED};
use crate::protocol::refusal::Refusal;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thalweg_host::HostError;
use thalweg_host::cpu_time::CpuTime;
use thalweg_host::poll::Poller;
use thalweg_host::reach::ReachError;
use thalweg_host::socket::Tcp;
use thalweg_model::{CpuShare, Percentiles, SocketSettings, TransactionReport};

/// Longest time that the histogram resolves, in nanoseconds: ten minutes.
const LONGEST_NS: u64 = 600_000_000_000;
/// Failures after which it gives up, if no transaction succeeds in between.
const FAILURES_IN_A_ROW: u32 = 10;
/// What one call sends or receives at most.
const BLOCK: usize = 64 << 10;
/// How often signals are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// What a client of transactions does.
#[derive(Debug, Clone)]
pub struct TransactionOptions {
    /// The server, as a name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The sizes, and whether each transaction has a connection of its own.
    pub exchange: Exchange,
    /// Transactions at a time.
    pub streams: u32,
    /// How long.
    pub duration: Duration,
    /// The sockets.
    pub settings: SocketSettings,
}

/// Runs transactions until the time is over, or a signal comes.
///
/// # Errors
/// [`IperfError`] when the server cannot be reached, knows no transactions, or fails again and again.
pub fn transact(options: &TransactionOptions, stop: &AtomicBool) -> Result<TransactionReport, IperfError> {
    let (first, peer) = connect(&options.host, options.port, &options.settings)?;
    Client::new(options, peer)?.run(first, stop)
}

/// Where a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Connecting,
    Sending(usize),
    Receiving(usize),
    /// The response is whole, and the server closes.
    Closing,
}

struct Lane {
    tcp: Tcp,
    step: Step,
    begun: Instant,
    /// The cookie, as much of it as is not sent.
    cookie: Vec<u8>,
    is_first: bool,
}

struct Client<'a> {
    options: &'a TransactionOptions,
    peer: SocketAddr,
    poller: Poller,
    block: Vec<u8>,
    latency: Histogram<u64>,
    connect: Histogram<u64>,
    failures: BTreeMap<String, u64>,
    in_a_row: u32,
    buffers: (usize, usize),
}

impl<'a> Client<'a> {
    fn new(options: &'a TransactionOptions, peer: SocketAddr) -> Result<Self, IperfError> {
        let histogram = || Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("invariant: the bounds are in order");
        let block = (0..BLOCK).map(|at| b'0' + (at % 10) as u8).collect();
        Ok(Self {
            options,
            peer,
            poller: Poller::new()?,
            block,
            latency: histogram(),
            connect: histogram(),
            failures: BTreeMap::new(),
            in_a_row: 0,
            buffers: (0, 0),
        })
    }

    fn run(mut self, first: (Tcp, Instant), stop: &AtomicBool) -> Result<TransactionReport, IperfError> {
        let (begun, cpu) = (first.1, CpuTime::of_thread());
        let mut lanes = vec![self.lane(first, 0)?];
        for token in 1..self.options.streams {
            lanes.push(self.open(token.into())?);
        }
        let mut ready = Vec::new();
        while begun.elapsed() < self.options.duration && !stop.load(Ordering::Relaxed) {
            ready.clear();
            let left = self.options.duration.saturating_sub(begun.elapsed());
            self.poller.wait(Some(left.min(LOOK)), &mut ready)?;
            for event in &ready {
                let lane = &mut lanes[event.token as usize];
                match self.advance(lane) {
                    Ok(false) => {}
                    Ok(true) => lanes[event.token as usize] = self.open(event.token)?,
                    Err(error) => {
                        self.fail(error)?;
                        lanes[event.token as usize] = self.open(event.token)?;
                    }
                }
            }
        }
        Ok(self.report(begun.elapsed(), CpuTime::of_thread().since(cpu)))
    }

    fn open(&self, token: u64) -> Result<Lane, IperfError> {
        let begun = Instant::now();
        let tcp = Tcp::connect_stream(self.peer, &self.options.settings, None, None)?;
        self.lane((tcp, begun), token)
    }

    fn lane(&self, (tcp, begun): (Tcp, Instant), token: u64) -> Result<Lane, IperfError> {
        self.poller.add_edges(&tcp, token)?;
        let cookie = self.options.exchange.cookie().0.to_vec();
        Ok(Lane { tcp, step: Step::Connecting, begun, cookie, is_first: true })
    }

    /// Counts a failure.
    fn fail(&mut self, error: IperfError) -> Result<(), IperfError> {
        self.in_a_row += 1;
        if self.in_a_row >= FAILURES_IN_A_ROW || matches!(error, IperfError::Refused(_)) {
            return Err(error);
        }
        *self.failures.entry(error.to_string()).or_default() += 1;
        Ok(())
    }

    /// Moves what can be moved; whether the connection has done its only transaction.
    fn advance(&mut self, lane: &mut Lane) -> Result<bool, IperfError> {
        let exchange = self.options.exchange;
        loop {
            match lane.step {
                Step::Connecting => {
                    let to = self.peer;
                    let is_connected = lane.tcp.is_connected();
                    if !is_connected.map_err(|error| ReachError::Connect { to, source: error.source })? {
                        return Ok(false);
                    }
                    self.connect.saturating_record(lane.begun.elapsed().as_nanos() as u64);
                    self.buffers = lane.tcp.buffers()?;
                    if exchange.connects {
                        lane.step = Step::Sending(exchange.request as usize - lane.cookie.len());
                    } else {
                        lane.begun = Instant::now();
                        lane.step = Step::Sending(exchange.request as usize);
                    }
                }
                Step::Sending(left) => match self.send(lane, left)? {
                    None => return Ok(false),
                    Some(left) => lane.step = left,
                },
                Step::Receiving(left) => {
                    let most = left.min(BLOCK);
                    match lane.tcp.receive(&mut self.block[..most]).map_err(broken)? {
                        None => return Ok(false),
                        Some(0) => return Err(IperfError::Closed("server")),
                        Some(_) if lane.is_first && self.block[0] == NOT_ADMITTED => {
                            return Err(IperfError::Refused(Refusal::Authentication.as_str().to_owned()));
                        }
                        Some(_) if std::mem::take(&mut lane.is_first) && self.block[0] != b'0' => {
                            let why = "it knows no transactions; 'thalweg load serve' does".to_owned();
                            return Err(IperfError::Refused(why));
                        }
                        Some(count) if count < left => lane.step = Step::Receiving(left - count),
                        Some(_) if exchange.connects => lane.step = Step::Closing,
                        Some(_) => {
                            self.done(lane);
                            lane.begun = Instant::now();
                            lane.step = Step::Sending(exchange.request as usize);
                        }
                    }
                }
                Step::Closing => match lane.tcp.discard(1).map_err(broken)? {
                    None => return Ok(false),
                    Some(_) => {
                        self.done(lane);
                        return Ok(true);
                    }
                },
            }
        }
    }

    /// Sends the cookie and the request; the next step, `None` when the buffer is full.
    fn send(&self, lane: &mut Lane, left: usize) -> Result<Option<Step>, IperfError> {
        if !lane.cookie.is_empty() {
            let sent = lane.tcp.send(&lane.cookie).map_err(broken)?;
            lane.cookie.drain(..sent.unwrap_or(0));
            return Ok(sent.map(|_| Step::Sending(left)));
        }
        if left == 0 {
            return Ok(Some(Step::Receiving(self.options.exchange.response as usize)));
        }
        let sent = lane.tcp.send(&self.block[..left.min(BLOCK)]).map_err(broken)?;
        Ok(sent.map(|sent| Step::Sending(left - sent)))
    }

    fn done(&mut self, lane: &Lane) {
        self.latency.saturating_record(lane.begun.elapsed().as_nanos() as u64);
        self.in_a_row = 0;
    }

    fn report(self, took: Duration, cpu: CpuTime) -> TransactionReport {
        let duration_s = took.as_secs_f64().max(1e-9);
        let [user_percent, system_percent] = [cpu.user, cpu.system].map(|time| time.as_secs_f64() / duration_s * 100.0);
        let exchange = self.options.exchange;
        TransactionReport {
            schema: "thalweg.load-transactions/1",
            kind: if exchange.connects { "crr" } else { "rr" },
            peer: self.peer.to_string(),
            streams: self.options.streams,
            request_bytes: exchange.request,
            response_bytes: exchange.response,
            duration_s,
            transactions: self.latency.len(),
            transactions_per_s: self.latency.len() as f64 / duration_s,
            latency_ms: percentiles(&self.latency),
            connect_ms: percentiles(&self.connect),
            send_buffer_bytes: self.buffers.0 as u64,
            receive_buffer_bytes: self.buffers.1 as u64,
            failures: self.failures,
            cpu: CpuShare { total_percent: user_percent + system_percent, user_percent, system_percent },
        }
    }
}

fn broken(error: HostError) -> IperfError {
    IperfError::Stream(error.to_string())
}

fn percentiles(times: &Histogram<u64>) -> Option<Percentiles> {
    let at = |part: f64| times.value_at_quantile(part) as f64 / 1e6;
    let (p50, p90, p99, p999, max) = (at(0.5), at(0.9), at(0.99), at(0.999), times.max() as f64 / 1e6);
    (!times.is_empty()).then(|| Percentiles { count: times.len(), p50, p90, p99, p999, max })
}
