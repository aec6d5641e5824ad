//! fq_codel: a CoDel queue for each flow, served in turns.
//!
//! Source: linux/pkt_sched.h; net/sched/sch_fq_codel.c; RFC 8290.

use super::{Purpose, bytes, micros, narrow, number, to_micros};
use crate::netlink::Message;
use thalweg_units::{Bytes, Span};

const TCA_FQ_CODEL_TARGET: u16 = 1;
const TCA_FQ_CODEL_LIMIT: u16 = 2;
const TCA_FQ_CODEL_INTERVAL: u16 = 3;
const TCA_FQ_CODEL_ECN: u16 = 4;
const TCA_FQ_CODEL_FLOWS: u16 = 5;
const TCA_FQ_CODEL_QUANTUM: u16 = 6;
const TCA_FQ_CODEL_MEMORY_LIMIT: u16 = 9;

/// FQ-CoDel, by default as the kernel makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FqCodel {
    /// Packets that may wait in all queues.
    pub limit: u32,
    /// Queues that flows are hashed into.
    pub flows: u32,
    /// Wait that is acceptable.
    pub target: Span,
    /// For how long the wait must be above it before packets are dropped.
    pub interval: Span,
    /// Bytes a queue may send in its turn; `None` is one frame of the device.
    pub quantum: Option<u32>,
    /// Memory all waiting packets may take.
    pub memory_limit: Bytes,
    /// Marks packets that carry ECN instead of dropping them.
    pub ecn: bool,
}

impl Default for FqCodel {
    fn default() -> Self {
        Self {
            limit: 10_240,
            flows: 1024,
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            quantum: None,
            memory_limit: Bytes::new(32 << 20),
            ecn: true,
        }
    }
}

impl FqCodel {
    pub(super) fn options(&self, options: &mut Message, purpose: Purpose) {
        options
            .number(TCA_FQ_CODEL_TARGET, to_micros(self.target))
            .number(TCA_FQ_CODEL_LIMIT, self.limit)
            .number(TCA_FQ_CODEL_INTERVAL, to_micros(self.interval))
            .number(TCA_FQ_CODEL_ECN, u32::from(self.ecn))
            .number(TCA_FQ_CODEL_MEMORY_LIMIT, narrow(self.memory_limit.get()));
        if purpose == Purpose::Make {
            options.number(TCA_FQ_CODEL_FLOWS, self.flows);
        }
        if let Some(quantum) = self.quantum {
            options.number(TCA_FQ_CODEL_QUANTUM, quantum);
        }
    }
}

/// The kernel counts both times in units of 1024 ns, so a target of 5 ms reads 4.999 ms.
pub(super) fn describe(found: &[(u16, &[u8])]) -> String {
    format!(
        "fq_codel limit {}p flows {} quantum {} target {} interval {} memory_limit {}{}",
        number(found, TCA_FQ_CODEL_LIMIT),
        number(found, TCA_FQ_CODEL_FLOWS),
        number(found, TCA_FQ_CODEL_QUANTUM),
        micros(number(found, TCA_FQ_CODEL_TARGET)),
        micros(number(found, TCA_FQ_CODEL_INTERVAL)),
        bytes(number(found, TCA_FQ_CODEL_MEMORY_LIMIT)),
        if number(found, TCA_FQ_CODEL_ECN) > 0 { " ecn" } else { "" },
    )
}
