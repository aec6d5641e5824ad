//! A map of an interface's traffic: a row for each second, a cell for each millisecond of it.

use super::{BusyBin, Port};
use std::collections::VecDeque;
use thalweg_model::{BurstCell, BurstMap, BurstMapRow, MapPort};

const NS_PER_MS: u64 = 1_000_000;
/// Milliseconds of a row.
const CELLS: u64 = 1_000;
/// Rows that are kept, the latest: ten minutes, which is 10 MB.
const MAX_ROWS: usize = 600;

/// Draws a map of bins as they come.
#[derive(Debug)]
pub struct MapBuilder {
    interface: String,
    port: Option<Port>,
    /// The second of the first row.
    first_s: u64,
    rows: VecDeque<BurstMapRow>,
    dropped_rows: u64,
}

impl MapBuilder {
    /// An empty map.
    #[must_use]
    pub fn new(interface: &str, port: Option<Port>) -> Self {
        Self { interface: interface.to_owned(), port, first_s: 0, rows: VecDeque::new(), dropped_rows: 0 }
    }

    /// Draws a bin. Of those that come late, what belongs to a row that is gone is left out.
    pub fn add(&mut self, bin: &BusyBin) {
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

    /// The map so far.
    #[must_use]
    pub fn map(self) -> BurstMap {
        BurstMap {
            interface: self.interface,
            first_s: self.first_s,
            rows: self.rows.into(),
            dropped_rows: self.dropped_rows,
            port: self
                .port
                .map(|port| MapPort { rate_bps: port.rate.bits_per_second() as f64, buffer_bytes: port.buffer.get() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(ms: u64, bytes: u64, is_sent: bool) -> BusyBin {
        BusyBin { at_ns: ms * NS_PER_MS, is_sent, packets: 1, bytes, packet_max_bytes: bytes, overflows: bytes > 100 }
    }

    #[test]
    fn each_millisecond_has_its_cell() {
        let mut map = MapBuilder::new("eth0", None);
        for one in [bin(5_000, 40, true), bin(5_000, 80, true), bin(6_999, 7, false), bin(7_001, 101, true)] {
            map.add(&one);
        }
        map.add(&bin(4_999, 1, true));
        let map = map.map();
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
        let map = map.map();
        assert_eq!((map.first_s, map.rows.len()), (9_000, 600));
        assert_eq!(map.first_s - map.dropped_rows, 0, "the rows from the first second on");
    }
}
