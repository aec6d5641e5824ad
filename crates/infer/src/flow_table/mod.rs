//! The connections of a capture: those that go on, and the summaries of those that are over.
//!
//! A connection is summed up when it is closed and silent, not when the capture ends: what is in memory is what goes on, and for
//! each of the others its report. Whether one is over is decided from the capture's clock at its own next packet, so the
//! answer does not depend on when room was made, nor on how connections are divided among tables. Nor does it depend on when packets are
//! analysed: what decides is followed at each of them ([`Lifecycle`]), and the analysis when several wait ([`PacketPool`]).

pub(crate) mod key;
pub(crate) mod late_packets;
pub(crate) mod lifecycle;
pub(crate) mod packet_queue;
mod split_tap;

use crate::event::packet::{Packet, PayloadFront};
use crate::flow::failed_flow::{FailedFlow, guarded};
use crate::flow::retained::{Retain, RetainedFlows};
use crate::flow_table::key::FlowKey;
use crate::flow_table::late_packets::ClosedFlow;
use crate::flow_table::lifecycle::Lifecycle;
use crate::flow_table::packet_queue::{PacketPool, PacketQueue};
use crate::observe::Recording;
use crate::tcp::connection::Connection;
use crate::tcp::packet_too_big::PacketTooBig;
use hashbrown::HashTable;
use split_tap::OtherHalf;
use std::collections::VecDeque;
use thalweg_units::Timestamp;
use thalweg_wire::{Flags, Late, Segment};

/// How often a connection is looked at for having gone silent, in nanoseconds. Bounds work.
const IDLE_CHECK_NS: u64 = 240_000_000_000;
/// Packets of a connection that are analysed at a time: so many that most connections are analysed when they are over, in one go.
/// `it_makes_no_difference_how_many_packets_are_analysed_at_a_time` holds that no verdict depends on it; it bounds memory.
const BATCH_PACKETS: usize = 64;
/// Connections that room is made for at a time, in multiples of those there are: room that is not used yet takes no memory, and a list that is
/// moved takes it twice. Bounds memory.
const GROWTH_DIVISOR: usize = 7;
/// How long a closed connection's ends are remembered for what comes late: 2 MSL (RFC 9293 §3.4.2).
const CLOSED_ENDS_LIFETIME_NS: u64 = 240_000_000_000;

/// Which connections' plots are recorded; each takes up to half a megabyte.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PlotSelection {
    /// None.
    #[default]
    None,
    /// Of the first connections, this many.
    First(u64),
    /// Of those whose first packets have these numbers in the file.
    Of(Vec<u64>),
    /// No plots, but the retransmissions and zero windows of all, each with its packet; at most 100,000 for each direction of a connection.
    Marks,
}

/// A TCP packet, and the capture's clock at it.
#[derive(Debug, Clone)]
pub struct TcpPacket {
    pub(crate) interface: u32,
    pub(crate) at: Timestamp,
    pub(crate) number: u64,
    /// Nanoseconds since the epoch; unlike `at` it never goes back.
    pub(crate) clock: u64,
    pub(crate) segment: Segment,
    /// The packet is no segment, but an ICMP error that quotes one: the MTU of the link that it was too long for.
    pub(crate) link_mtu: Option<u32>,
    pub(crate) payload: PayloadFront,
}

impl TcpPacket {
    /// A segment that was seen at this time by its own clock and by the capture's.
    pub(crate) fn new(interface: u32, (at, clock): (Timestamp, u64), number: u64, segment: Segment) -> Self {
        Self { interface, at, number, clock, segment, link_mtu: None, payload: PayloadFront::default() }
    }

    pub(crate) fn late(late: &Late, clock: u64) -> Self {
        Self::new(late.interface, (late.at, clock), late.number, late.segment)
    }

    /// A number by which connections are divided among shards: all packets of one connection have the same.
    pub fn shard_hash(&self) -> u64 {
        FlowKey::of(self.interface, &self.segment).shard_hash()
    }

    fn latest(&self) -> u64 {
        self.clock.max(self.at.as_nanos())
    }
}

#[derive(Debug)]
struct Slot {
    key: FlowKey,
    /// Counts the connections, so that what was noted of one is not taken for another that has its slot now.
    serial: u64,
    /// The clock at its latest packet, or that packet's own time where the clock does not believe it yet.
    last: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    Free,
    On(Box<ActiveFlow>),
    Over(Box<ClosedFlow>),
    /// One whose analysis panicked: what comes of it is passed over.
    Failed,
    /// The other direction of the connection in this slot, if that still has this serial.
    OtherHalf(u32, u64),
}

