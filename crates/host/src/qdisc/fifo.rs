//! pfifo and bfifo: queues that drop from the tail.
//!
//! Source: linux/pkt_sched.h; net/sched/sch_fifo.c.

use super::{bytes, narrow};
use crate::netlink::{Message, u32_at};
use thalweg_units::Bytes;

/// A queue that drops what does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fifo {
    /// A limit in packets.
    Packets(u32),
    /// A limit in bytes, Ethernet headers included.
    Bytes(Bytes),
}

impl Default for Fifo {
    fn default() -> Self {
        Self::Packets(1000)
    }
}

impl Fifo {
    pub(super) fn options(&self, options: &mut Message) {
        let limit = match self {
            Self::Packets(packets) => *packets,
            Self::Bytes(bytes) => narrow(bytes.get()),
        };
        options.raw(&limit.to_ne_bytes());
    }
}

pub(super) fn describe(kind: &str, options: &[u8]) -> String {
    let limit = u32_at(options, 0);
    if kind == "bfifo" { format!("bfifo limit {}", bytes(limit)) } else { format!("pfifo limit {limit}p") }
}
