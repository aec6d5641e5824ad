//! The programs: `net/ipv4/tcp_periodic.c` of kernel/lab.patch, instruction by instruction and in its order.
//!
//! None calls a function, so every register keeps its value. R6 is the socket and R7 the rate sample; R8 is the divisor of the connection's
//! share by its priority; the others are free.

use super::fields::{Fields, Socket};
use crate::bpf::assembler::{Alu, Assembler, If, Label, Operand, Reg, Width};
use Reg::{R0, R1, R2, R3, R6, R7, R8};
use Width::{Byte, Double, Word};

/// A window is kept in 1/256 segments.
const SCALE_BITS: i32 = 8;
const MIN_WINDOW: i32 = 2;
const MAX_WINDOW: i32 = 65_535;
/// The path is empty if a round trip takes at most its minimum / 2^EMPTY_BITS longer.
const EMPTY_BITS: i32 = 3;
/// A paced message ends after its period / PART.
const PART: i32 = 2;
const PACED_DIVISOR: i32 = 4;
const MICROS: i32 = 1_000_000;

/// Source: net/tcp.h, linux/tcp.h, linux/net.h; `enum tcp_ca_event`, `enum tcp_ca_state`.
const TCP_INIT_CWND: i32 = 10;
const TCP_INFINITE_SSTHRESH: i32 = 0x7fff_ffff;
const CA_EVENT_TX_START: i32 = 0;
const TCP_CA_CWR: i32 = 2;
const SK_PACING_NEEDED: i32 = 1;
/// `rtt_us` of a round trip without a sample.
const NO_RTT: u64 = u32::MAX as u64;

/// State of a connection, from `icsk_ca_priv` on: `struct periodic`. Its first is of 64 bits, the others of 32.
const START_US: i16 = 0;
const START_SEQ: i16 = 8;
const BYTES: i16 = 12;
const PERIOD_US: i16 = 16;
const SHARE: i16 = 20;
const WINDOW: i16 = 24;
const ROUND: i16 = 28;
const RTT_US: i16 = 32;
const ENDED_SEQ: i16 = 36;
const ENDED: i16 = 40;
const FIRST: i16 = 44;

/// Every hook, by the name of its member of `struct tcp_congestion_ops`.
pub(super) fn all<'a>(fields: &'a Fields) -> [(&'static str, Assembler); 6] {
    let with = |write: fn(&mut Code<'a>)| {
        let mut code = Code { code: Assembler::default(), socket: &fields.socket, fields };
        code.code.load(Double, R6, R1, 0);
        write(&mut code);
        code.code
    };
    [
        ("init", with(Code::init)),
        ("ssthresh", with(Code::ssthresh)),
        ("undo_cwnd", with(Code::undo_cwnd)),
        ("cwnd_event", with(Code::cwnd_event)),
        ("set_state", with(Code::set_state)),
        ("cong_control", with(Code::cong_control)),
    ]
}

struct Code<'a> {
    code: Assembler,
    socket: &'a Socket,
    fields: &'a Fields,
}

