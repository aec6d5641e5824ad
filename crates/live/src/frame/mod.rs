//! Frames of a TUN device: a vnet header and one IP packet, which may hold the segments of many.
//!
//! A frame is read once, and then written as a whole or in pieces, each a run of its segments with headers of its own.
//!
//! Source: linux/virtio_net.h; net/ipv4/tcp_offload.c, `tcp_gso_segment`; net/ipv4/udp_offload.c, `__udp_gso_segment`.

use crate::checksum::sum;
use std::hash::{DefaultHasher, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use thalweg_path::{Lengths, Packet};

/// Length of the vnet header.
const VNET_LEN: usize = 10;
const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;
const TCP: u8 = 6;
const UDP: u8 = 17;
const TCP_FIN: u8 = 0x01;
const TCP_SYN: u8 = 0x02;
const TCP_ACK: u8 = 0x10;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;
/// Longest IP and TCP headers that a piece can have.
const HEADERS_MAX: usize = 160;

/// A frame as it was read.
#[derive(Debug)]
pub struct Frame {
    buffer: Vec<u8>,
    /// What of the buffer is the frame.
    length: usize,
    layout: Layout,
}

/// Where things are in a frame, in bytes from the IP header on.
#[derive(Debug, Clone, Copy)]
struct Layout {
    is_v6: bool,
    protocol: u8,
    /// Where TCP or UDP begins; `None` if it is neither, or not the first fragment.
    transport: Option<usize>,
    /// IP and transport headers.
    headers: usize,
    /// Payload of each segment; `None` if the frame is one packet.
    gso_size: Option<usize>,
}

/// What is written for a run of a frame's segments: two parts, one after the other.
#[derive(Debug)]
pub struct Piece<'a> {
    head: Vec<u8>,
    payload: &'a [u8],
}

impl Piece<'_> {
    /// Vnet header and headers, then payload.
    pub fn parts(&self) -> [&[u8]; 2] {
        [&self.head, self.payload]
    }
}

impl Frame {
    /// Reads a frame; `None` if it is no IP packet.
    pub fn parse(bytes: Vec<u8>) -> Option<Self> {
        let length = bytes.len();
        Self::parse_start(bytes, length)
    }

    /// Reads the frame of `length` bytes that a buffer begins with; `None` if it is no IP packet.
    pub(crate) fn parse_start(buffer: Vec<u8>, length: usize) -> Option<Self> {
        let bytes = buffer.get(..length)?;
        let layout = Layout::of(bytes.get(..VNET_LEN)?, bytes.get(VNET_LEN..)?)?;
        Some(Self { buffer, length, layout })
    }

    /// The frame as it was read.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    /// Where a TCP connection is opened to, if the frame is the first packet of one.
    pub(crate) fn opens_connection_to(&self) -> Option<SocketAddr> {
        let ip = self.ip();
        let at = self.layout.transport.filter(|_| self.layout.protocol == TCP)?;
        if ip.get(at + 13)? & (TCP_SYN | TCP_ACK) != TCP_SYN {
            return None;
        }
        let port = u16::from_be_bytes([ip[at + 2], ip[at + 3]]);
        Some(SocketAddr::new(self.destination(), port))
    }

    /// The address that it is sent to.
    pub(crate) fn destination(&self) -> IpAddr {
        let ip = self.ip();
        if self.layout.is_v6 {
            IpAddr::from(<[u8; 16]>::try_from(&ip[24..40]).expect("invariant: a whole IP header"))
        } else {
            IpAddr::from(<[u8; 4]>::try_from(&ip[16..20]).expect("invariant: a whole IP header"))
        }
    }

    /// Its buffer, to be used again.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    fn ip(&self) -> &[u8] {
        &self.bytes()[VNET_LEN..]
    }

    /// The frame as a packet of the path, with `data` to recognise it by.
    pub fn packet<T>(&self, data: T) -> Packet<T> {
        let layout = &self.layout;
        let (headers, payload) = (layout.headers as u32, (self.ip().len() - layout.headers) as u32);
        let lengths = match layout.gso_size {
            Some(size) => Lengths::segmented(headers, payload, size as u32),
            None => Lengths::whole(headers, payload),
        };
        let ecn = if layout.is_v6 { self.ip()[1] >> 4 & 3 } else { self.ip()[1] & 3 };
        let is_tcp = layout.protocol == TCP && layout.transport.is_some();
        Packet { data, lengths, flow: self.flow(), ecn_capable: ecn != 0, is_tcp }
    }

    /// A hash of addresses, protocol and ports.
    fn flow(&self) -> u64 {
        let ip = self.ip();
        let mut hasher = DefaultHasher::new();
        hasher.write(if self.layout.is_v6 { &ip[8..40] } else { &ip[12..20] });
        hasher.write_u8(self.layout.protocol);
        if let Some(ports) = self.layout.transport.and_then(|at| ip.get(at..at + 4)) {
            hasher.write(ports);
        }
        hasher.finish()
    }

    /// What is to be written for `segments` of the frame; `marked` sets Congestion Experienced, `flipped_bit` flips one bit of a
    /// single segment after its checksum is complete.
    pub fn piece(&self, segments: &Range<u32>, marked: bool, flipped_bit: Option<u32>) -> Piece<'_> {
        let layout = &self.layout;
        let all = &self.ip()[layout.headers..];
        let size = layout.gso_size.unwrap_or(all.len());
        let begin = (segments.start as usize * size).min(all.len());
        let end = (segments.end as usize * size).min(all.len());
        let payload = &all[begin..end];
        let mut head = self.buffer[..VNET_LEN + layout.headers].to_vec();
        if payload.len() < all.len() {
            self.adjust(&mut head, begin, end, segments.start, payload.len() > size);
        }
        if marked {
            mark(&mut head[VNET_LEN..], layout.is_v6);
        }
        if !layout.is_v6 && (marked || payload.len() < all.len()) {
            set_ip_checksum(&mut head[VNET_LEN..]);
        }
        match flipped_bit {
            Some(bit) => Piece { head: flipped(head, payload, bit), payload: &[] },
            None => Piece { head, payload },
        }
    }

    /// Makes the headers those of the payload from `begin` to `end`.
    fn adjust(&self, head: &mut [u8], begin: usize, end: usize, first: u32, is_segmented: bool) {
        let layout = &self.layout;
        let total = self.ip().len() - layout.headers;
        let (vnet, ip) = head.split_at_mut(VNET_LEN);
        if !is_segmented {
            vnet[1] = GSO_NONE;
            vnet[4..6].fill(0);
        }
        let length = layout.headers + end - begin;
        if layout.is_v6 {
            put_u16(ip, 4, length - 40);
        } else {
            put_u16(ip, 2, length);
            let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(first as u16);
            put_u16(ip, 4, usize::from(id));
        }
        let Some(at) = layout.transport else { return };
        let transport_len = length - at;
        let pseudo = pseudo_header(ip, layout, transport_len);
        let transport = &mut ip[at..];
        if layout.protocol == TCP {
            let number = u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
            transport[4..8].copy_from_slice(&number.wrapping_add(begin as u32).to_be_bytes());
            if end < total {
                transport[13] &= !(TCP_FIN | TCP_PSH);
            }
            if begin > 0 {
                transport[13] &= !TCP_CWR;
            }
            put_u16(transport, 16, pseudo as usize);
        } else {
            put_u16(transport, 4, transport_len);
            put_u16(transport, 6, pseudo as usize);
        }
    }
}

