//! Whether a program writes by a timer: bursts that begin at equal distances.

/// Bursts that are kept: as many as show a habit; a program does not change its timer. Bounds memory.
const MAX_BURSTS: usize = 256;
/// Distances that make a habit, as of [`super::stop_and_wait`]: eight are a loop of the program.
const MIN_DISTANCES: usize = 8;
/// Shortest period, in nanoseconds: schedulers wake programs up to a few milliseconds late (a jiffy is 1 to 10 ms), which would be half of it.
/// `equal_distances_are_a_timer` holds it.
const MIN_PERIOD_NS: u64 = 10_000_000;

/// The beginnings of bursts, each after all data before it was acknowledged.
#[derive(Debug, Default)]
pub(crate) struct WriteTimer {
    last: Option<u64>,
    /// Distances below the shortest period.
    short: usize,
    distances: Vec<u64>,
    amounts: Vec<u64>,
}

/// A timer, as it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// Nanoseconds between writes, in the middle.
    pub(crate) period: u64,
    /// Bytes of a write, in the middle.
    pub(crate) amount: u64,
}

impl WriteTimer {
    /// A burst begins; the one before it carried this many bytes.
    pub(crate) fn burst(&mut self, now: u64, amount: u64) {
        let Some(distance) = self.last.replace(now).map(|last| now.saturating_sub(last)) else { return };
        if distance < MIN_PERIOD_NS {
            self.short += 1;
        } else if self.distances.len() < MAX_BURSTS {
            self.distances.push(distance);
            self.amounts.push(amount);
        }
    }

    /// The timer, where nine of ten bursts begin within a tenth of a period of it.
    pub(crate) fn found(&self) -> Option<Found> {
        if self.distances.len() < MIN_DISTANCES {
            return None;
        }
        let period = middle(&self.distances);
        let alike = self.distances.iter().filter(|distance| distance.abs_diff(period) <= period / 10).count();
        (alike * 10 >= (self.distances.len() + self.short) * 9).then(|| Found { period, amount: middle(&self.amounts) })
    }
}

fn middle(numbers: &[u64]) -> u64 {
    let mut numbers = numbers.to_vec();
    let at = numbers.len() / 2;
    *numbers.select_nth_unstable(at).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(distance: impl Fn(u64) -> u64, count: u64) -> Option<Found> {
        let (mut timer, mut now) = (WriteTimer::default(), 0);
        for n in 0..count {
            timer.burst(now, 200_000);
            now += distance(n);
        }
        timer.found()
    }

    #[test]
    fn equal_distances_are_a_timer() {
        let late = |n: u64| 40_000_000 + n % 3 * 1_000_000;
        assert_eq!(found(late, 20), Some(Found { period: 41_000_000, amount: 200_000 }));
        assert_eq!(found(late, 8), None, "too few");
        assert_eq!(found(|n| 20_000_000 + n * 5_000_000, 20), None, "each is longer");
        assert_eq!(found(|_| 1_000_000, 20), None, "as short as a scheduler's delays");
    }
}
