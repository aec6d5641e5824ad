//! The least of something within the round trip up to each view.

use crate::estimate::view::View;
use crate::observe::time_by_limit::Slice;
use std::collections::VecDeque;

/// By how many times what round trips vary by within one the least of them is above the least of all, at least, while a queue stands: of what is
/// sent evenly over a path that jitters that is not so.
pub(super) const MIN_RISE_JITTERS: f64 = 4.0;

/// What round trips are above the least of those lately, in the middle; nanoseconds.
pub(super) fn varies(views: &[View], least: &[Option<f64>]) -> f64 {
    let above = views.iter().zip(least).filter_map(|(view, least)| least.map(|least| view.rtt - least));
    let mut above: Vec<f64> = above.collect();
    let middle = above.len() / 2;
    if above.is_empty() { 0.0 } else { *above.select_nth_unstable_by(middle, f64::total_cmp).1 }
}

/// The least of what the slices of that round trip show; `None` where none shows it, nor one of the round trip before.
pub(super) fn least(views: &[View], of: impl Fn(&Slice) -> Option<f64>) -> Vec<Option<f64>> {
    let mut last = None;
    // Values ascending from the front, where the least of what is not too long ago is, each with its slice's index.
    let mut held: VecDeque<(u64, f64)> = VecDeque::new();
    let mut least = Vec::with_capacity(views.len());
    for view in views {
        let index = view.slice.index;
        while held.front().is_some_and(|(at, _)| at + view.span <= index) {
            last = held.pop_front();
        }
        if let Some(value) = of(&view.slice) {
            while held.back().is_some_and(|(_, other)| *other >= value) {
                held.pop_back();
            }
            held.push_back((index, value));
        }
        let found = held.front().copied().or_else(|| last.filter(|(at, _)| at + 2 * view.span > index));
        least.push(found.map(|(_, value)| value));
    }
    least
}
