//! A finished connection as the report has it, and what its plots draw.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::no_cause::unseen_sender;
use crate::diagnosis::ranking;
use crate::estimate::data_phase::DataPhase;
use crate::event::packet::Endpoint;
use crate::flow::application;
use crate::flow::facts;
use crate::flow::life;
use crate::flow::life_causes;
use crate::flow::ranking::{FlowCost, is_held};
use crate::observe::nagle_delayed_ack::NagleDelayedAck;
use crate::tcp::connection::Connection;
use crate::tcp::sender::Sender;
use crate::tcp::tap_position::vantage;
use std::net::{IpAddr, SocketAddr};
use thalweg_model::{
    Code, Finding, Flow, Life, Measured, OtherDirection, Point, Retransmits, Series, Side, TokenBucket, Verdict, Way,
};

/// A finished connection, judged. Its report is a matter of its own: where only the costliest are kept, most need none.
#[derive(Debug)]
pub(crate) struct JudgedFlow<'a> {
    facts: Facts<'a>,
    verdict: Verdict,
    findings: Vec<Finding>,
    held_side: Side,
    /// Its phases, which both sides' packets divide: none where the capture lacks one side's.
    life: Option<Life>,
    other: Option<(DataPhase, Box<OtherDirection>)>,
}

impl<'a> JudgedFlow<'a> {
    pub(crate) fn new(connection: &'a Connection) -> Self {
        let [client, server] = &connection.sides;
        let main = main_side(connection);
        let (held_side, held) = if client.sender.observers.nagle.waited() > server.sender.observers.nagle.waited() {
            (Side::Client, &client.sender.observers.nagle)
        } else {
            (Side::Server, &server.sender.observers.nagle)
        };
        let facts = Facts::new(connection, main, vantage(connection, main), held);
        let (verdict, findings) = ranking::judge(&facts);
        let mut life = life::life(connection);
        let (verdict, findings) = life_causes::judge(&facts, &mut life, verdict, findings);
        let life = unseen_sender(connection).is_none().then_some(life);
        let other = other_direction(connection, 1 - main, held);
        Self { facts, verdict, findings, held_side, life, other }
    }

    pub(crate) fn phase(&self) -> DataPhase {
        DataPhase { took: self.facts.phase_s, least: self.facts.rtt_min_s }
    }

    /// By what the connection is listed.
    pub(crate) fn cost(&self) -> FlowCost {
        let connection = self.facts.connection;
        let bytes = bytes_sent(connection).iter().sum();
        let of = |verdict, phase| FlowCost::of(verdict, phase, bytes, connection.first_packet);
        let cost = of(&self.verdict, self.phase());
        let cost = self.other.as_ref().map_or(cost, |(phase, other)| cost.min(of(&other.verdict, *phase)));
        cost.with_life(self.life.as_ref(), self.verdict.code())
    }

    /// Whether something other than its programs makes either direction slower than it could be, or fails.
    pub(crate) fn is_slowed(&self) -> bool {
        self.life.is_some_and(|life| life.failure.is_some())
            || is_held(&self.verdict)
            || self.other.as_ref().is_some_and(|(_, other)| is_held(&other.verdict))
    }

    /// The data phase of its other direction, where that was judged.
    pub(crate) fn other_phase(&self) -> Option<DataPhase> {
        self.other.as_ref().map(|other| other.0)
    }

    /// The report. What only the whole capture tells is left open: the flow's number, and its interface's name.
    pub(crate) fn flow(self) -> Flow {
        let connection = self.facts.connection;
        let flow = self.flow_as_seen();
        if unseen_sender(connection).is_some() { with_acknowledged(flow, connection) } else { flow }
    }

