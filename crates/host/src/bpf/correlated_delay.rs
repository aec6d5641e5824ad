//! A delay that varies, and in which a packet follows the one before it.

use super::assembler::{Alu, Assembler, Helper, If, Reg, Width};
use super::map::Map;
use super::{Program, SKB_TSTAMP, TC_ACT_UNSPEC};
use crate::error::HostError;
use crate::filter::{self, Direction};
use crate::qdisc::{self, Fq, Qdisc};
use Reg::{R0, R1, R2, R3, R4, R6, R7, R8};
use thalweg_units::{Ratio, Seed, Span};

/// Offsets in the state, 64-bit numbers: the random numbers', the process's, and when the last packet leaves.
const RANDOM: i16 = 0;
const SCORE: i16 = 8;
const LAST: i16 = 16;

/// Bits after the point of a score, of a coefficient, and of the tables netem takes (`NETEM_DIST_SCALE`).
const SCORE_BITS: i32 = 20;
const COEFFICIENT_BITS: i32 = 16;
const TABLE_BITS: i32 = 13;
/// Scores are clipped to this many deviations, where netem's tables end.
const MOST_SCORE: i32 = 4;
/// Entries of each table: a power of two, so that the verifier sees an index's bounds.
const NORMAL_ENTRIES: usize = 1 << NORMAL_BITS;
const NORMAL_BITS: i32 = 12;
const DEVIATION_BITS: i32 = 13;

/// Knuth's MMIX generator: its high bits are as good as uniform.
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
const INCREMENT: u64 = 1_442_695_040_888_963_407;

/// How delays vary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variation<'a> {
    /// 4,096 equally likely values of a normal distribution, in units of 1/8192 of its deviation.
    pub normal: &'a [i16],
    /// By how many nanoseconds a packet is late whose score is that of the entry ([`CorrelatedDelay::score`]).
    pub deviations: &'a [i64],
    /// How much of one packet's score is that of the packet before.
    pub correlation: Ratio,
    /// Whether no packet overtakes another.
    pub in_order: bool,
}

/// Delays packets on the way out of a device by a base and a deviation from it.
///
/// Deviations follow a first-order autoregressive process: each packet's score is the last one's times the correlation and
/// fresh noise for the rest, a normal distribution whatever the correlation; and a table turns scores into deviations of any
/// distribution. A program writes the departure into the packet, and `fq` releases it then.
#[derive(Debug)]
pub struct CorrelatedDelay {
    program: Program,
    base: Map,
}

impl CorrelatedDelay {
    /// Entries of [`Variation::deviations`].
    pub const DEVIATIONS: usize = 1 << DEVIATION_BITS;

    /// The score of an entry of [`Variation::deviations`], in standard deviations of the normal distribution.
    pub fn score(entry: usize) -> f64 {
        let width = 2.0 * f64::from(MOST_SCORE) / Self::DEVIATIONS as f64;
        (entry as f64 + 0.5) * width - f64::from(MOST_SCORE)
    }

