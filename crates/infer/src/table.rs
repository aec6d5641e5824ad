//! The connections of a capture: those that go on, and the summaries of those that are over.
//!
//! A connection is summed up when it is closed and silent, not when the capture ends: what is in memory is what goes on, and for
//! each of the others its report. Whether one is over is decided from the capture's clock at its own next packet, so the
//! answer does not depend on when room was made, nor on how connections are divided among tables.

use crate::connection::Connection;
use crate::finished::Over;
use crate::groups::{Group, Groups};
use crate::kept::{Kept, Wanted};
use crate::key::Key;
use crate::places::Places;
use std::collections::VecDeque;
use units::Timestamp;
use wire::Segment;

/// How often a connection is looked at for having gone silent, in nanoseconds.
const LOOKED_AT: u64 = 240_000_000_000;
/// How long a closed connection's ends are remembered for what comes late: 2 MSL (RFC 9293 §3.4.2).
const REMEMBERED: u64 = 240_000_000_000;

/// Which connections' plots are recorded; each takes up to half a megabyte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drawn {
    /// None.
    None,
    /// Of the first so many.
    First(u64),
    /// Of those whose first packets have these numbers in the file.
    Of(Vec<u64>),
}

/// A TCP packet, and the capture's clock at it.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub(crate) interface: u32,
    pub(crate) at: Timestamp,
    pub(crate) number: u64,
    /// Nanoseconds since the epoch; unlike `at` it never goes back.
    pub(crate) clock: u64,
    pub(crate) segment: Segment,
}

impl Seen {
    fn latest(&self) -> u64 {
        self.clock.max(self.at.as_nanos())
    }
}

#[derive(Debug)]
struct Slot {
    key: Key,
    /// Counts the connections, so that what was noted of one is not taken for another that has its slot now.
    serial: u64,
    /// The clock at its latest packet, or that packet's own time where the clock does not believe it yet.
    last: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    Free,
    On(Box<Connection>),
    Over(Box<Over>),
}

/// A slot to look at: when, which, and whose it was.
type Look = (u64, u32, u64);

/// Every connection of a capture, or of a part of it.
#[derive(Debug)]
pub(crate) struct Table {
    current: Places,
    groups: Groups,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Memory of connections that are over, for the next ones: thousands of bytes each, which allocators are slow to find.
    spare: Vec<Box<Connection>>,
    /// Closed connections, all connections, and remembered ends, each in order of when to look.
    closed: VecDeque<Look>,
    looks: VecDeque<Look>,
    remembered: VecDeque<Look>,
    /// The clock up to which what is over may be summed up now: that before the packets at hand.
    due: u64,
    begun: u64,
    drawn: Drawn,
    kept: Kept,
}

impl Table {
    pub(crate) fn new(drawn: Drawn, wanted: Wanted) -> Self {
        Self {
            current: Places::default(),
            groups: Groups::default(),
            slots: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            closed: VecDeque::new(),
            looks: VecDeque::new(),
            remembered: VecDeque::new(),
            due: 0,
            begun: 0,
            drawn,
            kept: Kept::new(wanted),
        }
    }

    /// Takes TCP packets in, in their order.
    ///
    /// Each connection's are taken in one after the other: where there are many connections, one is in no cache when its next packet
    /// comes, and to fetch it takes as long as all that is done with it.
    pub(crate) fn packets(&mut self, mut seen: &[Seen]) {
        while let Some(first) = seen.first() {
            // Which connections are the first to begin is seen when they begin in the capture's order.
            let one_by_one = matches!(self.drawn, Drawn::First(count) if self.begun < count);
            let (here, rest) = seen.split_at(if one_by_one { 1 } else { seen.len() });
            self.due = first.clock;
            self.by_connection(here);
            self.make_room();
            seen = rest;
        }
    }

    fn by_connection(&mut self, seen: &[Seen]) {
        let mut groups = std::mem::take(&mut self.groups);
        groups.divide(seen);
        for group in groups.all() {
            let mut index = self.current.find(group.hash, |index| self.slots[index as usize].key == group.key);
            for at in groups.packets(group) {
                index = Some(self.packet(&seen[at], group, index));
            }
        }
        self.groups = groups;
    }

    /// Takes a packet of the group in, and gives where its connection is, which was at `known`.
    fn packet(&mut self, seen: &Seen, group: &Group, known: Option<u32>) -> u32 {
        let index = match known.filter(|&index| self.takes(index, seen)) {
            Some(index) => index,
            None => self.begin(group, known, seen),
        };
        let slot = &mut self.slots[index as usize];
        slot.last = seen.latest();
        match &mut slot.state {
            State::On(connection) => {
                let was_closed = connection.is_closed();
                connection.packet(seen.at, seen.number, &seen.segment);
                if connection.is_closed() && !was_closed {
                    self.closed.push_back((seen.clock.saturating_add(connection.patience()), index, slot.serial));
                }
            }
            State::Over(over) => over.late(&mut self.kept, seen.at, &seen.segment),
            State::Free => {}
        }
        index
    }

