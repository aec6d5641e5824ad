//! The transfer is over before the congestion window has grown: begin with a larger one.

use crate::{Facts, human_time};
use model::{Applicability, Change, Code, Remedy, Setting};

/// What CDNs are known to begin with, and the most seed 000 tries; a burst of 58 KB, which a queue of any access line
/// holds. RFC 6928 §3 asks to go past 10 only with care.
const SEGMENTS: u64 = 40;

pub(crate) fn plan(facts: &Facts<'_>) -> Option<Remedy> {
    let side = facts.sender();
    let from = facts.route(side, "initcwnd");
    let fits = facts.bdp().map_or(SEGMENTS, |bdp| (bdp.get() / u64::from(facts.mss.max(1))).max(10));
    let to = SEGMENTS.min(fits);
    let current = from.as_deref().and_then(|text| text.parse().ok()).unwrap_or(10u64);
    if current >= to {
        return None;
    }
    Some(Remedy {
        code: Code::InitialWindow,
        reason: format!(
            "Begin with {to} segments instead of {current}: each doubling of the first flight saves one round trip of {}.",
            human_time(facts.rtt)
        ),
        changes: vec![Change { side, setting: Setting::Route("initcwnd".to_owned()), from, to: to.to_string() }],
        // Every connection over that route begins with the larger burst.
        applicability: Applicability::NeedsThought,
        wont_help: "Long transfers, which soon grow their window anyway; responses of fewer than 10 segments; and lines so \
                    slow or so shallow in their queue that the first burst itself is dropped: raise it in steps, 20, 30, 40, \
                    and watch retransmissions."
            .to_owned(),
    })
}