/// A connection that goes on.
#[derive(Debug)]
struct ActiveFlow {
    life: Lifecycle,
    /// Index of the interface among the capture's.
    interface: u32,
    first_packet: u64,
    recording: Recording,
    waiting: PacketQueue,
    /// ICMP errors about its segments, where there were any.
    too_big: Option<Box<PacketTooBig>>,
    /// Its analysis, as far as that went; most have none before they are over.
    connection: Option<Box<Connection>>,
    /// Where its other direction comes from, if that is seen apart.
    other_half: Option<OtherHalf>,
}

impl ActiveFlow {
    /// Analyses what waits, in spare memory where that is the connection's beginning. May panic; then [`Self::failed`] is to be reported.
    fn analyse(&mut self, backlog: &mut PacketPool, spare: &mut Vec<Box<Connection>>) {
        let Self { life, interface, recording, waiting, connection, too_big: _, first_packet: _, other_half: _ } = self;
        let (ends, interface, recording) = (life.ends, *interface, *recording);
        backlog.drain(waiting, |packet| {
            #[cfg(test)]
            tests::panic_at(packet.number);
            connection
                .get_or_insert_with(|| match spare.pop() {
                    Some(mut spare) => {
                        spare.renew(interface, ends, packet, recording);
                        spare
                    }
                    None => Box::new(Connection::new(interface, ends, packet, recording)),
                })
                .packet(packet);
        });
    }

    fn failed(&self) -> FailedFlow {
        FailedFlow { first_packet: self.first_packet, interface: self.interface, ends: self.life.ends }
    }
}

/// A slot to look at: when, which, and whose it was.
type Look = (u64, u32, u64);

/// Every connection of a capture, or of a part of it.
#[derive(Debug, Default)]
pub(crate) struct FlowTable {
    /// The slot of each key, by its hash.
    current: HashTable<u32>,
    /// The slot of the latest packet.
    recent: u32,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Memory of analyses that are done, for the next ones: thousands of bytes each. That which is in the cache is taken first.
    spare: Vec<Box<Connection>>,
    backlog: PacketPool,
    at_a_time: usize,
    /// Closed connections, all connections, and remembered ends, each in order of when to look.
    closed: VecDeque<Look>,
    looks: VecDeque<Look>,
    remembered: VecDeque<Look>,
    begun: u64,
    drawn: PlotSelection,
    kept: RetainedFlows,
}

impl FlowTable {
    pub(crate) fn new(drawn: PlotSelection, wanted: Retain) -> Self {
        Self { at_a_time: BATCH_PACKETS, drawn, kept: RetainedFlows::new(wanted), ..Self::default() }
    }

    /// Takes the next TCP packet in.
    pub(crate) fn packet(&mut self, seen: &TcpPacket) {
        let key = FlowKey::of(seen.interface, &seen.segment);
        let before = self.known(&key);
        if let Some(mtu) = seen.link_mtu {
            if let Some(index) = before {
                self.too_big(index, mtu, seen);
            }
            return;
        }
        let before = self.parted(before, seen);
        let index = match before.map(|before| self.whole(before)) {
            Some(index) if self.takes(index, seen) => index,
            _ => self.join(key, before, seen).unwrap_or_else(|| self.begin(key, before, seen)),
        };
        self.recent = index;
        let slot = &mut self.slots[index as usize];
        slot.last = seen.latest();
        let mut analysed = Some(());
        match &mut slot.state {
            State::On(going) => {
                let side = going.life.side_of(&seen.segment);
                let was_closed = going.life.is_closed();
                going.life.packet(side, &seen.segment);
                if going.life.is_closed() && !was_closed {
                    self.closed.push_back((seen.clock.saturating_add(going.life.idle_timeout()), index, slot.serial));
                }
                self.backlog
                    .push(&mut going.waiting, Packet::new(side, seen.at, seen.number, &seen.segment, &seen.payload));
                if going.waiting.len() >= self.at_a_time {
                    analysed = guarded(|| going.analyse(&mut self.backlog, &mut self.spare));
                }
            }
            State::Over(over) => over.late(&mut self.kept, seen.at, &seen.segment),
            State::Free | State::Failed | State::OtherHalf(..) => {}
        }
        if analysed.is_none() {
            self.fail(index);
        }
    }