impl Code<'_> {
    fn state(&mut self, width: Width, dst: Reg, field: i16) -> &mut Self {
        self.code.load(width, dst, R6, self.socket.private + field);
        self
    }

    fn set_state_field(&mut self, width: Width, field: i16, src: Reg) -> &mut Self {
        self.code.store(width, R6, self.socket.private + field, src);
        self
    }

    fn set_number(&mut self, field: i16, number: u64) -> &mut Self {
        self.code.number(R0, number);
        self.set_state_field(Word, field, R0)
    }

    /// `to = min(to, most)`.
    fn at_most(&mut self, to: Reg, most: impl Into<Operand> + Copy) {
        self.bound(to, If::LessOrEqual, most);
    }

    /// `to = max(to, least)`.
    fn at_least(&mut self, to: Reg, least: impl Into<Operand> + Copy) {
        self.bound(to, If::GreaterOrEqual, least);
    }

    fn bound(&mut self, to: Reg, unless: If, bound: impl Into<Operand> + Copy) {
        let kept = self.code.label();
        self.code.jump_if(to, unless, bound, kept).alu(Alu::Mov, to, bound).place(kept);
    }

    /// R8 = 1, 2 or 4, by priority.
    fn divisor(&mut self) {
        let [middle, found] = [(); 2].map(|()| self.code.label());
        self.code.load(Word, R0, R6, self.socket.priority).alu(Alu::Mov, R8, 1);
        for (priority, band) in [(6, found), (7, found), (0, middle), (4, middle)] {
            self.code.jump_if(R0, If::Equal, priority, band);
        }
        self.code.alu(Alu::Mov, R8, PACED_DIVISOR).jump(found).place(middle).alu(Alu::Mov, R8, 2).place(found);
    }

    /// `to = quota`.
    fn quota(&mut self, to: Reg) {
        self.state(Word, to, SHARE);
        self.code.alu(Alu::Shl, to, SCALE_BITS).alu(Alu::Div, to, R8);
        self.at_least(to, 1);
    }

    /// `to` = the window that a message begins with.
    fn first_window(&mut self, to: Reg) {
        self.quota(to);
        self.at_least(to, MIN_WINDOW << SCALE_BITS);
    }

    /// Makes R1 the window. Changes R1 and R2.
    fn set_window(&mut self) {
        self.at_least(R1, MIN_WINDOW << SCALE_BITS);
        self.at_most(R1, MAX_WINDOW << SCALE_BITS);
        self.set_state_field(Word, WINDOW, R1);
        self.code.alu(Alu::Shr, R1, SCALE_BITS).load(Word, R2, R6, self.socket.snd_cwnd_clamp);
        self.at_most(R1, R2);
        self.code.store(Word, R6, self.socket.snd_cwnd, R1);
    }

    /// Changes R0 to R2.
    fn set_pacing(&mut self) {
        let free = self.code.label();
        self.code.number(R0, u64::MAX).jump_if(R8, If::NotEqual, PACED_DIVISOR, free);
        self.state(Word, R2, PERIOD_US);
        self.code.jump_if(R2, If::Equal, 0, free).load(Double, R1, R6, self.socket.mstamp_us);
        self.state(Double, R0, START_US);
        self.code.alu(Alu::Sub, R1, R0).number(R0, u64::MAX).alu(Alu::Mul, R1, PART);
        // Not on time, so as fast as the window goes.
        self.code.jump_if(R1, If::GreaterOrEqual, R2, free);
        self.state(Word, R0, BYTES);
        self.code.alu(Alu::Mul, R0, PART * MICROS).alu(Alu::Div, R0, R2).place(free);
        self.code.load(Double, R1, R6, self.socket.max_pacing_rate);
        self.at_most(R0, R1);
        self.code.store(Double, R6, self.socket.pacing_rate, R0);
    }

    /// Changes R0 to R3.
    fn start_message(&mut self) {
        let first = self.code.label();
        self.state(Word, R3, ENDED_SEQ).state(Double, R1, START_US);
        self.code.load(Double, R2, R6, self.socket.mstamp_us).jump_if(R1, If::Equal, 0, first);
        self.code.alu(Alu::Mov, R0, R2).alu(Alu::Sub, R0, R1).number(R1, u64::from(u32::MAX));
        self.at_most(R0, R1);
        self.set_state_field(Word, PERIOD_US, R0).state(Word, R1, START_SEQ);
        self.code.alu(Alu::Mov, R0, R3).alu(Alu::Sub, R0, R1);
        self.set_state_field(Word, BYTES, R0);
        self.code.place(first);
        self.set_state_field(Double, START_US, R2).set_state_field(Word, START_SEQ, R3);
        self.begin_round();
        self.set_number(ENDED, 0).set_number(FIRST, 1);
        self.first_window(R1);
        self.set_window();
        self.set_pacing();
    }

    /// Changes R0.
    fn begin_round(&mut self) {
        self.code.load(Word, R0, R6, self.socket.delivered);
        self.set_state_field(Word, ROUND, R0).set_number(RTT_US, NO_RTT);
    }

    fn init(&mut self) {
        let [fresh, paced] = [(); 2].map(|()| self.code.label());
        self.divisor();
        self.code.alu(Alu::Mov, R0, 0);
        self.set_state_field(Double, START_US, R0);
        for field in [START_SEQ, BYTES, PERIOD_US, FIRST] {
            self.set_state_field(Word, field, R0);
        }
        // Before the first segment the window is initcwnd.
        self.code.load(Word, R1, R6, self.socket.snd_cwnd).load(Word, R0, R6, self.socket.data_segs_out);
        self.code.jump_if(R0, If::Equal, 0, fresh).alu(Alu::Mov, R1, TCP_INIT_CWND).place(fresh);
        self.set_state_field(Word, SHARE, R1);
        self.begin_round();
        self.set_number(ENDED, 1);
        self.code.load(Word, R0, R6, self.socket.snd_nxt);
        self.set_state_field(Word, ENDED_SEQ, R0);
        self.code.alu(Alu::Mov, R0, TCP_INFINITE_SSTHRESH).store(Word, R6, self.socket.snd_ssthresh, R0);
        self.first_window(R1);
        self.set_window();
        self.code.load(Word, R0, R6, self.socket.pacing_status).jump_if(R0, If::NotEqual, 0, paced);
        self.code.alu(Alu::Mov, R0, SK_PACING_NEEDED).store(Word, R6, self.socket.pacing_status, R0).place(paced);
        self.set_pacing();
        self.code.answer(0);
    }

    fn ssthresh(&mut self) {
        self.code.load(Word, R0, R6, self.socket.snd_ssthresh).answer_r0();
    }

    fn undo_cwnd(&mut self) {
        self.code.load(Word, R0, R6, self.socket.snd_cwnd).answer_r0();
    }

    fn cwnd_event(&mut self) {
        let end = self.code.label();
        self.code.load(Double, R0, R1, 8).alu(Alu::Shl, R0, 32).jump_if(R0, If::NotEqual, CA_EVENT_TX_START, end);
        self.state(Word, R0, ENDED);
        self.code.jump_if(R0, If::Equal, 0, end);
        self.divisor();
        self.start_message();
        self.code.place(end).answer(0);
    }

    fn set_state(&mut self) {
        let end = self.code.label();
        self.code.load(Double, R0, R1, 8).alu(Alu::And, R0, 0xff).jump_if(R0, If::Less, TCP_CA_CWR, end);
        self.divisor();
        self.first_window(R1);
        self.state(Word, R2, WINDOW);
        self.at_most(R1, R2);
        self.set_state_field(Word, WINDOW, R1);
        self.code.place(end).answer(0);
    }

    fn cong_control(&mut self) {
        let [begun, delayed, same_round, unsent] = [(); 4].map(|()| self.code.label());
        self.code.load(Double, R7, R1, 8 * self.fields.rate_argument);
        self.divisor();
        // It began before the end of the last one was acknowledged.
        self.state(Word, R0, ENDED);
        self.code.jump_if(R0, If::Equal, 0, begun).load(Word, R0, R6, self.socket.snd_nxt);
        self.state(Word, R1, ENDED_SEQ);
        self.code.jump_if(R0, If::Equal, R1, begun);
        self.start_message();
        self.code.place(begun).load(Double, R0, R7, self.fields.rate.rtt_us);
        self.code.jump_if(R0, If::SignedLessOrEqual, 0, delayed);
        self.code.load(Byte, R1, R7, self.fields.rate.is_ack_delayed).jump_if(R1, If::NotEqual, 0, delayed);
        self.state(Word, R1, RTT_US);
        self.at_most(R0, R1);
        self.set_state_field(Word, RTT_US, R0);
        self.code.place(delayed);
        self.unless_round_is_over(same_round);
        self.end_round();
        self.code.place(same_round).load(Word, R0, R6, self.socket.snd_nxt).load(Word, R1, R6, self.socket.write_seq);
        self.code.jump_if(R0, If::NotEqual, R1, unsent);
        self.set_state_field(Word, ENDED_SEQ, R0).set_number(ENDED, 1);
        self.first_window(R1);
        self.set_state_field(Word, WINDOW, R1);
        // Also after a timeout, when the kernel has made it one segment.
        self.code.place(unsent);
        self.state(Word, R1, WINDOW);
        self.set_window();
        self.code.answer(0);
    }

    /// Goes to `same_round` unless this acknowledges a segment that was sent after the round trip began.
    fn unless_round_is_over(&mut self, same_round: Label) {
        self.code.load(Word, R0, R7, self.fields.rate.delivered).alu(Alu::Shl, R0, 32);
        self.code.jump_if(R0, If::SignedLessOrEqual, 0, same_round);
        self.code.load(Word, R0, R7, self.fields.rate.prior_delivered);
        self.state(Word, R1, ROUND);
        self.code.alu(Alu::Sub, R0, R1).alu(Alu::Shl, R0, 32).jump_if(R0, If::SignedLess, 0, same_round);
    }

    fn end_round(&mut self) {
        let [queued, known, wider, kept] = [(); 4].map(|()| self.code.label());
        self.state(Word, R2, RTT_US);
        self.code.number(R0, NO_RTT).jump_if(R2, If::Equal, R0, kept);
        // R1 = the next window, R3 = the least round trip.
        self.state(Word, R1, WINDOW);
        self.code.load(Word, R3, R6, self.socket.min_rtt_us).alu(Alu::Mov, R0, R3).alu(Alu::Shr, R0, EMPTY_BITS);
        self.code.alu(Alu::Add, R0, R3).jump_if(R2, If::Greater, R0, queued);
        self.state(Word, R0, SHARE);
        self.code.alu(Alu::Shl, R0, SCALE_BITS).alu(Alu::Add, R1, R0).jump(known).place(queued);
        self.code.alu(Alu::Mul, R1, R3).alu(Alu::Div, R1, R2);
        self.quota(R0);
        self.code.alu(Alu::Add, R1, R0).place(known);
        // The first packets were ahead of those that set out with them.
        let later = self.code.label();
        self.state(Word, R0, FIRST);
        self.code.jump_if(R0, If::Equal, 0, later);
        self.state(Word, R0, SHARE);
        self.code.alu(Alu::Shl, R0, SCALE_BITS);
        self.at_most(R1, R0);
        self.code.place(later);
        self.state(Word, R2, WINDOW);
        self.code.jump_if(R1, If::Less, R2, wider).load(Word, R0, R7, self.fields.rate.prior_in_flight);
        self.code.alu(Alu::Add, R0, MIN_WINDOW).load(Word, R2, R6, self.socket.snd_cwnd).jump_if(
            R0,
            If::Less,
            R2,
            kept,
        );
        self.code.place(wider);
        self.set_window();
        self.code.place(kept);
        self.set_pacing();
        self.begin_round();
        self.set_number(FIRST, 0);
    }
}
