//! The whole life of a connection, in words.

use crate::figures::{count, counted, elapsed, percent};
use thalweg_model::{Code, ConnectionReset, Flow, Side, TooSoon, Way};

/// Phases below this share of the whole are left out.
const MIN_SHARE: f64 = 0.01;

/// Where the time of the whole connection went, largest share first.
pub(crate) fn phases(flow: &Flow) -> Option<String> {
    let phases = &flow.life.as_ref()?.phases;
    let total = phases.total_s();
    let mut named = phases.named().to_vec();
    named.retain(|(_, seconds)| *seconds > 0.0 && *seconds >= MIN_SHARE * total);
    named.sort_by(|a, b| b.1.total_cmp(&a.1));
    let parts: Vec<String> = named
        .iter()
        .map(|(name, seconds)| format!("{name} {} ({})", percent(seconds / total), elapsed(*seconds)))
        .collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// What the share of a cause is a share of: the data phase, or the connection's life.
pub(crate) const fn whole(code: Code) -> &'static str {
    if code.is_of_life() { "the connection's life" } else { "the data phase" }
}

/// The verdict's share, and for a cause of the data phase its share of the connection's life too; `None` where it has none.
pub(crate) fn shares(flow: &Flow) -> Option<String> {
    let (code, share) = (flow.verdict.code(), flow.verdict.share);
    if share <= 0.0 && (code.is_of_life() || flow.limits.total() <= 0.0) {
        return None;
    }
    let text = format!("{} of {}", percent(share), whole(code));
    let of_life = flow.life.filter(|life| !code.is_of_life() && share > 0.0 && life.verdict_share < 0.95 * share);
    Some(
        of_life
            .map_or(text.clone(), |life| format!("{text}, {} of the connection's life", percent(life.verdict_share))),
    )
}

/// What was sent again, both ways; `None` if nothing was.
pub(crate) fn resent(flow: &Flow) -> Option<String> {
    let resent = flow.life.as_ref()?.resent.named();
    let parts: Vec<String> = resent
        .iter()
        .filter(|(_, sent)| *sent > 0)
        .map(|(name, sent)| format!("{name} {}", count(*sent as f64)))
        .collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// The connection's reset: from whom, when, and whether its TTL is the host's.
pub(crate) fn reset(flow: &Flow) -> Option<String> {
    let reset = flow.life.as_ref()?.reset?;
    let ConnectionReset { direction, packet, at_s, ttl, usual_ttl, ip_ids, followed_by_data, too_soon, .. } = reset;
    let (side, address) = match direction {
        Way::Up => ("client", &flow.client),
        Way::Down => ("server", &flow.server),
    };
    let mut text = format!("at {} (packet {packet}), with the address of the {side} {address}", elapsed(at_s));
    if let Some(usual) = usual_ttl.filter(|usual| *usual != ttl) {
        text.push_str(&format!("; its TTL is {ttl}, the {side}'s is {usual}"));
    }
    if let Some((id, last)) = ip_ids {
        text.push_str(&format!("; its IP identification is {id}, the {side}'s latest was {last} and goes up by ones"));
    }
    if let Some(TooSoon { after_s, round_trip_s }) = too_soon {
        let (after, round_trip) = (elapsed(after_s), elapsed(round_trip_s));
        text.push_str(&format!(
            "; it answers data of {after} before, and the {side} is a round trip of {round_trip} away"
        ));
    }
    if followed_by_data {
        text.push_str(&format!("; the {side} sent data after it"));
    }
    if reset.is_foreign() {
        text.push_str(&format!(": something other than the {side} sent it"));
    }
    Some(text)
}

/// The side that fell silent, and what the other one sent since.
pub(crate) fn silence(flow: &Flow) -> Option<String> {
    let silence = flow.life.as_ref()?.silence?;
    let (gone, other) = if silence.side == Side::Client { ("client", "server") } else { ("server", "client") };
    Some(format!(
        "the {gone}'s latest packet came at {}; the {other} sent {} again, from packet {} on",
        elapsed(silence.since_s),
        counted(silence.unanswered.into(), "packet"),
        silence.packet
    ))
}
