//! A fit's figures and sentences, the same in every format.

use crate::figures::{Figure, count, percent, rate, times};
use thalweg_model::{FixReport, OtherFit, Rejected, Rival};

/// A figure of a check; its name ends in its unit.
pub(crate) fn value(name: &str, value: f64) -> String {
    if name.ends_with("_bps") || name.ends_with("_ms") { Figure::named(name).print(value) } else { count(value) }
}

/// Why a set that is better is not proposed.
pub(crate) fn rejected(one: &Rejected) -> String {
    let Rejected { set, congestion, rival, .. } = one;
    format!(
        "'{}' makes it {} as good, but {congestion} takes {} from a CUBIC flow on the same path, another CUBIC flow {}: not accepted. Where no others \
         use the path (--own-path):",
        set.name,
        set.ratios.last().map_or_else(|| "more than".to_owned(), |ratio| times(*ratio)),
        percent(rival.harm_of_remedy),
        percent(rival.harm_of_cubic)
    )
}

/// What another model that fits says.
pub(crate) fn other_fit(one: &OtherFit, fix: &FixReport) -> String {
    let print = |value: f64| Figure::named(&fix.metric).print(value);
    let set = match (&one.set, one.after) {
        (Some(set), Some(after)) => {
            let what = if is_same(one, fix) { "the same".to_owned() } else { format!("'{}'", set.name) };
            format!("There {what} is to be set: {} to {}.", print(one.before), print(after))
        }
        _ => format!("There nothing that can be set makes it better than {}.", print(one.before)),
    };
    let test = one.test.as_ref().map(|test| {
        format!(
            " To tell them apart, set '{}' and measure: about {} means the model in use, about {} means '{}'.",
            test.set,
            print(test.in_use),
            print(test.other),
            one.model
        )
    });
    format!("The model '{}' fits the capture, too. {set}{}", one.model, test.unwrap_or_default())
}

/// Commands that another model takes besides those of the remedy.
pub(crate) fn other_commands<'a>(one: &'a OtherFit, fix: &FixReport) -> &'a [String] {
    if is_same(one, fix) { &[] } else { &one.apply }
}

fn is_same(one: &OtherFit, fix: &FixReport) -> bool {
    let remedy = fix.remedy.as_ref().map(|remedy| &remedy.changes);
    one.set.as_ref().is_some_and(|set| remedy == Some(&set.changes))
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
