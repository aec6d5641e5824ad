//! What is kept of connections that are over: the reports of all, or of the costliest.

use crate::flow::failed_flow::FailedFlow;
use crate::flow::ranking::FlowCost;
use crate::flow::record::FlowRecord;
use crate::flow::report::{self, JudgedFlow};
use crate::shared_path::aggregate_rate::CarriedBytes;
use crate::tcp::connection::Connection;
use std::collections::BinaryHeap;
use thalweg_model::Flow;

/// Which connections are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retain {
    /// All of them; each takes up to 4 KB.
    #[default]
    All,
    /// So many, the costliest; the others are judged and counted.
    Costliest(usize),
}

/// The connections of a capture, or of a part of it, that are over.
#[derive(Debug, Default)]
pub(crate) struct RetainedFlows {
    wanted: Retain,
    pub(crate) records: Vec<FlowRecord>,
    /// Where only the costliest are wanted: what each costs and its place among the records, the least costly on top.
    ranked: BinaryHeap<(FlowCost, usize)>,
    /// The first packet of each connection, kept or not.
    pub(crate) firsts: Vec<u64>,
    pub(crate) tap_duplicates: u64,
    /// Connections whose two directions came under different tags, or from different interfaces.
    pub(crate) joined: u64,
    /// Connections of whose data some was acknowledged and never seen, and how many bytes that was.
    pub(crate) missed: (u64, u64),
    /// Connections whose analysis panicked.
    pub(crate) failed: Vec<FailedFlow>,
    /// Whether one whose verdict is final, kept or not, is slower than it could be.
    pub(crate) slowed: bool,
}

/// Where a connection's report is, if it is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordPlace {
    index: usize,
    first_packet: u64,
}

impl RecordPlace {
    /// That of a connection that is not kept.
    const fn none(first_packet: u64) -> Self {
        Self { index: usize::MAX, first_packet }
    }
}

impl RetainedFlows {
    pub(crate) fn new(wanted: Retain) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// Sums a finished connection up, and keeps what is wanted of it.
    pub(crate) fn take(&mut self, connection: &Connection) -> RecordPlace {
        let first_packet = connection.first_packet;
        // What may panic comes first.
        let judged = JudgedFlow::new(connection);
        let carried = CarriedBytes::of(report::main(connection), connection.started);
        self.firsts.push(first_packet);
        self.tap_duplicates += connection.tap_duplicates;
        let missed: u64 = connection.sides.iter().map(|side| side.sender.totals.missed_bytes).sum();
        self.missed.0 += u64::from(missed > 0);
        self.missed.1 += missed;
        let index = match self.wanted {
            // What one carried beside others may change its verdict in the end.
            Retain::Costliest(most) if carried.is_none() => {
                self.slowed |= judged.is_slowed();
                let Some(index) = self.rank(judged.cost(), most) else { return RecordPlace::none(first_packet) };
                index
            }
            Retain::All | Retain::Costliest(_) => self.records.len(),
        };
        let record = FlowRecord::new(connection, judged, carried);
        match self.records.get_mut(index) {
            Some(before) => *before = record,
            None => self.records.push(record),
        }
        RecordPlace { index, first_packet }
    }

    /// Counts a connection in whose analysis panicked.
    pub(crate) fn fail(&mut self, flow: FailedFlow) {
        self.firsts.push(flow.first_packet);
        self.failed.push(flow);
    }

    /// The place of one that costs so much, if that is among the `most` costliest; the least costly has it no longer.
    fn rank(&mut self, cost: FlowCost, most: usize) -> Option<usize> {
        let index = if self.ranked.len() < most {
            self.records.len()
        } else {
            let least = self.ranked.peek_mut().filter(|least| cost < least.0)?;
            std::collections::binary_heap::PeekMut::pop(least).1
        };
        self.ranked.push((cost, index));
        Some(index)
    }

    /// The report of the connection that had this place.
    pub(crate) fn at(&mut self, place: RecordPlace) -> Option<&mut Flow> {
        let flow = &mut self.records.get_mut(place.index)?.flow;
        (flow.first_packet == place.first_packet).then_some(flow)
    }

    /// Most that are reported in the end.
    pub(crate) fn most(&self) -> usize {
        match self.wanted {
            Retain::All => usize::MAX,
            Retain::Costliest(most) => most,
        }
    }
}
