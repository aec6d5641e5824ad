//! One connection of a `stream`.

use super::ends;
use super::pace::Production;
use crate::guest::clock::minus;
use crate::guest::event_loop::{EventLoop, Key};
use std::fs::File;
use thalweg_host::HostError;
use thalweg_host::tcp_info::TcpInfo;
use thalweg_model::{Stream, Way};
use thalweg_units::Span;

/// What a program writes and reads at once: iperf3's default for TCP.
const WRITE_BYTES: usize = 128 * 1024;
const READ_BYTES: usize = 1 << 20;

/// The reader is woken about so many times a round trip, not once for each packet: a guest's wake-ups are what its real
/// time goes into, and what is unread at any moment stays below one part in so many of the window.
const READS_PER_RTT: f64 = 256.0;
/// …and for at most so much, half of what iperf3 reads at once.
const WAKE_BYTES_MAX: f64 = 65_536.0;

static PAYLOAD: [u8; WRITE_BYTES] = [0x5a; WRITE_BYTES];

/// One connection.
pub(super) struct Transfer {
    pub(super) client: Key,
    pub(super) server: Option<Key>,
    began: Option<Span>,
    pub(super) connected: Option<Span>,
    pub(super) first_byte: Option<Span>,
    pub(super) received: u64,
    pub(super) cwnd_max: u64,
    /// What is to be sent in all; `None` until it is stopped.
    total: Option<u64>,
    sent: u64,
    sender: Option<Key>,
    receiver: Option<Key>,
    file: Option<File>,
    /// What the program has to send, where it has data at a pace.
    pub(super) production: Option<Production>,
    reading: Reading,
    /// When the kernel gave the connection up, and what it said of it then.
    pub(super) broken: Option<(Span, TcpInfo)>,
    is_over: bool,
}

/// How coarsely the receiver reads: by the rate of the last stretch.
#[derive(Debug, Default)]
struct Reading {
    rtt_s: f64,
    since: Span,
    since_bytes: u64,
    next_bytes: u64,
}

impl Reading {
    /// Bytes over which the rate is measured.
    const STRETCH_BYTES: u64 = 1 << 20;

    fn adapt(&mut self, event_loop: &EventLoop, receiver: Key, received: u64) -> Result<(), HostError> {
        if received < self.next_bytes {
            return Ok(());
        }
        let now = event_loop.now();
        let per_rtt =
            (received - self.since_bytes) as f64 / minus(now, self.since).as_secs_f64().max(1e-9) * self.rtt_s;
        event_loop.tcp(receiver).wake_after((per_rtt / READS_PER_RTT).clamp(1.0, WAKE_BYTES_MAX) as u32)?;
        *self = Self { since: now, since_bytes: received, next_bytes: received + Self::STRETCH_BYTES, ..*self };
        Ok(())
    }
}

impl Transfer {
    pub(super) fn new(client: Key, total: Option<u64>, spec: &Stream) -> Result<Self, HostError> {
        let file = spec.file.as_ref().map(|name| {
            File::open(name).map_err(|source| HostError { act: format!("open '{name}' to send it"), source })
        });
        Ok(Self {
            client,
            server: None,
            began: None,
            connected: None,
            first_byte: None,
            received: 0,
            cwnd_max: 0,
            total,
            sent: 0,
            sender: None,
            receiver: None,
            file: file.transpose()?,
            production: spec.pace.map(|rate| Production::new(rate, spec.backlog)),
            reading: Reading::default(),
            broken: None,
            is_over: false,
        })
    }

    /// Whether both ends are there.
    pub(super) const fn is_joined(&self) -> bool {
        self.connected.is_some() && self.server.is_some()
    }

    pub(super) fn is_sender(&self, key: Key) -> bool {
        self.sender == Some(key)
    }

    pub(super) fn is_receiver(&self, key: Key) -> bool {
        self.receiver == Some(key)
    }

    /// Lets the data go.
    pub(super) fn start(&mut self, event_loop: &mut EventLoop, way: Way) -> Result<(), HostError> {
        let (Some(server), Some(connected)) = (self.server, self.connected) else { return Ok(()) };
        let (sender, receiver) = ends(way, self.client, server);
        (self.sender, self.receiver) = (Some(sender), Some(receiver));
        let now = event_loop.now();
        self.began = Some(now);
        self.reading = Reading {
            rtt_s: stage_rtt(event_loop, self.client)?,
            since: connected,
            since_bytes: 0,
            next_bytes: Reading::STRETCH_BYTES,
        };
        if let Some(production) = &mut self.production {
            production.begin(now);
        }
        event_loop.watch(receiver, true, false)?;
        event_loop.watch(sender, false, true)
    }

