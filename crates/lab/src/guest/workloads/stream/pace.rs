//! A program that has data at a rate of its own, and keeps what its socket does not take: a live encoder.

use crate::guest::clock::minus;
use crate::guest::metrics::percentiles;
use std::collections::VecDeque;
use thalweg_model::{Metric, Metrics};
use thalweg_units::{Bytes, Rate, Span};

/// How often there is new data.
pub(super) const EVERY: Span = Span::from_millis(10);
/// Ages of data that are kept; of more, every other is left out.
const AGES_MAX: usize = 100_000;

/// What a program has produced and its socket not taken.
#[derive(Debug)]
pub(super) struct Production {
    rate: Rate,
    bound: Option<u64>,
    last: Option<Span>,
    /// Bytes times a second, of which no whole byte came yet.
    fraction: u128,
    /// Pieces that wait: when they were produced, and how much is left of them.
    pieces: VecDeque<(Span, u64)>,
    waiting: u64,
    waiting_max: u64,
    dropped: u64,
    /// Where in the connection's bytes each piece that was taken ends, and when it was produced.
    on_their_way: VecDeque<(u64, Span)>,
    taken: u64,
    ages_ms: Vec<f64>,
    /// Every how many-th piece's age is kept.
    stride: usize,
    arrivals: usize,
}

impl Production {
    pub(super) const fn new(rate: Rate, bound: Option<Bytes>) -> Self {
        Self {
            rate,
            bound: match bound {
                Some(bytes) => Some(bytes.get()),
                None => None,
            },
            last: None,
            fraction: 0,
            pieces: VecDeque::new(),
            waiting: 0,
            waiting_max: 0,
            dropped: 0,
            on_their_way: VecDeque::new(),
            taken: 0,
            ages_ms: Vec::new(),
            stride: 1,
            arrivals: 0,
        }
    }

    /// Data comes from now on.
    pub(super) const fn begin(&mut self, now: Span) {
        self.last = Some(now);
    }

    /// Adds what has come since the last time; drops the oldest past the bound.
    pub(super) fn produce(&mut self, now: Span) {
        let Some(last) = self.last.replace(now) else { return };
        self.fraction += u128::from(self.rate.bits_per_second()) * u128::from(minus(now, last).as_nanos());
        let bytes = (self.fraction / 8_000_000_000) as u64;
        self.fraction %= 8_000_000_000;
        if bytes > 0 {
            self.pieces.push_back((now, bytes));
            self.waiting += bytes;
        }
        while let Some(bound) = self.bound.filter(|bound| self.waiting > *bound) {
            let Some((_, oldest)) = self.pieces.front_mut() else { break };
            let over = (self.waiting - bound).min(*oldest);
            *oldest -= over;
            self.waiting -= over;
            self.dropped += over;
            if *oldest == 0 {
                self.pieces.pop_front();
            }
        }
        self.waiting_max = self.waiting_max.max(self.waiting);
    }

    /// Bytes that wait.
    pub(super) const fn waiting(&self) -> u64 {
        self.waiting
    }

    /// The socket took so many of them.
    pub(super) fn take(&mut self, mut bytes: u64) {
        self.waiting -= bytes;
        while bytes > 0 {
            let Some((at, left)) = self.pieces.front_mut() else { break };
            let of = bytes.min(*left);
            (*left, bytes, self.taken) = (*left - of, bytes - of, self.taken + of);
            if *left == 0 {
                self.on_their_way.push_back((self.taken, *at));
                self.pieces.pop_front();
            }
        }
    }

    /// The receiver has read `received` bytes in all.
    pub(super) fn arrived(&mut self, received: u64, now: Span) {
        while let Some((_, at)) = self.on_their_way.front().copied().filter(|(end, _)| *end <= received) {
            self.on_their_way.pop_front();
            if self.arrivals.is_multiple_of(self.stride) {
                self.ages_ms.push(minus(now, at).as_millis_f64());
            }
            self.arrivals += 1;
            if self.ages_ms.len() == AGES_MAX {
                let mut at = 0;
                self.ages_ms.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.stride *= 2;
            }
        }
    }
}

/// The figures of all programs of a stream; none where they send as fast as they can.
pub(super) fn report(of: &[&Production], metrics: &mut Metrics) {
    if of.is_empty() {
        return;
    }
    let sum = |figure: &dyn Fn(&Production) -> u64| Metric::Count(of.iter().map(|one| figure(one)).sum());
    metrics.insert("backlog_max_bytes".to_owned(), sum(&|one| one.waiting_max));
    metrics.insert("backlog_end_bytes".to_owned(), sum(&|one| one.waiting));
    metrics.insert("dropped_bytes".to_owned(), sum(&|one| one.dropped));
    metrics.insert("age_ms".to_owned(), percentiles(of.iter().flat_map(|one| one.ages_ms.iter().copied()).collect()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_backlog_drops_the_oldest() {
        let at = Span::from_millis;
        let mut production = Production::new(Rate::from_bits_per_second(800_000), Some(Bytes::new(1_500)));
        production.begin(at(0));
        production.produce(at(10));
        production.produce(at(20));
        assert_eq!((production.waiting(), production.dropped), (1_500, 500));
        production.take(600);
        production.arrived(500, at(45));
        assert_eq!(production.ages_ms, [35.0], "what is left of the first piece is 500 bytes");
        production.arrived(600, at(60));
        assert_eq!((production.ages_ms.len(), production.waiting()), (1, 900));
    }
}
