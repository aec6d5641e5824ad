//! Connections made by hand whose phases are known by arithmetic.

use super::*;
use crate::flow::report::JudgedFlow;
use crate::testing::{connection_at, packet};
use thalweg_model::Code;
use thalweg_wire::Segment;

const ACK: u8 = Flags::ACK;
const RST: u8 = Flags::RST;
const FIN: u8 = Flags::FIN | ACK;

/// SYN, SYN-ACK and ACK, 20 ms, with the client at the tap.
fn opened() -> Vec<(u64, Segment)> {
    vec![
        (0, packet(true, Flags::SYN, 100, 0, 0)),
        (20, packet(false, Flags::SYN | ACK, 500, 101, 0)),
        (20, packet(true, ACK, 101, 501, 0)),
    ]
}

/// The phases of these packets in milliseconds, in their order; they add up to the whole.
fn phases(packets: &[(u64, Segment)]) -> [u64; 7] {
    use Phase::{AcceptQueue, Client, Close, Connecting, Request, Server, Transfer};
    let made = connection_at(packets);
    let millis = [Connecting, AcceptQueue, Request, Server, Client, Transfer, Close]
        .map(|phase| (made.observers.phases.seconds(phase) * 1e3).round() as u64);
    assert_eq!(millis.iter().sum::<u64>(), packets.last().expect("packets").0, "{millis:?}");
    millis
}

fn with(mut packets: Vec<(u64, Segment)>, more: &[(u64, Segment)]) -> Vec<(u64, Segment)> {
    packets.extend_from_slice(more);
    packets
}

#[test]
fn a_lost_syn_is_time_of_connecting() {
    let mut packets = vec![(0, packet(true, Flags::SYN, 100, 0, 0))];
    packets.extend(opened().into_iter().map(|(at, packet)| (at + 1_000, packet)));
    packets.push((1_021, packet(true, ACK, 101, 501, 100)));
    packets.push((1_041, packet(false, ACK, 501, 201, 1_000)));
    assert_eq!(phases(&packets), [1_020, 0, 20, 0, 1, 0, 0]);
    let made = connection_at(&packets);
    assert_eq!(JudgedFlow::new(&made).flow().life.map(|life| life.resent.syn), Some(1));
}

#[test]
fn a_lost_request_is_not_time_of_the_server() {
    let request = packet(true, ACK, 101, 501, 400);
    let packets = with(
        opened(),
        &[
            (30, request),
            (240, request),
            (680, request),
            (700, packet(false, ACK, 501, 501, 1_000)),
            (700, packet(true, ACK, 501, 1_501, 0)),
        ],
    );
    assert_eq!(phases(&packets), [20, 0, 670, 0, 10, 0, 0]);
    let made = connection_at(&packets);
    let life = JudgedFlow::new(&made).flow().life.expect("a capture");
    assert_eq!((life.resent.data_up, life.resent.data_down), (2, 0));
}

#[test]
fn a_syn_ack_after_the_request_is_a_full_accept_queue() {
    let request = packet(true, ACK, 101, 501, 120);
    let syn_ack = packet(false, Flags::SYN | ACK, 500, 101, 0);
    let again = [
        (21, request),
        (220, request),
        (620, request),
        (1_020, syn_ack),
        (1_020, packet(true, ACK, 221, 501, 0)),
        (1_420, request),
        (1_440, packet(false, ACK, 501, 221, 0)),
        (1_445, packet(false, ACK, 501, 221, 1_000)),
    ];
    let full = with(opened(), &again);
    assert_eq!(phases(&full), [20, 1_420, 0, 5, 0, 0, 0]);
    let made = connection_at(&full);
    let resent = JudgedFlow::new(&made).flow().life.expect("a capture").resent;
    assert_eq!((resent.syn_ack, resent.data_up), (1, 3));
    // The ACK alone was lost: the request that follows opens the connection at the server.
    let lost_ack = [
        (1_020, syn_ack),
        (1_020, packet(true, ACK, 101, 501, 0)),
        (1_100, request),
        (1_120, packet(false, ACK, 501, 221, 0)),
        (1_125, packet(false, ACK, 501, 221, 1_000)),
    ];
    assert_eq!(phases(&with(opened(), &lost_ack)), [20, 0, 20, 5, 1_080, 0, 0]);
}