    fn flow_as_seen(self) -> Flow {
        let Self { facts, verdict, findings, held_side, life, other } = self;
        let Facts { connection, main, sender, vantage, held, .. } = facts;
        let [client, server] = &connection.sides;
        let [bytes_up, bytes_down] = bytes_sent(connection);
        let losses = &sender.losses;
        let black_hole =
            verdict.code() == Code::PathMtuBlackHole || findings.iter().any(|f| f.code() == Code::PathMtuBlackHole);
        Flow {
            id: 0,
            first_packet: connection.first_packet,
            client: text(client.at),
            server: text(server.at),
            interface: None,
            vantage,
            start: connection.started.as_nanos() as f64 / 1e9,
            duration_s: connection.ended.seconds_since(connection.started),
            bytes_up,
            bytes_down,
            packets_up: client.packets,
            packets_down: server.packets,
            handshake: connection.opening.report(),
            direction: way(main),
            retransmits: Retransmits {
                total: losses.total,
                fast: losses.fast,
                rto: losses.timer,
                tlp: losses.probe,
                spurious: losses.spurious,
                spurious_dsack: losses.proofs.dsack,
                spurious_eifel: losses.proofs.eifel,
                spurious_timing: losses.proofs.timing,
                dsacks: losses.dsacks,
            },
            out_of_order: sender.scoreboard.out_of_order,
            dup_acks: sender.totals.dup_acks,
            zero_windows: sender.observers.window_growth.closed.count,
            window_full: sender.observers.window_growth.filled.count,
            rtt_min_ms: sender.rtt.min.map(|min| min as f64 / 1e6),
            goodput_bps: facts.rate() * 8.0,
            phase_s: facts.phase_s,
            measured: Measured {
                capacity_bps: facts.capacity.map(|capacity| capacity * 8.0),
                fastest_bps: sender.observers.packet_trains.fastest().map(|fastest| fastest * 8.0),
                first_bps: sender.observers.short_trains.rate().map(|first| first * 8.0),
                link_mtu_bytes: connection.too_big.as_ref().and_then(|told| told.about(main)?.mtu),
                segment_bytes: sender.space.mss,
                delivered_segment_bytes: sender.scoreboard.largest_delivered,
                flight_max_bytes: sender.totals.flight_max,
                window_max_bytes: sender.window.max,
                send_buffer_bytes: facts.wakes.map(|wakes| wakes.buffer() as u64),
                bursts: sender.totals.bursts,
                nagle_side: (held.waited() > 0).then_some(held_side),
            },
            policer: facts.bucket.map(|bucket| TokenBucket { rate_bps: bucket.rate * 8.0, burst_bytes: bucket.burst }),
            facts: facts::facts(connection, main, &facts, black_hole),
            life,
            application: application::application(connection),
            limits: facts.limits(),
            verdict,
            findings,
            other_direction: other.map(|other| other.1),
            remedies: Vec::new(),
            intervals: Vec::new(),
        }
    }
}

/// Bytes that client and server sent: of one whose packets the capture lacks, those that the other acknowledged.
fn bytes_sent(connection: &Connection) -> [u64; 2] {
    let mut bytes = connection.sides.each_ref().map(|side| side.sender.totals.bytes);
    if let Some(unseen) = unseen_sender(connection) {
        bytes[unseen] = connection.observers.ack_stream.bytes;
    }
    bytes
}

/// The report with what the receiver's acknowledgements tell of a sender whose packets the capture lacks.
fn with_acknowledged(flow: Flow, connection: &Connection) -> Flow {
    let acks = &connection.observers.ack_stream;
    let (bytes, seconds) = (acks.bytes, acks.span() as f64 / 1e9);
    Flow {
        goodput_bps: if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 },
        phase_s: seconds,
        rtt_min_ms: acks.round_trip.map(|nanos| nanos as f64 / 1e6),
        zero_windows: acks.zero_windows,
        ..flow
    }
}

/// What held the direction of `side` back, which carried less than the other.
fn other_direction(
    connection: &Connection,
    side: usize,
    held: &NagleDelayedAck,
) -> Option<(DataPhase, Box<OtherDirection>)> {
    /// Segments from which on more than the initial window is asked of a path (RFC 6928).
    const INITIAL_WINDOW_SEGMENTS: u64 = 10;
    let sender = &connection.sides[side].sender;
    if sender.totals.delivered <= INITIAL_WINDOW_SEGMENTS * sender.space.mss.max(1) {
        return None;
    }
    let facts = Facts::new(connection, side, vantage(connection, side), held);
    let (verdict, _) = ranking::judge(&facts);
    let phase = DataPhase { took: facts.phase_s, least: facts.rtt_min_s };
    let other = OtherDirection {
        direction: way(side),
        vantage: facts.vantage,
        goodput_bps: facts.rate() * 8.0,
        retransmits: sender.losses.total,
        limits: facts.limits(),
        verdict,
    };
    Some((phase, Box::new(other)))
}

const fn way(side: usize) -> Way {
    if side == 0 { Way::Up } else { Way::Down }
}

/// What is drawn of a connection: the direction with more payload, and the marks of the other one where no plots are wanted.
pub(crate) fn series_of(connection: &Connection) -> Option<Series> {
    let main = main_side(connection);
    let [sender, other] = [main, 1 - main].map(|side| &connection.sides[side].sender);
    let drawn = sender.observers.plots.as_ref()?;
    let other_marks = other.observers.plots.as_ref().filter(|_| drawn.is_of_marks()).map(|other| other.marks.clone());
    Some(Series { other_marks: other_marks.unwrap_or_default(), ..series(sender) })
}

/// The side that sends more payload, seen or acknowledged only: 0 the client, 1 the server.
fn main_side(connection: &Connection) -> usize {
    let [client, server] = &connection.sides;
    let most = usize::from(client.sender.totals.bytes <= server.sender.totals.bytes);
    unseen_sender(connection).unwrap_or(most)
}

