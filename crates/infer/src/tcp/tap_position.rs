//! Where the tap is: by the two halves of the handshake or, without one, by timestamp echoes.

use crate::event::Accuracy;
use crate::event::Event;
use crate::event::packet::{Endpoint, Packet};
use crate::tcp::connection::Connection;
use crate::tcp::receiver_view::timestamp_rtt::EchoSample;
use crate::tcp::rtt_estimator::RttEstimator;
use thalweg_model::Vantage;
use thalweg_wire::Flags;

/// What hosts send with: Linux and macOS 64, Windows 128, network equipment 255.
const INITIAL_TTLS: [u8; 3] = [64, 128, 255];
/// Round trips of the far side's timestamps and of acknowledgements, at least, to place the tap by without these: the pauses of a program look like
/// a few. `a_side_whose_packets_alone_came_over_routers_is_far` fails with three.
const MIN_SAMPLES: u64 = 8;

impl Connection {
    /// Places the tap by the handshake's times, once they are known or corrected.
    pub(super) fn place(&mut self) {
        let (Some(to_server), Some(to_client)) = (self.opening.to_server, self.opening.to_client) else { return };
        let total = to_server + to_client;
        for (side, beyond) in [to_client, to_server].into_iter().enumerate() {
            let this = &mut self.sides[side];
            // A tenth of the round trip is what a busy host takes to answer a SYN; nearer is "at" that host.
            let is_far = beyond > total / 10;
            if is_far || !this.sender.is_exact() {
                this.is_beyond(if is_far { beyond } else { 0 });
                this.sender.set_accuracy(if is_far { Accuracy::Tick } else { Accuracy::Exact });
                this.sender.rtt = RttEstimator::default();
                if is_far {
                    // Until echoes of timestamps tell more, the handshake's is the round trip.
                    this.sender.rtt.sample(total);
                }
            }
            this.sender.rtt.handshake = Some(total);
        }
    }

    /// Corrects the handshake's times where data is acknowledged sooner than the handshake was: the third packet of that came late.
    pub(super) fn answer(&mut self, side: usize, now: u64, packet: &Packet) {
        if packet.payload_len > 0 {
            self.sides[side].answers.sent(now, packet.seq.add(packet.payload_len));
        }
        if !packet.flags.has(Flags::ACK) {
            return;
        }
        if let Some(least) = self.sides[1 - side].answers.acknowledged(now, packet.ack)
            && self.opening.is_nearer(side, least)
        {
            self.place();
        }
    }

    /// Corrects the round trip of a sender that is not at the tap, where its data answered an edge of the window sooner than the handshake
    /// was answered: the third packet of that came late. `packet` carries data of `side`.
    pub(super) fn window_round_trip(&mut self, side: usize, now: u64, packet: &Packet) {
        let Some(least) = self.sides[side].edges.sent(now, packet.seq.add(packet.payload_len)) else { return };
        let near = self.opening.to(1 - side).unwrap_or(0);
        let this = &mut self.sides[side];
        // Below three quarters: round trips vary by as much from packet to packet.
        if this.beyond == 0 || this.sender.is_exact() || least >= this.beyond / 4 * 3 {
            return;
        }
        this.is_beyond(least.max(1));
        this.sender.rtt = RttEstimator::default();
        this.sender.rtt.handshake = Some(least + near);
        this.sender.rtt.sample(least + near);
    }

    /// Round trips from timestamp echoes, for senders that are not at the tap.
    pub(super) fn timestamps(&mut self, side: usize, now: u64, packet: &Packet) {
        let Some((tsval, tsecr)) = packet.timestamps else { return };
        let near = self.opening.to(1 - side);
        let other = self.sides[1 - side].at;
        let came_over_routers = self.came_over_routers(side);
        let this = &mut self.sides[side];
        let has_echo = packet.payload_len > 0 && tsecr != 0;
        let end = packet.seq.add(packet.payload_len);
        let echoed = has_echo.then(|| this.echo.echoed(now, tsecr, end)).flatten();
        this.sender.remote.flights = echoed.and_then(|echoed| echoed.flights);
        if let Some(EchoSample { round_trip, lasted, .. }) = echoed {
            if let Some((flight, lasted)) = lasted {
                this.sender.observers.event(&Event::FlightLasted { flight, lasted });
            }
            let near = near.unwrap_or(0);
            if this.sender.is_exact()
                && this.beyond == 0
                && self.opening.to_client.is_none()
                && came_over_routers
                    .unwrap_or(this.echo.samples >= MIN_SAMPLES && this.sender.rtt.samples >= MIN_SAMPLES)
                && let Some(far) = this.echo.min
                && far > 4 * this.sender.rtt.min.unwrap_or(0).max(50_000)
                && !are_of_one_host(this.at, other)
            {
                // No handshake in the capture, but echoes take far longer than acknowledgements: the tap is at the receiver.
                this.beyond = far;
                this.sender.set_accuracy(Accuracy::Tick);
                this.sender.rtt = RttEstimator::default();
            }
            if !this.sender.is_exact() {
                this.sender.echo_sample(now, round_trip + near, tsval);
            }
        }
        self.sides[1 - side].echo.sent(now, tsval, packet.ack);
    }

    /// Whether packets of this side came to the tap over routers and those of the other did not, or the other way round; `None` where both did or
    /// neither.
    fn came_over_routers(&self, side: usize) -> Option<bool> {
        let [this, other] = [side, 1 - side].map(|side| !INITIAL_TTLS.contains(&self.sides[side].ttl));
        (this != other).then_some(this)
    }
}

