//! Reading pcapng: several sections and interfaces, every kind of packet block, either byte order.

use super::sections::Sections;
use super::{BYTE_ORDER_MAGIC, ENHANCED_PACKET, INTERFACE, OLD_PACKET, OPT_END, SECTION, SIMPLE_PACKET, STATISTICS};
use crate::bytes::Order;
use crate::damage::Damage;
use crate::link::LinkType;
use crate::packet::{Found, Interface};
use crate::read_buffer::{LONGEST, ReadBuffer};
use std::collections::BTreeMap;
use std::io::{self, Read};
use thalweg_units::Timestamp;

/// Most interfaces over all sections; more are taken for damage. Wireshark numbers interfaces with 32 bits, but no host has as
/// many as Linux has interface indices in one namespace by default (65,536 with `IPV6_MAX_ADDRESSES` exhausted long before).
const MOST_INTERFACES: usize = 65_536;

const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const EPB_DROPCOUNT: u16 = 4;
const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;

/// Longest block that is believed when found by searching: a 64 KiB packet with room for its options.
const PLAUSIBLE: usize = 128 << 10;

/// Whether `head` begins with a section header.
pub(crate) fn is_section(head: &[u8]) -> bool {
    section_order(head).is_some()
}

fn section_order(head: &[u8]) -> Option<Order> {
    if head.len() < 12 || Order::Little.u32(head, 0) != SECTION {
        return None;
    }
    [Order::Little, Order::Big].into_iter().find(|order| order.u32(head, 8) == BYTE_ORDER_MAGIC)
}

/// How an interface counts time.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// `if_tsresol` as in the file.
    resolution: u8,
    offset_s: i64,
}

impl Clock {
    const DEFAULT: Self = Self { resolution: 6, offset_s: 0 };

    fn timestamp(self, ticks: u64) -> Timestamp {
        let nanos = match self.resolution {
            9 => i128::from(ticks),
            6 => i128::from(ticks) * 1_000,
            decimal @ 0..=127 => {
                let exponent = u32::from(decimal);
                if exponent <= 9 {
                    i128::from(ticks) * 10i128.pow(9 - exponent)
                } else {
                    10i128.checked_pow(exponent - 9).map_or(0, |scale| i128::from(ticks) / scale)
                }
            }
            binary => {
                let shift = u32::from(binary & 0x7f);
                if shift < 64 { (i128::from(ticks) * 1_000_000_000) >> shift } else { 0 }
            }
        };
        let nanos = nanos + i128::from(self.offset_s) * 1_000_000_000;
        Timestamp::from_nanos(u64::try_from(nanos).unwrap_or(if nanos < 0 { 0 } else { u64::MAX }))
    }
}

/// A block that was just consumed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) kind: u32,
    /// Bytes of it, its header and trailer included.
    pub(crate) length: usize,
    pub(crate) order: Order,
    /// The packet in it.
    pub(crate) packet: Option<Found>,
}

/// State between blocks.
#[derive(Debug)]
pub(crate) struct Reader {
    order: Order,
    /// Clocks of all interfaces, in step with the capture's interfaces.
    clocks: Vec<Clock>,
    /// Where this section's interfaces begin among all.
    section_base: usize,
    sections: Sections,
    last: Timestamp,
    losses: Losses,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            order: Order::Little,
            clocks: Vec::new(),
            section_base: 0,
            sections: Sections::default(),
            last: Timestamp::default(),
            losses: Losses::default(),
        }
    }
}

impl Reader {
    /// The next packet, consumed from `buffer` with the blocks before it.
    pub(crate) fn next<R: Read>(
        &mut self,
        buffer: &mut ReadBuffer<R>,
        interfaces: &mut Vec<Interface>,
        damage: &mut Damage,
    ) -> io::Result<Option<Found>> {
        while let Some(block) = self.next_block(buffer, interfaces, damage)? {
            if block.packet.is_some() {
                return Ok(block.packet);
            }
        }
        Ok(None)
    }

    /// The next block of any kind, consumed from `buffer`.
    pub(crate) fn next_block<R: Read>(
        &mut self,
        buffer: &mut ReadBuffer<R>,
        interfaces: &mut Vec<Interface>,
        damage: &mut Damage,
    ) -> io::Result<Option<Block>> {
        loop {
            let available = buffer.want(12)?;
            if available < 12 {
                damage.truncated |= available > 0;
                buffer.consume(available);
                return Ok(None);
            }
            if let Some(order) = section_order(buffer.peek()) {
                self.order = order;
                self.section_base = interfaces.len();
            }
            let kind = self.order.u32(buffer.peek(), 0);
            let length = self.order.u32(buffer.peek(), 4) as usize;
            let is_possible = length >= 12 && length.is_multiple_of(4) && length <= LONGEST;
            let available = if is_possible { buffer.want(length)? } else { 0 };
            if is_possible && available < length {
                // The file is cut here, unless blocks follow: then it is the length that is wrong.
                let rest = buffer.peek();
                if !(12..available).any(|at| self.is_block(&rest[at..])) {
                    damage.truncated = true;
                    buffer.consume(available);
                    return Ok(None);
                }
            }
            if !is_possible || available < length || self.order.u32(buffer.peek(), length - 4) as usize != length {
                if !buffer.resync(damage, PLAUSIBLE, |bytes| self.is_block(bytes))? {
                    return Ok(None);
                }
                continue;
            }
            buffer.consume(length);
            let block = buffer.consumed(length);
            let body = &block[8..length - 4];
            let mut packet = None;
            match kind {
                INTERFACE if interfaces.len() < MOST_INTERFACES => self.interface(body, interfaces),
                ENHANCED_PACKET | OLD_PACKET | SIMPLE_PACKET => {
                    packet = self.packet(kind, body, interfaces, damage);
                    if let Some(found) = packet {
                        damage.untimed += u64::from(kind == SIMPLE_PACKET);
                        self.last = found.at;
                        damage.dropped = self.losses.total();
                    }
                }
                STATISTICS => {
                    self.statistics(body);
                    damage.dropped = self.losses.total();
                }
                _ => {}
            }
            return Ok(Some(Block { kind, length, order: self.order, packet }));
        }
    }

