//! Windows above TCP, which messages of the receiving program open again at half, at a quarter or piece by piece.

use crate::capture::{CLIENT, SERVER, Sent, Setup, Wire};
use crate::{ACK, judged};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use thalweg_model::{Cause, Code, Flow};

const SEGMENT: u64 = 1_448;
/// Microseconds of a segment at 500 Mb/s.
const SLOT: u64 = 24;
/// Of a message that opens the window: HTTP/2's `WINDOW_UPDATE` (RFC 9113 §6.9).
const MESSAGE: u64 = 13;

/// What reaches a host: a time, the host, up to where the other's data came, and what that acknowledges.
type Arrival = Reverse<(u64, usize, u64, u64)>;

/// A sender that has at most `window` bytes out which the receiver has not opened again, `piece` bytes at a time: by a message each, or as a buffer
/// does by its acknowledgements alone.
struct Stream {
    wire: Wire,
    setup: Setup,
    arrivals: BinaryHeap<Arrival>,
    /// Up to where each side has sent, and has received.
    sent: [u64; 2],
    received: [u64; 2],
    credit: u64,
    link_free: u64,
    unacknowledged: u64,
    read: u64,
}

impl Stream {
    fn put(&mut self, at: u64, side: usize, len: u64) {
        let sent = Sent {
            seq: 1 + self.sent[side] as u32,
            ack: 1 + self.received[side] as u32,
            len: len as usize,
            ..self.wire.now(side, ACK, 0)
        };
        self.wire.put(at, side, false, sent);
        self.sent[side] += len;
        self.arrivals.push(Reverse((at + self.setup.rtt / 2, 1 - side, self.sent[side], self.received[side])));
    }

    /// Sends what the window lets go.
    fn serve(&mut self, now: u64) {
        while self.credit > 0 {
            let len = self.credit.min(SEGMENT);
            let at = self.link_free.max(now);
            self.put(at, SERVER, len);
            self.link_free = at + SLOT;
            self.credit -= len;
        }
    }

    fn read(&mut self, now: u64, to: u64, piece: u64, message: u64) {
        self.read += to - self.received[CLIENT];
        self.received[CLIENT] = to;
        self.unacknowledged += 1;
        let pieces = self.read / piece;
        self.read %= piece;
        if pieces > 0 && message > 0 {
            self.put(now + 1, CLIENT, message * pieces);
        } else if self.unacknowledged == 2 {
            self.put(now + 1, CLIENT, 0);
        } else {
            return;
        }
        self.unacknowledged = 0;
    }
}

/// The receiver sends so many bytes for each piece; what lets the sender go on is that, or that it acknowledges.
fn transfer(setup: Setup, window: u64, (piece, message): (u64, u64), opens: bool) -> Flow {
    let mut wire = Wire::new(setup);
    wire.scale = Some(8);
    let open = wire.open(0);
    let mut stream = Stream {
        wire,
        setup,
        arrivals: BinaryHeap::new(),
        sent: [0; 2],
        received: [0; 2],
        credit: window,
        link_free: 0,
        unacknowledged: 0,
        read: 0,
    };
    stream.put(open, CLIENT, 100);
    let mut opened = 0;
    while let Some(Reverse((now, side, to, acknowledged))) = stream.arrivals.pop() {
        if stream.sent[SERVER] > (40 * window).min(16 << 20) {
            break;
        }
        if side == CLIENT {
            stream.read(now, to, piece, message);
            continue;
        }
        stream.received[SERVER] = to;
        if opens {
            let messages = to.saturating_sub(100) / message;
            stream.credit += (messages - opened) * piece;
            opened = messages;
        } else {
            stream.credit = window - (stream.sent[SERVER] - acknowledged);
        }
        stream.serve(now);
    }
    judged(stream.wire).0
}

#[test]
fn a_window_above_tcp_is_seen_at_either_end_however_often_it_is_opened() {
    for (window, piece) in [
        (65_535, 32_767),
        (65_535, 16_384),
        (65_535, 8_192),
        (262_144, 4_096),
        (1_048_576, 98_304),
        (1_048_576, 524_288),
    ] {
        for setup in Setup::all(40) {
            let flow = transfer(setup, window, (piece, MESSAGE), true);
            let Cause::ApplicationWindow(cause) = &flow.verdict.cause else {
                panic!("{window} by {piece}, {setup:?}: {:#?} {:#?}", flow.verdict, flow.findings)
            };
            let told = cause.window_bytes;
            assert!((window / 2 - SEGMENT..=window).contains(&told), "{window} by {piece}, {setup:?}: {told}");
        }
    }
}

#[test]
fn what_acknowledgements_let_go_is_no_window_above_tcp() {
    for setup in Setup::all(40) {
        // Segments that carry data of their own acknowledge as well.
        for (piece, message) in [(32_767, 0), (2_896, SEGMENT)] {
            let flow = transfer(setup, 65_535, (piece, message), false);
            let is_one = |code: Code| code == Code::ApplicationWindow;
            let is_found = is_one(flow.verdict.code()) || flow.findings.iter().any(|finding| is_one(finding.code()));
            assert!(!is_found, "{setup:?}, {message}: {:#?}", flow.verdict);
        }
    }
}

/// A download that a window of 500 times 2 to this scale holds, in a capture that begins within it.
fn without_syns(setup: Setup, scale: u32) -> Wire {
    const SEGMENT: u32 = 1_400;
    let mut wire = Wire::new(setup);
    wire.window[CLIENT] = 500;
    let window = 500u32 << scale;
    let (mut sent, mut acked, mut now) = (0u32, 0u32, 0);
    for _ in 0..60 {
        for n in 0..window / SEGMENT {
            let at = now + u64::from(n) * 100;
            if sent + SEGMENT <= acked + window {
                let data = Sent { seq: sent, len: SEGMENT as usize, ..wire.now(SERVER, ACK, 0) };
                wire.put(at, SERVER, false, data);
                sent += SEGMENT;
                let ack = Sent { ack: sent, ..wire.now(CLIENT, ACK, 0) };
                wire.put(at + setup.rtt / 2 + 10, CLIENT, false, ack);
            }
        }
        (acked, now) = (sent, now + setup.rtt + 20);
    }
    wire
}

#[test]
fn a_window_whose_scale_no_syn_tells_is_known_by_what_is_sent() {
    for setup in Setup::all(40).filter(|setup| setup.tap == SERVER || setup.timestamps) {
        for scale in [5, 7, 8] {
            let (flow, _) = judged(without_syns(setup, scale));
            let Cause::ReceiveWindow(window) = &flow.verdict.cause else {
                panic!("{setup:?}, {scale}: {:#?}", flow.verdict)
            };
            let is_same = |code: Code| matches!(code, Code::SendBuffer | Code::CongestionWindowClamp);
            assert!(!flow.findings.iter().any(|finding| is_same(finding.code())), "{setup:?}: {:#?}", flow.findings);
            assert_eq!((window.found_scale, window.largest_bytes), (Some(scale as u8), 500 << scale), "{setup:?}");
            // No window enters the average without its scale, nor is the first one.
            assert_eq!(window.window_bytes.round() as u64, 500 << scale, "{setup:?}");
            let first = flow.facts.receive_window.as_ref().map(|window| window.first_bytes);
            assert_eq!(first, Some(500 << scale), "{setup:?}");
        }
    }
}
