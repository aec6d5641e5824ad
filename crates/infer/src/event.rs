//! The vocabulary of what a sender did, between those who reconstruct it and those who count it.

/// What made the sender send again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetransmitKind {
    Fast,
    Timer,
    Probe,
}
