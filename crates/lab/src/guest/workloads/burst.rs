//! `burst`: how a live stream starts. The server sends the pictures it has cached at once, then goes on at the media's
//! rate.

use crate::guest::clock::{minus, plus};
use crate::guest::event_loop::{Event, EventLoop, Key};
use crate::guest::hosts::{HostId, SERVER};
use crate::guest::metrics::{one_or_percentiles, sender_metrics};
use crate::guest::workload::{Findings, RunningWorkload};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddrV4;
use thalweg_host::HostError;
use thalweg_host::tcp_info::TcpInfo;
use thalweg_model::{Burst, Metric, Metrics};
use thalweg_units::{Bytes, Span};

/// What an HTTP GET of a player measures.
const REQUEST_BYTES: usize = 200;
const CHUNK_BYTES: usize = 256 * 1024;
/// Frames a second.
const FRAME_EVERY: Span = Span::from_millis(40);
static PAYLOAD: [u8; CHUNK_BYTES] = [0x5a; CHUNK_BYTES];

/// All viewers of a `burst`.
pub(super) struct Bursts {
    spec: Burst,
    clients: Vec<HostId>,
    port: u16,
    listener: Option<Key>,
    began: Span,
    viewers: Vec<Viewer>,
    by_address: HashMap<SocketAddrV4, usize>,
    by_key: HashMap<Key, usize>,
}

/// A viewer.
struct Viewer {
    client: Key,
    connected: Option<Span>,
    first_byte: Option<Span>,
    received: u64,
    /// Byte counts that are still to come.
    wanted: Vec<Bytes>,
    reached: Vec<(Bytes, Span)>,
    sending: Option<Sending>,
}

/// The server's side of it.
struct Sending {
    key: Key,
    requested: bool,
    /// Bytes the media has produced and the socket has not taken.
    waiting: u64,
    per_frame: f64,
    fraction: f64,
}

impl Bursts {
    pub(super) fn new(spec: Burst, clients: Vec<HostId>, port: u16) -> Self {
        Self {
            spec,
            clients,
            port,
            listener: None,
            began: Span::ZERO,
            viewers: Vec::new(),
            by_address: HashMap::new(),
            by_key: HashMap::new(),
        }
    }
}

impl RunningWorkload for Bursts {
    fn begin(&mut self, event_loop: &mut EventLoop) -> Result<(), HostError> {
        self.listener = Some(event_loop.listen(SERVER, self.port)?);
        self.began = event_loop.now();
        let mut wanted: Vec<Bytes> =
            self.spec.marks.iter().copied().chain([self.spec.keyframe, self.spec.total]).collect();
        wanted.sort();
        wanted.dedup();
        for (at, host) in self.clients.iter().enumerate() {
            let client = event_loop.connect(*host, SERVER, self.port)?;
            self.by_address.insert(event_loop.local(client)?, at);
            self.by_key.insert(client, at);
            self.viewers.push(Viewer {
                client,
                connected: None,
                first_byte: None,
                received: 0,
                wanted: wanted.clone(),
                reached: Vec::new(),
                sending: None,
            });
        }
        Ok(())
    }

    fn handle(&mut self, event_loop: &mut EventLoop, event: Event) -> Result<(), HostError> {
        match event {
            Event::Timer { token } => match self.viewers.get_mut(token as usize) {
                Some(viewer) if !viewer.wanted.is_empty() => viewer.produce(event_loop, token),
                _ => Ok(()),
            },
            Event::Ready { key, .. } if Some(key) == self.listener => {
                while let Some(key) = event_loop.accept(key)? {
                    let Some(&at) = self.by_address.get(&event_loop.peer(key)?) else { continue };
                    self.by_key.insert(key, at);
                    let per_frame = self.spec.rate.bytes_per_second() as f64 * FRAME_EVERY.as_secs_f64();
                    let waiting = self.spec.buffered.get();
                    self.viewers[at].sending =
                        Some(Sending { key, requested: false, waiting, per_frame, fraction: 0.0 });
                }
                Ok(())
            }
            Event::Ready { key, readable, .. } => {
                let Some(&at) = self.by_key.get(&key) else { return Ok(()) };
                let viewer = &mut self.viewers[at];
                if key == viewer.client {
                    viewer.watch(event_loop, readable)
                } else {
                    viewer.serve(event_loop, readable, at)
                }
            }
            Event::Start => Ok(()),
        }
    }

    fn done(&self, _: Span) -> f64 {
        let received: u64 = self.viewers.iter().map(|viewer| viewer.received).sum();
        received as f64 / (self.spec.total.get() as f64 * self.viewers.len() as f64)
    }

    fn is_over(&self) -> bool {
        !self.viewers.is_empty() && self.viewers.iter().all(|viewer| viewer.wanted.is_empty())
    }