    /// Whether the packet belongs to what slot `index` holds; a connection that was silent for too long is summed up first.
    fn takes(&mut self, index: u32, seen: &Seen) -> bool {
        self.expire(index, seen.clock);
        let slot = &self.slots[index as usize];
        match &slot.state {
            State::On(connection) => !connection.is_reused_by(&seen.segment),
            State::Over(over) => seen.clock.saturating_sub(slot.last) <= REMEMBERED && over.takes(&seen.segment),
            State::Free => false,
        }
    }

    /// Begins a connection, in the place of the one `before` it that has the same key.
    fn begin(&mut self, group: &Group, before: Option<u32>, seen: &Seen) -> u32 {
        let draw = match &self.drawn {
            Drawn::None => false,
            Drawn::First(count) => self.begun < *count,
            Drawn::Of(numbers) => numbers.binary_search(&seen.number).is_ok(),
        };
        let serial = self.begun;
        self.begun += 1;
        if let Some(before) = before {
            self.end(before);
            self.current.remove(group.hash, before);
            self.release(before);
        }
        // What was just summed up is in the cache, and in its memory the next one begins.
        while self.spare.is_empty() && self.sum_one_up() {}
        let connection = match self.spare.pop() {
            Some(mut spare) => {
                spare.renew(seen.interface, seen.at, seen.number, &seen.segment, draw);
                spare
            }
            None => Box::new(Connection::new(seen.interface, seen.at, seen.number, &seen.segment, draw)),
        };
        let slot = Slot { key: group.key, serial, last: seen.latest(), state: State::On(connection) };
        let index = if let Some(index) = self.free.pop() {
            self.slots[index as usize] = slot;
            index
        } else {
            self.slots.push(slot);
            u32::try_from(self.slots.len() - 1).expect("invariant: no memory holds four thousand million connections")
        };
        self.looks.push_back((seen.clock.saturating_add(LOOKED_AT), index, serial));
        self.current.insert(group.hash, index);
        index
    }

    /// Sums up the connection in a slot if it is over by the clock.
    fn expire(&mut self, index: u32, clock: u64) {
        let slot = &self.slots[index as usize];
        let silence = clock.saturating_sub(slot.last);
        // No connection is over sooner, so most need not be looked at.
        if silence > Connection::LEAST_PATIENCE
            && let State::On(connection) = &slot.state
            && silence > connection.patience()
        {
            self.end(index);
            let slot = &self.slots[index as usize];
            self.remembered.push_back((slot.last.saturating_add(REMEMBERED), index, slot.serial));
        }
    }

    /// Sums up the connection in a slot; its ends are remembered there, for what may come late.
    fn end(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if let State::On(connection) = &mut slot.state {
            connection.finish();
            let place = self.kept.take(connection);
            let over = Box::new(Over::new(connection, place));
            if let State::On(connection) = std::mem::replace(&mut slot.state, State::Over(over)) {
                self.spare.push(connection);
            }
        }
    }

    fn release(&mut self, index: u32) {
        self.slots[index as usize].state = State::Free;
        self.free.push(index);
    }

    /// Looks at the closed connection whose turn it is, and sums it up if it is over; `false` when it is no one's turn.
    fn sum_one_up(&mut self) -> bool {
        let Some((due, index, serial)) = next(&mut self.closed, self.due) else { return false };
        if self.slots[index as usize].serial == serial {
            self.expire(index, self.due);
            // It was not silent in between: it is looked at again.
            let slot = &self.slots[index as usize];
            if let State::On(connection) = &slot.state {
                self.closed.push_back((due.max(slot.last.saturating_add(connection.patience())), index, serial));
            }
        }
        true
    }

    /// Sums up what is over, and forgets what was remembered for long enough.
    fn make_room(&mut self) {
        while self.sum_one_up() {}
        let clock = self.due;
        while let Some((_, index, serial)) = next(&mut self.looks, clock) {
            if self.slots[index as usize].serial == serial {
                self.expire(index, clock);
                if let State::On(_) = &self.slots[index as usize].state {
                    self.looks.push_back((clock.saturating_add(LOOKED_AT), index, serial));
                }
            }
        }
        while let Some((due, index, serial)) = next(&mut self.remembered, clock) {
            let slot = &self.slots[index as usize];
            if slot.serial != serial || !matches!(slot.state, State::Over(_)) {
                continue;
            }
            if clock.saturating_sub(slot.last) <= REMEMBERED {
                self.remembered.push_back((due.max(slot.last.saturating_add(REMEMBERED)), index, serial));
                continue;
            }
            self.current.remove(slot.key.spread(), index);
            self.release(index);
        }
    }

    /// Sums up all that goes on.
    pub(crate) fn finish(mut self) -> Kept {
        for index in 0..self.slots.len() {
            self.end(index as u32);
            self.slots[index].state = State::Free;
        }
        self.kept
    }
}

/// The first of the queue that is due.
fn next(queue: &mut VecDeque<Look>, clock: u64) -> Option<Look> {
    if queue.front().is_some_and(|look| look.0 < clock) { queue.pop_front() } else { None }
}

#[cfg(test)]
mod tests;