    /// Notes that the analysis of the connection in a slot panicked.
    fn fail(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if let State::On(going) = &slot.state {
            self.kept.fail(going.failed());
            slot.state = State::Failed;
            self.remembered.push_back((slot.last.saturating_add(CLOSED_ENDS_LIFETIME_NS), index, slot.serial));
        }
    }

    /// Takes in an ICMP error about a segment of the connection in slot `index`.
    fn too_big(&mut self, index: u32, mtu: u32, seen: &TcpPacket) {
        let index = self.whole(index);
        if let State::On(going) = &mut self.slots[index as usize].state {
            let side = going.life.side_of(&seen.segment);
            going.too_big.get_or_insert_default().told(side, mtu, (seen.number, seen.at));
        }
    }

    /// The slot of this key.
    fn known(&self, key: &FlowKey) -> Option<u32> {
        let recent = self.slots.get(self.recent as usize);
        if recent.is_some_and(|slot| slot.key == *key && !matches!(slot.state, State::Free)) {
            return Some(self.recent);
        }
        self.current.find(key.table_hash(), |&index| self.slots[index as usize].key == *key).copied()
    }

    /// Whether the packet belongs to what slot `index` holds; a connection that was silent for too long is summed up first.
    fn takes(&mut self, index: u32, seen: &TcpPacket) -> bool {
        self.expire(index, seen.clock);
        let slot = &self.slots[index as usize];
        match &slot.state {
            State::On(going) => !going.life.is_reused_by(&seen.segment),
            State::Over(over) => {
                seen.clock.saturating_sub(slot.last) <= CLOSED_ENDS_LIFETIME_NS && over.takes(&seen.segment)
            }
            State::Failed => {
                seen.clock.saturating_sub(slot.last) <= CLOSED_ENDS_LIFETIME_NS
                    && !seen.segment.tcp.flags.has(Flags::SYN)
            }
            State::Free | State::OtherHalf(..) => false,
        }
    }

    /// Begins a connection, in the place of the one `before` it that has the same key.
    fn begin(&mut self, key: FlowKey, before: Option<u32>, seen: &TcpPacket) -> u32 {
        let plots = |wanted| if wanted { Recording::Plots } else { Recording::Nothing };
        let recording = match &self.drawn {
            PlotSelection::None => Recording::Nothing,
            PlotSelection::First(count) => plots(self.begun < *count),
            PlotSelection::Of(numbers) => plots(numbers.binary_search(&seen.number).is_ok()),
            PlotSelection::Marks => Recording::Marks,
        };
        let serial = self.begun;
        self.begun += 1;
        self.replace(before, seen.clock);
        self.make_room(seen.clock);
        let going = ActiveFlow {
            life: Lifecycle::new(&seen.segment),
            interface: seen.interface,
            first_packet: seen.number,
            recording,
            waiting: PacketQueue::EMPTY,
            too_big: None,
            connection: None,
            other_half: None,
        };
        self.put(Slot { key, serial, last: seen.latest(), state: State::On(Box::new(going)) }, seen.clock)
    }

    /// Gives the slot a place.
    fn put(&mut self, slot: Slot, clock: u64) -> u32 {
        let (hash, serial) = (slot.key.table_hash(), slot.serial);
        let index = if let Some(index) = self.free.pop() {
            self.slots[index as usize] = slot;
            index
        } else {
            if self.slots.len() == self.slots.capacity() {
                self.slots.reserve_exact(GROWTH_DIVISOR * self.slots.len().max(1));
            }
            self.slots.push(slot);
            u32::try_from(self.slots.len() - 1).expect("invariant: no memory holds four thousand million connections")
        };
        look_at(&mut self.looks, (clock.saturating_add(IDLE_CHECK_NS), index, serial));
        self.current.insert_unique(hash, index, |&index| self.slots[index as usize].key.table_hash());
        index
    }

    /// Sums up what is in the slot `before`, whose key is needed for another.
    fn replace(&mut self, before: Option<u32>, clock: u64) {
        if let Some(before) = before {
            self.end(before, clock);
            self.unlist(before);
            self.release(before);
        }
    }

