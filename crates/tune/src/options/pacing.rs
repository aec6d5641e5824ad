//! A rate that the program sets for its own connections: none, or one just below that of a policer or of a path whose queue it fills.

use super::{Work, freed, option};
use crate::facts::{Facts, socket};
use thalweg_model::{Change, Code, Remedy, Setting, Side};
use thalweg_units::Rate;

/// Parts of the rate that a policer or a path passes.
const BELOW: [f64; 3] = [0.90, 0.94, 0.97];

pub(super) fn pacing(facts: &Facts<'_>, work: &Work, given: &[(Side, Setting, String)]) -> Vec<Remedy> {
    let side = facts.sender();
    let mut options: Vec<Remedy> = Vec::new();
    if let Some(change) = freed(side, &socket("max_pacing_rate"), given) {
        let reason = format!(
            "Let the program not limit itself to {}: it sets SO_MAX_PACING_RATE.",
            change.from.as_deref().unwrap_or_default()
        );
        options.extend(option(Code::PacingRate, reason, vec![change], "What the limit was set for."));
    }
    let paced =
        |part: f64, of: Rate| Rate::from_bits_per_second((of.bits_per_second() as f64 * part) as u64 / STEP * STEP);
    let set = |rate: Rate| -> Vec<Change> {
        facts.set(side, socket("max_pacing_rate"), rate.to_string()).into_iter().collect()
    };
    let policed = BELOW.iter().filter_map(|part| {
        let rate = work.policed?;
        let paced = paced(*part, rate);
        let reason = format!("Send no faster than {paced}: the policer passes {} of payload.", rounded(rate));
        option(Code::Policer, reason, set(paced), "A bucket that several connections share.")
    });
    options.extend(policed);
    let Some(queue) = work.full_queue.filter(|_| work.policed.is_none()) else { return options };
    let senders = work.senders.max(1);
    let share = Rate::from_bits_per_second(queue.rate.bits_per_second() / senders);
    let each = if senders > 1 { format!(" to {senders} connections at a time") } else { String::new() };
    options.extend(BELOW.iter().filter_map(|part| {
        let paced = paced(*part, share);
        let reason = format!(
            "Send no faster than {paced}: the path passes {} of payload{each}, and what stays below that neither fills its queue nor loses \
             packets there.",
            rounded(queue.rate)
        );
        option(queue.cause, reason, set(paced), SHARED)
    }));
    options
}

/// A rate with four digits at most.
fn rounded(rate: Rate) -> Rate {
    let bits = rate.bits_per_second();
    let unit = 10u64.pow(bits.max(1).ilog10().saturating_sub(3));
    Rate::from_bits_per_second((bits + unit / 2) / unit * unit)
}

/// Rates are proposed in whole multiples of this, bits per second.
const STEP: u64 = 10_000;
const SHARED: &str = "A path that other programs use, too, or whose rate changes: the rate is fixed, each connection has it for itself, and it takes \
                      nothing from others.";
