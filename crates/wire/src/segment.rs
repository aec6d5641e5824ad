//! A TCP segment with the networks around it, and what else a captured packet can be.

use crate::ip::IpFacts;
use crate::link::LinkType;
use crate::tcp::TcpHeader;
use thalweg_units::Timestamp;

/// A virtual network a segment travelled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tag {
    /// A VLAN by its number; priority tags (number 0) are left out.
    Vlan(u16),
    /// IP in IP (RFC 2003, RFC 4213).
    IpInIp,
    /// GRE with its key, 0 where it has none.
    Gre(u32),
    /// VXLAN with its network identifier.
    Vxlan(u32),
    /// GENEVE with its network identifier.
    Geneve(u32),
    /// ERSPAN with its session, 0 for type I, which has none.
    Erspan(u16),
    /// MPLS in IP or in UDP (RFC 4023, RFC 7510).
    MplsInIp,
    /// GTP-U; each direction has a tunnel endpoint identifier of its own, so these are left out.
    Gtp,
}

/// The virtual networks around a segment, outermost first; those past the fourth are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tags([Option<Tag>; 4]);

impl Tags {
    /// The tags, outermost first.
    pub fn iter(&self) -> impl Iterator<Item = Tag> + '_ {
        self.0.iter().flatten().copied()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }

    pub(crate) fn push(&mut self, tag: Tag) {
        if let Some(slot) = self.0.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some(tag);
        }
    }
}

/// A TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Its IP header.
    pub ip: IpFacts,
    /// Its TCP header.
    pub tcp: TcpHeader,
    /// The virtual networks around it.
    pub tags: Tags,
    /// Bytes of payload on the wire, whether captured or not.
    pub payload_len: u32,
    /// Where the payload begins in the captured packet; 0 where the packet does not hold it, as of one in fragments.
    pub payload_at: u16,
}

impl Segment {
    /// As much of its payload as `packet` holds, the bytes it was found in.
    #[inline]
    pub fn payload<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        captured(packet, self.payload_at, self.payload_len)
    }
}

/// What a packet holds of a payload of this length that begins here.
#[inline]
fn captured(packet: &[u8], at: u16, len: u32) -> &[u8] {
    let from = usize::from(at);
    let to = from.saturating_add(len as usize).min(packet.len());
    if from == 0 { &[] } else { packet.get(from..to).unwrap_or_default() }
}

/// A UDP datagram that carries no tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// Its IP header.
    pub ip: IpFacts,
    /// Port it was sent from.
    pub source_port: u16,
    /// Port it was sent to.
    pub destination_port: u16,
    /// Bytes of payload on the wire, whether captured or not.
    pub payload_len: u32,
    /// Where the payload begins in the captured packet; 0 where the packet does not hold it.
    pub payload_at: u16,
}

impl Datagram {
    /// As much of its payload as `packet` holds, the bytes it was found in.
    pub fn payload<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        captured(packet, self.payload_at, self.payload_len)
    }
}

/// Why a packet holds no TCP segment to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Other {
    /// The link type is not known here.
    UnknownLink(LinkType),
    /// Not IP: ARP, LLDP and the like.
    NotIp,
    /// IP with another protocol.
    NotTcp,
    /// An 802.11 frame that is encrypted.
    Encrypted,
    /// A fragment of IP that is not its first, and cannot be joined to what it belongs to.
    Fragment,
    /// A fragment of an 802.11 frame that is not its first: the IP header in that one has the whole packet's length.
    FrameRest,
    /// Headers that are cut or contradict themselves.
    Malformed,
    /// TCP that the decoder's filter does not want.
    Unwanted,
}

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// TCP.
    Tcp(Segment),
    /// No TCP, but a UDP datagram.
    Udp(Datagram),
    /// No TCP, but an ICMP error about a TCP segment that is too long for a link.
    TooBig(TooBig),
    /// TCP of packets before, in fragments, whose rest is not waited for any longer.
    Late(Late),
    /// Something else.
    Other(Other),
}

/// An ICMP error: fragmentation needed, or packet too big.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooBig {
    /// The segment, as its sender sent it: of its TCP header ports and sequence number alone are known.
    pub segment: Segment,
    /// MTU of the link that it was too long for; 0 where a router does not say (RFC 1191 §5).
    pub mtu: u32,
}

/// As much as is known of a segment whose packet's last fragments did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late {
    /// What is known, from its front on.
    pub segment: Segment,
    /// When the latest of its fragments was seen.
    pub at: Timestamp,
    /// That fragment's number in the file.
    pub number: u64,
    /// And its interface, an index into [`crate::Capture::interfaces`].
    pub interface: u32,
}
