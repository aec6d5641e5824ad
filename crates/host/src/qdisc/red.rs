//! red: drops or marks early, more often the longer the queue is on average.
//!
//! Source: linux/pkt_sched.h; net/sched/sch_red.c; the parameters are computed as iproute2's tc/tc_red.c and tc/q_red.c do;
//! Floyd, Jacobson, "Random early detection gateways for congestion avoidance", 1993.

use super::{TICK_NANOS, bytes, narrow, number, percent, value};
use crate::error::HostError;
use crate::netlink::{Message, u32_at};
use std::io;
use thalweg_units::{Bytes, Rate, Ratio};

const TCA_RED_PARMS: u16 = 1;
const TCA_RED_STAB: u16 = 2;
const TCA_RED_MAX_P: u16 = 3;
const TC_RED_ECN: u8 = 1;
const TC_RED_HARDDROP: u8 = 2;
const TC_RED_ADAPTATIVE: u8 = 4;
const STAB_LEN: usize = 256;
/// The most the kernel shifts an average by.
const LONGEST_SHIFT: f64 = 31.0;

/// Random early detection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Red {
    /// Bytes that may wait.
    pub limit: Bytes,
    /// Average queue above which packets are marked or dropped at random; `None` is a third of `max`.
    pub min: Option<Bytes>,
    /// Average queue above which every packet is; `None` is thrice `min`, or a quarter of `limit`.
    pub max: Option<Bytes>,
    /// Probability of it just below `max`.
    pub probability: Ratio,
    /// Size of an average packet.
    pub avpkt: Bytes,
    /// Packets a burst may have before the average follows; `None` is (2·min + max) / (3·avpkt).
    pub burst: Option<u32>,
    /// Rate of the link, by which the average decays while it is idle.
    pub bandwidth: Rate,
    /// Marks packets that carry ECN instead of dropping them.
    pub ecn: bool,
    /// Drops above `max` even what carries ECN.
    pub harddrop: bool,
    /// Adapts the probability. Source: Floyd, Gummadi, Shenker, "Adaptive RED", 2001.
    pub adaptive: bool,
}

impl Default for Red {
    /// A limit of 1 MB, 1000-byte packets, a probability of 2 %, a link of 10 Mb/s.
    fn default() -> Self {
        Self {
            limit: Bytes::new(1_000_000),
            min: None,
            max: None,
            probability: Ratio::new(0.02).expect("invariant: within 0 and 1"),
            avpkt: Bytes::new(1000),
            burst: None,
            bandwidth: Rate::from_bits_per_second(10_000_000),
            ecn: false,
            harddrop: false,
            adaptive: false,
        }
    }
}

/// What the kernel works with.
#[derive(Debug, PartialEq, Eq)]
struct Parameters {
    limit: u32,
    min: u32,
    max: u32,
    weight_log: u8,
    probability_log: u8,
    cell_log: u8,
    stab: [u8; STAB_LEN],
}

impl Red {
    fn parameters(&self) -> Result<Parameters, HostError> {
        let refuse = |problem: String| HostError {
            act: "attach red".to_owned(),
            source: io::Error::new(io::ErrorKind::InvalidInput, problem),
        };
        let limit = narrow(self.limit.get());
        let avpkt = narrow(self.avpkt.get()).max(1);
        let max = match (self.max, self.min) {
            (Some(max), _) => narrow(max.get()),
            (None, Some(min)) => narrow(min.get().saturating_mul(3)),
            (None, None) => limit / 4,
        };
        let min = self.min.map_or(max / 3, |min| narrow(min.get()));
        if min >= max || max > limit {
            return Err(refuse(format!("red needs min {min} < max {max} ≤ limit {limit} bytes")));
        }
        let burst = self.burst.unwrap_or(narrow((2 * u64::from(min) + u64::from(max)) / (3 * u64::from(avpkt))));
        let weight_log = weight_log(min, burst, avpkt)
            .ok_or_else(|| refuse(format!("red with a burst of {burst} packets needs at least {}", 1 + min / avpkt)))?;
        let probability_log = probability_log(max - min, self.probability.get())
            .ok_or_else(|| refuse(format!("red cannot work with a probability of {}", self.probability)))?;
        let (cell_log, stab) = idle_damping(weight_log, avpkt, self.bandwidth)
            .ok_or_else(|| refuse(format!("red cannot follow a link of {}", self.bandwidth)))?;
        Ok(Parameters { limit, min, max, weight_log, probability_log, cell_log, stab })
    }