/// Whether both ends are on one host: then the tap is beside both, and acknowledgements are timed where they are sent.
fn are_of_one_host(one: Endpoint, other: Endpoint) -> bool {
    let (one, other) = (one.0.to_canonical(), other.0.to_canonical());
    one == other || one.is_loopback() && other.is_loopback()
}

/// Where the tap is, seen from side `main`, by the two halves of the handshake or, without one, by timestamp echoes.
pub(crate) fn vantage(connection: &Connection, main: usize) -> Vantage {
    /// One half of the round trip this many times the other puts the tap at an end.
    const MIN_END_RATIO: u64 = 4;
    /// Below it both halves are a host's own answering time, and say nothing.
    const FLOOR_NS: u64 = 100_000;
    if are_of_one_host(connection.sides[0].at, connection.sides[1].at) {
        return Vantage::Sender;
    }
    let opening = &connection.opening;
    let halves = [opening.to_client, opening.to_server];
    if let (Some(near), Some(far)) = (halves[main], halves[1 - main]) {
        return match (
            near.max(far) > FLOOR_NS,
            near.saturating_mul(MIN_END_RATIO) < far,
            far.saturating_mul(MIN_END_RATIO) < near,
        ) {
            (true, true, _) => Vantage::Sender,
            (true, _, true) => Vantage::Receiver,
            (true, ..) => Vantage::Middle,
            (false, ..) => Vantage::Unknown,
        };
    }
    let side = &connection.sides[main];
    if !side.sender.is_exact() {
        return Vantage::Receiver;
    }
    if connection.came_over_routers(main) == Some(false) {
        return Vantage::Sender;
    }
    // Acknowledgements that take longer than any echo: the sender is near.
    match (side.echo.min, side.sender.rtt.min) {
        (Some(echo), Some(acked)) if acked > FLOOR_NS && echo.saturating_mul(MIN_END_RATIO) < acked => Vantage::Sender,
        _ => Vantage::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CLIENT, connection_at, packet};
    use std::net::{IpAddr, Ipv4Addr};
    use thalweg_wire::Segment;

    /// A program writes 2,000 bytes each 40 ms; the capture begins in the middle. Each is acknowledged at once, and carries the timestamp
    /// of the acknowledgement before.
    fn written_by_a_timer(addresses: [IpAddr; 2]) -> Vec<(u64, Segment)> {
        let mut packets = Vec::new();
        for n in 0..40u32 {
            let (ticks, seq) = (1_000 + n * 40, 1 + n * 2_000);
            let mut data = packet(false, Flags::ACK | Flags::PSH, seq, 1, 2_000);
            data.tcp.options.timestamps = Some((ticks, 5_000 + n.saturating_sub(1) * 40));
            let mut ack = packet(true, Flags::ACK, 1, seq + 2_000, 0);
            ack.tcp.options.timestamps = Some((5_000 + n * 40, ticks));
            packets.extend([(u64::from(n) * 40, data), (u64::from(n) * 40, ack)]);
        }
        for (_, segment) in &mut packets {
            let (source, destination) = if segment.payload_len > 0 { (1, 0) } else { (0, 1) };
            (segment.ip.source, segment.ip.destination) = (addresses[source], addresses[destination]);
        }
        packets
    }

    #[test]
    fn a_pause_of_the_program_is_no_round_trip_on_one_host() {
        let far = [[10, 0, 0, 1], [10, 0, 0, 2]].map(|octets| IpAddr::V4(Ipv4Addr::from(octets)));
        assert_eq!(vantage(&connection_at(&written_by_a_timer(far)), 1), Vantage::Receiver);
        let near = [IpAddr::V4(Ipv4Addr::LOCALHOST); 2];
        let connection = connection_at(&written_by_a_timer(near));
        assert_eq!(vantage(&connection, 1), Vantage::Sender);
        assert!(connection.sides[1].sender.rtt.min.is_some_and(|min| min < 1_000_000));
    }

    /// Three flights of a response that doubles each 40 ms, beside its receiver, with the TTLs of the receiver and the sender.
    fn short_response(ttls: [u8; 2]) -> Connection {
        let mut request = packet(true, Flags::ACK | Flags::PSH, 1, 1, 100);
        request.tcp.options.timestamps = Some((5_000, 1_000));
        let mut packets = vec![(0, request)];
        let mut seq = 1;
        for flight in 0..3u32 {
            let at = 40 * (flight + 1);
            for _ in 0..10 << flight {
                let mut data = packet(false, Flags::ACK, seq, 101, 1_000);
                data.tcp.options.timestamps = Some((1_000 + at, 5_000 + at - 40));
                seq += 1_000;
                let mut ack = packet(true, Flags::ACK, 101, seq, 0);
                ack.tcp.options.timestamps = Some((5_000 + at, 1_000 + at));
                packets.extend([(u64::from(at), data), (u64::from(at), ack)]);
            }
        }
        for (_, segment) in &mut packets {
            segment.ip.ttl = ttls[usize::from(segment.ip.source != CLIENT.0)];
        }
        connection_at(&packets)
    }

    #[test]
    fn a_side_whose_packets_alone_came_over_routers_is_far() {
        let rtt = |connection: &Connection| connection.sides[1].sender.rtt.min.map(|nanos| nanos / 1_000_000);
        let far = short_response([64, 55]);
        assert_eq!((vantage(&far, 1), rtt(&far)), (Vantage::Receiver, Some(40)));
        let near = short_response([115, 64]);
        assert_eq!((vantage(&near, 1), rtt(&near)), (Vantage::Sender, Some(0)));
        for unknown in [[64, 64], [60, 55]] {
            assert_eq!(vantage(&short_response(unknown), 1), Vantage::Unknown);
        }
    }
}
