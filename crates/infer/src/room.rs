//! The room of lists that are not needed any more, for those that come next: to find it anew takes a tenth of the analysis of short connections.

use std::collections::VecDeque;

/// Most entries whose room is kept: a short connection's.
const MOST: usize = 256;

/// The room of a queue.
pub(crate) fn of_queue<T>(queue: &mut VecDeque<T>) -> VecDeque<T> {
    let mut queue = std::mem::take(queue);
    queue.clear();
    if queue.capacity() > MOST { VecDeque::new() } else { queue }
}

/// The room of a list.
pub(crate) fn of_list<T>(list: &mut Vec<T>) -> Vec<T> {
    let mut list = std::mem::take(list);
    list.clear();
    if list.capacity() > MOST { Vec::new() } else { list }
}