    pub(super) fn options(&self, options: &mut Message) -> Result<(), HostError> {
        let Parameters { limit, min, max, weight_log, probability_log, cell_log, stab } = self.parameters()?;
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let flags =
            flag(self.ecn, TC_RED_ECN) | flag(self.harddrop, TC_RED_HARDDROP) | flag(self.adaptive, TC_RED_ADAPTATIVE);
        let mut qopt = [limit, min, max].map(u32::to_ne_bytes).concat();
        qopt.extend([weight_log, probability_log, cell_log, flags]);
        options.attribute(TCA_RED_PARMS, &qopt).attribute(TCA_RED_STAB, &stab);
        options.number(TCA_RED_MAX_P, (self.probability.get() * 2f64.powi(32)) as u32);
        Ok(())
    }
}

/// The average's weight, as a power of two: `tc_red_eval_ewma`.
fn weight_log(min: u32, burst: u32, avpkt: u32) -> Option<u8> {
    let wanted = f64::from(burst) + 1.0 - f64::from(min) / f64::from(avpkt);
    let reached = |log: u8| {
        let weight = 0.5f64.powi(i32::from(log));
        (1.0 - (1.0 - weight).powi(burst as i32)) / weight
    };
    if wanted < 1.0 { None } else { (1..32).find(|log| wanted <= reached(*log)) }
}

/// The slope of the probability, as a power of two: `tc_red_eval_P`.
fn probability_log(span: u32, probability: f64) -> Option<u8> {
    (0..32).find(|log| probability / f64::from(span) * 2f64.powi(i32::from(*log)) > 1.0)
}

/// How far the average decays in idle time, in cells of a power of two: `tc_red_eval_idle_damping`.
///
/// It counts in the scheduler's ticks as `tc` does, though the kernel looks the table up by microseconds.
fn idle_damping(weight_log: u8, avpkt: u32, bandwidth: Rate) -> Option<(u8, [u8; STAB_LEN])> {
    let nanos = f64::from(avpkt) / bandwidth.bytes_per_second() as f64 * 1e9;
    let ticks = (nanos / TICK_NANOS).ceil();
    let decay = -(1.0 - 0.5f64.powi(i32::from(weight_log))).ln() / ticks;
    let longest = LONGEST_SHIFT / decay;
    let cell_log = (0..32u8).find(|log| longest / 2f64.powi(i32::from(*log)) < 512.0)?;
    let mut stab = [LONGEST_SHIFT as u8; STAB_LEN];
    for (at, entry) in stab.iter_mut().enumerate().take(STAB_LEN - 1) {
        *entry = (at as f64 * 2f64.powi(i32::from(cell_log)) * decay).min(LONGEST_SHIFT) as u8;
    }
    Some((cell_log, stab))
}

pub(super) fn describe(found: &[(u16, &[u8])]) -> String {
    let parms = value(found, TCA_RED_PARMS);
    let [limit, min, max] = [0, 4, 8].map(|at| bytes(u32_at(parms, at)));
    let flags = parms.get(15).copied().unwrap_or_default();
    let mut text = format!("red limit {limit} min {min} max {max}");
    for (bit, name) in [(TC_RED_ECN, " ecn"), (TC_RED_HARDDROP, " harddrop"), (TC_RED_ADAPTATIVE, " adaptive")] {
        if flags & bit > 0 {
            text += name;
        }
    }
    text + &format!(
        " ewma {} probability {} scell_log {}",
        parms.get(12).copied().unwrap_or_default(),
        percent(number(found, TCA_RED_MAX_P)),
        parms.get(14).copied().unwrap_or_default()
    )
}
