//! netem: delay, jitter, loss, duplication, corruption, reordering, rate.
//!
//! Source: linux/pkt_sched.h; net/sched/sch_netem.c.

use super::{Purpose, number, percent, probability, value, wide};
use crate::netlink::{Message, attributes, u32_at};
use thalweg_units::{Rate, Ratio, Span};

const TCA_NETEM_CORR: u16 = 1;
const TCA_NETEM_DELAY_DIST: u16 = 2;
const TCA_NETEM_REORDER: u16 = 3;
const TCA_NETEM_CORRUPT: u16 = 4;
const TCA_NETEM_LOSS: u16 = 5;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_ECN: u16 = 7;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_JITTER64: u16 = 11;
const TCA_NETEM_PRNG_SEED: u16 = 14;
const NETEM_LOSS_GE: u16 = 2;
/// `sizeof(struct tc_netem_qopt)`.
const QOPT_LEN: usize = 24;
/// What a table's entry of one deviation is. Source: `NETEM_DIST_SCALE`.
const DIST_SCALE: i16 = 8192;

/// A loss model of netem.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum NetemLoss {
    /// None.
    #[default]
    None,
    /// Each packet with this probability, correlated with the one before by [`Netem::loss_correlation`].
    Random(Ratio),
    /// Gilbert–Elliott: good to bad, bad to good, passes in bad, passes in good.
    GilbertElliott([Ratio; 4]),
}

/// A netem discipline; by default it delays nothing and loses nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Netem {
    /// Mean delay.
    pub delay: Span,
    /// Deviation of the delay; the kernel takes at most 2.147 s.
    pub jitter: Span,
    /// How much a packet's deviation takes from the one before.
    pub delay_correlation: Ratio,
    /// Shape of the deviation, scaled by 8192 per unit of it, at most 16384 entries; empty is uniform.
    pub distribution: Vec<i16>,
    /// Loss.
    pub loss: NetemLoss,
    /// How much a packet's random loss takes from the one before.
    pub loss_correlation: Ratio,
    /// Probability that a packet comes twice.
    pub duplicate: Ratio,
    /// How much a packet's duplication takes from the one before.
    pub duplicate_correlation: Ratio,
    /// Probability that a packet, each `reorder_gap`-th, is sent at once and so overtakes those delayed.
    pub reorder: Ratio,
    /// How much a packet's reordering takes from the one before.
    pub reorder_correlation: Ratio,
    /// Of how many packets one may be reordered; 0 counts as 1.
    pub reorder_gap: u32,
    /// Probability that one random bit of a packet is flipped.
    pub corrupt: Ratio,
    /// How much a packet's corruption takes from the one before.
    pub corrupt_correlation: Ratio,
    /// Serialization rate.
    pub rate: Option<Rate>,
    /// Bytes each packet takes on the rate beyond its Ethernet frame without checksum; may be negative.
    pub packet_overhead: i32,
    /// Marks packets that carry ECN instead of losing them.
    pub ecn: bool,
    /// Packets held at most, those on their way included.
    pub limit: u32,
    /// Seed of its random numbers, from kernel 6.6 on; older kernels take theirs from the kernel's generator. A change
    /// restarts them: give each step of a schedule a seed of its own.
    pub seed: u64,
}

impl Default for Netem {
    fn default() -> Self {
        let never = Ratio::default();
        Self {
            delay: Span::ZERO,
            jitter: Span::ZERO,
            delay_correlation: never,
            distribution: Vec::new(),
            loss: NetemLoss::None,
            loss_correlation: never,
            duplicate: never,
            duplicate_correlation: never,
            reorder: never,
            reorder_correlation: never,
            reorder_gap: 0,
            corrupt: never,
            corrupt_correlation: never,
            rate: None,
            packet_overhead: 0,
            ecn: false,
            limit: 1000,
            seed: 0,
        }
    }
}

