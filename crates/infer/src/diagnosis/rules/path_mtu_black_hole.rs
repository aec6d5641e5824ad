//! Packets longer than the path carries vanish without a word.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, MAX_WEIGHT, occurrences};
use crate::diagnosis::gain::weight_of_time;
use crate::event::RetransmitKind;
use crate::observe::connection_phases::Phase;
use thalweg_model::{Cause, LargePackets, TooBigErrors, Vantage};
use thalweg_units::Timestamp;

/// Times the timer must have sent a long segment again in vain. `an_error_that_names_the_mtu_is_quoted` holds it.
const MIN_TIMEOUTS: u64 = 2;
/// No link's MTU is below 576 (RFC 791): shorter segments vanish for another reason.
const MIN_SEGMENT_BYTES: u64 = 500;
/// Where no segment at all arrived it may as well be the receiver that is gone. Then it takes a handshake that passed, and segments that are
/// longer than what every link of IPv6 carries (1280, RFC 8200 §5), less headers: few of IPv4 carry less.
const MIN_SEGMENT_BYTES_ALONE: u64 = 1_200;
/// At the receiver: a transfer of this many segments that all are shorter than agreed, after a silence of so long. Linux makes its segments
/// smaller after three timeouts (`tcp_retries1`), which take 1.4 s at least (`TCP_RTO_MIN`, doubled twice).
const MIN_SEGMENTS: u64 = 20;
const MIN_SILENCE_S: f64 = 1.0;

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let beside_receiver =
        if facts.vantage == Vantage::Receiver { after_silence(facts).or_else(|| missing(facts)) } else { None };
    beside_receiver.or_else(|| sent_again(facts))
}

/// Before the hole they pass the tap again and again.
fn sent_again(facts: &Facts<'_>) -> Option<Judged> {
    let sender = facts.sender;
    // A packet beside its sender may hold many segments.
    let largest = u64::from(sender.space.largest_payload).min(sender.space.mss);
    let got = sender.scoreboard.largest_delivered;
    if sender.losses.timeouts < MIN_TIMEOUTS
        || largest < MIN_SEGMENT_BYTES
        || got >= largest
        || sender.totals.data_packets < 2
    {
        return None;
    }
    if got == 0 && (largest < MIN_SEGMENT_BYTES_ALONE || sender.rtt.handshake.is_none()) {
        return None;
    }
    let all = facts.phase_s <= 0.0;
    let fired: Vec<_> = sender.losses.episodes.iter().filter(|loss| loss.kind == RetransmitKind::Timer).collect();
    let first: Vec<(u64, u64)> = fired.iter().take(3).map(|loss| (loss.number, loss.at)).collect();
    let share = if all { 1.0 } else { facts.limits().timeout };
    if share <= 0.0 {
        return None;
    }
    let gain = facts.gain_without(facts.split.timeout.and(facts.split.loss_recovery), 0.0);
    let cause = LargePackets::Retransmissions {
        segment_bytes: largest,
        arrived_bytes: got,
        timeouts: occurrences(sender.losses.timeouts, &first),
        errors: too_big(facts),
    };
    let weight = if all { MAX_WEIGHT } else { gain.max(weight_of_time(share)) };
    Some(Judged::new(Cause::PathMtuBlackHole(cause), share, weight, (!all).then_some(gain)))
}

/// The ICMP errors about what the sender sent.
fn too_big(facts: &Facts<'_>) -> Option<TooBigErrors> {
    let connection = facts.connection;
    let errors = connection.too_big.as_ref()?.about(facts.main)?;
    let since_start = |at: Timestamp| at.since(connection.started).as_nanos();
    let first: Vec<(u64, u64)> = errors.first.iter().map(|&(number, at)| (number, since_start(at))).collect();
    Some(TooBigErrors { errors: occurrences(errors.count, &first), mtu_bytes: errors.mtu })
}

