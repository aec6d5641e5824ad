//! `rr` and `crr`: request and response, again and again, over one connection or with one for each.

use crate::guest::clock::minus;
use crate::guest::event_loop::{Event, EventLoop, Key};
use crate::guest::hosts::{HostId, SERVER};
use crate::guest::metrics::{percentiles, sender_metrics};
use crate::guest::workload::{Findings, RunningWorkload};
use std::collections::HashMap;
use std::net::SocketAddrV4;
use thalweg_host::HostError;
use thalweg_host::tcp_info::TcpInfo;
use thalweg_model::{Exchange, Metric, Metrics, Transactions};
use thalweg_units::Span;

const CHUNK_BYTES: usize = 256 * 1024;
static PAYLOAD: [u8; CHUNK_BYTES] = [0x5a; CHUNK_BYTES];
/// `TCPI_OPT_SYN_DATA` of `tcpi_options`: the SYN carried data that was acknowledged. Source: include/uapi/linux/tcp.h.
const SYN_DATA: u64 = 32;

/// All clients of an `rr` or `crr`.
pub(super) struct Exchanges {
    spec: Exchange,
    /// Whether each transaction has a connection of its own.
    connects: bool,
    port: u16,
    listener: Option<Key>,
    began: Span,
    ended: Span,
    callers: Vec<Caller>,
    by_address: HashMap<SocketAddrV4, usize>,
    by_key: HashMap<Key, usize>,
    totals: Totals,
}

/// A client, and the transaction it is in.
struct Caller {
    host: HostId,
    client: Option<Key>,
    server: Option<Key>,
    began: Span,
    connected: Option<Span>,
    answered: Option<Span>,
    request_left: u64,
    request_missing: u64,
    response_left: u64,
    response_missing: u64,
    made: u32,
    is_over: bool,
}

#[derive(Default)]
struct Totals {
    latencies_ms: Vec<f64>,
    connects_ms: Vec<f64>,
    fast_opens: u64,
    infos: Vec<TcpInfo>,
    retransmits: u64,
    timeouts: u64,
}

impl Exchanges {
    pub(super) fn new(spec: Exchange, connects: bool, clients: Vec<HostId>, port: u16) -> Self {
        let callers = clients.into_iter().map(|host| Caller {
            host,
            client: None,
            server: None,
            began: Span::ZERO,
            connected: None,
            answered: None,
            request_left: 0,
            request_missing: 0,
            response_left: 0,
            response_missing: 0,
            made: 0,
            is_over: false,
        });
        Self {
            spec,
            connects,
            port,
            listener: None,
            began: Span::ZERO,
            ended: Span::ZERO,
            callers: callers.collect(),
            by_address: HashMap::new(),
            by_key: HashMap::new(),
            totals: Totals::default(),
        }
    }

    /// Begins the next transaction of a client, or ends its part.
    fn call(&mut self, event_loop: &mut EventLoop, at: usize) -> Result<(), HostError> {
        let now = event_loop.now();
        let caller = &mut self.callers[at];
        let over = match self.spec.amount {
            Transactions::Count(count) => caller.made >= count,
            Transactions::Seconds(span) => caller.made > 0 && minus(now, self.began) >= span,
        };
        if over {
            caller.is_over = true;
            return Ok(());
        }
        caller.began = now;
        caller.answered = None;
        let (request, response) = (self.spec.request.get(), self.spec.response.get());
        (caller.request_left, caller.request_missing) = (request, request);
        (caller.response_left, caller.response_missing) = (response, response);
        if let Some(client) = caller.client {
            return caller.ask(event_loop, client);
        }
        let client = event_loop.connect(caller.host, SERVER, self.port)?;
        (caller.client, caller.connected) = (Some(client), None);
        self.by_address.insert(event_loop.local(client)?, at);
        self.by_key.insert(client, at);
        Ok(())
    }

