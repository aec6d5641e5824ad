//! Maps of an interface's traffic and of its flows: a row for each second, a cell for each millisecond of it.

use super::{BusyBin, FlowId, Port};
use std::collections::{HashMap, VecDeque};
use thalweg_model::{BurstCell, BurstMap, BurstMapRow, MapPort};

const NS_PER_MS: u64 = 1_000_000;
/// Milliseconds of a row.
const CELLS: u64 = 1_000;
/// Rows that are kept, the latest: ten minutes, which is 10 MB.
const MAX_ROWS: usize = 600;
/// Rows of the maps of all flows, 80 MB: those of eight flows that last as long as the map.
const MAX_FLOW_ROWS: usize = 8 * MAX_ROWS;

/// Draws a map of bins as they come, and one of each flow.
#[derive(Debug)]
pub struct MapBuilder {
    all: Rows,
    flows: HashMap<FlowId, Rows>,
    /// Rows of the flows' maps together.
    flow_rows: usize,
    interface: String,
    port: Option<Port>,
}

/// The rows of a map.
#[derive(Debug, Default)]
struct Rows {
    bytes: u64,
    /// The second of the first row.
    first_s: u64,
    rows: VecDeque<BurstMapRow>,
    dropped_rows: u64,
}

impl MapBuilder {
    /// An empty map.
    #[must_use]
    pub fn new(interface: &str, port: Option<Port>) -> Self {
        Self { all: Rows::default(), flows: HashMap::new(), flow_rows: 0, interface: interface.to_owned(), port }
    }

    /// Draws a bin, or a flow's part of one. Of those that come late, what belongs to a row that is gone is left out.
    pub fn add(&mut self, bin: &BusyBin) {
        self.all.add(bin);
        let Some(flow) = bin.flow else { return };
        let rows = self.flows.entry(flow).or_default();
        let before = rows.rows.len();
        rows.add(bin);
        // After a long pause it may have fewer.
        self.flow_rows = self.flow_rows - before + rows.rows.len();
        // The flow that has moved least makes room.
        while self.flow_rows > MAX_FLOW_ROWS {
            let least = self.flows.iter().min_by_key(|(_, rows)| rows.bytes).map(|(flow, _)| *flow);
            let Some(gone) = least.and_then(|least| self.flows.remove(&least)) else { return };
            self.flow_rows -= gone.rows.len();
        }
    }

    /// The map so far, and those of flows, which have their names in place of the interface's; those with most bytes come first.
    #[must_use]
    pub fn maps(self) -> (BurstMap, Vec<BurstMap>) {
        let mut flows: Vec<(FlowId, Rows)> = self.flows.into_iter().collect();
        flows.sort_by_key(|(flow, rows)| (std::cmp::Reverse(rows.bytes), flow.local, flow.peer));
        let flows = flows.into_iter().map(|(flow, rows)| rows.map(flow.to_string(), self.port)).collect();
        (self.all.map(self.interface, self.port), flows)
    }
}

impl Rows {
    fn add(&mut self, bin: &BusyBin) {
        self.bytes += bin.bytes;
        let ms = bin.at_ns / NS_PER_MS;
        let second = ms / CELLS;
        if self.rows.is_empty() {
            self.first_s = second;
        }
        let Some(place) = second.checked_sub(self.first_s) else { return };
        // A pause longer than the map leaves nothing of what was before it.
        let missing = (place + 1).saturating_sub(self.rows.len() as u64);
        if missing > MAX_ROWS as u64 {
            self.dropped_rows += place;
            self.rows.clear();
            self.first_s = second;
        }
        while second - self.first_s >= self.rows.len() as u64 {
            self.rows.push_back(BurstMapRow::new(CELLS as usize));
            if self.rows.len() > MAX_ROWS {
                self.rows.pop_front();
                self.first_s += 1;
                self.dropped_rows += 1;
            }
        }
        let row = &mut self.rows[(second - self.first_s) as usize];
        let cells = if bin.is_sent { &mut row.sent } else { &mut row.received };
        let cell: &mut BurstCell = &mut cells[(ms % CELLS) as usize];
        cell.bytes = cell.bytes.saturating_add(u32::try_from(bin.bytes).unwrap_or(u32::MAX));
        cell.overflows |= bin.overflows;
    }

