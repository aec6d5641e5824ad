//! The two directions of a connection seen apart: each with its own VLAN or tunnel, or from an interface of its own, as taps of fibre pairs,
//! mirrored uplinks and direct server return have it.
//!
//! Where the first packet of one direction comes under another tag or interface than all of the other direction, it is taken for the other
//! half. A router's two sides are distinguished by their order: there the same packet comes twice before its answer does. Those of two hosts, from
//! the middle of a connection on, are not: the first packets that both see may be on their way to either. There one of them comes again.

use super::{FlowTable, Slot, State, TcpPacket};
use crate::flow_table::key::FlowKey;

impl FlowTable {
    /// The slot of the whole connection: `index` itself, unless that is the other half of one that is still known.
    pub(super) fn whole(&self, index: u32) -> u32 {
        match self.slots[index as usize].state {
            State::OtherHalf(of, serial) => {
                let slot = &self.slots[of as usize];
                let is_known = slot.serial == serial && matches!(slot.state, State::On(_) | State::Over(_));
                if is_known { of } else { index }
            }
            _ => index,
        }
    }

    /// The slot of the connection whose other direction begins with the packet, if one lacks it.
    pub(super) fn join(&mut self, key: FlowKey, before: Option<u32>, seen: &TcpPacket) -> Option<u32> {
        let half = self
            .current
            .find(key.table_hash(), |&index| {
                let slot = &self.slots[index as usize];
                let lacks = matches!(&slot.state, State::On(going) if going.life.lacks(&seen.segment));
                lacks && slot.key != key && slot.key.has_ends_of(&key)
            })
            .copied()?;
        if !self.takes(half, seen) {
            return None;
        }
        self.replace(before, seen.clock);
        self.kept.joined += 1;
        let of = self.slots[half as usize].serial;
        let serial = self.begun;
        self.begun += 1;
        let slot = self.put(Slot { key, serial, last: seen.latest(), state: State::OtherHalf(half, of) }, seen.clock);
        if let State::On(going) = &mut self.slots[half as usize].state {
            going.other_half = Some(OtherHalf { slot, serial, side: going.life.side_of(&seen.segment) });
        }
        Some(half)
    }

    /// The slot of a packet's key, once a connection is parted from what was taken for its other half, if the packet shows that both are views of all
    /// of it: it came from the other one before. Later than in the first batch that is a packet that took another way for once.
    pub(super) fn parted(&mut self, before: Option<u32>, seen: &TcpPacket) -> Option<u32> {
        // Most captures have none, and this is asked for each packet.
        if self.kept.joined == 0 {
            return before;
        }
        let own = before?;
        let whole = self.whole(own);
        let State::On(going) = &mut self.slots[whole as usize].state else { return before };
        let Some(other) = &going.other_half else { return before };
        let side = going.life.side_of(&seen.segment);
        let is_copy = (own == whole) == (side == other.side)
            && going.connection.is_none()
            && self.backlog.any(&going.waiting, |packet| packet.is_of(side, &seen.segment));
        let Some(OtherHalf { slot, serial, side }) = going.other_half.take_if(|_| is_copy) else { return before };
        self.backlog.retain(&mut going.waiting, |packet| packet.side() != side);
        if self.slots[slot as usize].serial == serial {
            self.unlist(slot);
            self.release(slot);
            self.kept.joined -= 1;
        }
        before.filter(|own| *own != slot)
    }
}

/// Where the other direction of a connection comes from, and which side sends it.
#[derive(Debug)]
pub(super) struct OtherHalf {
    slot: u32,
    serial: u64,
    side: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::retained::Retain;
    use crate::flow_table::PlotSelection;
    use crate::testing::packet;
    use thalweg_model::Flow;
    use thalweg_units::Timestamp;
    use thalweg_wire::{Flags, Segment};

    const SECOND: u64 = 1_000_000_000;
    const ACK: u8 = Flags::ACK;

