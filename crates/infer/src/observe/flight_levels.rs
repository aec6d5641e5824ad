//! The flights of a far sender, as the echoes in its packets tell them.

/// Flights that are counted at a time: what one has more than an eighth of the time is among them. Bounds memory.
const LEVELS_COUNTED: usize = 8;

/// The flights of a far sender, as its echoes tell them: what it had sent, less what it had heard was received, when the next tick of the
/// receiver's clock reached it. How long packets take to the tap and acknowledgements from it does not matter.
#[derive(Debug, Default)]
pub(crate) struct FlightLevels {
    counted: Option<Box<[Stood; LEVELS_COUNTED]>>,
    /// Nanoseconds of all of them.
    pub(crate) all: u64,
}

/// A flight, for how long it stood at least, and how much that may be more.
#[derive(Debug, Clone, Copy, Default)]
struct Stood {
    flight: u64,
    time: u64,
    more: u64,
}

impl FlightLevels {
    /// A flight stood for this many nanoseconds.
    ///
    /// Source: Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams", ICDT 2005
    /// (Space-Saving).
    pub(crate) fn spent(&mut self, flight: u64, nanos: u64) {
        self.all += nanos;
        let counted = self.counted.get_or_insert_default();
        if let Some(known) = counted.iter_mut().find(|known| known.flight == flight) {
            known.time += nanos;
            return;
        }
        // The one that has least gives its place, and it is not known how much of its time was this one's.
        let least = counted.iter_mut().min_by_key(|known| known.time + known.more);
        if let Some(least) = least {
            *least = Stood { flight, time: nanos, more: least.time + least.more };
        }
    }

    /// The flight at which most of the time was spent, in bytes, and that time in nanoseconds, at least.
    pub(crate) fn most(&self) -> (u64, u64) {
        let most = self.counted.iter().flat_map(|counted| counted.iter()).max_by_key(|known| known.time);
        most.map_or((0, 0), |most| (most.flight, most.time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_third_of_the_time_is_found_among_hundreds() {
        let mut flights = FlightLevels::default();
        for n in 0..3_000u64 {
            flights.spent(if n % 3 == 0 { 80_000 } else { 60_000 + n * 7_919 % 300 * 100 }, 1_000);
        }
        let (most, time) = flights.most();
        assert_eq!((most, flights.all), (80_000, 3_000_000));
        assert!((900_000..=1_010_000).contains(&time), "{time}");
    }
}
