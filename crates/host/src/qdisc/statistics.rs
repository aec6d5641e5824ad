//! What disciplines have counted.
//!
//! Source: linux/gen_stats.h; the structs of each discipline in linux/pkt_sched.h.

use super::{CLASS, TC_H_ROOT, attribute, kind_of, parent, read, value};
use crate::error::HostError;
use crate::netlink::{attributes, u32_at, u64_at};
use thalweg_units::Bytes;

const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_APP: u16 = 4;
const TCA_STATS_PKT64: u16 = 8;
const TCA_CAKE_STATS_TIN_STATS: u16 = 10;
const TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS: u16 = 8;

/// The counters of one discipline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent, Ethernet headers included.
    pub bytes: Bytes,
    /// Packets dropped.
    pub drops: u64,
    /// Times it held a packet back; RED and netem with ECN count their marks here too.
    pub overlimits: u64,
    /// Packets marked for congestion; `None` where the discipline does not tell.
    pub marks: Option<u64>,
    /// Bytes that wait now.
    pub backlog: Bytes,
    /// Packets that wait now.
    pub queued: u32,
}

/// The counters of a device's disciplines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Of the root.
    pub root: Counters,
    /// Of what sits under its class 1:1.
    pub child: Option<Counters>,
}

/// Reads what the disciplines of a device of the current namespace have counted; zeroes where it has none.
///
/// # Errors
/// Whatever the kernel refuses.
pub fn statistics(index: u32) -> Result<Statistics, HostError> {
    let answers = read(index)?;
    let of = |wanted: u32| answers.iter().find(|answer| parent(answer) == wanted).map(|answer| counters(answer));
    Ok(Statistics { root: of(TC_H_ROOT).unwrap_or_default(), child: of(CLASS) })
}

fn counters(answer: &[u8]) -> Counters {
    let found = attributes(attribute(answer, TCA_STATS2));
    let (basic, queue) = (value(&found, TCA_STATS_BASIC), value(&found, TCA_STATS_QUEUE));
    let packets = match value(&found, TCA_STATS_PKT64) {
        [] => u64::from(u32_at(basic, 8)),
        all => u64_at(all, 0),
    };
    Counters {
        packets,
        bytes: Bytes::new(u64_at(basic, 0)),
        drops: u64::from(u32_at(queue, 8)),
        overlimits: u64::from(u32_at(queue, 16)),
        marks: marks(&kind_of(answer), value(&found, TCA_STATS_APP)),
        backlog: Bytes::new(u64::from(u32_at(queue, 4))),
        queued: u32_at(queue, 0),
    }
}

fn marks(kind: &str, own: &[u8]) -> Option<u64> {
    let narrow = |at: usize| (own.len() >= at + 4).then(|| u64::from(u32_at(own, at)));
    match kind {
        "red" => narrow(12),
        "codel" => narrow(24),
        "pie" => narrow(36),
        "fq_codel" => narrow(12),
        "fq" => (own.len() >= 88).then(|| u64_at(own, 80)),
        "cake" => {
            let found = attributes(own);
            let tins = attributes(value(&found, TCA_CAKE_STATS_TIN_STATS));
            let of = |tin: &[u8]| u64::from(u32_at(value(&attributes(tin), TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS), 0));
            (!tins.is_empty()).then(|| tins.iter().map(|(_, tin)| of(tin)).sum())
        }
        _ => None,
    }
}
