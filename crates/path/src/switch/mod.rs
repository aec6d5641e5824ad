//! A switch that stores and forwards: frames of several hosts meet in its ports, which may share one buffer.
//!
//! ```text
//! host ── wire ──┐                                    ┌── wire ── host
//!                ├── port: first in, first out, rate ──┤
//! host ── wire ──┘                                    └── wire ── host
//! ```
//!
//! A frame is in the buffer from when it has arrived as a whole until its last byte has left.

mod port;

use crate::counters::{Counters, Tally};
use crate::delay_line::Departure;
use crate::one_way::{OneWay, Unsupported};
use crate::packet::{Packet, Run};
use port::Port;
use thalweg_model::{Nic, Path, PathDirection, Way};
use thalweg_units::{Bytes, Seed, Span};

/// More than any host hands over at once: its own queue is shorter.
const HANDED_OVER_MAX: Bytes = Bytes::new(1 << 30);

/// A switch and the wires of its hosts: packets in, departures out.
///
/// Port 0 is the server's, which is plugged in directly; the others are those of clients, each behind a path of its own. Times are as in
/// [`OneWay`], and so is that departures depend on packets and their arrival times alone.
///
/// ```
/// use thalweg_model::{Path, Switch as Asked};
/// use thalweg_path::{Lengths, Packet, Switch};
/// use thalweg_units::{Bytes, Rate, Seed, Span};
///
/// let rate = Rate::from_bits_per_second(12_112_000); // A frame of 1514 bytes per millisecond.
/// let asked = Asked { rate, buffer: Bytes::new(4_000), shared: true, overhead: 0 };
/// let mut switch = Switch::new(&asked, None, &Path::default(), 2, Seed::new(1))?;
/// let lengths = Lengths::whole(52, 1448);
/// for client in [1, 2, 1] {
///     let packet = Packet { data: client, lengths, flow: 0, ecn_capable: false, is_tcp: true };
///     switch.handle_packet(Span::ZERO, (client, 0), packet);
/// }
/// assert_eq!(switch.poll_timeout(), Some(Span::from_millis(1)));
/// let left = std::iter::from_fn(|| switch.poll_departure(Span::from_millis(2)));
/// assert_eq!(left.map(|(port, departure)| (port, departure.data)).collect::<Vec<_>>(), [(0, 1), (0, 2)]);
/// assert_eq!(switch.port(0).dropped.packets, 1);
/// # Ok::<(), thalweg_path::Unsupported>(())
/// ```
#[derive(Debug)]
pub struct Switch<T> {
    ends: Vec<End<T>>,
    /// What all ports share.
    shared: Option<Bytes>,
    used: u64,
    used_peak: u64,
    now: Span,
    packets: u64,
}

/// A port, and the wires between it and its host.
#[derive(Debug)]
struct End<T> {
    from_host: OneWay<Addressed<T>>,
    port: Port<Addressed<T>>,
    to_host: OneWay<Addressed<T>>,
}

/// What a packet is recognised by, and the port it leaves by.
#[derive(Debug, Clone)]
struct Addressed<T> {
    data: T,
    to: usize,
}

/// What a port did until now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortCounters {
    /// Segments that left.
    pub sent: Tally,
    /// Segments that the buffer had no room for.
    pub dropped: Tally,
    /// Segments that wait, the one being sent included.
    pub queued: Tally,
    /// The most bytes that ever waited, Ethernet headers included.
    pub peak: Bytes,
}

impl<T: Clone> Switch<T> {
    /// A switch at time 0 with nothing in it, and `clients` clients behind `path`. No host sends faster than its card, `nic`, whose queue
    /// is the host's own: what a host hands over at once waits here for the card's rate, however much it is.
    ///
    /// # Errors
    /// [`Unsupported`] if the path asks for what is not emulated.
    pub fn new(
        asked: &thalweg_model::Switch,
        nic: Option<&Nic>,
        path: &Path,
        clients: u32,
        seed: Seed,
    ) -> Result<Self, Unsupported> {
        let end = |number: u32| -> Result<_, Unsupported> {
            let own = if number <= 1 { seed } else { seed.derive(number.into()) };
            let wire = |way| if number == 0 { PathDirection::default() } else { path.direction(way).clone() };
            let up = sent_by(nic, wire(Way::Up));
            Ok(End {
                from_host: OneWay::new(&up, path.mtu, own.derive(1))?,
                port: Port::new(asked),
                to_host: OneWay::new(&wire(Way::Down), path.mtu, own.derive(0))?,
            })
        };
        let ends = (0..=clients).map(end).collect::<Result<_, _>>()?;
        let shared = asked.shared.then_some(asked.buffer);
        Ok(Self { ends, shared, used: 0, used_peak: 0, now: Span::ZERO, packets: 0 })
    }

