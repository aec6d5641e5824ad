//! A capture's packets, decoded and counted in their order.

use super::hello_assembly::HelloAssembly;
use super::name_lookups::NameLookups;
use super::quic::QuicConnections;
use super::repeated_packets::RepeatedPackets;
use super::time_order::TimeOrder;
use crate::flow_table::TcpPacket;
use std::collections::BTreeMap;
use thalweg_wire::filter::Filter;
use thalweg_wire::{DNS_PORT, Decoded, Decoder, Other, Packet, TooBig};

/// Most nanoseconds by which one packet alone moves the clock on: a damaged time must not end every connection.
/// `one_damaged_time_does_not_move_the_clock_and_a_gap_of_days_does` holds it.
const MAX_CLOCK_STEP_NS: u64 = 3 * 3600 * 1_000_000_000;

/// The packets of a capture, counted and decoded in their order.
#[derive(Debug, Default)]
pub struct CaptureDecoder {
    decoder: Decoder,
    pub(super) others: BTreeMap<Other, u64>,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) cut: u64,
    /// Of those, the ones whose options are not all there.
    pub(super) options_cut: u64,
    clock: Clock,
    hellos: HelloAssembly,
    quic: QuicConnections,
    names: NameLookups,
    /// Lookups are of all names, so a note on them is none on what a filter wants.
    is_filtered: bool,
    pub(super) order: TimeOrder,
    pub(super) repeated: RepeatedPackets,
}

/// The capture's clock, in nanoseconds since the epoch: the latest time seen.
#[derive(Debug, Default)]
struct Clock {
    now: Option<u64>,
    /// A time far ahead, which counts when the next packet's is near it.
    ahead: Option<u64>,
}

impl Clock {
    fn at(&mut self, at: u64) -> u64 {
        let now = self.now.unwrap_or(at);
        let far = at > now.saturating_add(MAX_CLOCK_STEP_NS);
        let believed = !far || self.ahead.is_some_and(|ahead| ahead.abs_diff(at) <= MAX_CLOCK_STEP_NS);
        self.ahead = far.then_some(at);
        let now = if believed { now.max(at) } else { now };
        self.now = Some(now);
        now
    }
}

impl CaptureDecoder {
    /// Takes in what the filter wants; `None` for all.
    pub fn new(filter: Option<Filter>) -> Self {
        let is_filtered = filter.is_some();
        Self { decoder: Decoder::with_filter(filter), is_filtered, ..Self::default() }
    }

    /// Takes the next packet in, and hands the TCP segments on that are in it.
    pub fn packet(&mut self, packet: &Packet<'_>, mut segment: impl FnMut(TcpPacket)) {
        self.packets += 1;
        self.bytes += u64::from(packet.original_len);
        if self.repeated.has(packet.at.as_nanos(), packet.bytes) {
            return;
        }
        let is_cut = (packet.bytes.len() as u64) < u64::from(packet.original_len);
        let mut options_cut = false;
        let clock = self.clock.at(packet.at.as_nanos());
        self.order.packet(packet.at.as_nanos());
        let (interface, at, number, bytes) = (packet.interface, packet.at, packet.number, packet.bytes);
        self.decoder.decode(packet, |decoded| match decoded {
            Decoded::Tcp(found) => {
                options_cut |= found.tcp.options.cut;
                let mut payload = self.hellos.read(&found, bytes, clock);
                payload.lookup = self.names.before(&found, at.as_nanos());
                self.names.segment(&found, bytes, at.as_nanos());
                let seen = TcpPacket { payload, ..TcpPacket::new(interface, (at, clock), number, found) };
                self.order.segment(seen, &mut segment);
            }
            Decoded::Udp(datagram) => {
                *self.others.entry(Other::NotTcp).or_default() += 1;
                let payload = datagram.payload(bytes);
                if [datagram.source_port, datagram.destination_port].contains(&DNS_PORT) {
                    self.names.datagram(&datagram, payload, at.as_nanos());
                } else {
                    self.quic.datagram(&datagram, payload, at.as_nanos());
                }
            }
            Decoded::TooBig(TooBig { segment: quoted, mtu }) => {
                *self.others.entry(Other::NotTcp).or_default() += 1;
                let error = TcpPacket { link_mtu: Some(mtu), ..TcpPacket::new(interface, (at, clock), number, quoted) };
                self.order.segment(error, &mut segment);
            }
            Decoded::Late(late) => self.order.segment(TcpPacket::late(&late, clock), &mut segment),
            Decoded::Other(other) => *self.others.entry(other).or_default() += 1,
        });
        if is_cut {
            self.cut += 1;
            self.options_cut += u64::from(options_cut);
        }
    }

    /// The capture's clock: the latest time so far, in nanoseconds since the epoch.
    pub fn clock(&self) -> u64 {
        self.clock.now.unwrap_or_default()
    }

    /// Notes on the protocols beside TCP.
    pub(super) fn notes(&mut self) -> Vec<String> {
        let names = self.names.note(self.clock()).filter(|_| !self.is_filtered);
        names.into_iter().chain(self.quic.note()).collect()
    }

    /// Hands on what was held back, and what is known of packets in fragments whose last did not come; to be called when the capture is over.
    pub fn finish(&mut self, mut segment: impl FnMut(TcpPacket)) {
        self.order.flush(&mut segment);
        let clock = self.clock();
        self.decoder.finish(|decoded| match decoded {
            Decoded::Tcp(_) | Decoded::Udp(_) | Decoded::TooBig(_) => {}
            Decoded::Late(late) => segment(TcpPacket::late(&late, clock)),
            Decoded::Other(other) => *self.others.entry(other).or_default() += 1,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_damaged_time_does_not_move_the_clock_and_a_gap_of_days_does() {
        let (mut clock, day) = (Clock::default(), 86_400_000_000_000);
        let times = [day, day + 5, 900 * day, day + 7, day + 6, 9 * day, 9 * day + 1];
        assert_eq!(times.map(|at| clock.at(at)), [day, day + 5, day + 5, day + 7, day + 7, day + 7, 9 * day + 1]);
    }
}
