//! Captures that hold the packets of one side only, the receiver's: rate, round trip and losses as far as acknowledgements tell.

use crate::capture::{CLIENT, SERVER, Sent, Setup, Wire};
use crate::{ACK, MS, RST, close, judged};
use thalweg_model::{Cause, Code, UndecidedBy, Way};

/// The figures that the verdict rests on: bytes, seconds, losses, their bytes, the round trip.
type Told = (u64, f64, Option<u64>, u64, Option<f64>);

fn told(cause: &Cause) -> Told {
    match cause {
        Cause::Unknown(UndecidedBy::OnlyAcknowledgements { bytes, seconds, losses, lost_bytes, rtt_s, .. }) => {
            (*bytes, *seconds, losses.as_ref().map(|losses| losses.count), *lost_bytes, *rtt_s)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn acknowledgements_of_a_download_give_rate_and_round_trip() {
    for setup in Setup::all(24) {
        let mut wire = Wire::new(setup);
        wire.only = Some(CLIENT);
        let open = wire.open(0);
        let end = wire.exchange(open, 100 * MS, 90_000);
        close(&mut wire, end + MS, setup.rtt);
        let (flow, slowed) = judged(wire);
        let (bytes, seconds, losses, _, rtt_s) = told(&flow.verdict.cause);
        assert_eq!((bytes, losses, rtt_s), (90_000, None, Some(0.024)), "{setup:?}");
        // The first acknowledgement comes a round trip and 100 ms after the request.
        let first = open + setup.rtt + 100 * MS + 5;
        assert!((seconds - (end - first) as f64 / 1e6).abs() < 1e-6, "{seconds}");
        assert_eq!(
            (flow.direction, flow.bytes_down, flow.bytes_up, flow.life.is_none()),
            (Way::Down, 90_000, 200, true)
        );
        assert!((flow.goodput_bps - 720_000.0 / seconds).abs() < 1.0 && flow.rtt_min_ms == Some(24.0));
        assert!(!slowed);
    }
}

/// Whether anything was asked for is in the packets that are missing.
#[test]
fn a_reset_of_a_side_seen_alone_is_no_failure() {
    for setup in Setup::all(24) {
        let mut wire = Wire::new(setup);
        wire.only = Some(CLIENT);
        let open = wire.open(0);
        let end = wire.exchange(open, 100 * MS, 90_000);
        wire.send(end + MS, CLIENT, ACK, 200);
        wire.send(end + 30 * MS, CLIENT, RST, 0);
        let (flow, slowed) = judged(wire);
        assert_eq!((flow.verdict.code(), flow.bytes_down, flow.life.is_none()), (Code::Unknown, 90_000, true));
        assert!(!slowed, "{setup:?}");
    }
}

#[test]
fn acknowledgements_of_an_upload_tell_losses_by_sack_and_no_round_trip() {
    for setup in Setup::all(24) {
        let mut wire = Wire::new(setup);
        wire.only = Some(SERVER);
        let mut now = wire.open(0);
        for _ in 0..50 {
            wire.send(now, CLIENT, ACK, 1_000);
            now += MS;
            wire.send(now, SERVER, ACK, 0);
        }
        // The next segment is lost, and the five behind it are reported.
        let edge = wire.number(CLIENT, wire.next[CLIENT]);
        for n in 1..=5u32 {
            let sack = Some((edge.wrapping_add(1_000), edge.wrapping_add(1_000 + n * 1_000)));
            let sent = Sent { sack, ..wire.now(SERVER, ACK, 0) };
            wire.put(now + u64::from(n) * 10, SERVER, false, sent);
        }
        wire.send(now + 30 * MS, CLIENT, ACK, 6_000);
        wire.send(now + 45 * MS, SERVER, ACK, 0);
        let (flow, _) = judged(wire);
        let (bytes, _, losses, lost_bytes, rtt_s) = told(&flow.verdict.cause);
        assert_eq!((bytes, losses, lost_bytes, rtt_s), (56_000, Some(1), 1_000, None), "{setup:?}");
        assert_eq!((flow.direction, flow.bytes_up, flow.rtt_min_ms), (Way::Up, 56_000, None));
        let text: Vec<String> = flow.verdict.evidence().into_iter().map(|fact| fact.text).collect();
        assert!(text.iter().any(|text| text.starts_with("1 gap in the data, 1.00 kB")), "{text:?}");
    }
}

#[test]
fn a_connection_that_nothing_answers_is_none_of_these() {
    let setup = Setup::all(24).next().expect("a setup");
    let mut wire = Wire::new(setup);
    let sent = wire.now(CLIENT, crate::SYN, 0);
    for at in [0, 1_000 * MS, 3_000 * MS] {
        wire.put(at, CLIENT, true, sent);
    }
    let (flow, _) = judged(wire);
    assert_eq!(flow.verdict.code(), Code::Connecting);
    assert!(flow.life.is_some());
}
