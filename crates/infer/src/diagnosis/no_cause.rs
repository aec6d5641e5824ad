//! What is said where no rule found a cause: that nothing is to be gained, or why nothing can be told.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{fact, seen};
use crate::diagnosis::words;
use thalweg_model::{Code, Evidence, Verdict};

pub(crate) fn verdict(facts: &Facts<'_>) -> Verdict {
    if facts.phase_s > 0.0 {
        let claim = format!(
            "No limit costs as much as five percent: {} in {}.",
            words::size(facts.bytes),
            words::time(facts.phase_s)
        );
        return Verdict {
            code: Code::NothingToGain,
            share: 0.0,
            claim,
            gain: Some(1.0),
            weight: None,
            evidence: Vec::new(),
        };
    }
    let (claim, evidence) = unopened(facts).or_else(|| unacknowledged(facts)).unwrap_or_else(|| {
        let claim = if facts.sender.totals.data_packets == 0 {
            "The connection carried no data that got here; what may have been lost before is seen where it is sent: capture at the sender."
        } else {
            "The capture holds no acknowledgement of the data, so nothing can be said of what the sender waited for; capture at the sender."
        };
        (claim.to_owned(), Vec::new())
    });
    Verdict { code: Code::Unknown, share: 0.0, claim, gain: None, weight: None, evidence }
}

/// The client sent SYNs and nothing else, and got no SYN-ACK.
fn unopened(facts: &Facts<'_>) -> Option<(String, Vec<Evidence>)> {
    let connection = facts.connection;
    let ([client, server], [syn, answer]) = (&connection.sides, &connection.opening.syn);
    // In a capture of one direction the client goes on.
    if !syn.seen || answer.seen || client.packets != u64::from(syn.count) + connection.tap_duplicates {
        return None;
    }
    let first = (connection.first_packet, syn.first_at);
    if connection.reset && server.packets > 0 {
        let claim = "The connection was refused: a reset answered the SYN, as where nothing listens on the port, or where a filter says so.";
        return Some((claim.to_owned(), vec![seen("the SYN".to_owned(), &[first])]));
    }
    let again = syn.count.checked_sub(1).filter(|&again| again > 0 && server.packets == 0)?;
    let claim = format!(
        "Nothing answered the SYN, though it was sent again {again} times in {}: there is no such host, a filter discards what is for that port, or no way leads back.",
        words::time(syn.last_at.saturating_sub(syn.first_at) as f64 / 1e9),
    );
    Some((claim, vec![seen("the first SYN".to_owned(), &[first])]))
}

/// The timer sent again what nothing acknowledged.
fn unacknowledged(facts: &Facts<'_>) -> Option<(String, Vec<Evidence>)> {
    let (sender, losses) = (facts.sender, &facts.sender.losses);
    // Where the capture lacks the other direction alone, new data goes on.
    let is_stuck = losses.episodes.last().is_some_and(|loss| loss.at == sender.clocks.last_send);
    if losses.timeouts < 2 || !is_stuck {
        return None;
    }
    let since = sender.totals.first_data.map_or(0, |(at, _)| sender.clocks.last_send.saturating_sub(at));
    let claim = format!(
        "Nothing acknowledged the data, though it was sent again {} times in {}: its receiver is gone, or the path to it, or the path back.",
        losses.total,
        words::time(since as f64 / 1e9),
    );
    let fired: Vec<(u64, u64)> = losses.episodes.iter().take(3).map(|loss| (loss.number, loss.at)).collect();
    let timer = seen(format!("the retransmission timer ran out {} times", losses.timeouts), &fired);
    Some((claim, vec![timer, fact(format!("{} were sent", words::size(sender.totals.bytes as f64)))]))
}
