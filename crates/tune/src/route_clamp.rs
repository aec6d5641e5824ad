//! The congestion window stands at a bound that a route sets: lift it.

use crate::facts::{Facts, route};
use crate::{noted, remedy};
use thalweg_model::{Applicability, Change, Code, Remedy};

pub(crate) fn plan(facts: &Facts<'_>) -> Vec<Remedy> {
    let side = facts.sender();
    let from = facts.value(side, &route("cwnd")).cloned();
    let lifted = Change { side, setting: route("cwnd"), from, to: "auto".to_owned() };
    let off = remedy(
        Code::CongestionWindowClamp,
        "Take the bound off: the route to the receiver, or what the host remembers of it (ip tcp_metrics flush ADDRESS), holds \
         the congestion window at a fixed size."
            .to_owned(),
        vec![lifted],
        // Whoever set it may have had a short queue on the path in mind.
        Applicability::NeedsThought,
        "A bound that is not the route's: of the congestion control itself, or of a middlebox that ends the connection.",
    );
    vec![noted(off, &["Where the bound kept a short queue from overflowing, losses take its place."])]
}
