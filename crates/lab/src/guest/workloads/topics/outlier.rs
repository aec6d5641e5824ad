//! Messages that came late, and the kind of retransmission that each had to wait for.

use std::collections::BTreeMap;
use thalweg_model::{Metric, Metrics};
use thalweg_units::Span;

/// A message is an outlier from so many times its topic's median on,
const TIMES_MEDIAN: f64 = 2.0;
/// and from so late on: below, a single RTT or a queue explains more than a loss does. TLP waits two round trips and at
/// least two ticks or so, an RTO 200 ms. Source: RFC 8985 §7.2; `TCP_RTO_MIN` in include/net/tcp.h.
const LATE_MS: f64 = 10.0;

/// What a connection had gone through at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Segments sent again.
    pub(super) retransmits: u64,
    /// Retransmission timeouts: the connection's own, from Linux 6.7 on; else those of all the host's connections.
    pub(super) timeouts: u64,
    /// Tail loss probes of all the host's connections.
    pub(super) probes: u64,
}

/// What a message had to wait for; of several, what takes longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Behind {
    /// Nothing was sent again: a queue, a window, a slow start.
    Nothing,
    /// Fast retransmit, of SACK or RACK.
    Fast,
    /// A tail loss probe.
    Tlp,
    /// A retransmission timeout.
    Rto,
}

impl Seen {
    /// What happened since `before`.
    pub(super) const fn since(self, before: Self) -> Behind {
        if self.retransmits == before.retransmits {
            Behind::Nothing
        } else if self.timeouts > before.timeouts {
            Behind::Rto
        } else if self.probes > before.probes {
            Behind::Tlp
        } else {
            Behind::Fast
        }
    }
}

/// A message that is whole at a subscriber.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delivery {
    pub(super) latency_ms: f64,
    pub(super) behind: Behind,
}

/// How many came late.
#[derive(Debug, Default)]
pub(super) struct Outliers {
    missed: u64,
    by_kind: BTreeMap<Behind, u64>,
}

impl Outliers {
    /// Those of a topic.
    pub(super) fn of(deliveries: &[Delivery], median_ms: f64, deadline: Option<Span>) -> Self {
        let mut found = Self::default();
        for delivery in deliveries {
            let missed = deadline.is_some_and(|deadline| delivery.latency_ms > deadline.as_millis_f64());
            let late = delivery.latency_ms > TIMES_MEDIAN * median_ms && delivery.latency_ms >= LATE_MS;
            found.missed += u64::from(missed);
            if missed || late {
                *found.by_kind.entry(delivery.behind).or_default() += 1;
            }
        }
        found
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.missed += other.missed;
        for (kind, count) in &other.by_kind {
            *self.by_kind.entry(*kind).or_default() += count;
        }
    }

    pub(super) fn report(&self, metrics: &mut Metrics) {
        let kinds = [(Behind::Rto, "rto"), (Behind::Tlp, "tlp"), (Behind::Fast, "fast"), (Behind::Nothing, "none")];
        let count = |kind| Metric::Count(self.by_kind.get(&kind).copied().unwrap_or(0));
        let group = kinds.into_iter().map(|(kind, name)| (name.to_owned(), count(kind)));
        metrics.insert("late_by_retransmission".to_owned(), Metric::Group(group.collect()));
        metrics.insert("late_messages".to_owned(), Metric::Count(self.by_kind.values().sum()));
        metrics.insert("missed_deadlines".to_owned(), Metric::Count(self.missed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_is_laid_to_what_takes_longest() {
        let before = Seen { retransmits: 4, timeouts: 1, probes: 2 };
        let after = |retransmits, timeouts, probes| Seen { retransmits, timeouts, probes }.since(before);
        assert_eq!(after(4, 2, 3), Behind::Nothing);
        assert_eq!([after(5, 1, 2), after(5, 1, 3), after(7, 2, 3)], [Behind::Fast, Behind::Tlp, Behind::Rto]);
    }

    #[test]
    fn late_is_past_the_deadline_or_far_from_the_median() {
        let one = |latency_ms, behind| Delivery { latency_ms, behind };
        let deliveries = [
            one(6.0, Behind::Nothing),
            one(9.9, Behind::Fast),
            one(13.0, Behind::Tlp),
            one(16.0, Behind::Tlp),
            one(210.0, Behind::Rto),
        ];
        let free = Outliers::of(&deliveries, 4.0, None);
        assert_eq!((free.missed, free.by_kind), (0, BTreeMap::from([(Behind::Tlp, 2), (Behind::Rto, 1)])));
        let bound = Outliers::of(&deliveries, 8.0, Some(Span::from_millis(9)));
        let wanted = BTreeMap::from([(Behind::Fast, 1), (Behind::Tlp, 2), (Behind::Rto, 1)]);
        assert_eq!((bound.missed, bound.by_kind), (4, wanted));
    }
}
