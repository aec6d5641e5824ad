//! Sums over one direction.

/// What was counted of one direction.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) delivered: u64,
    /// Payload, each byte counted once.
    pub(crate) bytes: u64,
    pub(crate) data_packets: u64,
    pub(crate) dup_acks: u64,
    pub(crate) missed_bytes: u64,
    pub(crate) first_data: Option<(u64, u64)>,
    /// Times data was sent with nothing in flight.
    pub(crate) bursts: u64,
    pub(crate) flight_max: u64,
    /// New segments that were sent while the flight was an eighth and more below that.
    pub(crate) from_below: u64,
    /// The last new segment was short: the sender had nothing more.
    pub(super) drained: bool,
    pub(super) flight_at_send: u64,
}
