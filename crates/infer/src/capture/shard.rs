//! Connections followed side by side: all packets of one go to the same shard.

use super::options::Options;
use crate::flow::retained::RetainedFlows;
use crate::flow_table::{FlowTable, TcpPacket};

/// Some of a capture's connections, being followed.
#[derive(Debug)]
pub struct Shard {
    table: FlowTable,
}

impl Shard {
    /// Follows connections as `options` say. Of several shards none may be asked to draw the first connections: it does not know which
    /// those are.
    pub fn new(options: Options) -> Self {
        Self { table: FlowTable::new(options.drawn, options.wanted) }
    }

    /// Takes the next packet of its connections in.
    pub fn packet(&mut self, seen: &TcpPacket) {
        self.table.packet(seen);
    }

    /// Sums its connections up at the end of the capture, whose clock is [`super::CaptureDecoder::clock`] then.
    pub fn finish(self, clock: u64) -> ShardResult {
        ShardResult { kept: self.table.finish(clock) }
    }
}

/// What a shard found.
#[derive(Debug)]
pub struct ShardResult {
    pub(super) kept: RetainedFlows,
}