#[test]
fn what_does_not_acknowledge_a_request_shows_no_wait_for_the_server() {
    // The end of a request whose beginning is missing, and FINs of both sides.
    let fins = [
        (21, packet(true, ACK, 3_001, 501, 120)),
        (21, packet(false, ACK, 501, 101, 0)),
        (10_000, packet(false, FIN, 501, 101, 0)),
        (10_020, packet(true, ACK, 3_121, 502, 0)),
        (10_500, packet(true, FIN, 3_121, 502, 0)),
    ];
    assert_eq!(phases(&with(opened(), &fins)), [20, 0, 9_979, 0, 1, 0, 500]);
}

#[test]
fn a_wait_before_the_response_is_the_servers_and_one_before_the_request_the_clients() {
    let mut packets = opened();
    let (mut now, mut up, mut down) = (20, 101, 501);
    for _ in 0..3 {
        packets.push((now + 500, packet(true, ACK, up, down, 150)));
        up += 150;
        // The response acknowledges its request.
        for segment in 0..4 {
            packets.push((now + 820 + segment, packet(false, ACK, down, up, 1_000)));
            down += 1_000;
        }
        now += 823;
        packets.push((now, packet(true, ACK, up, down, 0)));
    }
    packets.push((now + 10, packet(true, FIN, up, down, 0)));
    packets.push((now + 30, packet(false, FIN, down, up + 1, 0)));
    packets.push((now + 30, packet(true, ACK, up + 1, down + 1, 0)));
    assert_eq!(phases(&packets), [20, 0, 60, 900, 1_510, 9, 20]);
}

#[test]
fn a_pause_within_a_response_and_an_upload_are_transfer() {
    let mut packets = with(
        opened(),
        &[
            (20, packet(true, ACK, 101, 501, 100)),
            (40, packet(false, ACK, 501, 201, 1_000)),
            (40, packet(true, ACK, 201, 1_501, 0)),
            (940, packet(false, ACK, 1_501, 201, 1_000)),
            (940, packet(true, ACK, 201, 2_501, 0)),
        ],
    );
    assert_eq!(phases(&packets), [20, 0, 20, 0, 0, 900, 0]);
    for segment in 0..20 {
        packets.push((940, packet(true, ACK, 201 + segment * 1_000, 2_501, 1_000)));
    }
    packets.push((1_440, packet(false, ACK, 2_501, 20_201, 0)));
    assert_eq!(phases(&packets), [20, 0, 20, 0, 0, 1_400, 0]);
}

#[test]
fn an_acknowledgement_that_says_nothing_new_ends_no_wait() {
    let again = packet(true, ACK, 201, 1_501, 0);
    let idle = with(
        opened(),
        &[
            (20, packet(true, ACK, 101, 501, 100)),
            (40, packet(false, ACK, 501, 201, 1_000)),
            (40, again),
            (540, again),
            (740, packet(false, ACK, 1_501, 201, 0)),
        ],
    );
    assert_eq!(phases(&idle), [20, 0, 20, 0, 700, 0, 0]);
    let asks = with(idle.clone(), &[(940, packet(true, ACK, 201, 1_501, 100))]);
    assert_eq!(phases(&asks), [20, 0, 20, 0, 900, 0, 0]);
    let goes_on = with(idle, &[(940, packet(false, ACK, 1_501, 201, 1_000))]);
    assert_eq!(phases(&goes_on), [20, 0, 20, 0, 0, 900, 0]);
}

#[test]
fn the_first_reset_is_kept_with_its_ttl_and_what_followed() {
    let mut forged = packet(false, RST | ACK, 501, 201, 0);
    forged.ip.ttl = 120;
    let packets = with(
        opened(),
        &[
            (20, packet(true, ACK, 101, 501, 100)),
            (27, forged),
            (40, packet(false, ACK, 501, 201, 1_000)),
            (40, packet(true, RST, 201, 0, 0)),
        ],
    );
    assert_eq!(phases(&packets), [20, 0, 7, 0, 0, 0, 13]);
    let reset = connection_at(&packets).observers.phases.end.reset.expect("a reset");
    assert_eq!((reset.side, reset.at, reset.ttl, reset.usual_ttl), (1, 27_000_000, 120, Some(64)));
    assert!(reset.followed_by_data);
    let own = connection_at(&with(opened(), &[(520, packet(false, RST, 501, 0, 0))]))
        .observers
        .phases
        .end
        .reset
        .expect("a reset");
    assert_eq!((own.usual_ttl, own.followed_by_data), (Some(own.ttl), false));
}

