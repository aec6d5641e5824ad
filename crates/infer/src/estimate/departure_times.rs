//! When packets left a far sender, by the clock in their timestamps.
//!
//! A queue behind a policer spreads the packets of a burst over a longer time than they met the policer in. Their timestamps tell to a tick of the
//! sender's clock when they left; within a tick, what came without waiting tells it exactly.

use crate::observe::policer_log::Sent;
use crate::tcp::receiver_view::remote_clock::TICK;

/// The packets with the times at which they left the sender, instead of those at which they passed the tap; `None` where no timestamps tell.
///
/// Packets of one tick are spread over it. Those that never came are spread between their neighbours, or follow the one before at the distance of that
/// where the sender paused behind it.
pub(crate) fn departures(sent: &[Sent]) -> Option<Vec<Sent>> {
    let mut tick = sent.iter().map(|packet| packet.left_us).find(|left| *left > 0)?;
    let mut all = sent.to_vec();
    let mut seen: Vec<usize> = Vec::new();
    for (at, packet) in all.iter_mut().enumerate().filter(|(_, packet)| !packet.unseen) {
        tick = tick.max(packet.left_us);
        packet.left_us = tick;
        seen.push(at);
    }
    // How much later than it left the packet came that waited least, and what the clocks differ by.
    let late = |packet: &Sent| packet.at as i64 - i64::from(packet.left_us) * 1_000;
    let least = seen.iter().map(|&at| late(&all[at])).min()?;
    let mut latest = 0;
    for same_tick in seen.chunk_by(|&a, &b| all[a].left_us == all[b].left_us).map(<[usize]>::to_vec).collect::<Vec<_>>()
    {
        let first = same_tick[0];
        let count = (same_tick[same_tick.len() - 1] - first + 1) as u64;
        for at in same_tick {
            let begin = u64::from(all[at].left_us) * 1_000;
            let spread = begin + TICK * (2 * (at - first) as u64 + 1) / (2 * count);
            latest = spread.min((all[at].at as i64 - least).unsigned_abs()).max(latest);
            all[at].at = latest;
        }
    }
    let (Some(&first), Some(&last)) = (seen.first(), seen.last()) else { return None };
    let mut distance = u64::MAX;
    for pair in seen.windows(2) {
        let (before, after) = (all[pair[0]], all[pair[1]]);
        let gap = after.at - before.at;
        if pair[1] == pair[0] + 1 {
            distance = if before.left_us == after.left_us { gap } else { distance };
            continue;
        }
        let even = gap / (pair[1] - pair[0]) as u64;
        let paused = u64::from(after.left_us - before.left_us) * 1_000 > 2 * TICK;
        let step = if paused { even.min(distance) } else { even };
        (pair[0] + 1..pair[1]).zip(1..).for_each(|(at, n)| all[at].at = before.at + step * n);
    }
    let (begin, end) = (all[first].at, all[last].at);
    all[..first].iter_mut().for_each(|packet| packet.at = begin);
    all[last + 1..].iter_mut().for_each(|packet| packet.at = end);
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn packet(at: u64, left_us: u32) -> Sent {
        Sent { at, start: 0, len: 1448, rtt: 0, lost: left_us == 0, unseen: left_us == 0, left_us }
    }

    #[test]
    fn a_queue_behind_the_sender_does_not_spread_a_burst() {
        // Four packets of one tick came over 4 ms, one between them never did, and one of a later flight came without waiting.
        let log =
            [packet(50 * MS, 1), packet(51 * MS, 1), packet(52 * MS, 0), packet(53 * MS, 1), packet(99 * MS, 49_001)];
        let left: Vec<u64> = departures(&log).expect("timestamps").iter().map(|packet| packet.at / 1_000).collect();
        assert_eq!(left, [1, 376, 626, 876, 49_001]);
    }

    #[test]
    fn what_is_missing_before_a_pause_followed_what_left_before_it() {
        let log =
            [packet(50 * MS, 1), packet(50 * MS + 500_000, 1), packet(0, 0), packet(0, 0), packet(99 * MS, 49_001)];
        let left: Vec<u64> = departures(&log).expect("timestamps").iter().map(|packet| packet.at / 1_000).collect();
        assert_eq!(left, [1, 501, 1_001, 1_501, 49_001]);
    }

    #[test]
    fn without_timestamps_nothing_is_known() {
        assert!(departures(&[packet(0, 0), packet(MS, 0)]).is_none());
    }
}
