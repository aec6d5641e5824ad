//! pie: one queue that drops at random, the more the longer packets wait.
//!
//! Source: linux/pkt_sched.h; net/sched/sch_pie.c; RFC 8033.

use super::{micros, number, to_micros};
use crate::netlink::Message;
use thalweg_units::Span;

const TCA_PIE_TARGET: u16 = 1;
const TCA_PIE_LIMIT: u16 = 2;
const TCA_PIE_TUPDATE: u16 = 3;
const TCA_PIE_ECN: u16 = 6;

/// A PIE queue. The controller's gains are the kernel's: 2 and 20, in sixteenths per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pie {
    /// Wait that is aimed at.
    pub target: Span,
    /// How often the probability is computed; the kernel rounds it up to its ticks.
    pub tupdate: Span,
    /// Packets that may wait.
    pub limit: u32,
    /// Marks packets that carry ECN instead of dropping them, while the probability is at most a tenth.
    pub ecn: bool,
}

impl Default for Pie {
    fn default() -> Self {
        Self { target: Span::from_millis(15), tupdate: Span::from_millis(15), limit: 1000, ecn: false }
    }
}

impl Pie {
    pub(super) fn options(&self, options: &mut Message) {
        options
            .number(TCA_PIE_TARGET, to_micros(self.target))
            .number(TCA_PIE_LIMIT, self.limit)
            .number(TCA_PIE_TUPDATE, to_micros(self.tupdate))
            .number(TCA_PIE_ECN, u32::from(self.ecn));
    }
}

/// The kernel counts the target in ticks of 64 ns and the update in its own, so the latter may read longer than it was given.
pub(super) fn describe(found: &[(u16, &[u8])]) -> String {
    let (target, tupdate) = (micros(number(found, TCA_PIE_TARGET)), micros(number(found, TCA_PIE_TUPDATE)));
    let ecn = if number(found, TCA_PIE_ECN) > 0 { " ecn" } else { "" };
    format!("pie limit {}p target {target} tupdate {tupdate}{ecn}", number(found, TCA_PIE_LIMIT))
}