    fn interface(&mut self, body: &[u8], interfaces: &mut Vec<Interface>) {
        let link = LinkType(self.order.u16(body, 0));
        let mut interface = Interface { name: None, link, snaplen: self.order.u32(body, 4) };
        let mut clock = Clock::DEFAULT;
        for (code, value) in options(self.order, body.get(8..).unwrap_or_default()) {
            match code {
                IF_NAME => {
                    let text = String::from_utf8_lossy(value);
                    interface.name = Some(text.trim_end_matches('\0').chars().take(256).collect());
                }
                IF_TSRESOL => clock.resolution = value.first().copied().unwrap_or(6),
                IF_TSOFFSET if value.len() == 8 => clock.offset_s = self.order.u64(value, 0).cast_signed(),
                _ => {}
            }
        }
        interfaces.push(interface);
        self.clocks.push(clock);
        self.sections.describe(self.section_base);
    }

    fn packet(&mut self, kind: u32, body: &[u8], interfaces: &[Interface], damage: &mut Damage) -> Option<Found> {
        let header = if kind == SIMPLE_PACKET { 4 } else { 20 };
        if body.len() < header {
            damage.at(0);
            return None;
        }
        let word = |at| self.order.u32(body, at);
        let number = match kind {
            ENHANCED_PACKET => word(0) as usize,
            OLD_PACKET => usize::from(self.order.u16(body, 0)),
            _ => 0,
        };
        let index = self.section_base.saturating_add(number);
        let (Some(clock), Some(interface)) = (self.clocks.get(index), interfaces.get(index)) else {
            damage.unknown_interface += 1;
            return None;
        };
        let room = body.len() - header;
        let (at, kept, original) = if kind == SIMPLE_PACKET {
            // It has no time and no captured length: the interface's snapshot length says what was cut.
            let snaplen = if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
            (self.last, word(0).min(snaplen) as usize, word(0))
        } else {
            let ticks = (u64::from(word(4)) << 32) | u64::from(word(8));
            (clock.timestamp(ticks), word(12) as usize, word(16))
        };
        let kept = kept.min(room);
        let dropped_before = match kind {
            // Few files have options behind their packets.
            ENHANCED_PACKET if room > kept.next_multiple_of(4) => {
                let behind = body.get(header + kept.next_multiple_of(4)..).unwrap_or_default();
                let found =
                    options(self.order, behind).find(|(code, value)| *code == EPB_DROPCOUNT && value.len() == 8);
                found.map_or(0, |(_, value)| u32::try_from(self.order.u64(value, 0)).unwrap_or(u32::MAX))
            }
            // 65,535 stands for "not known".
            OLD_PACKET => Some(self.order.u16(body, 2)).filter(|&drops| drops != u16::MAX).map_or(0, u32::from),
            _ => 0,
        };
        self.losses.before(index as u32, dropped_before);
        let interface = self.sections.interface(index, at, interfaces) as u32;
        Some(Found {
            at,
            interface,
            dropped_before,
            original_len: original.max(kept as u32),
            // What follows the packet in its block, with the block's trailing length.
            after: room - kept + 4,
            len: kept,
        })
    }

    /// What the capturing program counted on an interface, since it began.
    fn statistics(&mut self, body: &[u8]) {
        let index = self.section_base.saturating_add(self.order.u32(body, 0) as usize);
        let mut dropped = None;
        for (code, value) in options(self.order, body.get(12..).unwrap_or_default()) {
            if matches!(code, ISB_IFDROP | ISB_OSDROP) && value.len() == 8 {
                dropped = Some(self.order.u64(value, 0).saturating_add(dropped.unwrap_or(0)));
            }
        }
        if let Some(dropped) = dropped.filter(|_| index < self.clocks.len()) {
            self.losses.counted(index as u32, dropped);
        }
    }

