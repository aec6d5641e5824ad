//! The flights of a far sender, as the echoes in its packets tell them.

/// The flights of a far sender, as its echoes tell them: what it had sent, less what it had heard was received, when the next tick of the
/// receiver's clock reached it. How long packets take to the tap and acknowledgements from it does not matter.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    /// Of the flight that most of the time was spent at, if one was; in bytes and nanoseconds.
    pub(crate) most: u64,
    pub(crate) time: u64,
    /// Of all of them.
    pub(crate) all: u64,
    /// How far it is ahead of the others.
    lead: u64,
}

impl Flights {
    /// A flight stood for so long.
    ///
    /// Source: Boyer and Moore, "MJRTY, a fast majority vote algorithm".
    pub(crate) fn spent(&mut self, flight: u64, nanos: u64) {
        self.all += nanos;
        if flight == self.most {
            self.lead += nanos;
            self.time += nanos;
        } else if self.lead >= nanos {
            self.lead -= nanos;
        } else {
            (self.most, self.time, self.lead) = (flight, nanos, nanos - self.lead);
        }
    }
}