    /// Takes in a packet that the host of port `from` sends to that of port `to` at `now`; a time before one given earlier counts as
    /// that one. Every segment of it is queued, dropped and delayed as a packet of its own.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn handle_packet(&mut self, now: Span, (from, to): (usize, usize), packet: Packet<T>) {
        assert!(to < self.ends.len(), "no port {to}");
        self.advance(now);
        self.packets += 1;
        let Packet { data, lengths, flow, ecn_capable, is_tcp } = packet;
        let packet = Packet { data: Addressed { data, to }, lengths, flow, ecn_capable, is_tcp };
        self.ends[from].from_host.handle_run(self.now, Run::whole(packet, self.packets));
        // A wire without delay has passed it on by now.
        self.advance(now);
    }

    /// Takes out segments that have reached the host of a port at `now`, the earliest first: those of one packet that follow each other
    /// and have all arrived. `None` if there are none; it is to be called until then.
    pub fn poll_departure(&mut self, now: Span) -> Option<(usize, Departure<T>)> {
        self.advance(now);
        let (_, at) = earliest(self.ends.iter().map(|end| end.to_host.poll_timeout()), self.now)?;
        let (left, run) = self.ends[at].to_host.poll_run(self.now)?;
        let Departure { at: left, data, segments, is_marked, flipped_bit } = Departure::new(left, run);
        Some((at, Departure { at: left, data: data.data, segments, is_marked, flipped_bit }))
    }

    /// When to call [`Self::poll_departure`] next at the earliest, if nothing comes in before; `None` if nothing is under way.
    pub fn poll_timeout(&self) -> Option<Span> {
        let of = |end: &End<T>| {
            let leaves = end.to_host.poll_timeout();
            // What is still in the port comes after what is on an orderly wire.
            let sent = end.port.next().filter(|_| leaves.is_none() || !end.to_host.is_in_order());
            [leaves, sent, end.from_host.poll_timeout()].into_iter().flatten().min()
        };
        self.ends.iter().filter_map(of).min()
    }

    /// What the wires counted: those to clients, or those from them.
    pub fn wires(&self, way: Way) -> Counters {
        let mut all = Counters::default();
        for end in self.ends.iter().skip(1) {
            all.add(match way {
                Way::Down => end.to_host.counters(),
                Way::Up => end.from_host.counters(),
            });
        }
        all
    }

    /// What a port did.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn port(&self, number: usize) -> PortCounters {
        self.ends[number].port.counters()
    }

    /// Number of ports.
    pub const fn ports(&self) -> usize {
        self.ends.len()
    }

    /// The most bytes that all ports together ever held, Ethernet headers included.
    pub const fn buffer_peak(&self) -> Bytes {
        Bytes::new(self.used_peak)
    }

    /// Bytes in the switch and on its wires.
    pub fn held_bytes(&self) -> u64 {
        let of = |end: &End<T>| {
            let queued = end.port.counters().queued.bytes.get();
            end.from_host.counters().held_bytes() + queued + end.to_host.counters().held_bytes()
        };
        self.ends.iter().map(of).sum()
    }

    /// Does everything that is due until `now`, in order of time.
    fn advance(&mut self, now: Span) {
        self.now = self.now.max(now);
        loop {
            let leaves = earliest(self.ends.iter().map(|end| end.port.next()), self.now);
            let arrives = earliest(self.ends.iter().map(|end| end.from_host.poll_timeout()), self.now);
            match (leaves, arrives) {
                // What leaves at a time makes room for what arrives then.
                (Some((at, port)), arrives) if arrives.is_none_or(|(other, _)| at <= other) => self.leave(port),
                (_, Some((at, port))) => self.arrive(at, port),
                _ => return,
            }
        }
    }

    /// The first segment in a port has been sent.
    fn leave(&mut self, port: usize) {
        let End { port, to_host, .. } = &mut self.ends[port];
        let Some((at, bytes, run)) = port.leave() else { return };
        self.used -= bytes;
        to_host.handle_run(at, run);
    }

    /// What a host sent arrives at the switch.
    fn arrive(&mut self, at: Span, from: usize) {
        while let Some((_, run)) = self.ends[from].from_host.poll_run(at) {
            let mut rest = Some(run);
            while let Some(run) = rest {
                let (segment, others) = run.split_first();
                rest = others;
                let room = self.shared.map(|all| all.get() - self.used);
                let taken = self.ends[segment.packet.data.to].port.enter(at, segment, room);
                self.used += taken;
                self.used_peak = self.used_peak.max(self.used);
            }
        }
    }
}

/// A wire on which a card sends. Its bucket is that of the virtual lab's cards.
fn sent_by(nic: Option<&Nic>, wire: PathDirection) -> PathDirection {
    let Some(nic) = nic else { return wire };
    let (rate, queue) = (Some(nic.rate), thalweg_model::Queue::Bytes(HANDED_OVER_MAX));
    PathDirection { rate, queue, overhead: nic.overhead, ..wire }
}

/// The earliest of the times that is not after `now`, and whose it is.
fn earliest(times: impl Iterator<Item = Option<Span>>, now: Span) -> Option<(Span, usize)> {
    let due = times.enumerate().filter_map(|(whose, at)| Some((at.filter(|at| *at <= now)?, whose)));
    due.min()
}

#[cfg(test)]
mod tests;