impl Layout {
    fn of(vnet: &[u8], ip: &[u8]) -> Option<Self> {
        let is_v6 = match ip.first()? >> 4 {
            4 => false,
            6 => true,
            _ => return None,
        };
        let ip_header = if is_v6 { 40 } else { usize::from(ip[0] & 15) * 4 };
        if ip_header < 20 || ip.len() < ip_header {
            return None;
        }
        let field = |at: usize| usize::from(u16::from_ne_bytes([vnet[at], vnet[at + 1]]));
        let (kind, size, csum_start) = (vnet[1] & !GSO_ECN, field(4), field(6));
        // A segmented frame says where its transport header is, whatever extension headers there are.
        let (protocol, transport) = match kind {
            GSO_TCPV4 | GSO_TCPV6 if vnet[0] & NEEDS_CSUM != 0 => (TCP, Some(csum_start)),
            GSO_UDP_L4 if vnet[0] & NEEDS_CSUM != 0 => (UDP, Some(csum_start)),
            _ => {
                let protocol = if is_v6 { ip[6] } else { ip[9] };
                let is_fragment = !is_v6 && (ip[6] & 0x3f != 0 || ip[7] != 0);
                (protocol, (matches!(protocol, TCP | UDP) && !is_fragment).then_some(ip_header))
            }
        };
        let header = |at: usize| match protocol {
            TCP => Some(usize::from(ip.get(at + 12)? >> 4) * 4).filter(|length| *length >= 20),
            _ => Some(8),
        };
        let headers = transport.and_then(|at| Some(at + header(at)?)).filter(|end| *end <= ip.len().min(HEADERS_MAX));
        let is_segmented = kind != GSO_NONE && size > 0 && headers.is_some_and(|headers| ip.len() - headers > size);
        Some(Self {
            is_v6,
            protocol,
            transport: headers.and(transport),
            headers: headers.unwrap_or(ip_header),
            gso_size: is_segmented.then_some(size),
        })
    }
}

/// The sum that the kernel expects in a checksum field it is to complete.
fn pseudo_header(ip: &[u8], layout: &Layout, transport_len: usize) -> u32 {
    let addresses = if layout.is_v6 { &ip[8..40] } else { &ip[12..20] };
    sum(addresses, u32::from(layout.protocol) + transport_len as u32)
}

fn mark(ip: &mut [u8], is_v6: bool) {
    ip[1] |= if is_v6 { 0x30 } else { 3 };
}

fn set_ip_checksum(ip: &mut [u8]) {
    let length = usize::from(ip[0] & 15) * 4;
    put_u16(ip, 10, 0);
    let complement = !sum(&ip[..length], 0) as u16;
    put_u16(ip, 10, usize::from(complement));
}

fn put_u16(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
}

/// One packet with its checksum complete and then one bit of it flipped, so that the receiver finds the error.
fn flipped(mut head: Vec<u8>, payload: &[u8], bit: u32) -> Vec<u8> {
    let field = |head: &[u8], at: usize| usize::from(u16::from_ne_bytes([head[at], head[at + 1]]));
    let (start, offset) = (field(&head, 6), field(&head, 8));
    let needs_checksum = head[0] & NEEDS_CSUM != 0;
    head[..VNET_LEN].fill(0);
    head.extend_from_slice(payload);
    let ip = &mut head[VNET_LEN..];
    if needs_checksum && start + offset + 2 <= ip.len() {
        let complement = !sum(&ip[start..], 0) as u16;
        // UDP has no checksum of 0. Source: RFC 768.
        let checksum = if complement == 0 && offset == 6 { 0xffff } else { complement };
        put_u16(ip, start + offset, usize::from(checksum));
    }
    if let Some(byte) = ip.get_mut(bit as usize / 8) {
        *byte ^= 0x80 >> (bit % 8);
    }
    head
}

#[cfg(test)]
mod tests;