    /// Sums up the connection in a slot if it is over by the clock.
    fn expire(&mut self, index: u32, clock: u64) {
        let slot = &self.slots[index as usize];
        let silence = clock.saturating_sub(slot.last);
        // No connection is over sooner, so most need not be looked at.
        if silence > Lifecycle::SHORTEST_IDLE_TIMEOUT
            && let State::On(going) = &slot.state
            && silence > going.life.idle_timeout()
        {
            self.end(index, clock);
            let slot = &self.slots[index as usize];
            look_at(&mut self.remembered, (slot.last.saturating_add(CLOSED_ENDS_LIFETIME_NS), index, slot.serial));
        }
    }

    /// Sums up the connection in a slot, which is over by the clock; its ends are remembered there, for what may come late.
    fn end(&mut self, index: u32, clock: u64) {
        let slot = &mut self.slots[index as usize];
        let State::On(going) = &mut slot.state else { return };
        // No longer than until it was over, whenever room is made.
        let quiet = clock.saturating_sub(slot.last).min(going.life.idle_timeout());
        let summed_up = guarded(|| {
            going.analyse(&mut self.backlog, &mut self.spare);
            let mut connection = going.connection.take()?;
            connection.too_big = going.too_big.take();
            connection.finish();
            let waited = connection.observers.phases.quiet(quiet);
            connection.lasts_on(waited);
            let place = self.kept.take(&connection);
            Some((connection, place))
        });
        match summed_up {
            Some(None) => {}
            Some(Some((connection, place))) => {
                slot.state = State::Over(Box::new(ClosedFlow::new(&connection, place)));
                self.spare.push(connection);
            }
            None => self.fail(index),
        }
    }

    /// Takes a slot out of the index.
    fn unlist(&mut self, index: u32) {
        let hash = self.slots[index as usize].key.table_hash();
        if let Ok(entry) = self.current.find_entry(hash, |&other| other == index) {
            entry.remove();
        }
    }

    fn release(&mut self, index: u32) {
        self.slots[index as usize].state = State::Free;
        self.free.push(index);
    }

    /// Sums up what is over by the clock, and forgets what was remembered for long enough.
    fn make_room(&mut self, clock: u64) {
        while let Some((due, index, serial)) = next(&mut self.closed, clock) {
            if self.slots[index as usize].serial == serial {
                self.expire(index, clock);
                // It was not silent in between: it is looked at again.
                let slot = &self.slots[index as usize];
                if let State::On(going) = &slot.state {
                    let due = due.max(slot.last.saturating_add(going.life.idle_timeout()));
                    self.closed.push_back((due, index, serial));
                }
            }
        }
        while let Some((_, index, serial)) = next(&mut self.looks, clock) {
            if self.slots[index as usize].serial == serial {
                self.expire(index, clock);
                match self.slots[index as usize].state {
                    State::On(_) => self.looks.push_back((clock.saturating_add(IDLE_CHECK_NS), index, serial)),
                    State::OtherHalf(..) if self.whole(index) != index => {
                        self.looks.push_back((clock.saturating_add(IDLE_CHECK_NS), index, serial));
                    }
                    State::OtherHalf(..) => {
                        self.unlist(index);
                        self.release(index);
                    }
                    State::Free | State::Failed | State::Over(_) => {}
                }
            }
        }
        while let Some((due, index, serial)) = next(&mut self.remembered, clock) {
            let slot = &self.slots[index as usize];
            if slot.serial != serial || !matches!(slot.state, State::Over(_) | State::Failed) {
                continue;
            }
            if clock.saturating_sub(slot.last) <= CLOSED_ENDS_LIFETIME_NS {
                self.remembered.push_back((due.max(slot.last.saturating_add(CLOSED_ENDS_LIFETIME_NS)), index, serial));
                continue;
            }
            self.unlist(index);
            self.release(index);
        }
    }

    /// Sums up all that goes on when the capture ends, by its clock.
    pub(crate) fn finish(mut self, clock: u64) -> RetainedFlows {
        for index in 0..self.slots.len() {
            self.end(index as u32, clock);
            self.slots[index].state = State::Free;
        }
        self.kept
    }
}

/// Adds to a queue that may have a look for each connection.
fn look_at(queue: &mut VecDeque<Look>, look: Look) {
    if queue.len() == queue.capacity() {
        queue.reserve_exact(GROWTH_DIVISOR * queue.len().max(1));
    }
    queue.push_back(look);
}

/// The first of the queue that is due.
fn next(queue: &mut VecDeque<Look>, clock: u64) -> Option<Look> {
    if queue.front().is_some_and(|look| look.0 < clock) { queue.pop_front() } else { None }
}

#[cfg(test)]
mod tests;
