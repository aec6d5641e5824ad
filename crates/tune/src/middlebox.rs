//! A middlebox breaks an extension of TCP: do without that extension until the middlebox is mended.

use crate::facts::{Facts, sysctl};
use crate::{noted, remedy};
use thalweg_model::{Applicability, Code, Remedy};

/// It drops what lies beyond the window field.
pub(crate) fn window_scale(facts: &Facts<'_>) -> Vec<Remedy> {
    let without = "Do without window scaling until the firewall or router is mended: no window passes 65,535 bytes then, but \
                   nothing is dropped for lying beyond it.";
    without_extension(facts, Code::WindowScaleIgnored, "net.ipv4.tcp_window_scaling", without)
}

/// It changes sequence numbers and leaves selective acknowledgements as they are.
pub(crate) fn sack(facts: &Facts<'_>) -> Vec<Remedy> {
    let without = "Switch the firewall's randomization of sequence numbers off, or do without SACK until then: duplicate \
                   acknowledgements tell of losses as before SACK, one loss in a round trip.";
    without_extension(facts, Code::SackNotTranslated, "net.ipv4.tcp_sack", without)
}

fn without_extension(facts: &Facts<'_>, code: Code, key: &str, reason: &str) -> Vec<Remedy> {
    let change = facts.set(facts.sender(), sysctl(key), "0");
    let off = change.map(|change| {
        let off = remedy(
            code,
            reason.to_owned(),
            vec![change],
            // All connections of the host lose it.
            Applicability::NeedsThought,
            "Connections already open.",
        );
        noted(off, &["Compare captures on both sides of each middlebox to find which it is."])
    });
    off.into_iter().collect()
}
