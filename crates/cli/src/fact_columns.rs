//! The facts of a connection as columns of its row; null is what the capture does not show.

use model::Facts;
use report::tables::{Column, Kind, Value};

type Of = for<'a> fn(&'a Facts) -> Value<'a>;

/// Name, kind, and what of the facts stands there.
const COLUMNS: [(&str, Kind, Of); 11] = {
    use Kind::{Count, Flag, Text};
    [
        ("tap_duplicates", Count, |f| f.tap_duplicates.into()),
        ("ecn_negotiated", Flag, |f| f.ecn.and_then(|ecn| ecn.negotiated).into()),
        ("ecn_capable", Count, |f| f.ecn.map(|ecn| ecn.capable).into()),
        ("ecn_marked", Count, |f| f.ecn.map(|ecn| ecn.marked).into()),
        ("ecn_echoes", Count, |f| f.ecn.map(|ecn| ecn.echoes).into()),
        ("ecn_reductions", Count, |f| f.ecn.map(|ecn| ecn.reductions).into()),
        ("fast_open_accepted", Flag, |f| f.fast_open.as_ref().and_then(|open| open.accepted).into()),
        ("multipath", Text, |f| f.multipath.map(|multipath| multipath.kind.as_str()).into()),
        ("keep_alives", Count, |f| f.keep_alives.as_ref().map(|probes| probes.client + probes.server).into()),
        ("window_probes", Count, |f| f.keep_alives.as_ref().map(|probes| probes.window_probes).into()),
        ("probes_answered", Count, |f| f.keep_alives.as_ref().map(|probes| probes.answers).into()),
    ]
};

/// The columns.
pub(crate) fn columns() -> impl Iterator<Item = Column> {
    COLUMNS.iter().map(|(name, kind, _)| Column::new(*name, *kind))
}

/// The values of a connection's row.
pub(crate) fn values(facts: &Facts) -> impl Iterator<Item = Value<'_>> {
    COLUMNS.iter().map(move |(_, _, of)| of(facts))
}
