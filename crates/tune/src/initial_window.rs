//! The transfer is over before the congestion window has grown: begin with a larger one, or let it grow faster.

use crate::facts::{Facts, route};
use crate::{advice, congestion, human_time, noted, remedy};
use thalweg_model::{Applicability, Code, Remedy};
use thalweg_units::Span;

/// A usual initial window of CDNs, and the largest in the scenario `first-frame`: a burst of 58 KB, which the queue of any
/// access line holds. RFC 6928 §3 asks for care past 10.
const SEGMENTS: u64 = 40;
/// What the kernel begins with. Source: RFC 6928, Linux `TCP_INIT_CWND`.
const USUAL: u64 = 10;
/// What saves less than a tick of the kernel's finest clock is lost among the wake-ups of the programs. Source: Linux `CONFIG_HZ_1000`,
/// kernel/Kconfig.hz.
const SAVES: Span = Span::from_millis(1);

pub(crate) fn plan(facts: &Facts<'_>) -> Vec<Remedy> {
    let mut remedies = if facts.crept { let_grow(facts) } else { Vec::new() };
    remedies.extend(begin_larger(facts));
    remedies
}

/// What takes no round trip that is a little longer for a queue. Source: Linux `hystart_update`, tcp_cubic.c, whose parameter is read for each
/// acknowledgement.
fn let_grow(facts: &Facts<'_>) -> Vec<Remedy> {
    let off = "Or keep CUBIC and switch off what ends its slow start by delay: echo 0 > /sys/module/tcp_cubic/parameters/hystart on the sender. \
               Where a long queue does stand, slow start then fills it, and loses at its end.";
    congestion::bbr(Code::InitialWindow, facts).into_iter().chain([advice(Code::InitialWindow, off)]).collect()
}

fn begin_larger(facts: &Facts<'_>) -> Vec<Remedy> {
    let reuse = "Or keep connections open and use them again: the second transfer begins with the window the first one left \
                 (net.ipv4.tcp_slow_start_after_idle 0 keeps it over pauses).";
    let reuse = advice(Code::InitialWindow, reuse);
    let side = facts.sender();
    let segment = facts.segment();
    let fits = facts.bdp().map_or(SEGMENTS, |bdp| (bdp.get() / segment).max(USUAL));
    // What a burst has; one segment that is not full goes along.
    let needed =
        if facts.bytes == 0 { SEGMENTS } else { (facts.bytes / facts.measured.bursts.max(1)).div_ceil(segment) };
    let to = SEGMENTS.min(fits).min(needed.max(USUAL));
    let known = facts.value(side, &route("initcwnd")).and_then(|text| text.parse().ok());
    let seen = facts.first_flight;
    let current = known.or(seen.filter(|(_, exact)| *exact).map(|(first, _)| first));
    let begins = current.unwrap_or(seen.map_or(USUAL, |(least, _)| least.max(USUAL)));
    if begins >= to {
        return vec![reuse];
    }
    let doublings = (to as f64 / begins.max(1) as f64).log2().ceil();
    let saved = Span::from_secs_f64(facts.rtt.as_secs_f64() * doublings);
    let is_known = facts.rtt > Span::default();
    if is_known && saved < SAVES {
        let text = format!(
            "A larger initial window would save {} in all, less than a tick of the kernel's clock: where round trips are {}, what takes \
             time is elsewhere.",
            human_time(saved),
            human_time(facts.rtt)
        );
        return vec![advice(Code::InitialWindow, &text)];
    }
    let instead = match (current, seen) {
        (Some(current), _) => format!("instead of {current}"),
        (None, Some((least, _))) if least < USUAL => {
            format!(
                "where Linux as it ships begins with {USUAL}, and this connection had no more than {least} to send at first"
            )
        }
        (None, Some((least, _))) if least > USUAL => {
            format!(
                "where this connection had {least} or more to send at first, and Linux as it ships begins with {USUAL}"
            )
        }
        (None, _) => format!("instead of the {USUAL} that Linux as it ships begins with"),
    };
    let trip = if is_known { format!(" of {}", human_time(facts.rtt)) } else { String::new() };
    let reason =
        format!("Begin with {to} segments {instead}: each doubling of the first flight saves one round trip{trip}.");
    let larger = remedy(
        Code::InitialWindow,
        reason,
        facts.set(side, route("initcwnd"), to.to_string()).into_iter().collect(),
        // Every connection over that route begins with the larger burst.
        Applicability::NeedsThought,
        "Long transfers, which soon grow their window anyway; responses of fewer than 10 segments; and lines so slow or so \
         shallow in their queue that the first burst itself is dropped.",
    );
    let notes = [
        "Raise it in steps, 20, 30, 40, and watch retransmissions.",
        "The command is for this one address; to begin so towards all, give the metric to the route that leads to them (ip route change).",
    ];
    vec![noted(larger, &notes), reuse]
}
