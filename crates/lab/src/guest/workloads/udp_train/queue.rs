//! What a train tells of the queue it went through.
//!
//! While the queue is never empty, packets leave it at the rate it drains at: the slope of arrivals. When the first packet is
//! lost, the queue was full: what was sent before it, and had not yet left the queue, is what it holds.

use crate::guest::clock::minus;
use thalweg_model::{Metric, Metrics};
use thalweg_units::Span;

/// Ethernet, IPv4 and UDP headers: what the packets of a path's rate measure beyond their payload.
const HEADER_BYTES: u64 = 14 + 20 + 8;
/// A packet that is so much later than the least late one has waited in a queue.
const WAITED: Span = Span::from_micros(1);
/// By what part a queue must drain slower than it is filled, to be told from packets that are late for another reason.
const SLOWER: f64 = 0.02;
/// Packets that must have waited one behind the other before their distances are taken for a rate.
const FEWEST: usize = 10;

/// A packet that came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) number: u64,
    /// When, since the first was sent.
    pub(super) at: Span,
}

/// Reports `drain_bps` where packets queued, and `buffer_packets`, `buffer_bytes` where the queue overflowed. `sent` are the
/// times the packets were sent at, in order of their numbers.
pub(super) fn report(sent: &[Span], arrivals: &[Arrival], size: u64, metrics: &mut Metrics) {
    let frame = size + HEADER_BYTES;
    let delay = |arrival: &Arrival| Some(minus(arrival.at, *sent.get(arrival.number as usize)?));
    let Some(least) = arrivals.iter().filter_map(delay).min() else { return };
    // The longest row of packets that all waited.
    let waited = |arrival: &Arrival| delay(arrival).is_some_and(|delay| minus(delay, least) > WAITED);
    let rows = arrivals.split(|arrival| !waited(arrival));
    let Some(row) = rows.max_by_key(|row| row.len()).filter(|row| row.len() >= FEWEST) else { return };
    let seconds = minus(row[row.len() - 1].at, row[0].at).as_secs_f64();
    if seconds <= 0.0 {
        return;
    }
    let drain_bps = (row.len() - 1) as f64 * frame as f64 * 8.0 / seconds;
    // What comes as fast as it was sent was only late, by jitter perhaps.
    let (first, last) = (row[0].number as usize, row[row.len() - 1].number as usize);
    let sent_at = |number: usize| sent.get(number).copied().unwrap_or_default();
    let sent_for_s = minus(sent_at(last), sent_at(first)).as_secs_f64();
    let offered_per_s = last.saturating_sub(first) as f64 / sent_for_s;
    if (row.len() - 1) as f64 / seconds > offered_per_s * (1.0 - SLOWER) {
        return;
    }
    metrics.insert("drain_bps".to_owned(), Metric::One(drain_bps));

    let mut came = vec![false; sent.len()];
    for arrival in arrivals {
        if let Some(came) = came.get_mut(arrival.number as usize) {
            *came = true;
        }
    }
    let Some(lost) = came.iter().position(|came| !came) else { return };
    // It left the queue its propagation before it arrived; the least late one waited for none.
    let serialization = Span::from_secs_f64(frame as f64 * 8.0 / drain_bps);
    let propagation = minus(least, serialization);
    let left = |arrival: &&Arrival| minus(arrival.at, propagation) <= sent[lost];
    let gone = arrivals.iter().filter(|arrival| (arrival.number as usize) < lost).filter(left).count();
    let held = (lost - gone) as u64;
    metrics.insert("buffer_packets".to_owned(), Metric::Count(held));
    metrics.insert("buffer_bytes".to_owned(), Metric::Count(held * frame));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue of `room` packets that takes `service` for each, 1 ms before the receiver.
    fn through(sent: &[Span], service: Span, room: usize) -> Vec<Arrival> {
        let mut leaving: Vec<Span> = Vec::new();
        let mut arrivals = Vec::new();
        for (number, at) in sent.iter().enumerate() {
            let waiting = leaving.iter().filter(|leaves| **leaves > *at).count();
            if waiting == room {
                continue;
            }
            let begins = leaving.last().copied().unwrap_or_default().max(*at);
            let leaves = Span::from_nanos(begins.as_nanos() + service.as_nanos());
            leaving.push(leaves);
            let at = Span::from_nanos(leaves.as_nanos() + 1_000_000);
            arrivals.push(Arrival { number: number as u64, at });
        }
        arrivals
    }

    #[test]
    fn finds_the_rate_and_the_room_of_a_queue() {
        let (service, room) = (Span::from_nanos(12_000), 85);
        let sent: Vec<Span> = (0..2_000).map(|number| Span::from_nanos(number * 10_000)).collect();
        let mut metrics = Metrics::new();
        report(&sent, &through(&sent, service, room), 1_458, &mut metrics);
        assert_eq!(metrics["buffer_packets"], Metric::Count(85));
        let Metric::One(drain) = metrics["drain_bps"] else { panic!("a rate") };
        assert!((drain - 1e9).abs() < 1e3, "{drain}");
    }

    #[test]
    fn finds_them_where_most_is_lost() {
        let sent: Vec<Span> = (0..5_000).map(|number| Span::from_nanos(number * 4_000)).collect();
        let mut metrics = Metrics::new();
        report(&sent, &through(&sent, Span::from_nanos(12_000), 20), 1_458, &mut metrics);
        assert_eq!(metrics["buffer_packets"], Metric::Count(20));
    }

    #[test]
    fn says_nothing_of_a_queue_that_never_was() {
        let sent: Vec<Span> = (0..100).map(|number| Span::from_nanos(number * 20_000)).collect();
        let mut metrics = Metrics::new();
        report(&sent, &through(&sent, Span::from_nanos(12_000), 85), 1_458, &mut metrics);
        assert!(metrics.is_empty(), "{metrics:?}");
    }
}