/// The verdict of these packets, the share of the life it took, in percent, and whether that is a problem.
fn headline(packets: &[(u64, Segment)]) -> (Code, u64, bool) {
    let made = connection_at(packets);
    let judged = JudgedFlow::new(&made);
    let is_problem = judged.is_slowed();
    let flow = judged.flow();
    let share = flow.life.expect("a capture").verdict_share;
    (flow.verdict.code(), (share * 100.0).round() as u64, is_problem)
}

#[test]
fn what_takes_most_of_the_life_is_the_verdict() {
    let syn = packet(true, Flags::SYN, 100, 0, 0);
    let mut lost_syn = vec![(0, syn)];
    lost_syn.extend(opened().into_iter().map(|(at, packet)| (at + 1_000, packet)));
    let exchange = |at| [(at, packet(true, ACK, 101, 501, 100)), (at + 20, packet(false, ACK, 501, 201, 1_000))];
    lost_syn.extend(exchange(1_020));
    assert_eq!(headline(&lost_syn), (Code::Connecting, 98, true));
    // A long round trip is none.
    assert!(!headline(&with(opened(), &exchange(20))).2);
    let lost_request = with(opened(), &[(20, packet(true, ACK, 101, 501, 100))]);
    assert_eq!(headline(&with(lost_request, &exchange(420))), (Code::RequestLost, 95, true));
    let slow_server =
        with(opened(), &[(20, packet(true, ACK, 101, 501, 100)), (420, packet(false, ACK, 501, 201, 1_000))]);
    assert_eq!(headline(&slow_server), (Code::WaitingForServer, 90, true));
    assert_eq!(headline(&with(opened(), &exchange(1_980))), (Code::WaitingForClient, 98, false));
}

#[test]
fn a_connection_that_failed_is_told_so() {
    let syn = packet(true, Flags::SYN, 100, 0, 0);
    let refused = [(0, syn), (20, packet(false, RST | ACK, 0, 101, 0))];
    assert_eq!(headline(&refused), (Code::Connecting, 100, true));
    assert_eq!(headline(&[(0, syn), (1_000, syn), (3_000, syn)]), (Code::Connecting, 100, true));
    let mut forged = packet(false, RST, 501, 201, 0);
    let asked = [(20, packet(true, ACK, 101, 501, 100))];
    assert_eq!(headline(&with(with(opened(), &asked), &[(30, forged)])), (Code::Reset, 0, true), "the server's own");
    forged.ip.ttl = 120;
    assert_eq!(headline(&with(opened(), &[(30, forged)])), (Code::Reset, 0, true));
    let interrupts =
        |packets: &[(u64, Segment)]| connection_at(packets).observers.phases.end.reset.map(|reset| reset.interrupts);
    // After the exchange it is a way to close.
    let whole = [asked[0], (40, packet(false, ACK, 501, 201, 1_000)), (40, packet(true, ACK, 201, 1_501, 0))];
    let closed = with(with(opened(), &whole), &[(50, packet(true, RST, 201, 0, 0))]);
    assert_eq!(interrupts(&closed), Some(false));
    // And so is the server's, if the client had closed before it heard of it.
    let crossed = with(opened(), &[asked[0], (30, forged)]);
    assert_eq!(interrupts(&crossed), Some(true));
    assert_eq!(interrupts(&with(crossed, &[(40, packet(true, ACK | Flags::FIN, 201, 501, 0))])), Some(false));
    let response = packet(false, ACK, 501, 201, 1_000);
    let silent = [asked[0], (40, response), (240, response), (640, response), (1_440, response)];
    // From the first packet without an answer on.
    assert_eq!(headline(&with(opened(), &silent)), (Code::VanishedPeer, 97, true));
}

#[test]
fn a_reset_with_another_count_of_packets_is_another_hosts() {
    let numbered = |mut segment: Segment, id| {
        segment.ip.id = Some(id);
        segment
    };
    let reset_with = |id| {
        let mut packets = opened();
        packets.push((20, packet(true, ACK, 101, 501, 100)));
        for n in 0..5u16 {
            let segment = packet(false, ACK, 501 + u32::from(n) * 1_000, 201, 1_000);
            packets.push((40, numbered(segment, 65_534u16.wrapping_add(n))));
        }
        packets.push((60, numbered(packet(false, RST, 5_501, 0, 0), id)));
        connection_at(&packets).observers.phases.end.reset.and_then(|reset| reset.ip_ids)
    };
    assert_eq!([3, 0, 900].map(reset_with), [None; 3], "Linux's own resets have 0");
    assert_eq!(reset_with(30_000), Some((30_000, 2)));
}

