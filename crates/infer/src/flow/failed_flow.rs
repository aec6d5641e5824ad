//! A connection whose analysis panicked: it is reported, and the others go on.

use crate::event::packet::Endpoint;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A connection that was not analysed because of a defect of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedFlow {
    /// The number of its first packet in the capture, from 1.
    pub first_packet: u64,
    /// Index of the interface among the capture's.
    pub interface: u32,
    /// The client's address and port, then the server's.
    pub ends: [Endpoint; 2],
}

/// What `work` returns, or `None` if it panicked. What it was working on must not be used any more.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
