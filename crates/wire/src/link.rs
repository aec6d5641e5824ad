//! Link types, by the numbers capture files give them.

use std::fmt;

/// What the bytes of a captured packet begin with.
///
/// Source: the LINKTYPE registry, <https://www.tcpdump.org/linktypes.html>.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: four bytes of address family in the capturing host's byte order.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without HDLC-like framing.
    pub const PPP: Self = Self(9);
    /// Raw IP as some BSDs number it in files.
    pub const RAW_BSD: Self = Self(12);
    /// Raw IP as OpenBSD numbers it in files.
    pub const RAW_OPENBSD: Self = Self(14);
    /// PPP with HDLC-like framing.
    pub const PPP_HDLC: Self = Self(50);
    /// IPv4 or IPv6, without a link header.
    pub const RAW: Self = Self(101);
    /// OpenBSD loopback: four bytes of address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux "cooked" capture, version 1.
    pub const LINUX_SLL: Self = Self(113);
    /// IPv4, without a link header.
    pub const IPV4: Self = Self(228);
    /// IPv6, without a link header.
    pub const IPV6: Self = Self(229);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);
    /// FDDI, with its frame control byte and LLC.
    pub const FDDI: Self = Self(10);
    /// PPP in PPPoE, from the six bytes of PPPoE's header on.
    pub const PPP_ETHER: Self = Self(51);
    /// RFC 1483 LLC-encapsulated ATM, from LLC on.
    pub const ATM_RFC1483: Self = Self(100);
    /// Cisco PPP with HDLC framing.
    pub const C_HDLC: Self = Self(104);
    /// IEEE 802.11.
    pub const IEEE802_11: Self = Self(105);
    /// OpenBSD's encapsulated (IPsec) traffic.
    pub const ENC: Self = Self(109);
    /// OpenBSD's packet filter log.
    pub const PFLOG: Self = Self(117);
    /// IEEE 802.11 behind a Prism header.
    pub const IEEE802_11_PRISM: Self = Self(119);
    /// IEEE 802.11 behind a radiotap header.
    pub const IEEE802_11_RADIOTAP: Self = Self(127);
    /// IEEE 802.11 behind an AVS header.
    pub const IEEE802_11_AVS: Self = Self(163);
    /// PPP with a direction byte in place of HDLC's address.
    pub const PPP_PPPD: Self = Self(166);
    /// Per-Packet Information, which names the link type behind it.
    pub const PPI: Self = Self(192);
    /// PPP behind a direction byte.
    pub const PPP_WITH_DIR: Self = Self(204);
    /// MPLS, from the first label on.
    pub const MPLS: Self = Self(219);
    /// Linux netfilter's log.
    pub const NFLOG: Self = Self(239);
}

impl LinkType {
    /// What it is called; `None` for types that nobody here has heard of.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NULL => "BSD loopback",
            Self::ETHERNET => "Ethernet",
            Self::PPP | Self::PPP_HDLC | Self::PPP_PPPD | Self::PPP_WITH_DIR => "PPP",
            Self::PPP_ETHER => "PPPoE",
            Self::RAW_BSD | Self::RAW_OPENBSD | Self::RAW => "raw IP",
            Self::FDDI => "FDDI",
            Self::ATM_RFC1483 => "ATM",
            Self::C_HDLC => "Cisco HDLC",
            Self::ENC => "OpenBSD IPsec",
            Self::PFLOG => "OpenBSD packet filter log",
            Self::LOOP => "OpenBSD loopback",
            Self::LINUX_SLL => "Linux cooked v1",
            Self::LINUX_SLL2 => "Linux cooked v2",
            Self::NFLOG => "netfilter log",
            Self::IPV4 => "raw IPv4",
            Self::IPV6 => "raw IPv6",
            Self::IEEE802_11 => "IEEE 802.11",
            Self::IEEE802_11_PRISM => "IEEE 802.11 with a Prism header",
            Self::IEEE802_11_RADIOTAP => "IEEE 802.11 with radiotap",
            Self::IEEE802_11_AVS => "IEEE 802.11 with an AVS header",
            Self::MPLS => "MPLS",
            Self::PPI => "per-packet information",
            // Those below are not read: a note names them.
            Self(6) => "token ring",
            Self(8) => "SLIP",
            Self(107) => "frame relay",
            Self(123) => "SunATM",
            Self(143) => "DOCSIS",
            Self(147..=162) => "for private use",
            Self(187 | 201 | 251 | 254 | 255 | 256) => "Bluetooth",
            Self(186 | 189 | 220 | 249 | 266) => "USB",
            Self(195 | 215 | 230 | 283) => "IEEE 802.15.4",
            Self(197) => "Endace ERF",
            Self(227) => "CAN",
            Self(242 | 247) => "InfiniBand",
            Self(252) => "Wireshark's exported PDUs",
            Self(253) => "Linux netlink",
            Self(258) => "Apple pktap",
            _ => return None,
        })
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "link type {}", self.0),
        }
    }
}
