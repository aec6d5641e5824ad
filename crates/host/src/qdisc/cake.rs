//! cake: a shaper with a CoDel queue for each flow, fair to hosts and to classes of traffic.
//!
//! Source: linux/pkt_sched.h; net/sched/sch_cake.c.

use super::{bytes, micros, narrow, number, to_micros, wide};
use crate::netlink::Message;
use thalweg_units::{Bytes, Rate, Span};

const TCA_CAKE_BASE_RATE64: u16 = 2;
const TCA_CAKE_OVERHEAD: u16 = 6;
const TCA_CAKE_RTT: u16 = 7;
const TCA_CAKE_TARGET: u16 = 8;
const TCA_CAKE_MEMORY: u16 = 10;
const TCA_CAKE_RAW: u16 = 12;
const TCA_CAKE_ACK_FILTER: u16 = 16;

/// Which acknowledgements are dropped from a flow's queue when a later one waits there; `CAKE_ACK_NONE` and following.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AckFilter {
    /// None.
    #[default]
    Off = 0,
    /// Those that say nothing new.
    On = 1,
    /// All but the last.
    Aggressive = 2,
}

/// CAKE, by default as the kernel makes it, without a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cake {
    /// Rate; `None` does not shape.
    pub bandwidth: Option<Rate>,
    /// Round-trip time its queues are kept fit for; the acceptable wait is a twentieth of it.
    pub rtt: Span,
    /// Bytes each packet takes on the rate beyond its IP packet; unused where `raw`.
    pub overhead: i32,
    /// A packet takes its Ethernet frame without checksum.
    pub raw: bool,
    /// Memory all waiting packets may take; `None` is the kernel's choice by rate and round-trip time.
    pub memory_limit: Option<Bytes>,
    /// Which acknowledgements are dropped when a later one waits.
    pub ack_filter: AckFilter,
}

impl Default for Cake {
    fn default() -> Self {
        Self {
            bandwidth: None,
            rtt: Span::from_millis(100),
            overhead: 0,
            raw: true,
            memory_limit: None,
            ack_filter: AckFilter::Off,
        }
    }
}

impl Cake {
    pub(super) fn options(&self, options: &mut Message) {
        let rtt = to_micros(self.rtt).max(1);
        options
            .attribute(TCA_CAKE_BASE_RATE64, &self.bandwidth.map_or(0, Rate::bytes_per_second).to_ne_bytes())
            .number(TCA_CAKE_RTT, rtt)
            .number(TCA_CAKE_TARGET, (rtt / 20).max(1))
            .number(TCA_CAKE_MEMORY, self.memory_limit.map_or(0, |limit| narrow(limit.get())));
        options.number(TCA_CAKE_ACK_FILTER, self.ack_filter as u32);
        // Even zero counts from the IP packet, unless the flag follows.
        options.number(TCA_CAKE_OVERHEAD, if self.raw { 0 } else { self.overhead as u32 });
        if self.raw {
            options.number(TCA_CAKE_RAW, 0);
        }
    }
}

pub(super) fn describe(found: &[(u16, &[u8])]) -> String {
    let mut text = "cake".to_owned();
    match wide(found, TCA_CAKE_BASE_RATE64) {
        0 => text += " bandwidth unlimited",
        rate => text += &format!(" bandwidth {}", Rate::from_bits_per_second(rate * 8)),
    }
    text += &format!(" rtt {}", micros(number(found, TCA_CAKE_RTT)));
    if found.iter().any(|(kind, _)| *kind == TCA_CAKE_RAW) {
        text += " raw";
    } else {
        text += &format!(" overhead {}", number(found, TCA_CAKE_OVERHEAD) as i32);
    }
    text += match number(found, TCA_CAKE_ACK_FILTER) {
        1 => " ack-filter",
        2 => " ack-filter-aggressive",
        _ => "",
    };
    let memory = number(found, TCA_CAKE_MEMORY);
    if memory > 0 {
        text += &format!(" memlimit {}", bytes(memory));
    }
    text
}
