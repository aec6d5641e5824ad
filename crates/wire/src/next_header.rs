//! The header that follows at some place of a frame.

/// The header that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Ethernet,
    EtherType(u16),
    /// IEEE 802.2 LLC, with SNAP or not.
    Llc,
    /// Network Service Header (RFC 8300).
    Nsh,
    /// The subframes of an 802.11 A-MSDU.
    Subframes,
    Ip,
}

/// EtherType of a PPPoE session (RFC 2516 §4).
pub(crate) const PPPOE_SESSION: u16 = 0x8864;
/// EtherType of MPLS, unicast (RFC 3032 §5).
pub(crate) const MPLS: u16 = 0x8847;
