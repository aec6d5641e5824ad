//! fq: fair queueing that releases each packet at the time it carries.
//!
//! Source: linux/pkt_sched.h; net/sched/sch_fq.c.

use super::{micros, narrow, number, to_micros, value};
use crate::netlink::Message;
use thalweg_units::Span;

const TCA_FQ_PLIMIT: u16 = 1;
const TCA_FQ_FLOW_PLIMIT: u16 = 2;
const TCA_FQ_RATE_ENABLE: u16 = 5;
const TCA_FQ_TIMER_SLACK: u16 = 13;
const TCA_FQ_HORIZON: u16 = 14;
const TCA_FQ_HORIZON_DROP: u16 = 15;

/// Fair queueing, by default as the kernel makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fq {
    /// Packets that may wait in all.
    pub limit: u32,
    /// Packets of one flow that may wait.
    pub flow_limit: u32,
    /// How far in the future a packet's time may be; at most 4294 s.
    pub horizon: Span,
    /// Whether a packet beyond that is dropped, or sent as if its time were that.
    pub horizon_drop: bool,
    /// How much later than its time a packet may be sent, to send several at once.
    pub timer_slack: Span,
    /// Whether it paces the sockets of its own namespace; where not, TCP paces by timers of its own.
    pub pacing: bool,
}

impl Default for Fq {
    fn default() -> Self {
        Self {
            limit: 10_000,
            flow_limit: 100,
            horizon: Span::from_millis(10_000),
            horizon_drop: true,
            timer_slack: Span::from_micros(10),
            pacing: true,
        }
    }
}

impl Fq {
    /// Releases every packet exactly at its time, however many wait.
    pub const fn releasing_exactly() -> Self {
        Self {
            limit: 50_000_000,
            flow_limit: 50_000_000,
            horizon: Span::from_millis(4_000_000),
            horizon_drop: false,
            timer_slack: Span::ZERO,
            pacing: false,
        }
    }

    pub(super) fn options(&self, options: &mut Message) {
        options
            .number(TCA_FQ_PLIMIT, self.limit)
            .number(TCA_FQ_FLOW_PLIMIT, self.flow_limit)
            .number(TCA_FQ_RATE_ENABLE, u32::from(self.pacing))
            .number(TCA_FQ_TIMER_SLACK, narrow(self.timer_slack.as_nanos()))
            .number(TCA_FQ_HORIZON, to_micros(self.horizon))
            .attribute(TCA_FQ_HORIZON_DROP, &[u8::from(self.horizon_drop)]);
    }
}

pub(super) fn describe(found: &[(u16, &[u8])]) -> String {
    format!(
        "fq limit {}p flow_limit {}p{} timer_slack {} horizon {} {}",
        number(found, TCA_FQ_PLIMIT),
        number(found, TCA_FQ_FLOW_PLIMIT),
        if number(found, TCA_FQ_RATE_ENABLE) > 0 { "" } else { " nopacing" },
        Span::from_nanos(u64::from(number(found, TCA_FQ_TIMER_SLACK))),
        micros(number(found, TCA_FQ_HORIZON)),
        if value(found, TCA_FQ_HORIZON_DROP).first() == Some(&0) { "horizon_cap" } else { "horizon_drop" },
    )
}
