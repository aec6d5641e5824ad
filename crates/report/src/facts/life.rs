//! The whole life of a connection, in words.

use crate::figures::{count, elapsed, percent};
use thalweg_model::{ConnectionReset, Failure, Flow, Way};

/// Phases below this share of the whole are left out.
const MIN_SHARE: f64 = 0.01;

/// The failure that costs more than the transfer, in a sentence.
pub(crate) fn failure(flow: &Flow) -> Option<String> {
    let life = flow.life.as_ref()?;
    let (resent, lost) = (&life.resent, elapsed(life.lost_s()));
    let share = percent(life.lost_s() / life.phases.total_s());
    Some(match life.failure? {
        Failure::ConnectingLoss => format!(
            "Connecting took {lost}, {share} of the connection's life: the SYN was sent again {} times and the SYN-ACK {} times.",
            resent.syn, resent.syn_ack
        ),
        Failure::AcceptQueue => format!(
            "For {lost}, {share} of the connection's life, the accept queue of the server's listener was full: the SYN-ACK came again after the request. Raise the program's backlog and net.core.somaxconn on the server, or let the program accept sooner."
        ),
        Failure::RequestLost => format!(
            "For {lost}, {share} of the connection's life, a request was not acknowledged; the client's data was sent again {} times.",
            count(resent.data_up as f64)
        ),
        Failure::ForeignReset => {
            let reset = life.reset?;
            let side = if reset.direction == Way::Up { "client" } else { "server" };
            let idle = if reset.idle_s > MIN_IDLE_S {
                format!(
                    " after {} of silence: a firewall or NAT may have dropped the idle connection",
                    elapsed(reset.idle_s)
                )
            } else {
                String::new()
            };
            format!("The connection was reset by something other than the {side}{idle}.")
        }
    })
}

/// Silence from which on a sentence names an idle time-out. A choice of ours: RFC 5382 REQ-5 asks for two hours, and middleboxes have minutes.
const MIN_IDLE_S: f64 = 30.0;

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
    let ConnectionReset { direction, packet, at_s, ttl, usual_ttl, followed_by_data, .. } = reset;
    let (side, address) = match direction {
        Way::Up => ("client", &flow.client),
        Way::Down => ("server", &flow.server),
    };
    let mut text = format!("at {} (packet {packet}), with the address of the {side} {address}", elapsed(at_s));
    if let Some(usual) = usual_ttl.filter(|usual| *usual != ttl) {
        text.push_str(&format!("; its TTL is {ttl}, the {side}'s is {usual}"));
    }
    if followed_by_data {
        text.push_str(&format!("; the {side} sent data after it"));
    }
    if reset.is_foreign() {
        text.push_str(&format!(": something other than the {side} sent it"));
    }
    Some(text)
}
