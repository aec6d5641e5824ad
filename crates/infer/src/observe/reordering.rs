//! How far packets were reordered.

/// Packets that were overtaken.
///
/// Where data itself is seen late, each late packet is one. At its sender it leaves in order, and what tells is an acknowledgement of
/// data that was sent once and lies below what was selectively acknowledged before (Linux `tcp_check_sack_reordering`).
#[derive(Debug, Default)]
pub(crate) struct Reordering {
    pub(crate) packets: u64,
    /// The most bytes that overtook one, and the longest that one came after what overtook it, in nanoseconds.
    pub(crate) bytes: u64,
    pub(crate) nanos: u64,
}

impl Reordering {
    /// A packet was found overtaken by this many bytes; it came so much later than what overtook it, where that is known.
    pub(crate) fn by(&mut self, bytes: u64, nanos: u64) {
        self.packets += 1;
        self.bytes = self.bytes.max(bytes);
        self.nanos = self.nanos.max(nanos);
    }
}