    /// The client's transaction is over at both ends, or at its own where the connection is kept.
    fn settle(&mut self, event_loop: &mut EventLoop, at: usize) -> Result<(), HostError> {
        let caller = &mut self.callers[at];
        let (Some(answered), true) = (caller.answered, !self.connects || caller.server.is_none()) else {
            return Ok(());
        };
        self.totals.latencies_ms.push(minus(answered, caller.began).as_millis_f64());
        if let Some(connected) = caller.connected.filter(|_| self.connects) {
            self.totals.connects_ms.push(minus(connected, caller.began).as_millis_f64());
        }
        caller.made += 1;
        self.ended = self.ended.max(answered);
        self.call(event_loop, at)
    }

    /// Closes a client's connection; its address may be another's next.
    fn leave(&mut self, event_loop: &mut EventLoop, client: Key) -> Result<(), HostError> {
        self.by_address.remove(&event_loop.local(client)?);
        self.by_key.remove(&client);
        event_loop.close_socket(client)
    }

    /// The client's end can be read or written.
    fn at_client(&mut self, event_loop: &mut EventLoop, at: usize, ready: (bool, bool)) -> Result<(), HostError> {
        let (readable, writable) = ready;
        let caller = &mut self.callers[at];
        let Some(client) = caller.client else { return Ok(()) };
        if writable && caller.request_left > 0 {
            if caller.connected.is_none() {
                event_loop.connected(client)?;
                let now = event_loop.now();
                caller.connected = Some(now);
                if !self.connects {
                    // Where the connection is kept it is no part of a transaction, nor of the first.
                    self.totals.connects_ms.push(minus(now, caller.began).as_millis_f64());
                    caller.began = now;
                }
            }
            caller.ask(event_loop, client)?;
        }
        if readable && caller.answered.is_none() && caller.take(event_loop, client)? {
            if self.connects {
                let options = TcpInfo::of(event_loop.tcp(client))?.get("tcpi_options");
                self.totals.fast_opens += u64::from(options & SYN_DATA != 0);
                self.callers[at].client = None;
                self.leave(event_loop, client)?;
            }
            self.callers[at].answered = Some(event_loop.now());
            self.settle(event_loop, at)?;
        }
        Ok(())
    }

    /// The server's end can be read or written.
    fn at_server(
        &mut self,
        event_loop: &mut EventLoop,
        at: usize,
        key: Key,
        ready: (bool, bool),
    ) -> Result<(), HostError> {
        if self.callers[at].serve(event_loop, key, ready)? {
            let info = TcpInfo::of(event_loop.tcp(key))?;
            self.totals.retransmits += info.get("tcpi_total_retrans");
            self.totals.timeouts += info.get("tcpi_total_rto");
            self.by_key.remove(&key);
            event_loop.close_socket(key)?;
            self.callers[at].server = None;
            self.settle(event_loop, at)?;
        }
        Ok(())
    }
}

impl RunningWorkload for Exchanges {
    fn begin(&mut self, event_loop: &mut EventLoop) -> Result<(), HostError> {
        self.listener = Some(event_loop.listen(SERVER, self.port)?);
        self.began = event_loop.now();
        self.ended = self.began;
        (0..self.callers.len()).try_for_each(|at| self.call(event_loop, at))
    }

    fn handle(&mut self, event_loop: &mut EventLoop, event: Event) -> Result<(), HostError> {
        let Event::Ready { key, readable, writable } = event else { return Ok(()) };
        if Some(key) == self.listener {
            while let Some(server) = event_loop.accept(key)? {
                let Some(&at) = self.by_address.get(&event_loop.peer(server)?) else { continue };
                self.by_key.insert(server, at);
                self.callers[at].server = Some(server);
            }
            return Ok(());
        }
        let Some(&at) = self.by_key.get(&key) else { return Ok(()) };
        if self.callers[at].client == Some(key) {
            self.at_client(event_loop, at, (readable, writable))
        } else {
            self.at_server(event_loop, at, key, (readable, writable))
        }
    }

