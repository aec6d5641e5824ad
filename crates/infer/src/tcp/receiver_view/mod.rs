//! What a tap elsewhere than at the sender tells of it: by timestamps, and by the identification of IPv4.

pub(crate) mod ipid_gaps;
pub(crate) mod one_way_delay;
pub(crate) mod remote_clock;
pub(crate) mod timer_ticks;
pub(crate) mod timestamp_rtt;
pub(crate) mod window_edges;

use ipid_gaps::IpIdGaps;
use one_way_delay::OneWayDelay;
use remote_clock::{RemoteClock, SendTiming, SendTriggers};
use timer_ticks::TimerTicks;

/// A sender as the timestamps of its packets show it elsewhere.
#[derive(Debug, Default)]
pub(crate) struct RemoteSender {
    pub(crate) clock: RemoteClock,
    /// What the current packet's timestamps tell.
    pub(crate) timing: Option<SendTiming>,
    pub(crate) triggers: SendTriggers,
    /// Where acknowledgements come close together, one came just before whatever is sent: then a timer shows by its period.
    pub(crate) timer: TimerTicks,
    /// What was in flight at a far sender when it had sent the packet before, and when it had heard what made it send this one; as far as
    /// timestamps tell.
    pub(crate) flights: Option<(u64, u64)>,
    pub(crate) one_way_delay: OneWayDelay,
    pub(crate) ip_ids: IpIdGaps,
}