    /// A request and 20,000 bytes down in both rounds, then both FINs.
    fn whole(isn: u32) -> Vec<(u64, bool, Segment)> {
        let mut packets = vec![
            (0, true, packet(true, Flags::SYN, isn, 0, 0)),
            (20, false, packet(false, Flags::SYN | ACK, isn, isn + 1, 0)),
            (20, true, packet(true, ACK, isn + 1, isn + 1, 100)),
        ];
        for round in 0..2 {
            let first = isn + 1 + round * 10_000;
            let at = u64::from(round) * 20;
            packets.extend((0..10).map(|n| (40 + at, false, packet(false, ACK, first + n * 1_000, isn + 101, 1_000))));
            packets.push((41 + at, true, packet(true, ACK, isn + 101, first + 10_000, 0)));
        }
        packets.push((90, false, packet(false, Flags::FIN | ACK, isn + 20_001, isn + 101, 0)));
        packets.push((91, true, packet(true, Flags::FIN | ACK, isn + 101, isn + 20_002, 0)));
        packets.push((110, false, packet(false, ACK, isn + 20_002, isn + 102, 0)));
        packets
    }

    /// What there is of the packets, each from the interfaces that `on` names for its direction.
    fn flows(connections: &[u32], on: impl Fn(bool) -> Vec<u32>) -> (Vec<Flow>, u64) {
        let mut table = FlowTable::new(PlotSelection::None, Retain::All);
        let mut number = 0;
        for (n, &isn) in (1..).zip(connections) {
            for (millis, up, mut segment) in whole(isn) {
                segment.tcp.checksum = millis as u16;
                let at = Timestamp::from_nanos(n * SECOND + millis * 1_000_000);
                for interface in on(up) {
                    number += 1;
                    table.packet(&TcpPacket::new(interface, (at, at.as_nanos()), number, segment));
                }
            }
        }
        let kept = table.finish(0);
        let mut flows: Vec<Flow> = kept.records.into_iter().map(|one| *one.flow).collect();
        flows.sort_by_key(|flow| flow.first_packet);
        (flows, kept.joined)
    }

    #[test]
    fn two_directions_seen_apart_are_one_connection() {
        let (together, none) = flows(&[100], |_| vec![0]);
        let (apart, joined) = flows(&[100], |up| vec![u32::from(up)]);
        assert_eq!((none, joined, apart.len()), (0, 1, 1));
        assert_eq!(apart, together);
    }

    #[test]
    fn each_use_of_the_same_ports_is_joined_anew() {
        let (together, _) = flows(&[100, 900_000, 5_000_000], |_| vec![0]);
        let (apart, joined) = flows(&[100, 900_000, 5_000_000], |up| vec![u32::from(up)]);
        assert_eq!((joined, apart.len()), (3, 3));
        assert_eq!(apart, together);
    }

    #[test]
    fn two_hosts_from_the_middle_on_are_two_views() {
        let mut seen: Vec<(u64, u32, Segment)> = Vec::new();
        for (at, up, segment) in whole(100) {
            // Ten milliseconds from the server, on the interface 0, to the client.
            let at = at + if up { 10 } else { 0 };
            seen.extend([(at, u32::from(up), segment), (at + 10, u32::from(!up), segment)]);
        }
        // The first acknowledgement and the second row of data are on their way to the other host.
        seen.retain(|(at, ..)| *at > 50);
        seen.sort_by_key(|(at, ..)| *at);
        let mut table = FlowTable::new(PlotSelection::None, Retain::All);
        for (number, (millis, interface, segment)) in (1..).zip(seen) {
            let at = Timestamp::from_nanos(SECOND + millis * 1_000_000);
            table.packet(&TcpPacket::new(interface, (at, at.as_nanos()), number, segment));
        }
        let kept = table.finish(0);
        let bytes: Vec<_> = kept.records.iter().map(|one| (one.flow.bytes_up, one.flow.bytes_down)).collect();
        assert_eq!((kept.joined, bytes), (0, vec![(0, 10_000), (0, 0)]));
    }

    #[test]
    fn two_sides_of_a_router_are_two_views() {
        let (views, joined) = flows(&[100], |up| if up { vec![0, 1] } else { vec![1, 0] });
        assert_eq!((joined, views.len()), (0, 2));
        assert!(views.iter().all(|flow| flow.bytes_down == 20_000 && flow.bytes_up == 100), "{views:?}");
    }
}
