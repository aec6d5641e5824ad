//! codel: one queue whose head is dropped while packets wait too long.
//!
//! Source: linux/pkt_sched.h; net/sched/sch_codel.c; RFC 8289.

use super::{micros, number, to_micros};
use crate::netlink::Message;
use thalweg_units::Span;

const TCA_CODEL_TARGET: u16 = 1;
const TCA_CODEL_LIMIT: u16 = 2;
const TCA_CODEL_INTERVAL: u16 = 3;
const TCA_CODEL_ECN: u16 = 4;

/// A CoDel queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codel {
    /// Wait that is acceptable.
    pub target: Span,
    /// For how long the wait must be above it before packets are dropped.
    pub interval: Span,
    /// Packets that may wait.
    pub limit: u32,
    /// Marks packets that carry ECN instead of dropping them.
    pub ecn: bool,
}

impl Default for Codel {
    fn default() -> Self {
        Self { target: Span::from_millis(5), interval: Span::from_millis(100), limit: 1000, ecn: false }
    }
}

impl Codel {
    pub(super) fn options(&self, options: &mut Message) {
        options
            .number(TCA_CODEL_TARGET, to_micros(self.target))
            .number(TCA_CODEL_LIMIT, self.limit)
            .number(TCA_CODEL_INTERVAL, to_micros(self.interval))
            .number(TCA_CODEL_ECN, u32::from(self.ecn));
    }
}

/// The kernel counts both times in units of 1024 ns, so a target of 5 ms reads 4.999 ms.
pub(super) fn describe(found: &[(u16, &[u8])]) -> String {
    let (target, interval) = (micros(number(found, TCA_CODEL_TARGET)), micros(number(found, TCA_CODEL_INTERVAL)));
    let ecn = if number(found, TCA_CODEL_ECN) > 0 { " ecn" } else { "" };
    format!("codel limit {}p target {target} interval {interval}{ecn}", number(found, TCA_CODEL_LIMIT))
}
