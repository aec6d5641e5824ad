//! The queue that a train of packets went through: its rate and its size, from when each packet was sent and arrived.
//!
//! While the queue is not empty, packets leave it at its rate: the slope of the arrivals. When a packet is lost, the queue was full: the packets
//! that were sent before it, and had not left the queue, are what the queue holds.

use thalweg_units::Span;

/// A queue is taken for one only if it drains slower than it is filled by this share; otherwise the packets are late for another reason.
const SLOWER: f64 = 0.02;
/// Consecutive packets that must have waited before their distances are taken for a rate.
const ROW_PACKETS_MIN: usize = 10;

/// A packet that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrainArrival {
    /// Its place in the train.
    pub number: u64,
    /// When, since the first was sent. The clocks of both ends may differ by any constant.
    pub at: Span,
}

/// What a train shows of the queue it went through.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainQueue {
    /// Frames' bits per second that left the queue while it was not empty.
    pub drain_bps: f64,
    /// Packets that left it one behind the other, which the rate is from.
    pub packets: u64,
    /// Packets the queue held when a packet was lost, one number for each lost packet, in order.
    pub held_packets: Vec<u64>,
}

impl TrainQueue {
    /// The queue of a train of equal packets with `frame_bytes` each; `None` if packets came no slower than they were sent.
    ///
    /// `sent` are the times in order of the packets' numbers. A packet has waited if it is later than the least late one by more than `waited`.
    pub fn of(sent: &[Span], arrivals: &[TrainArrival], frame_bytes: u64, waited: Span) -> Option<Self> {
        let delay = |arrival: &TrainArrival| Some(arrival.at.saturating_sub(*sent.get(arrival.number as usize)?));
        let least = arrivals.iter().filter_map(delay).min()?;
        // The longest row of packets that all waited.
        let has_waited =
            |arrival: &TrainArrival| delay(arrival).is_some_and(|delay| delay.saturating_sub(least) > waited);
        let rows = arrivals.split(|arrival| !has_waited(arrival));
        let row = rows.max_by_key(|row| row.len()).filter(|row| row.len() >= ROW_PACKETS_MIN)?;
        let seconds = row[row.len() - 1].at.saturating_sub(row[0].at).as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        let (first, last) = (row[0].number as usize, row[row.len() - 1].number as usize);
        let sent_for_s = sent[last].saturating_sub(sent[first]).as_secs_f64();
        let offered_per_s = last.saturating_sub(first) as f64 / sent_for_s;
        if (row.len() - 1) as f64 / seconds > offered_per_s * (1.0 - SLOWER) {
            return None;
        }
        let drain_bps = (row.len() - 1) as f64 * frame_bytes as f64 * 8.0 / seconds;
        // A packet left the queue its propagation before it arrived; the least late one waited for none.
        let propagation = least.saturating_sub(Span::from_secs_f64(frame_bytes as f64 * 8.0 / drain_bps));
        Some(Self { drain_bps, packets: row.len() as u64, held_packets: held(sent, arrivals, propagation) })
    }
}

/// Packets in the queue when each lost packet was sent.
fn held(sent: &[Span], arrivals: &[TrainArrival], propagation: Span) -> Vec<u64> {
    let mut left_at = vec![None; sent.len()];
    for arrival in arrivals {
        if let Some(left) = left_at.get_mut(arrival.number as usize) {
            left.get_or_insert(arrival.at.saturating_sub(propagation));
        }
    }
    let mut departures: Vec<Span> = left_at.iter().copied().flatten().collect();
    departures.sort_unstable();
    let (mut accepted, mut gone, mut held) = (0, 0, Vec::new());
    for (left, sent) in left_at.iter().zip(sent) {
        if left.is_some() {
            accepted += 1;
            continue;
        }
        while departures.get(gone as usize).is_some_and(|left| left <= sent) {
            gone += 1;
        }
        held.push(u64::saturating_sub(accepted, gone));
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: u64 = 1_500;
    const WAITED: Span = Span::from_micros(1);

    /// A queue of `room` packets that takes `service` for each, 1 ms before the receiver.
    fn through(sent: &[Span], service: Span, room: usize) -> Vec<TrainArrival> {
        let mut leaving: Vec<Span> = Vec::new();
        let mut arrivals = Vec::new();
        for (number, at) in (0..).zip(sent) {
            let waiting = leaving.iter().filter(|leaves| **leaves > *at).count();
            if waiting == room {
                continue;
            }
            let leaves = leaving.last().copied().unwrap_or_default().max(*at) + service;
            leaving.push(leaves);
            arrivals.push(TrainArrival { number, at: leaves + Span::from_millis(1) });
        }
        arrivals
    }

    fn train(packets: u64, interval_ns: u64) -> Vec<Span> {
        (0..packets).map(|number| Span::from_nanos(number * interval_ns)).collect()
    }

    #[test]
    fn finds_the_rate_and_the_size_of_a_queue() {
        let sent = train(2_000, 10_000);
        let arrivals = through(&sent, Span::from_nanos(12_000), 85);
        let found = TrainQueue::of(&sent, &arrivals, FRAME, WAITED).expect("a queue");
        assert!((found.drain_bps - 1e9).abs() < 1e3, "{}", found.drain_bps);
        assert_eq!(found.held_packets.len(), sent.len() - arrivals.len());
        assert!(found.held_packets.iter().all(|held| *held == 85), "{:?}", found.held_packets);
    }

    #[test]
    fn finds_them_where_most_is_lost() {
        let sent = train(5_000, 4_000);
        let arrivals = through(&sent, Span::from_nanos(12_000), 20);
        let found = TrainQueue::of(&sent, &arrivals, FRAME, WAITED).expect("a queue");
        assert_eq!(found.held_packets[0], 20);
    }

    #[test]
    fn the_clocks_may_differ() {
        let sent = train(2_000, 10_000);
        let late = through(&sent, Span::from_nanos(12_000), 85)
            .into_iter()
            .map(|one| TrainArrival { at: one.at + Span::from_millis(700_000), ..one })
            .collect::<Vec<_>>();
        assert_eq!(TrainQueue::of(&sent, &late, FRAME, WAITED).expect("a queue").held_packets[0], 85);
    }

    #[test]
    fn finds_no_queue_where_none_was() {
        let sent = train(100, 20_000);
        assert_eq!(TrainQueue::of(&sent, &through(&sent, Span::from_nanos(12_000), 85), FRAME, WAITED), None);
    }
}