    fn map(self, interface: String, port: Option<Port>) -> BurstMap {
        BurstMap {
            interface,
            first_s: self.first_s,
            rows: self.rows.into(),
            dropped_rows: self.dropped_rows,
            port: port
                .map(|port| MapPort { rate_bps: port.rate.bits_per_second() as f64, buffer_bytes: port.buffer.get() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(ms: u64, bytes: u64, is_sent: bool) -> BusyBin {
        BusyBin {
            at_ns: ms * NS_PER_MS,
            is_sent,
            packets: 1,
            bytes,
            packet_max_bytes: bytes,
            overflows: bytes > 100,
            flow: None,
        }
    }

    fn flow(port: u16) -> Option<FlowId> {
        let ends = [port, 443].map(|port| std::net::SocketAddr::from(([192, 0, 2, 1], port)));
        Some(FlowId { protocol: thalweg_model::FlowProtocol::Tcp, local: ends[0], peer: ends[1] })
    }

    #[test]
    fn a_flow_has_a_map_of_its_own() {
        let mut map = MapBuilder::new("eth0", None);
        for one in [
            BusyBin { flow: flow(1), ..bin(5_000, 40, true) },
            BusyBin { flow: flow(2), ..bin(5_000, 60, true) },
            bin(5_000, 7, true),
            BusyBin { flow: flow(2), ..bin(6_001, 9, false) },
        ] {
            map.add(&one);
        }
        let (all, flows) = map.maps();
        assert_eq!((all.rows[0].sent[0].bytes, all.rows.len()), (107, 2));
        let names: Vec<&str> = flows.iter().map(|map| map.interface.as_str()).collect();
        assert_eq!(names, ["tcp 192.0.2.1:2 192.0.2.1:443", "tcp 192.0.2.1:1 192.0.2.1:443"]);
        assert_eq!((flows[0].rows[0].sent[0].bytes, flows[0].rows[1].received[1].bytes), (60, 9));
        assert_eq!((flows[1].first_s, flows[1].rows.len()), (5, 1));
    }

    #[test]
    fn flows_that_move_least_make_room() {
        let mut map = MapBuilder::new("eth0", None);
        for second in 0..600 {
            for port in 1..=10 {
                map.add(&BusyBin { flow: flow(port), ..bin(second * 1_000, u64::from(port), true) });
            }
        }
        let (_, flows) = map.maps();
        assert!(flows.iter().map(|map| map.rows.len()).sum::<usize>() <= MAX_FLOW_ROWS);
        assert!(flows.len() >= 8 && flows[0].interface.starts_with("tcp 192.0.2.1:10 ") && flows[0].rows.len() == 600);
    }

    #[test]
    fn a_flow_begins_again_after_a_pause_longer_than_its_map() {
        let mut map = MapBuilder::new("eth0", None);
        for second in [1, 4, 2_000] {
            map.add(&BusyBin { flow: flow(1), ..bin(second * 1_000, 1, true) });
        }
        assert_eq!(map.flow_rows, 1);
        assert_eq!(map.maps().1[0].first_s, 2_000);
    }

    #[test]
    fn each_millisecond_has_its_cell() {
        let mut map = MapBuilder::new("eth0", None);
        for one in [bin(5_000, 40, true), bin(5_000, 80, true), bin(6_999, 7, false), bin(7_001, 101, true)] {
            map.add(&one);
        }
        map.add(&bin(4_999, 1, true));
        let (map, _) = map.maps();
        assert_eq!((map.first_s, map.rows.len(), map.dropped_rows), (5, 3, 0));
        assert_eq!(map.rows[0].sent[0], BurstCell { bytes: 120, overflows: false });
        assert_eq!(map.rows[1].received[999].bytes, 7);
        assert_eq!(map.rows[2].sent[1], BurstCell { bytes: 101, overflows: true });
    }

    #[test]
    fn the_latest_rows_are_kept() {
        let mut map = MapBuilder::new("eth0", None);
        (0..700).for_each(|second| map.add(&bin(second * 1_000, 1, true)));
        map.add(&bin(9_000_000, 1, true));
        map.add(&bin(9_599_000, 1, true));
        let (map, _) = map.maps();
        assert_eq!((map.first_s, map.rows.len()), (9_000, 600));
        assert_eq!(map.first_s - map.dropped_rows, 0, "the rows from the first second on");
    }
}