    fn done(&self, now: Span) -> f64 {
        match self.spec.amount {
            Transactions::Count(count) => {
                self.totals.latencies_ms.len() as f64 / (f64::from(count) * self.callers.len() as f64)
            }
            Transactions::Seconds(span) => minus(now, self.began).as_secs_f64() / span.as_secs_f64(),
        }
    }

    fn is_over(&self) -> bool {
        self.callers.iter().all(|caller| caller.is_over)
    }

    fn report(&mut self, event_loop: &mut EventLoop) -> Result<Findings, HostError> {
        let seconds = minus(self.ended, self.began).as_secs_f64();
        let mut metrics = Metrics::new();
        if self.connects {
            metrics.insert("retransmits".to_owned(), Metric::Count(self.totals.retransmits));
            metrics.insert("retransmission_timeouts".to_owned(), Metric::Count(self.totals.timeouts));
            metrics.insert("fast_opens".to_owned(), Metric::Count(self.totals.fast_opens));
        } else {
            for caller in &self.callers {
                if let Some(server) = caller.server {
                    self.totals.infos.push(TcpInfo::of(event_loop.tcp(server))?);
                }
            }
            sender_metrics(&self.totals.infos, &mut metrics);
        }
        let count = self.totals.latencies_ms.len();
        let mut put = |name: &str, metric: Metric| metrics.insert(name.to_owned(), metric);
        put("transactions", Metric::Count(count as u64));
        put("transactions_per_s", Metric::One(count as f64 / seconds));
        put("duration_s", Metric::One(seconds));
        put("goodput_bps", Metric::One(count as f64 * self.spec.response.get() as f64 * 8.0 / seconds));
        put("latency_ms", percentiles(std::mem::take(&mut self.totals.latencies_ms)));
        put("connect_ms", percentiles(std::mem::take(&mut self.totals.connects_ms)));
        Ok(Findings { metrics, ..Findings::default() })
    }
}

impl Caller {
    /// Sends what is left of the request.
    fn ask(&mut self, event_loop: &mut EventLoop, client: Key) -> Result<(), HostError> {
        let most = self.request_left.min(CHUNK_BYTES as u64) as usize;
        self.request_left -= event_loop.tcp(client).send(&PAYLOAD[..most])?.unwrap_or(0) as u64;
        event_loop.watch(client, true, self.request_left > 0)
    }

    /// Reads what came of the response; true once it is whole.
    fn take(&mut self, event_loop: &EventLoop, client: Key) -> Result<bool, HostError> {
        let count = event_loop.tcp(client).discard(CHUNK_BYTES)?;
        if count == Some(0) && self.response_missing > 0 {
            return Err(HostError {
                act: "read a response".to_owned(),
                source: std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the server closed early"),
            });
        }
        self.response_missing = self.response_missing.saturating_sub(count.unwrap_or(0) as u64);
        Ok(self.response_missing == 0)
    }

    /// Reads the request, then sends the response; true once the client has closed.
    fn serve(
        &mut self,
        event_loop: &EventLoop,
        key: Key,
        (readable, writable): (bool, bool),
    ) -> Result<bool, HostError> {
        if readable {
            match event_loop.tcp(key).discard(CHUNK_BYTES)? {
                Some(0) => return Ok(true),
                count => self.request_missing = self.request_missing.saturating_sub(count.unwrap_or(0) as u64),
            }
        }
        if self.request_missing == 0 && self.response_left > 0 && (writable || readable) {
            while self.response_left > 0 {
                let most = self.response_left.min(CHUNK_BYTES as u64) as usize;
                match event_loop.tcp(key).send(&PAYLOAD[..most])? {
                    Some(sent) => self.response_left -= sent as u64,
                    None => break,
                }
            }
            event_loop.watch(key, true, self.response_left > 0)?;
        }
        Ok(false)
    }
}
