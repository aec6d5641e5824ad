//! What is said where no rule found a cause: that nothing is to be gained, or why nothing is known.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{MIN_GAIN, counted, occurrences};
use crate::diagnosis::rules::initial_window;
use crate::tcp::connection::Connection;
use thalweg_model::{CarriedData, Cause, UndecidedBy, Verdict};

pub(crate) fn verdict(facts: &Facts<'_>) -> Verdict {
    if facts.phase_s > 0.0 && facts.lacks_packets() {
        let missing =
            UndecidedBy::MissingPackets { missing_bytes: facts.sender.totals.missed_bytes, bytes: facts.bytes as u64 };
        return Verdict::new(Cause::Unknown(missing), 0.0, None);
    }
    if let Some(grew) = beginning_unseen(facts) {
        return Verdict::new(Cause::Unknown(grew), 0.0, None);
    }
    if facts.phase_s > 0.0 {
        return nothing_to_gain(facts, None);
    }
    if unseen_sender(facts.connection) == Some(facts.main) {
        return Verdict::new(Cause::Unknown(only_acknowledgements(facts)), 0.0, None);
    }
    let not_seen =
        if facts.sender.totals.data_packets == 0 { UndecidedBy::NoData } else { UndecidedBy::NoAcknowledgement };
    let reason = unacknowledged(facts).unwrap_or(not_seen);
    Verdict::new(Cause::Unknown(reason), 0.0, None)
}

/// That the congestion window's growth costs much, in a capture that begins later than the connection.
fn beginning_unseen(facts: &Facts<'_>) -> Option<UndecidedBy> {
    if facts.has_beginning() {
        return None;
    }
    let grown = initial_window::grown(facts).filter(|judged| judged.weight >= MIN_GAIN)?;
    let Cause::InitialWindow(growth) = grown.cause else { return None };
    Some(UndecidedBy::BeginningUnseen { seconds: growth.seconds, of_s: facts.phase_s })
}

/// That no limit costs much; `turns_s` as in [`CarriedData`].
pub(crate) fn nothing_to_gain(facts: &Facts<'_>, turns_s: Option<f64>) -> Verdict {
    let carried = CarriedData { bytes: facts.bytes, seconds: facts.phase_s, turns_s };
    Verdict::new(Cause::NothingToGain(carried), 0.0, Some(1.0))
}

/// The side whose data the capture lacks, if it holds only what acknowledges that.
pub(crate) fn unseen_sender(connection: &Connection) -> Option<usize> {
    let unseen = connection.sides.iter().position(|side| side.packets == 0)?;
    let own = connection.sides[1 - unseen].sender.totals.bytes;
    (connection.observers.ack_stream.bytes > own).then_some(unseen)
}

fn only_acknowledgements(facts: &Facts<'_>) -> UndecidedBy {
    let acks = &facts.connection.observers.ack_stream;
    UndecidedBy::OnlyAcknowledgements {
        bytes: acks.bytes,
        seconds: acks.span() as f64 / 1e9,
        losses: acks.has_sack.then(|| counted(&acks.losses)),
        lost_bytes: acks.lost_bytes,
        duplicates: acks.duplicates,
        closed_windows: acks.zero_windows,
        rtt_s: acks.round_trip.map(|nanos| nanos as f64 / 1e9),
    }
}

/// The timer sent again what nothing acknowledged.
fn unacknowledged(facts: &Facts<'_>) -> Option<UndecidedBy> {
    let (sender, losses) = (facts.sender, &facts.sender.losses);
    // Where the capture lacks the other direction alone, new data goes on.
    let is_stuck = losses.episodes.last().is_some_and(|loss| loss.at == sender.clocks.last_send);
    if losses.timeouts < 2 || !is_stuck {
        return None;
    }
    let since = sender.totals.first_data.map_or(0, |(at, _)| sender.clocks.last_send.saturating_sub(at));
    let fired: Vec<(u64, u64)> = losses.episodes.iter().take(3).map(|loss| (loss.number, loss.at)).collect();
    Some(UndecidedBy::Unacknowledged {
        packets_again: losses.total,
        seconds: since as f64 / 1e9,
        timeouts: occurrences(losses.timeouts, &fired),
        bytes: sender.totals.bytes,
    })
}