/// The sender of the direction with more payload.
pub(crate) fn main(connection: &Connection) -> &Sender {
    &connection.sides[main_side(connection)].sender
}

/// An end, as people write it.
fn text((address, port): Endpoint) -> String {
    let IpAddr::V4(v4) = address else { return SocketAddr::new(address, port).to_string() };
    // The standard library's way takes a twentieth of the whole analysis of a capture of short connections.
    let (mut text, mut digits) = (String::with_capacity("255.255.255.255:65535".len()), itoa::Buffer::new());
    for (octet, after) in v4.octets().into_iter().zip(['.', '.', '.', ':']) {
        text.push_str(digits.format(octet));
        text.push(after);
    }
    text.push_str(digits.format(port));
    text
}

fn series(sender: &Sender) -> Series {
    let Some(drawn) = &sender.observers.plots else { return Series::default() };
    let start = sender.observers.time.start.unwrap_or(0) as f64 / 1e9;
    let width = sender.observers.time.width as f64 / 1e9;
    // A rate over bins shorter than a round trip shows bursts, not throughput.
    let mut throughput = Vec::new();
    let (mut from, mut sum) = (0u64, 0u64);
    let span = sender.rtt.smoothed / 1e9;
    let per = if width > 0.0 { (span / width).ceil().max(1.0) as u64 } else { 1 };
    let point = |slice: u64, bytes: u64| Point {
        t: start + slice as f64 * width,
        v: bytes as f64 * 8.0 / (per as f64 * width),
    };
    for slice in &sender.observers.time.slices {
        if slice.index >= from + per {
            throughput.push(point(from + per, sum));
            let next = slice.index / per * per;
            if next > from + per {
                // Silence between: down to zero and up again.
                throughput.extend([point(from + 2 * per, 0), point(next, 0)]);
            }
            (from, sum) = (next, 0);
        }
        sum += slice.delivered;
    }
    if sum > 0 && width > 0.0 {
        throughput.push(point(from + per, sum));
    }
    throughput.truncate(4_000);
    Series {
        flight_bytes: drawn.flight.points(),
        receive_window_bytes: drawn.window.points(),
        cwnd_bytes: drawn.cwnd.points(),
        sent_bytes: drawn.sent.points(),
        acked_bytes: drawn.acked.points(),
        throughput_bps: throughput,
        rtt_ms: drawn.rtt.points(),
        marks: drawn.marks.clone(),
        other_marks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{connection_at, packet};
    use thalweg_wire::{Flags, Segment};

    const ACK: u8 = Flags::ACK;

    #[test]
    fn ends_are_written_as_the_standard_library_does() {
        for end in ["0.0.0.0:0", "255.255.255.255:65535", "10.1.100.9:80", "[2001:db8::1]:443"] {
            let end: SocketAddr = end.parse().expect("an address");
            assert_eq!(text((end.ip(), end.port())), end.to_string());
        }
    }
    #[test]
    fn a_lesser_direction_that_a_window_held_is_judged_beside_the_greater() {
        // 200 round trips of ten segments up, whose receiver never offers more, and then more than that down.
        let small = |mut segment: Segment| {
            segment.tcp.window = 10_000;
            segment
        };
        let mut packets = vec![
            (0, packet(true, Flags::SYN, 100, 0, 0)),
            (20, small(packet(false, Flags::SYN | ACK, 500, 101, 0))),
            (20, packet(true, ACK, 101, 501, 0)),
        ];
        let (mut now, mut up, mut down) = (20, 101, 501);
        for _ in 0..200 {
            for _ in 0..10 {
                packets.push((now, packet(true, ACK, up, down, 1_000)));
                up += 1_000;
            }
            now += 20;
            packets.push((now, small(packet(false, ACK, down, up, 0))));
        }
        for round in 0..100u32 {
            for _ in 0..(10 + round).min(40) {
                packets.push((now, small(packet(false, ACK, down, up, 1_000))));
                down += 1_000;
            }
            now += 20;
            packets.push((now, packet(true, ACK, up, down, 0)));
        }
        let connection = connection_at(&packets);
        let judged = JudgedFlow::new(&connection);
        let flow = judged.flow();
        assert_eq!(flow.direction, Way::Down);
        let other = flow.other_direction.expect("2 MB went up");
        assert_eq!((other.direction, other.verdict.code()), (Way::Up, Code::ReceiveWindow), "{other:?}");
        assert!((other.limits.total() - 1.0).abs() < 1e-9 && other.limits.receive_window > 0.9, "{other:?}");
        // A request of a few segments is held back by nothing.
        let asked = connection_at(&packets[..8]);
        assert!(JudgedFlow::new(&asked).flow().other_direction.is_none());
    }
}
