//! When the sender last sent, heard and progressed.

/// Moments of one direction, in nanoseconds since the flow's first packet.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    /// Of the latest packet of the data phase.
    pub(super) now: u64,
    pub(super) burst: Burst,
    pub(crate) last_send: u64,
    /// The same, of what is more than the end of its data, a FIN or an alert.
    pub(super) last_data: u64,
    /// Nanoseconds between the last two packets with data.
    pub(super) last_gap: u64,
    pub(super) last_progress: u64,
    /// It was an acknowledgement without payload that brought it.
    pub(super) progress_was_pure: bool,
    /// When anything was sent again last.
    pub(super) last_again: u64,
    pub(super) last_heard: u64,
    /// When the first unacknowledged byte was sent last, or came to be the first.
    pub(super) head_at: u64,
    /// When it was reported first that something after it came.
    pub(super) told_at: Option<u64>,
    /// When a packet without new data showed, by its number, that none was on its way.
    pub(super) idle_at: Option<u64>,
    /// When the last new data was acknowledged.
    pub(crate) last_delivery: Option<u64>,
    /// The latest silence of a far sender that may have been a timeout.
    pub(super) silence: Option<Silence>,
    /// When a far sender's last packet came before its latest timeout.
    pub(super) before_timeout: u64,
}

/// A silence of a far sender that ended with what comes next, as a pause of its program does and a timeout as well.
#[derive(Debug, Clone, Copy)]
pub(super) struct Silence {
    /// When the packet before came.
    pub(super) since: u64,
    /// What ended it.
    pub(super) start: u64,
    pub(super) end: u64,
    /// For how long a timer had it wait at most, in nanoseconds.
    pub(super) longest: u64,
}

/// Payload by milliseconds.
#[derive(Debug, Default)]
pub(super) struct Burst {
    millisecond: u64,
    bytes: u64,
    /// Of the millisecond just before.
    before: u64,
}

impl Burst {
    /// A packet left.
    pub(super) fn sent(&mut self, now: u64, len: u32) {
        let millisecond = now / 1_000_000;
        if millisecond != self.millisecond {
            self.before = if millisecond == self.millisecond + 1 { self.bytes } else { 0 };
            (self.millisecond, self.bytes) = (millisecond, 0);
        }
        self.bytes += u64::from(len);
    }

    /// What its millisecond has so far, or the one before had, whichever is more.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.max(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_millisecond_before_counts() {
        let mut burst = Burst::default();
        let mut sent = |now, len| {
            burst.sent(now, len);
            burst.bytes()
        };
        assert_eq!([sent(20_000_000, 10_000), sent(20_900_000, 500), sent(21_500_000, 500)], [10_000, 10_500, 10_500]);
        assert_eq!(sent(30_000_000, 500), 500);
    }
}
