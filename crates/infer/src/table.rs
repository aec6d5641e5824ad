//! The connections of a capture, found by their ends, their interface and the virtual networks around them.

use crate::connection::{Connection, Endpoint};
use std::collections::HashMap;
use units::Timestamp;
use wire::{Segment, Tags};

/// Connections whose plots are recorded; each takes up to half a megabyte.
const MOST_DRAWN: usize = 256;

/// What makes two packets parts of one connection, apart from the reuse of ports.
///
/// One 5-tuple on several VLANs, tunnels or interfaces is one connection seen several times: each view is analysed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    interface: u32,
    tags: Tags,
    /// The smaller end, then the larger.
    ends: [Endpoint; 2],
}

/// Every connection of a capture, in order of first packets.
#[derive(Debug)]
pub(crate) struct Table {
    current: HashMap<Key, usize>,
    pub(crate) connections: Vec<Connection>,
    last: Option<(Key, usize)>,
    draw: bool,
}

impl Table {
    pub(crate) fn new(draw: bool) -> Self {
        Self { current: HashMap::new(), connections: Vec::new(), last: None, draw }
    }

    /// Takes a TCP packet in.
    pub(crate) fn packet(&mut self, interface: u32, at: Timestamp, number: u64, segment: &Segment) {
        let source = (segment.ip.source, segment.tcp.source_port);
        let destination = (segment.ip.destination, segment.tcp.destination_port);
        let ends = if source <= destination { [source, destination] } else { [destination, source] };
        let key = Key { interface, tags: segment.tags, ends };
        let known = match self.last {
            Some((last, index)) if last == key => Some(index),
            _ => self.current.get(&key).copied(),
        };
        let index = match known.filter(|&index| !self.connections[index].is_reused_by(segment)) {
            Some(index) => index,
            None => {
                let draw = self.draw && self.connections.len() < MOST_DRAWN;
                self.connections.push(Connection::new(interface, at, segment, draw));
                let index = self.connections.len() - 1;
                self.current.insert(key, index);
                index
            }
        };
        self.last = Some((key, index));
        self.connections[index].packet(at, number, segment);
    }
}