    fn report(&mut self, event_loop: &mut EventLoop) -> Result<Findings, HostError> {
        let since = |at: Span| minus(at, self.began).as_millis_f64();
        let all = |of: &dyn Fn(&Viewer) -> Option<Span>| -> Vec<f64> {
            self.viewers.iter().filter_map(of).map(since).collect()
        };
        let at = |mark: Bytes| {
            move |viewer: &Viewer| viewer.reached.iter().find(|(bytes, _)| *bytes == mark).map(|(_, at)| *at)
        };
        let mut metrics = Metrics::new();
        let marks: Vec<Bytes> =
            self.viewers.first().map(|one| one.reached.iter().map(|(mark, _)| *mark).collect()).unwrap_or_default();
        let times: BTreeMap<String, Metric> =
            marks.iter().map(|mark| (mark.get().to_string(), one_or_percentiles(all(&at(*mark))))).collect();
        metrics.insert("time_to_bytes_ms".to_owned(), Metric::Group(times));
        let ended = all(&at(self.spec.total)).into_iter().fold(0.0, f64::max) / 1e3;
        let received: u64 = self.viewers.iter().map(|viewer| viewer.received).sum();
        for (name, metric) in [
            ("connect_ms", one_or_percentiles(all(&|viewer| viewer.connected))),
            ("first_byte_ms", one_or_percentiles(all(&|viewer| viewer.first_byte))),
            ("first_keyframe_ms", one_or_percentiles(all(&at(self.spec.keyframe)))),
            ("duration_s", Metric::One(ended)),
            ("goodput_bps", Metric::One(received as f64 * 8.0 / ended)),
            ("bytes", Metric::Count(received)),
        ] {
            metrics.insert(name.to_owned(), metric);
        }
        let mut infos = Vec::new();
        for sending in self.viewers.iter().filter_map(|viewer| viewer.sending.as_ref()) {
            infos.push(TcpInfo::of(event_loop.tcp(sending.key))?);
        }
        sender_metrics(&infos, &mut metrics);
        Ok(Findings { metrics, ..Findings::default() })
    }
}

impl Viewer {
    /// The client's end is connected or has data.
    fn watch(&mut self, event_loop: &mut EventLoop, readable: bool) -> Result<(), HostError> {
        if self.connected.is_none() {
            event_loop.connected(self.client)?;
            self.connected = Some(event_loop.now());
            event_loop.tcp(self.client).send(&PAYLOAD[..REQUEST_BYTES])?;
            return event_loop.watch(self.client, true, false);
        }
        if readable && let Some(count) = event_loop.tcp(self.client).discard(CHUNK_BYTES)? {
            let now = event_loop.now();
            self.first_byte.get_or_insert(now);
            self.received += count as u64;
            while let Some(mark) = self.wanted.first().copied().filter(|mark| mark.get() <= self.received) {
                self.reached.push((mark, now));
                self.wanted.remove(0);
            }
            if self.wanted.is_empty() {
                // The viewer leaves: nothing of what still comes is its own.
                event_loop.watch(self.client, false, false)?;
            }
        }
        Ok(())
    }

    /// The server's end has the request, or room.
    fn serve(&mut self, event_loop: &mut EventLoop, readable: bool, at: usize) -> Result<(), HostError> {
        let Some(sending) = &mut self.sending else { return Ok(()) };
        if readable && !sending.requested {
            event_loop.tcp(sending.key).discard(REQUEST_BYTES)?;
            sending.requested = true;
            event_loop.wake_at(plus(event_loop.now(), FRAME_EVERY), at as u64);
        }
        sending.push(event_loop)
    }

    /// The media has another frame.
    fn produce(&mut self, event_loop: &mut EventLoop, token: u64) -> Result<(), HostError> {
        let Some(sending) = &mut self.sending else { return Ok(()) };
        sending.fraction += sending.per_frame;
        let whole = sending.fraction.floor();
        sending.fraction -= whole;
        sending.waiting += whole as u64;
        event_loop.wake_at(plus(event_loop.now(), FRAME_EVERY), token);
        sending.push(event_loop)
    }
}

impl Sending {
    /// Gives the socket what it takes, and waits for room only while there is more.
    fn push(&mut self, event_loop: &mut EventLoop) -> Result<(), HostError> {
        if !self.requested {
            return Ok(());
        }
        while self.waiting > 0 {
            let most = self.waiting.min(CHUNK_BYTES as u64) as usize;
            match event_loop.tcp(self.key).send(&PAYLOAD[..most])? {
                Some(sent) => self.waiting -= sent as u64,
                None => break,
            }
        }
        event_loop.watch(self.key, false, self.waiting > 0)
    }
}