impl Netem {
    /// Every attribute is given each time: one that is absent would keep its former value in a change.
    pub(super) fn options(&self, options: &mut Message, purpose: Purpose) {
        let pair = |a: u32, b: u32| [a.to_ne_bytes(), b.to_ne_bytes()].concat();
        let random = match self.loss {
            NetemLoss::Random(ratio) => probability(ratio),
            _ => 0,
        };
        let reorder = probability(self.reorder);
        let gap = if reorder > 0 { self.reorder_gap.max(1) } else { 0 };
        let mut qopt = [0u8; QOPT_LEN];
        for (at, number) in [(4, self.limit), (8, random), (12, gap), (16, probability(self.duplicate))] {
            qopt[at..at + 4].copy_from_slice(&number.to_ne_bytes());
        }
        options.raw(&qopt);
        let correlations = [self.delay_correlation, self.loss_correlation, self.duplicate_correlation];
        options.attribute(TCA_NETEM_CORR, &correlations.map(|part| probability(part).to_ne_bytes()).concat());
        options.attribute(TCA_NETEM_REORDER, &pair(reorder, probability(self.reorder_correlation)));
        options.attribute(TCA_NETEM_CORRUPT, &pair(probability(self.corrupt), probability(self.corrupt_correlation)));
        options.attribute(TCA_NETEM_LATENCY64, &self.delay.as_nanos().to_ne_bytes());
        options.attribute(TCA_NETEM_JITTER64, &self.jitter.as_nanos().to_ne_bytes());
        options.attribute(TCA_NETEM_PRNG_SEED, &self.seed.to_ne_bytes());
        options.number(TCA_NETEM_ECN, u32::from(self.ecn));

        let table: Vec<u8> = match purpose {
            // A table once given cannot be taken back, but one of evenly spread entries is as none.
            Purpose::Change if self.distribution.is_empty() && self.jitter > Span::ZERO => {
                (-DIST_SCALE..DIST_SCALE).flat_map(i16::to_ne_bytes).collect()
            }
            _ => self.distribution.iter().flat_map(|value| value.to_ne_bytes()).collect(),
        };
        if !table.is_empty() {
            options.attribute(TCA_NETEM_DELAY_DIST, &table);
        }
        if let NetemLoss::GilbertElliott([p, r, h, k]) = self.loss {
            options.nest(TCA_NETEM_LOSS, |loss| {
                let lost_in_good = u32::MAX - probability(k);
                let parts = [probability(p), probability(r), probability(h), lost_in_good].map(u32::to_ne_bytes);
                loss.attribute(NETEM_LOSS_GE, &parts.concat());
            });
        }
        let bytes = self.rate.map_or(0, Rate::bytes_per_second);
        let mut rate = [0u8; 16];
        rate[..4].copy_from_slice(&super::narrow(bytes).to_ne_bytes());
        rate[4..8].copy_from_slice(&self.packet_overhead.to_ne_bytes());
        options.attribute(TCA_NETEM_RATE, &rate).attribute(TCA_NETEM_RATE64, &bytes.to_ne_bytes());
    }
}

pub(super) fn describe(options: &[u8]) -> String {
    let inner = attributes(options.get(QOPT_LEN..).unwrap_or_default());
    let mut text = format!("netem limit {}", u32_at(options, 4));
    let word = |name: &str, part: u32, correlation: u32| match (part, correlation) {
        (0, _) => String::new(),
        (_, 0) => format!(" {name} {}", percent(part)),
        _ => format!(" {name} {} {}", percent(part), percent(correlation)),
    };
    let correlation = value(&inner, TCA_NETEM_CORR);
    let (delay, jitter) = (wide(&inner, TCA_NETEM_LATENCY64), wide(&inner, TCA_NETEM_JITTER64));
    if delay + jitter > 0 {
        text += &format!(" delay {}", Span::from_nanos(delay));
    }
    if jitter > 0 {
        text += &format!(" {}", Span::from_nanos(jitter));
        if u32_at(correlation, 0) > 0 {
            text += &format!(" {}", percent(u32_at(correlation, 0)));
        }
    }
    text += &word("loss", u32_at(options, 8), u32_at(correlation, 4));
    for (_, model) in attributes(value(&inner, TCA_NETEM_LOSS)).iter().filter(|(kind, _)| *kind == NETEM_LOSS_GE) {
        let parts = [0, 4, 8, 12].map(|at| percent(u32_at(model, at)));
        text += &format!(" loss gemodel p {} r {} h {} 1-k {}", parts[0], parts[1], parts[2], parts[3]);
    }
    text += &word("duplicate", u32_at(options, 16), u32_at(correlation, 8));
    let pair = |kind: u16| (u32_at(value(&inner, kind), 0), u32_at(value(&inner, kind), 4));
    let (reorder, reorder_correlation) = pair(TCA_NETEM_REORDER);
    text += &word("reorder", reorder, reorder_correlation);
    let (corrupt, corrupt_correlation) = pair(TCA_NETEM_CORRUPT);
    text += &word("corrupt", corrupt, corrupt_correlation);
    let rate = wide(&inner, TCA_NETEM_RATE64).max(u64::from(number(&inner, TCA_NETEM_RATE)));
    if rate > 0 {
        text += &format!(" rate {}", Rate::from_bits_per_second(rate * 8));
        let overhead = u32_at(value(&inner, TCA_NETEM_RATE), 4) as i32;
        if overhead != 0 {
            text += &format!(" packetoverhead {overhead}");
        }
    }
    if number(&inner, TCA_NETEM_ECN) > 0 {
        text += " ecn";
    }
    let gap = u32_at(options, 12);
    if gap > 1 {
        text += &format!(" gap {gap}");
    }
    text
}
