//! The path's rate as it is behind a queue that never empties, which delays that vary from packet to packet do not blur.

use crate::estimate::busy_bottleneck::{self, QUEUED_RTT_RATIO};
use crate::estimate::change_points::{self, LineFit, Point, nanos};
use crate::estimate::queue_direction::QueueDirection;
use crate::estimate::sliding_min;
use crate::estimate::view::{QUEUE_FLOOR_NS, View};
use crate::tcp::sender::Sender;

/// Of what round trips vary by, the most that may be on the way of acknowledgements, where the clocks tell: it is 0.06 and less at the sender and
/// 0.16 elsewhere where the data's queue varies, and more than twice as much where both ways jitter.
const MAX_ACK_PART: f64 = 0.2;
/// Part of the time after slow start that it must stand, and round trips.
const MIN_STANDING_SHARE: f64 = 0.2;
const MIN_STANDING_ROUND_TRIPS: f64 = 8.0;
/// And round trips that a piece must last in which the path is always as fast.
const MIN_PIECE_ROUND_TRIPS: f64 = 4.0;
/// Behind a queue more in flight brings no more through: of ours 0.3 and less of what a flight is larger by, and of windows that others
/// than the path hold 0.75 and more, however round trips vary.
const MAX_RATE_PER_FLIGHT: f64 = 0.35;
/// How much the rate may vary, as a part of it: of a path that delivers as fast all the while it does by 0.13 and less.
const MAX_RATE_VARIATION: f64 = 0.2;
/// What varies by less is one piece, whatever held it.
const MAX_PIECE_VARIATION: f64 = 0.1;
/// The rest must not be faster than this part of it for the rate behind the queue to be the path's at all times.
const MAX_OTHER_RATE_RATIO: f64 = 1.1;

/// A queue that stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StandingQueue {
    /// What comes through it, in bytes per second.
    pub(crate) rate: f64,
    /// Nor was it faster where none stood.
    pub(crate) always: bool,
}

/// Time, and what was delivered in it.
#[derive(Debug, Default)]
struct Passed {
    nanos: f64,
    bytes: u64,
}

/// Marks the views throughout which a queue stood; gives what passed it meanwhile, if it was the path that held it back.
pub(super) fn standing(views: &mut [View], sender: &Sender, ways: Option<QueueDirection>) -> Option<StandingQueue> {
    let (min, mean) = (sender.rtt.min? as f64, sender.rtt.mean()?);
    // Of most connections none ever waited.
    if !busy_bottleneck::waits(sender.rtt.max as f64, sender)
        || ways.is_some_and(|ways| ways.of_acknowledgements > MAX_ACK_PART)
    {
        return None;
    }
    let least = sliding_min::least(views, |slice| (slice.rtt_count > 0).then_some(slice.rtt_min as f64));
    let varies = sliding_min::varies(views, &least);
    // What a program writes evenly has more in flight as delays vary, too, and comes no faster for it.
    let by_its_clock = ways.is_none() && sender.is_set_off_by_the_program() && !sender.losses.any();
    let jitters = if by_its_clock { sliding_min::MIN_RISE_JITTERS } else { 1.0 };
    let floor = (QUEUED_RTT_RATIO * min).max(min + (jitters * varies).max(QUEUE_FLOOR_NS));
    let exit = sender.observers.slow_start.exit.map_or(0, |(at, _)| at);
    let (mut stood, mut rest) = (Passed::default(), Passed::default());
    // Time, of losses too, whose repair comes in leaps.
    let mut all = 0.0;
    let mut points: Vec<Point> = Vec::new();
    let width = sender.observers.time.width;
    let mut before: Option<(u64, f64)> = None;
    for (n, (view, least)) in views.iter_mut().zip(&least).enumerate() {
        let (at, rtt) = before.replace((view.at, view.rtt)).unwrap_or((view.at, view.rtt));
        if view.at < exit {
            continue;
        }
        // Over a silence, in which the path may be dead, nothing is known.
        let nanos = if (view.at - at) * 2 > view.span * width { 0.0 } else { (view.at - at) as f64 };
        view.queued = least.is_some_and(|least| least >= floor);
        all += nanos;
        if view.queued {
            let shows = view.rate > 0.0 && view.flight > 0;
            points.push(Point {
                view: n,
                at: view.at,
                since: view.at.saturating_sub(view.span * width),
                nanos,
                shows: shows.then(|| ((view.flight as f64).ln(), view.rate.ln())),
            });
        }
        if !view.lossy {
            // Elsewhere than at the sender acknowledgements are placed a round trip after they passed the tap, and came as the data did.
            let placed = if sender.is_exact() { 0.0 } else { view.rtt - rtt };
            let into = if view.queued { &mut stood } else { &mut rest };
            into.nanos += nanos - placed;
            into.bytes += view.slice.delivered;
        }
    }
    if stood.nanos < MIN_STANDING_ROUND_TRIPS * mean {
        return None;
    }
    let is_held = |piece: &[Point]| {
        // The round trips in which the rate changed are of both pieces.
        let cut = piece.first().filter(|first| first.view > points[0].view).map_or(0, |first| first.at);
        let fit = LineFit::of(&piece[piece.partition_point(|point| point.since < cut)..]);
        fit.slope() <= MAX_RATE_PER_FLIGHT && fit.varies() <= MAX_RATE_VARIATION
    };
    let is_one = |piece: &[Point]| LineFit::of(piece).varies() <= MAX_PIECE_VARIATION || is_held(piece);
    let pieces = change_points::pieces(&points, is_one, MIN_PIECE_ROUND_TRIPS * mean);
    let mut queued = 0.0;
    for piece in &pieces {
        if is_held(piece) && nanos(piece) >= MIN_PIECE_ROUND_TRIPS * mean {
            queued += nanos(piece);
        } else {
            piece.iter().for_each(|point| views[point.view].queued = false);
        }
    }
    if queued < MIN_STANDING_SHARE * all {
        return None;
    }
    let rate = stood.bytes as f64 / stood.nanos * 1e9;
    // A path that changes its rate has no one for all times.
    let always = pieces.len() == 1 && rest.bytes as f64 <= MAX_OTHER_RATE_RATIO * rate * (rest.nanos + mean) / 1e9;
    Some(StandingQueue { rate, always })
}
