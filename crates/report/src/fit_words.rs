//! A fit's figures and sentences, the same in every format.

use crate::figures::{Figure, count, percent, rate};
use thalweg_model::Rival;

/// A figure of a check; its name ends in its unit.
pub(crate) fn value(name: &str, value: f64) -> String {
    if name.ends_with("_bps") || name.ends_with("_ms") { Figure::named(name).print(value) } else { count(value) }
}

/// What a remedy does to a CUBIC flow.
pub(crate) fn rival(rival: &Rival) -> String {
    format!(
        "A CUBIC flow alone has {}, beside another {} (harm {}), beside one with the remedy {} (harm {}); Jain's index with the remedy is {:.2}.",
        rate(rival.alone_bps),
        rate(rival.beside_cubic_bps),
        percent(rival.harm_of_cubic),
        rate(rival.beside_remedy_bps),
        percent(rival.harm_of_remedy),
        rival.jain
    )
}