#[test]
fn an_answer_for_an_older_connection_is_time_of_connecting() {
    let syn = packet(true, Flags::SYN, 100, 0, 0);
    let mut packets = vec![(0, syn), (20, packet(false, ACK, 9_000, 7_000, 0)), (20, packet(true, RST, 7_000, 0, 0))];
    packets.extend(opened().into_iter().map(|(at, packet)| (at + 1_000, packet)));
    packets.extend([(1_020, packet(true, ACK, 101, 501, 100)), (1_040, packet(false, ACK, 501, 201, 1_000))]);
    assert_eq!(headline(&packets), (Code::Connecting, 98, true));
    assert!(connection_at(&packets).observers.phases.end.reset.is_none());
}

#[test]
fn messages_that_nothing_answers_are_no_requests() {
    let mut packets = opened();
    for n in 0..8u32 {
        packets.push((20 + u64::from(n) * 500, packet(true, ACK, 101 + n * 100, 501, 100)));
        packets.push((40 + u64::from(n) * 500, packet(false, ACK, 501, 201 + n * 100, 0)));
    }
    assert_eq!(phases(&packets), [20, 0, 0, 0, 0, 3_520, 0]);
}

#[test]
fn a_reset_that_comes_sooner_than_an_answer_can_is_another_hosts() {
    // The server is 20 ms away.
    let request = |at| (at, packet(true, ACK, 101, 501, 100));
    let too_soon = |asked_at: u64, after: u64, flags: u8, ack: u32| {
        let reset = (asked_at + after, packet(false, flags, 501, ack, 0));
        connection_at(&with(opened(), &[request(asked_at), reset]))
            .observers
            .phases
            .end
            .reset
            .and_then(|reset| reset.too_soon)
    };
    assert_eq!(too_soon(20, 5, RST | ACK, 201), Some((5_000_000, 20_000_000)));
    assert_eq!(too_soon(20, 15, RST | ACK, 201), None, "a round trip may be shorter than the first");
    assert_eq!(too_soon(20, 5, RST | ACK, 101), None, "it was on its way when the data left");
    assert_eq!(too_soon(20, 5, RST, 0), None, "and so may this have been");
    assert_eq!(too_soon(5_000, 5, RST, 0), Some((5_000_000, 20_000_000)), "hardly after five seconds of silence");
}

#[test]
fn an_acknowledgement_that_waits_for_the_response_is_no_time_of_the_request() {
    let mut packets = opened();
    for n in 0..5u32 {
        let (at, up, down) = (20 + u64::from(n) * 100, 101 + n * 100, 501 + n * 1_000);
        packets.push((at, packet(true, ACK, up, down, 100)));
        packets.push((at + 60, packet(false, ACK, down, up + 100, 0)));
        packets.push((at + 100, packet(false, ACK, down, up + 100, 1_000)));
        packets.push((at + 100, packet(true, ACK, up + 100, down + 1_000, 0)));
    }
    assert_eq!(phases(&packets), [20, 0, 200, 300, 0, 0, 0], "of 60 ms the ACK may have been on its way for 40");
    assert_eq!(headline(&packets), (Code::WaitingForServer, 58, true));
}

#[test]
fn only_the_requests_that_were_sent_again_were_lost() {
    let mut packets = opened();
    let mut now = 20;
    for n in 0..20u32 {
        let (up, down) = (101 + n * 100, 501 + n * 1_000);
        packets.push((now, packet(true, ACK, up, down, 100)));
        if n == 7 {
            now += 300;
            packets.push((now, packet(true, ACK, up, down, 100)));
        }
        now += 20;
        packets.push((now, packet(false, ACK, down, up + 100, 1_000)));
        packets.push((now, packet(true, ACK, up + 100, down + 1_000, 0)));
    }
    assert_eq!(phases(&packets), [20, 0, 700, 0, 0, 0, 0]);
    assert_eq!(headline(&packets), (Code::RequestLost, 44, true), "320 of 720 ms");
}

#[test]
fn the_first_segment_of_a_request_is_sent_again_for_all() {
    let first = packet(true, ACK, 101, 501, 1_000);
    let asked = [(20, first), (20, packet(true, ACK, 1_101, 501, 400)), (240, first), (640, first)];
    let answered = [(660, packet(false, ACK, 501, 1_501, 0)), (661, packet(false, ACK, 501, 1_501, 1_000))];
    let packets = with(with(opened(), &asked), &answered);
    assert_eq!(headline(&packets), (Code::RequestLost, 97, true));
    assert_eq!(connection_at(&packets).observers.phases.requests_resent(), 2);
}
