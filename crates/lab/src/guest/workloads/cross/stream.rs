//! TCP transfers without end.

use crate::guest::clock::minus;
use crate::guest::event_loop::{Event, EventLoop, Key};
use crate::guest::hosts::HostId;
use crate::guest::workload::{Findings, RunningWorkload};
use std::collections::HashMap;
use thalweg_host::HostError;
use thalweg_model::{Cross, CrossTraffic, Metric, Metrics, Way};
use thalweg_units::Span;

const CHUNK_BYTES: usize = 128 * 1024;
static PAYLOAD: [u8; CHUNK_BYTES] = [0x5a; CHUNK_BYTES];
const END: u64 = 0;

/// TCP transfers that go on until they are told to end.
pub(super) struct CrossStreams {
    spec: Cross,
    congestion: Option<String>,
    server: HostId,
    client: HostId,
    port: u16,
    listener: Option<Key>,
    began: Span,
    /// What each end does: those that send, and those that read.
    sends: HashMap<Key, bool>,
    received: u64,
    ended: Option<Span>,
}

impl CrossStreams {
    pub(super) fn new(spec: Cross, (server, client): (HostId, HostId), port: u16) -> Self {
        let congestion = match &spec.traffic {
            CrossTraffic::Stream { congestion } => congestion.clone(),
            CrossTraffic::Udp { .. } => None,
        };
        let (sends, began) = (HashMap::new(), Span::ZERO);
        Self { spec, congestion, server, client, port, listener: None, began, sends, received: 0, ended: None }
    }

    fn add(&mut self, event_loop: &EventLoop, key: Key, at_server: bool) -> Result<(), HostError> {
        let sends = at_server == (self.spec.direction == Way::Down);
        self.sends.insert(key, sends);
        event_loop.watch(key, !sends, sends)
    }
}

impl RunningWorkload for CrossStreams {
    fn begin(&mut self, event_loop: &mut EventLoop) -> Result<(), HostError> {
        self.began = event_loop.now();
        let congestion = self.congestion.clone();
        let settings = |event_loop: &EventLoop, host| event_loop.settings_with(host, congestion.as_deref());
        let at_server = settings(event_loop, self.server);
        self.listener = Some(event_loop.listen_with(self.server, self.port, &at_server)?);
        let at_client = settings(event_loop, self.client);
        for _ in 0..self.spec.flows {
            event_loop.connect_with(self.client, self.server, self.port, &at_client)?;
        }
        if let Some(end) = self.spec.end {
            event_loop.wake_at(end, END);
        }
        Ok(())
    }

    fn handle(&mut self, event_loop: &mut EventLoop, event: Event) -> Result<(), HostError> {
        match event {
            Event::Timer { .. } => {
                self.ended = Some(event_loop.now());
                for key in self.sends.drain().map(|(key, _)| key).chain(self.listener.take()) {
                    event_loop.close_socket(key)?;
                }
            }
            Event::Ready { key, .. } if Some(key) == self.listener => {
                while let Some(server) = event_loop.accept(key)? {
                    self.add(event_loop, server, true)?;
                }
            }
            Event::Ready { key, .. } => match self.sends.get(&key) {
                None => {
                    event_loop.connected(key)?;
                    self.add(event_loop, key, false)?;
                }
                Some(true) => while event_loop.tcp(key).send(&PAYLOAD)?.is_some() {},
                Some(false) => self.received += event_loop.tcp(key).discard(CHUNK_BYTES)?.unwrap_or(0) as u64,
            },
            Event::Start => {}
        }
        Ok(())
    }

    fn done(&self, _: Span) -> f64 {
        0.0
    }

    fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    fn report(&mut self, event_loop: &mut EventLoop) -> Result<Findings, HostError> {
        let seconds = minus(self.ended.unwrap_or_else(|| event_loop.now()), self.began).as_secs_f64();
        let rate = if seconds > 0.0 { self.received as f64 * 8.0 / seconds } else { 0.0 };
        let metrics = Metrics::from([("goodput_bps".to_owned(), Metric::One(rate))]);
        Ok(Findings { metrics, ..Findings::default() })
    }
}
