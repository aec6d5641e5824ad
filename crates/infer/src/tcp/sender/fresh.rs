//! A sender of which nothing was seen yet.

use super::{Notes, ORIGIN, Sender};
use crate::observe::example_packets::ExamplePackets;
use crate::observe::gap_spacing::GapSpacing;
use crate::observe::idle_restarts::IdleRestarts;
use crate::observe::nagle_delayed_ack::NagleDelayedAck;
use crate::observe::slow_start::SlowStart;
use crate::observe::sndbuf_wakeups::SndbufWakeups;
use crate::tcp::receiver_view::ipid_gaps::IpIdGaps;
use crate::tcp::receiver_view::one_way_delay::OneWayDelay;
use crate::tcp::receiver_view::remote_clock::{RemoteClock, SendTriggers};
use crate::tcp::recovery::Losses;
use crate::tcp::rtt_estimator::RttEstimator;

impl Sender {
    pub(crate) fn new(draw: bool) -> Self {
        let mut new = Self::default();
        new.renew(draw);
        new
    }

    /// Begins anew, in the room of its lists. Field by field: to make one elsewhere and move it here is to write thousands of bytes twice.
    pub(crate) fn renew(&mut self, draw: bool) {
        let Self {
            reference,
            knows_first,
            fin,
            fin_delivered,
            fin_joined,
            first,
            una,
            nxt,
            sacked,
            resent,
            gaps,
            gap_at,
            unseen,
            stamps,
            then,
            prompts,
            asked_again,
            is_asked,
            answers_at,
            noted,
            sent_to,
            tail,
            resent_to,
            opened_late,
            candidates,
            newest_tsval,
            newest_ip_id,
            mss,
            mss_known,
            largest_payload,
            window_known,
            window,
            window_max,
            edge,
            filled_at,
            open_at,
            last_send,
            last_progress,
            last_again,
            last_heard,
            head_at,
            told_at,
            progress_was_pure,
            flight_at_send,
            duplicates_in_row,
            duplicated,
            flight_max,
            from_below,
            losses,
            rtt,
            legs,
            trains,
            timeline,
            start,
            wakes,
            told_flights,
            policed,
            heights,
            holes,
            last_gap,
            restarts,
            held,
            largest_delivered,
            acked_end,
            sack_permitted,
            times_acks,
            delivered,
            bytes,
            data_packets,
            out_of_order,
            dup_acks,
            zero_windows,
            probed,
            window_full,
            full_window_sum,
            small_windows,
            small_edges,
            missed_bytes,
            first_data,
            bursts,
            drained,
            last_delivery,
            sights,
            drawn,
        } = self;
        *reference = None;
        *knows_first = false;
        *fin = false;
        *fin_delivered = false;
        *fin_joined = false;
        *first = ORIGIN;
        *una = ORIGIN;
        *nxt = ORIGIN;
        sacked.renew();
        resent.renew();
        gaps.renew();
        *gap_at = 0;
        *unseen = IpIdGaps::default();
        *stamps = RemoteClock::default();
        *then = None;
        *prompts = SendTriggers::default();
        *asked_again = None;
        *is_asked = false;
        *answers_at = 0;
        *noted = Notes::default();
        *sent_to = 0;
        *tail = 0;
        *resent_to = 0;
        *opened_late = None;
        *candidates = crate::room::of_queue(candidates);
        *newest_tsval = None;
        *newest_ip_id = None;
        *mss = 1460;
        *mss_known = false;
        *largest_payload = 0;
        *window_known = false;
        *window = None;
        *window_max = 0;
        *edge = 0;
        *filled_at = None;
        *open_at = None;
        *last_send = 0;
        *last_progress = 0;
        *last_again = 0;
        *last_heard = 0;
        *head_at = 0;
        *told_at = None;
        *progress_was_pure = false;
        *flight_at_send = 0;
        *duplicates_in_row = 0;
        *duplicated = 0;
        *flight_max = 0;
        *from_below = 0;
        *losses = Losses::default();
        *rtt = RttEstimator::default();
        *legs = OneWayDelay::default();
        *trains = trains.renewed();
        *timeline = timeline.renewed();
        *start = SlowStart::default();
        *wakes = SndbufWakeups::default();
        *told_flights = None;
        *policed = crate::observe::policer_log::PolicerLog::default();
        *heights = heights.renewed();
        *holes = GapSpacing::default();
        *last_gap = 0;
        *restarts = IdleRestarts::default();
        *held = NagleDelayedAck::default();
        *largest_delivered = 0;
        *acked_end = ORIGIN;
        *sack_permitted = false;
        *times_acks = true;
        *delivered = 0;
        *bytes = 0;
        *data_packets = 0;
        *out_of_order = 0;
        *dup_acks = 0;
        *zero_windows = 0;
        *probed = None;
        *window_full = 0;
        *full_window_sum = 0.0;
        *small_windows = (0.0, 0.0, 0.0);
        *small_edges = (0, 0);
        *missed_bytes = 0;
        *first_data = None;
        *bursts = 0;
        *drained = false;
        *last_delivery = None;
        *sights = ExamplePackets::default();
        *drawn = draw.then(Box::default);
    }
}
