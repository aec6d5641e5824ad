//! A link with a queue, emulated by earliest departure times.
//!
//! A program on the way out of a device computes when each packet will have left the link, writes that time into the packet,
//! and the `fq` discipline releases it then. Where the packet arrives, at the peer of the device, a second program takes it
//! off the queue's account. So a queue is as exact as the clock, at any rate and with any mixture of packets, and several
//! devices can share one memory, as the ports of a switch do.

mod program;
mod trace;

pub use trace::{Trace, TraceError};

use super::Program;
use super::map::Map;
use crate::error::HostError;
use crate::filter::{self, Direction};
use crate::qdisc::{self, Fq, Qdisc};
use std::sync::Arc;
use thalweg_units::{Bytes, Rate, Span};

/// How a link delivers.
#[derive(Debug, Clone, PartialEq)]
pub enum Service {
    /// At a constant rate. A packet has left when its last byte has.
    Rate {
        /// The rate.
        rate: Rate,
        /// Bytes each packet takes beyond its Ethernet frame without checksum: 24 for all a frame occupies on a wire.
        overhead: u16,
    },
    /// At the moments of a trace, as Mahimahi's `mm-link` does.
    Trace {
        /// The moments.
        trace: Trace,
        /// When the trace begins, by CLOCK_MONOTONIC.
        begins: Span,
    },
}

/// What may wait for a link, the packet it is sending included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Occupancy {
    /// Bytes, Ethernet headers included; `None` is no limit.
    pub bytes: Option<Bytes>,
    /// Packets; `None` is no limit.
    pub packets: Option<u32>,
}

/// Memory that several ports share, each packet being in it from its arrival until it has left.
#[derive(Debug)]
pub struct Buffer {
    state: Map,
    limit: Bytes,
}

impl Buffer {
    /// A memory of `limit` bytes.
    ///
    /// # Errors
    /// When the kernel refuses the map.
    pub fn new(limit: Bytes) -> Result<Arc<Self>, HostError> {
        Ok(Arc::new(Self { state: Map::of_one(&[0; program::BUFFER_LEN])?, limit }))
    }

    /// Bytes in it now, and the most there ever were.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn used(&self) -> Result<(Bytes, Bytes), HostError> {
        let [now, peak] = self.state.numbers()?;
        Ok((Bytes::new(now), Bytes::new(peak)))
    }
}

/// What a port has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortCounters {
    /// Packets it took.
    pub packets: u64,
    /// Their bytes, Ethernet headers included.
    pub bytes: Bytes,
    /// Packets it had no room for.
    pub drops: u64,
    /// Bytes that wait now.
    pub waiting: Bytes,
    /// The most bytes that ever waited.
    pub peak: Bytes,
    /// The most packets that ever waited.
    pub peak_packets: u64,
}

/// A link's sending end.
#[derive(Debug)]
pub struct Serializer {
    arrive: Program,
    leave: Program,
    state: Map,
    /// Holds the shared memory's map for as long as its ports.
    _buffer: Option<Arc<Buffer>>,
}

impl Serializer {
    /// Loads a link's programs. What does not fit, by its own limit or into the shared `buffer`, is dropped.
    ///
    /// # Errors
    /// When the kernel refuses a map or a program.
    pub fn load(service: &Service, limit: Occupancy, buffer: Option<Arc<Buffer>>) -> Result<Self, HostError> {
        let state = Map::of_one(&[0; program::PORT_LEN])?;
        let shared = buffer.as_ref().map(|buffer| (&buffer.state, buffer.limit));
        let arrive = program::arrive(service, limit, &state, shared)?;
        let leave = program::leave(&state, shared.map(|(state, _)| state))?;
        Ok(Self { arrive, leave, state, _buffer: buffer })
    }

    /// Puts the link on the way out of device `index` of the current namespace, as its root discipline and a filter of
    /// `priority`.
    ///
    /// # Errors
    /// Whatever the kernel refuses.
    pub fn attach(&self, index: u32, priority: u16) -> Result<(), HostError> {
        qdisc::attach(index, &Qdisc::Fq(Fq::releasing_exactly()))?;
        filter::attach(index, Direction::Egress, priority, &self.arrive)
    }

    /// Takes what arrives at device `index` of the current namespace, the peer of the one attached to, off the account.
    ///
    /// # Errors
    /// Whatever the kernel refuses.
    pub fn attach_peer(&self, index: u32, priority: u16) -> Result<(), HostError> {
        filter::attach(index, Direction::Ingress, priority, &self.leave)
    }

    /// What it has done.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn counters(&self) -> Result<PortCounters, HostError> {
        let [waiting, _, peak, peak_packets, packets, bytes, drops, ..]: [u64; program::PORT_LEN / 8] =
            self.state.numbers()?;
        let [waiting, peak, bytes] = [waiting, peak, bytes].map(Bytes::new);
        Ok(PortCounters { packets, bytes, drops, waiting, peak, peak_packets })
    }
}