    /// Sends as much as the socket takes.
    pub(super) fn send(&mut self, event_loop: &EventLoop) -> Result<(), HostError> {
        let Some(sender) = self.sender else { return Ok(()) };
        loop {
            let left = self.total.map(|total| total - self.sent);
            if left == Some(0) {
                // Nothing is waited for any more then but that it breaks.
                event_loop.tcp(sender).connected()?;
                event_loop.tcp(sender).finish()?;
                return event_loop.watch(sender, false, false);
            }
            let mut most = left.map_or(WRITE_BYTES, |left| left.min(WRITE_BYTES as u64) as usize);
            if let Some(production) = &self.production {
                most = most.min(production.waiting() as usize);
                if most == 0 {
                    // The next data is produced before the socket is looked at again.
                    return event_loop.watch(sender, false, false);
                }
            }
            let sent = match &self.file {
                Some(file) => event_loop.tcp(sender).send_file(file, self.sent, most)?,
                None => event_loop.tcp(sender).send(&PAYLOAD[..most])?,
            };
            let Some(sent) = sent else {
                return if self.production.is_some() { event_loop.watch(sender, false, true) } else { Ok(()) };
            };
            if sent == 0 {
                // The file ends before the amount does.
                self.total = Some(self.sent);
                continue;
            }
            self.sent += sent as u64;
            if let Some(production) = &mut self.production {
                production.take(sent as u64);
            }
        }
    }

    /// The program has more data.
    pub(super) fn produce(&mut self, event_loop: &EventLoop, now: Span) -> Result<(), HostError> {
        if let (Some(production), Some(_)) = (&mut self.production, self.sender) {
            production.produce(now);
            self.send(event_loop)?;
        }
        Ok(())
    }

    /// Takes what came; true once all has.
    pub(super) fn receive(&mut self, event_loop: &EventLoop) -> Result<bool, HostError> {
        let Some(receiver) = self.receiver else { return Ok(false) };
        let Some(count) = event_loop.tcp(receiver).discard(READ_BYTES)? else { return Ok(false) };
        if self.first_byte.is_none() && count > 0 {
            self.first_byte = Some(event_loop.now());
        }
        self.received += count as u64;
        if let Some(production) = &mut self.production {
            production.arrived(self.received, event_loop.now());
        }
        self.reading.adapt(event_loop, receiver, self.received)?;
        let whole = count == 0 || self.total.is_some_and(|total| self.received >= total);
        if whole {
            event_loop.watch(receiver, false, false)?;
        }
        Ok(whole)
    }

    /// Whether it is done with; once true, true for good, and told only once.
    pub(super) fn ends(&mut self) -> bool {
        !std::mem::replace(&mut self.is_over, true)
    }

    /// Takes leave of a connection that the kernel gave up, as after `user_timeout`: that is a result, not a failure of the
    /// experiment. Any other error is given back.
    pub(super) fn break_off(&mut self, event_loop: &mut EventLoop, error: HostError) -> Result<(), HostError> {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset, TimedOut};
        if self.broken.is_some() || !matches!(error.source.kind(), BrokenPipe | ConnectionReset | TimedOut) {
            return Err(error);
        }
        let info = self.observe(event_loop)?;
        self.broken = Some((event_loop.now(), info));
        // A broken socket is ready for ever.
        for key in [self.sender.take(), self.receiver.take()].into_iter().flatten() {
            event_loop.close_socket(key)?;
        }
        Ok(())
    }

    /// Asks the sender's kernel.
    pub(super) fn observe(&mut self, event_loop: &EventLoop) -> Result<TcpInfo, HostError> {
        if let Some((_, info)) = self.broken {
            return Ok(info);
        }
        let info = TcpInfo::of(event_loop.tcp(self.sender.unwrap_or(self.client)))?;
        self.cwnd_max = self.cwnd_max.max(info.get("tcpi_snd_cwnd"));
        Ok(info)
    }

    /// Neither sends nor receives from now on.
    pub(super) fn stop(&self, event_loop: &EventLoop) -> Result<(), HostError> {
        [self.sender, self.receiver].into_iter().flatten().try_for_each(|key| event_loop.watch(key, false, false))
    }
}

/// The round-trip time that the client's handshake saw.
fn stage_rtt(event_loop: &EventLoop, client: Key) -> Result<f64, HostError> {
    Ok(TcpInfo::of(event_loop.tcp(client))?.get("tcpi_rtt") as f64 / 1e6)
}
