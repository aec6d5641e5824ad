//! A sender of which nothing was seen yet.

use super::{Noted, ORIGIN, Sender, Stamps, Unseen};
use crate::drawn::Sights;
use crate::heights::Heights;
use crate::held::Held;
use crate::ranges::Ranges;
use crate::rate::Trains;
use crate::recovery::Losses;
use crate::restarts::Restarts;
use crate::rtt::Rtt;
use crate::start::SlowStart;
use crate::timeline::Timeline;
use crate::wakes::Wakes;
use std::collections::VecDeque;

impl Sender {
    /// Begins anew, in the room of its lists.
    pub(crate) fn renew(&mut self, draw: bool) {
        let candidates = crate::room::of_queue(&mut self.candidates);
        let (trains, heights, timeline) = (self.trains.renewed(), self.heights.renewed(), self.timeline.renewed());
        *self = Self { candidates, trains, heights, timeline, ..Self::new(draw) };
    }

    #[inline]
    pub(crate) fn new(draw: bool) -> Self {
        Self {
            reference: None,
            knows_first: false,
            fin: false,
            fin_delivered: false,
            fin_joined: false,
            first: ORIGIN,
            una: ORIGIN,
            nxt: ORIGIN,
            sacked: Ranges::default(),
            resent: Ranges::default(),
            gaps: Ranges::default(),
            gap_at: 0,
            unseen: Unseen::default(),
            stamps: Stamps::default(),
            then: None,
            asked_again: None,
            is_asked: false,
            noted: Noted::default(),
            sent_to: 0,
            tail: 0,
            resent_to: 0,
            opened_late: None,
            candidates: VecDeque::new(),
            newest_tsval: None,
            newest_ip_id: None,
            mss: 1460,
            mss_known: false,
            largest_payload: 0,
            window_known: false,
            window: None,
            window_max: 0,
            edge: 0,
            filled_at: None,
            open_at: None,
            last_send: 0,
            last_progress: 0,
            last_again: 0,
            last_heard: 0,
            head_at: 0,
            told_at: None,
            progress_was_pure: false,
            flight_at_send: 0,
            duplicates_in_row: 0,
            flight_max: 0,
            losses: Losses::default(),
            rtt: Rtt::default(),
            trains: Trains::default(),
            timeline: Timeline::default(),
            start: SlowStart::default(),
            wakes: Wakes::default(),
            policed: crate::policer::Log::default(),
            heights: Heights::default(),
            restarts: Restarts::default(),
            held: Held::default(),
            largest_delivered: 0,
            acked_end: ORIGIN,
            sack_permitted: false,
            times_acks: true,
            delivered: 0,
            bytes: 0,
            data_packets: 0,
            out_of_order: 0,
            dup_acks: 0,
            zero_windows: 0,
            window_full: 0,
            full_window_sum: 0.0,
            small_windows: (0.0, 0.0, 0.0),
            missed_bytes: 0,
            first_data: None,
            bursts: 0,
            drained: false,
            last_delivery: None,
            sights: Sights::default(),
            drawn: draw.then(Box::default),
        }
    }
}