    /// Whether `bytes` begin with a whole block of a kind that carries packets or describes them.
    fn is_block(&self, bytes: &[u8]) -> bool {
        let order = section_order(bytes).unwrap_or(self.order);
        if bytes.len() < 12 || !matches!(order.u32(bytes, 0), SECTION | 1..=6) {
            return false;
        }
        let length = order.u32(bytes, 4) as usize;
        length >= 12
            && length.is_multiple_of(4)
            && bytes.len() >= length
            && order.u32(bytes, length - 4) as usize == length
    }
}

/// The options in `bytes`, up to their end or the first that is cut.
pub(super) fn options(order: Order, mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let code = order.u16(bytes, 0);
        let length = usize::from(order.u16(bytes, 2));
        if code == OPT_END {
            return None;
        }
        let value = bytes.get(4..4 + length)?;
        bytes = bytes.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    })
}

/// What the capturing program says it lost, by interface.
#[derive(Debug, Default)]
struct Losses(BTreeMap<u32, [u64; 2]>);

impl Losses {
    /// Before one packet.
    fn before(&mut self, interface: u32, dropped: u32) {
        if dropped > 0 {
            let sum = &mut self.0.entry(interface).or_default()[0];
            *sum = sum.saturating_add(u64::from(dropped));
        }
    }

    /// In all, up to a moment.
    fn counted(&mut self, interface: u32, dropped: u64) {
        let most = &mut self.0.entry(interface).or_default()[1];
        *most = dropped.max(*most);
    }

    /// The two ways of counting tell of the same packets.
    fn total(&self) -> u64 {
        self.0.values().map(|[before, counted]| before.max(counted)).fold(0, |sum, n| sum.saturating_add(*n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Capture;
    use crate::pcapng::Writer;

    #[test]
    fn resolutions_of_both_bases() {
        let clock = |resolution| Clock { resolution, offset_s: 0 };
        assert_eq!(clock(9).timestamp(7).as_nanos(), 7);
        assert_eq!(clock(6).timestamp(7).as_nanos(), 7_000);
        assert_eq!(clock(0).timestamp(7).as_nanos(), 7_000_000_000);
        assert_eq!(clock(12).timestamp(7_000).as_nanos(), 7);
        assert_eq!(clock(0x80 | 10).timestamp(1024).as_nanos(), 1_000_000_000);
        assert_eq!(clock(127).timestamp(u64::MAX).as_nanos(), 0);
        assert_eq!(clock(0xff).timestamp(u64::MAX).as_nanos(), 0);
        assert_eq!(Clock { resolution: 6, offset_s: 2 }.timestamp(1).as_nanos(), 2_000_001_000);
        assert_eq!(Clock { resolution: 6, offset_s: -2 }.timestamp(1).as_nanos(), 0);
    }

    /// A section for each interface that is named, with three packets from that second on.
    fn sections(all: &[(&str, u64)]) -> Vec<u8> {
        let mut file = Vec::new();
        for (&(name, second), byte) in all.iter().zip(1..) {
            let mut writer = Writer::new(Vec::new(), "test").expect("vec");
            writer.add_interface(name, LinkType::ETHERNET, 0).expect("vec");
            for nanos in 1..=3 {
                let at = Timestamp::from_nanos(second * 1_000_000_000 + nanos);
                writer.packet(0, at, 5, &[byte; 5], None).expect("vec");
            }
            file.extend(writer.finish().expect("vec"));
        }
        file
    }

    fn interfaces_of(all: &[(&str, u64)]) -> Vec<(u32, u8)> {
        let file = sections(all);
        let mut capture = Capture::new(file.as_slice()).expect("capture");
        let mut interfaces = Vec::new();
        while let Some(packet) = capture.next().expect("read") {
            interfaces.push((packet.interface, packet.bytes[0]));
        }
        interfaces.dedup();
        interfaces
    }

    #[test]
    fn a_second_section_has_its_own_interfaces() {
        assert_eq!(interfaces_of(&[("eth0", 0), ("eth1", 1)]), [(0, 1), (1, 2)]);
        // Captures of two hosts overlap.
        assert_eq!(interfaces_of(&[("eth0", 1), ("eth0", 0)]), [(0, 1), (1, 2)]);
    }

    #[test]
    fn an_interface_goes_on_in_further_sections() {
        assert_eq!(
            interfaces_of(&[("eth0", 0), ("eth0", 1), ("eth1", 1), ("eth0", 2)]),
            [(0, 1), (0, 2), (2, 3), (0, 4)]
        );
        assert_eq!(interfaces_of(&[("", 0), ("", 1)]), [(0, 1), (0, 2)]);
    }

    #[test]
    fn a_block_with_a_bad_length_is_stepped_over() {
        let mut file = sections(&[("eth0", 0), ("eth0", 1)]);
        let second_packet =
            file.windows(8).enumerate().filter(|(_, w)| w[..4] == [6, 0, 0, 0]).nth(1).expect("block").0;
        file[second_packet + 4] ^= 0x40;
        let mut capture = Capture::new(file.as_slice()).expect("capture");
        let mut packets = 0;
        while capture.next().expect("read").is_some() {
            packets += 1;
        }
        assert_eq!((packets, capture.damage().resyncs), (5, 1));
    }
}
