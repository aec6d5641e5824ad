//! Small writes wait for acknowledgements: do not wait; or do not delay them, where the other side does.

use crate::facts::{AckTiming, Facts, route, socket};
use crate::{noted, remedy};
use thalweg_model::{Applicability, Code, Remedy};

pub(crate) fn plan(facts: &Facts<'_>) -> Vec<Remedy> {
    let code = Code::DelayedAck;
    let side = facts.measured.nagle_side.unwrap_or(facts.sender());
    let at_once = facts.set(side, socket("nodelay"), "true").map(|change| {
        let at_once = remedy(
            code,
            "Let the program that writes twice turn Nagle's algorithm off, or, better, hand over both pieces in one write \
             (writev, MSG_MORE): then neither waits for an acknowledgement."
                .to_owned(),
            vec![change],
            Applicability::Safe,
            "Time that the other side takes to answer.",
        );
        noted(at_once, &["A program that writes in many small pieces then sends as many small packets."])
    });
    let quickack = facts.set(side.other(), route("quickack"), "1").filter(|_| facts.ack_timing == AckTiming::Delayed);
    let answered = quickack.map(|change| {
        remedy(
            code,
            "Or let the other host acknowledge at once, where the program cannot be changed.".to_owned(),
            vec![change],
            // Every connection over the route sends about twice as many acknowledgements.
            Applicability::NeedsThought,
            "Connections over other routes.",
        )
    });
    at_once.into_iter().chain(answered).collect()
}