/// At the receiver the long packets are never seen: only that the sender fell silent and then went on with short ones.
fn after_silence(facts: &Facts<'_>) -> Option<Judged> {
    let sender = facts.sender;
    let largest = u64::from(sender.space.largest_payload);
    // A handshake or a request that was lost explains a late response as well.
    let phases = &facts.connection.observers.phases;
    let explained_s: f64 =
        [Phase::Connecting, Phase::AcceptQueue, Phase::Request].iter().map(|phase| phases.seconds(*phase)).sum();
    let first_s = sender.totals.first_data.map_or(0.0, |(at, _)| at as f64 / 1e9);
    let silent_s = first_s - facts.rtt_min_s.max(explained_s);
    let agreed_bytes = short_of(facts)?;
    if sender.totals.bytes < MIN_SEGMENTS * agreed_bytes || silent_s < MIN_SILENCE_S {
        return None;
    }
    let share = silent_s / (silent_s + facts.phase_s);
    let cause = LargePackets::Arrivals {
        silence_s: silent_s,
        longest_bytes: largest,
        agreed_bytes,
        bytes: sender.totals.bytes,
    };
    Some(Judged::new(Cause::PathMtuBlackHole(cause), share, weight_of_time(share), None))
}

/// What was agreed, if all segments are shorter.
fn short_of(facts: &Facts<'_>) -> Option<u64> {
    let space = &facts.sender.space;
    space.agreed.filter(|agreed| u64::from(space.largest_payload) + 8 < *agreed)
}

/// Or that a full segment and more is missing to the end, while shorter ones behind it came.
fn missing(facts: &Facts<'_>) -> Option<Judged> {
    let sender = facts.sender;
    let silence_s = sender.losses.in_vain? as f64 / 1e9;
    let (missing_bytes, agreed_bytes) = (sender.scoreboard.missing_bytes(), short_of(facts)?);
    if missing_bytes < agreed_bytes || silence_s < MIN_SILENCE_S {
        return None;
    }
    let share = facts.limits().timeout;
    let gain = facts.gain_without(facts.split.timeout.and(facts.split.loss_recovery), 0.0);
    let longest_bytes = u64::from(sender.space.largest_payload);
    let cause = LargePackets::Missing { silence_s, missing_bytes, longest_bytes, agreed_bytes };
    Some(Judged::new(Cause::PathMtuBlackHole(cause), share, gain.max(weight_of_time(share)), None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{connection_at, packet};
    use thalweg_wire::{Flags, Options};

    /// A packet of this many bytes arrives; a timer sends the beginning of one of `len` bytes again, twice and in vain, and then half of it, which
    /// arrives. Then comes one of `more` bytes.
    fn is_black_hole(arrives: u32, len: u32, more: u32) -> bool {
        const ACK: u8 = Flags::ACK;
        let [mut syn, mut answer] = [packet(true, Flags::SYN, 100, 0, 0), packet(false, Flags::SYN | ACK, 500, 101, 0)];
        for opening in [&mut syn, &mut answer] {
            opening.tcp.options = Options { mss: Some(1_460), ..Options::default() };
        }
        let from = 501 + arrives;
        let made = connection_at(&[
            (0, syn),
            (0, answer),
            (20, packet(true, ACK, 101, 501, 0)),
            (20, packet(false, ACK, 501, 101, arrives)),
            (40, packet(true, ACK, 101, from, 0)),
            (40, packet(false, ACK, from, 101, len)),
            (300, packet(false, ACK, from, 101, 1_460)),
            (900, packet(false, ACK, from, 101, 1_460)),
            (2_000, packet(false, ACK, from, 101, 730)),
            (2_020, packet(true, ACK, 101, from + 730, 0)),
            (2_020, packet(false, ACK, from + 730, 101, len - 730)),
            (2_020, packet(false, ACK, from + len, 101, more)),
            (2_040, packet(true, ACK, 101, from + len + more, 0)),
        ]);
        let facts = Facts::new(&made, 1, Vantage::Sender, &made.sides[1].sender.observers.nagle);
        judge(&facts).is_some()
    }

    #[test]
    fn a_burst_handed_down_whole_need_not_arrive_whole() {
        assert!(is_black_hole(1_000, 1_460, 730));
        assert!(is_black_hole(1_000, 14_600, 730 * 8), "half segments, merged");
        assert!(!is_black_hole(1_000, 1_460, 1_460) && !is_black_hole(7_300, 14_600, 730), "long ones arrived");
    }
}
