//! The shortest time from a TSval to its echo.

use crate::event::DataPacket;

/// TSvals of one direction, one at a time.
#[derive(Debug, Default)]
pub(crate) struct TimestampEcho {
    /// A TSval whose echo is awaited, and when it was sent first.
    awaited: Option<(u32, u64)>,
    /// The shortest time, in nanoseconds.
    pub(crate) min: Option<u64>,
}

impl TimestampEcho {
    /// A packet with payload left.
    pub(crate) fn packet(&mut self, packet: &DataPacket) {
        self.awaited = self.awaited.or_else(|| packet.new_tsval.map(|tsval| (tsval, packet.now)));
    }

    /// An acknowledgement came with this echo.
    pub(crate) fn echoed(&mut self, now: u64, echo: u32) {
        if let Some((tsval, at)) = self.awaited.take_if(|(tsval, _)| echo.wrapping_sub(*tsval) as i32 >= 0)
            && echo == tsval
        {
            let echoed = now.saturating_sub(at);
            self.min = Some(self.min.map_or(echoed, |min| min.min(echoed)));
        }
    }
}
