//! A topic's connection to one of its subscribers.

use super::outlier::{Delivery, Seen};
use crate::guest::event_loop::{EventLoop, Key};
use crate::guest::hosts::HostId;
use std::collections::VecDeque;
use std::io;
use thalweg_host::HostError;
use thalweg_units::Span;

const CHUNK_BYTES: usize = 256 * 1024;
static PAYLOAD: [u8; CHUNK_BYTES] = [0x5a; CHUNK_BYTES];

/// The connection, what waits for it, and what came over it.
pub(super) struct Link {
    pub(super) topic: usize,
    /// The publisher's host.
    pub(super) host: HostId,
    /// The subscriber's host, and its socket.
    pub(super) to: HostId,
    pub(super) subscriber: Key,
    publisher: Option<Key>,
    pub(super) connected: bool,
    /// Bytes published and not taken by the socket yet: they wait in the program.
    waiting: u64,
    pub(super) backlog_max: u64,
    published: u64,
    pub(super) received: u64,
    /// Messages that are not whole at the subscriber.
    under_way: VecDeque<Message>,
    pub(super) deliveries: Vec<Delivery>,
    /// Retransmissions when last looked.
    pub(super) retransmits: u64,
}

/// A message under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    /// The stream's byte after its last.
    end: u64,
    pub(super) published: Span,
    /// The connection when it was published.
    seen: Seen,
    /// The connection when the first of those it had to wait for was.
    pub(super) before: Seen,
}

impl Link {
    pub(super) fn new(topic: usize, host: HostId, to: HostId, subscriber: Key) -> Self {
        Self {
            topic,
            host,
            to,
            subscriber,
            publisher: None,
            connected: false,
            waiting: 0,
            backlog_max: 0,
            published: 0,
            received: 0,
            under_way: VecDeque::new(),
            deliveries: Vec::new(),
            retransmits: 0,
        }
    }

    pub(super) fn connect(&mut self, event_loop: &mut EventLoop) -> Result<(), HostError> {
        event_loop.connected(self.subscriber)?;
        self.connected = true;
        event_loop.watch(self.subscriber, true, false)
    }

    pub(super) const fn accepted(&mut self, publisher: Key) {
        self.publisher = Some(publisher);
    }

    pub(super) const fn is_joined(&self) -> bool {
        self.connected && self.publisher.is_some()
    }

    /// Whether every message came.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    /// The publisher's end.
    pub(super) fn publisher(&self) -> Key {
        self.publisher.expect("invariant: nothing is published before every link is joined")
    }

    /// A message is there to be sent.
    pub(super) fn publish(
        &mut self,
        event_loop: &EventLoop,
        bytes: u64,
        at: Span,
        seen: Seen,
    ) -> Result<(), HostError> {
        let before = self.under_way.front().map_or(seen, |first| first.seen);
        self.published += bytes;
        self.waiting += bytes;
        self.under_way.push_back(Message { end: self.published, published: at, seen, before });
        self.send(event_loop)
    }

    /// Gives the socket what it takes.
    pub(super) fn send(&mut self, event_loop: &EventLoop) -> Result<(), HostError> {
        while self.waiting > 0 {
            let most = self.waiting.min(CHUNK_BYTES as u64) as usize;
            match event_loop.tcp(self.publisher()).send(&PAYLOAD[..most])? {
                Some(sent) => self.waiting -= sent as u64,
                None => break,
            }
        }
        self.backlog_max = self.backlog_max.max(self.waiting);
        event_loop.watch(self.publisher(), false, self.waiting > 0)
    }

    /// Reads what came; true when at least one message is whole now.
    pub(super) fn receive(&mut self, event_loop: &EventLoop) -> Result<bool, HostError> {
        match event_loop.tcp(self.subscriber).discard(CHUNK_BYTES)? {
            Some(0) => Err(HostError {
                act: "read a topic".to_owned(),
                source: io::Error::new(io::ErrorKind::UnexpectedEof, "the publisher closed early"),
            }),
            count => {
                self.received += count.unwrap_or(0) as u64;
                Ok(self.under_way.front().is_some_and(|message| message.end <= self.received))
            }
        }
    }

    /// The next message that is whole.
    pub(super) fn take(&mut self) -> Option<Message> {
        self.under_way.front().filter(|message| message.end <= self.received)?;
        self.under_way.pop_front()
    }
}
