//! What is kept of a connection that is over: its report, and enough of its ends to know what comes late.

use crate::estimate::data_phase::DataPhase;
use crate::flow::ranking::FlowCost;
use crate::flow::report::{self, JudgedFlow};
use crate::shared_path::Sharer;
use crate::shared_path::aggregate_rate::CarriedBytes;
use crate::tcp::connection::Connection;
use thalweg_model::{Flow, Series};

/// A connection, summed up.
#[derive(Debug)]
pub(crate) struct FlowRecord {
    pub(crate) phase: DataPhase,
    /// Its other direction's, where that was judged.
    pub(crate) other_phase: Option<DataPhase>,
    /// Index of the interface among the capture's.
    pub(crate) interface: u32,
    pub(crate) flow: Box<Flow>,
    /// What it carried, where others may have shared its path.
    pub(crate) carried: Option<CarriedBytes>,
    pub(crate) series: Option<Box<Series>>,
}

impl FlowRecord {
    pub(crate) fn new(connection: &Connection, judged: JudgedFlow<'_>, carried: Option<CarriedBytes>) -> Self {
        let (phase, other_phase) = (judged.phase(), judged.other_phase());
        let mut flow = Box::new(judged.flow());
        compact(&mut flow);
        Self {
            phase,
            other_phase,
            interface: connection.interface,
            flow,
            carried,
            series: report::series_of(connection).map(Box::new),
        }
    }

    /// As [`crate::shared_path::judge`] takes it.
    pub(crate) fn sharer(&mut self) -> Sharer<'_> {
        Sharer { interface: self.interface, carried: self.carried.as_ref(), flow: &mut self.flow }
    }

    /// By what it is listed.
    pub(crate) fn cost(&self) -> FlowCost {
        let flow = &self.flow;
        let of = |verdict, phase| FlowCost::of(verdict, phase, flow.bytes_up + flow.bytes_down, flow.first_packet);
        let cost = of(&flow.verdict, self.phase);
        let other = flow.other_direction.as_ref().zip(self.other_phase);
        other
            .map_or(cost, |(other, phase)| cost.min(of(&other.verdict, phase)))
            .with_life(flow.life.as_ref(), flow.verdict.code())
    }
}

/// Gives back the room that texts and lists were grown by in advance: a flow is kept for as long as the capture lasts.
fn compact(flow: &mut Flow) {
    flow.client.shrink_to_fit();
    flow.server.shrink_to_fit();
    flow.findings.shrink_to_fit();
}