    /// Loads it.
    ///
    /// # Errors
    /// When the kernel refuses a map or the program.
    ///
    /// # Panics
    /// When a table has not the length it must have.
    pub fn load(base: Span, variation: &Variation<'_>, seed: Seed) -> Result<Self, HostError> {
        assert_eq!(variation.normal.len(), NORMAL_ENTRIES, "invariant: the table has that length");
        assert_eq!(variation.deviations.len(), Self::DEVIATIONS, "invariant: the table has that length");
        let wide = |numbers: &mut dyn Iterator<Item = i64>| numbers.flat_map(i64::to_ne_bytes).collect::<Vec<u8>>();
        let normal: Vec<i64> =
            variation.normal.iter().map(|entry| i64::from(*entry) << (SCORE_BITS - TABLE_BITS)).collect();
        // The first packet's score is drawn as every other's is: the process has no beginning to see.
        let first = normal[(seed.derive(1).get() >> (u64::BITS as i32 - NORMAL_BITS)) as usize];
        let noise = Map::of_one(&wide(&mut normal.into_iter()))?;
        let deviations = Map::of_one(&wide(&mut variation.deviations.iter().copied()))?;
        let state = Map::of_one(&wide(&mut [seed.get().cast_signed(), first, 0].into_iter()))?;
        let base = Map::of_one(&base.as_nanos().to_ne_bytes())?;

        let mut code = Assembler::default();
        code.alu(Alu::Mov, R6, R1).call(Helper::KtimeGetNs).alu(Alu::Mov, R7, R0).value(R8, &state);
        score(&mut code, &noise, variation.correlation.get());
        // R1 = the entry of score R1, between its bounds.
        let (low, high) = (code.label(), code.label());
        let most = ((2 * MOST_SCORE) << SCORE_BITS) - 1;
        code.alu(Alu::Add, R1, MOST_SCORE << SCORE_BITS).jump_if(R1, If::SignedGreaterOrEqual, 0, low);
        code.alu(Alu::Mov, R1, 0).place(low);
        code.jump_if(R1, If::LessOrEqual, most, high).alu(Alu::Mov, R1, most).place(high);
        code.alu(Alu::Shr, R1, SCORE_BITS + MOST_SCORE.ilog2() as i32 + 1 - DEVIATION_BITS);
        look_up(&mut code, &deviations, DEVIATION_BITS);
        // R1 = when the packet leaves: none is so early that it leaves before it came.
        let late = code.label();
        code.value(R2, &base).load(Width::Double, R2, R2, 0).alu(Alu::Add, R1, R2);
        code.jump_if(R1, If::SignedGreaterOrEqual, 0, late).alu(Alu::Mov, R1, 0).place(late).alu(Alu::Add, R1, R7);
        if variation.in_order {
            let after = code.label();
            code.load(Width::Double, R2, R8, LAST).jump_if(R1, If::GreaterOrEqual, R2, after);
            code.alu(Alu::Mov, R1, R2).place(after).store(Width::Double, R8, LAST, R1);
        }
        code.store(Width::Double, R6, SKB_TSTAMP, R1).answer(TC_ACT_UNSPEC);
        Ok(Self { program: Program::load("correlated_delay", code)?, base })
    }

    /// Puts it on the way out of device `index` of the current namespace, as a filter of `priority`, with an `fq` that
    /// releases what it delays: as the root discipline, or below the one there is, which must have a class 1:1.
    ///
    /// # Errors
    /// Whatever the kernel refuses.
    pub fn attach(&self, index: u32, priority: u16, below: bool) -> Result<(), HostError> {
        let fq = Qdisc::Fq(Fq::releasing_exactly());
        if below {
            qdisc::attach_child(index, &fq)?
        } else {
            qdisc::attach(index, &fq)?
        }
        filter::attach(index, Direction::Egress, priority, &self.program)
    }

    /// Changes the base, for packets from now on.
    ///
    /// # Errors
    /// When the kernel refuses to.
    pub fn set_base(&self, base: Span) -> Result<(), HostError> {
        self.base.set(0, &base.as_nanos().to_ne_bytes())
    }
}

/// R1 = the packet's score, from the last one's and a fresh random number.
fn score(code: &mut Assembler, noise: &Map, correlation: f64) {
    let coefficient = |part: f64| (part * f64::from(1 << COEFFICIENT_BITS)).round() as i32;
    code.load(Width::Double, R1, R8, RANDOM).number(R2, MULTIPLIER).alu(Alu::Mul, R1, R2);
    code.number(R2, INCREMENT).alu(Alu::Add, R1, R2).store(Width::Double, R8, RANDOM, R1);
    code.alu(Alu::Shr, R1, u64::BITS as i32 - NORMAL_BITS);
    look_up(code, noise, NORMAL_BITS);
    code.load(Width::Double, R2, R8, SCORE).alu(Alu::Mul, R2, coefficient(correlation));
    code.alu(Alu::Mul, R1, coefficient((1.0 - correlation * correlation).sqrt())).alu(Alu::Add, R1, R2);
    code.alu(Alu::ShrSigned, R1, COEFFICIENT_BITS).store(Width::Double, R8, SCORE, R1);
}

/// R1 = entry R1 of a table of 2^`bits` 64-bit numbers.
fn look_up(code: &mut Assembler, table: &Map, bits: i32) {
    // It is within already; this shows the verifier.
    code.alu(Alu::And, R1, (1 << bits) - 1).alu(Alu::Mov, R3, R1).alu(Alu::Shl, R3, 3);
    code.value(R4, table).alu(Alu::Add, R4, R3).load(Width::Double, R1, R4, 0);
}
