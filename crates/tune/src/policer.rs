//! A policer discards what is over its rate: stay below it.

use crate::facts::{Facts, socket};
use crate::{congestion, noted, remedy};
use thalweg_model::{Applicability, Code, Remedy};
use thalweg_units::Rate;

/// Headers of a frame: Ethernet, IPv4, TCP with timestamps.
const HEADERS: f64 = 66.0;
/// Of the policer's rate: its rate is known to a few percent, and above it losses begin.
const BELOW: f64 = 0.95;
/// Rates are proposed in whole multiples of this, bits per second.
const STEP: u64 = 10_000;

pub(crate) fn plan(facts: &Facts<'_>) -> Vec<Remedy> {
    let code = Code::Policer;
    let paced = facts.policer.and_then(|bucket| {
        let segment = facts.segment() as f64;
        let payload = bucket.rate_bps * segment / (segment + HEADERS);
        let rate = Rate::from_bits_per_second(((payload * BELOW) as u64 / STEP).max(1) * STEP);
        let change = facts.set(facts.sender(), socket("max_pacing_rate"), rate.to_string())?;
        let reason = format!(
            "Send no faster than {rate}: the policer passes {} on the wire, and what stays below it loses nothing.",
            Rate::from_bits_per_second(bucket.rate_bps as u64 / STEP * STEP)
        );
        let paced = remedy(
            code,
            reason,
            vec![change],
            Applicability::Safe,
            "A bucket that several connections share: each is to have its part of the rate.",
        );
        let elsewhere = "Outside of the program, the fq queueing discipline's maxrate does the same; before Linux 4.13 pacing needs fq \
                         in any case.";
        Some(noted(paced, &[elsewhere]))
    });
    paced.into_iter().chain(congestion::bbr(code, facts)).collect()
}
