//! The program: what it does when a connection opens, has a round trip measured, and closes.

use super::settings::{CONGESTION, CONGESTION_LEN, FAMILY, FIRST, MASK, NETWORK, NUMBERS, PORT, SHARE};
use crate::bpf::Program;
use crate::bpf::assembler::{Alu, Assembler, Helper, If, Label, Reg, Width};
use crate::bpf::map::Map;
use crate::error::HostError;

const BPF_PROG_TYPE_SOCK_OPS: u32 = 13;

/// Offsets in `struct bpf_sock_ops`. Source: linux/bpf.h.
const OP: i16 = 0;
const NEW_STATE: i16 = 8;
const FAMILY_OF: i16 = 20;
const REMOTE_IP4: i16 = 24;
const REMOTE_IP6: i16 = 32;
const LOCAL_PORT: i16 = 68;
const TOTAL_RETRANS: i16 = 136;
const DATA_SEGS_OUT: i16 = 152;
const BYTES_ACKED: i16 = 176;

/// Why it is called: `BPF_SOCK_OPS_…_CB`.
const ACTIVE_ESTABLISHED: i32 = 4;
const PASSIVE_ESTABLISHED: i32 = 5;
const STATE: i32 = 10;
const RTT: i32 = 12;
/// What it is to be called for: `BPF_SOCK_OPS_…_CB_FLAG`.
const FOR_STATE: i32 = 4;
const FOR_RTT: i32 = 8;
const TCP_CLOSE: i32 = 7;

/// Options, each with its place among the numbers of the settings: `TCP_BPF_IW`, `TCP_BPF_SNDCWND_CLAMP`, `TCP_BPF_RTO_MIN`,
/// `TCP_BPF_DELACK_MAX`.
const OPTIONS: [(i16, i32); 4] = [(0, 1001), (4, 1002), (8, 1004), (12, 1003)];

/// Counters of an arm, in order of [`super::ArmCounters`].
const OPENED: i16 = 0;
const CLOSED: i16 = 8;
const BYTES: i16 = 16;
const SEGMENTS: i16 = 24;
const RETRANSMITS: i16 = 32;
const FIRST_COUNT: i16 = 40;
const FIRST_SUM: i16 = 48;
const FIRST_SQUARES: i16 = 56;
const FIRST_RESENT: i16 = 64;
const REFUSED: i16 = 72;

/// Times are counted in units of 100 µs and up to a minute, so that the sum of squares has room for fifty million of them.
const UNIT_NS: i32 = 100_000;
const LONGEST: i32 = 600_000;

/// What is remembered of a connection: when it opened, its arm, and whether its first bytes are acknowledged.
pub(super) struct Remembered;

impl Remembered {
    pub(super) const LEN: usize = 16;
    const OPENED_NS: i16 = 0;
    const ARM: i16 = 8;
    const DONE: i16 = 12;
}

/// Stack: a socket's cookie, an arm's number, and what is remembered.
const COOKIE: i16 = -8;
const ARM: i16 = -16;
const NEW: i16 = -32;

/// Loads the program with its maps. R6 is its context, the connection; R7 the settings, R8 the counters of its arm.
pub(super) fn load(settings: &Map, counters: &Map, sockets: &Map) -> Result<Program, HostError> {
    use Reg::{R1, R2, R6, R7};
    let mut code = Assembler::default();
    let [opens, closes, measured, end] = [(); 4].map(|()| code.label());
    code.alu(Alu::Mov, R6, R1)
        .value(R7, settings)
        .load(Width::Word, R2, R6, OP)
        .jump_if(R2, If::Equal, PASSIVE_ESTABLISHED, opens)
        .jump_if(R2, If::Equal, ACTIVE_ESTABLISHED, opens)
        .jump_if(R2, If::Equal, RTT, measured)
        .jump_if(R2, If::Equal, STATE, closes)
        .jump(end);
    code.place(opens);
    on_open(&mut code, counters, sockets, end);
    code.jump(end).place(measured);
    on_round_trip(&mut code, counters, sockets, end);
    code.jump(end).place(closes);
    on_close(&mut code, counters, sockets, end);
    // 1: to go on as without it.
    code.place(end).answer(1);
    Program::load_as(BPF_PROG_TYPE_SOCK_OPS, "connection_settings", code)
}

/// Puts the socket's cookie on the stack.
fn cookie(code: &mut Assembler) {
    use Reg::{R0, R1, R6, R10};
    code.alu(Alu::Mov, R1, R6).call(Helper::SocketCookie).store(Width::Double, R10, COOKIE, R0);
}

/// R0 = the value in `map` at what lies at `key` on the stack; goes to `none` where there is none.
fn lookup(code: &mut Assembler, map: &Map, key: i16, none: Label) {
    use Reg::{R0, R1, R2, R10};
    code.map(R1, map).alu(Alu::Mov, R2, R10).alu(Alu::Add, R2, i32::from(key)).call(Helper::MapLookup).jump_if(
        R0,
        If::Equal,
        0,
        none,
    );
}

/// Adds what `R2` holds to a counter of the arm in R8.
fn count(code: &mut Assembler, counter: i16) {
    code.atomic_add(Reg::R8, counter, Reg::R2);
}

fn on_open(code: &mut Assembler, counters: &Map, sockets: &Map, end: Label) {
    use Reg::{R0, R1, R2, R3, R4, R7, R8, R9, R10};
    unless_of_port_and_destination(code, end);
    let control = code.label();
    // R9: the arm.
    code.call(Helper::PrandomU32)
        .alu(Alu::Mod, R0, 100)
        .load(Width::Word, R2, R7, SHARE)
        .alu(Alu::Mov, R9, 0)
        .jump_if(R0, If::GreaterOrEqual, R2, control)
        .alu(Alu::Mov, R9, 1)
        .place(control)
        .store(Width::Word, R10, ARM, R9);
    lookup(code, counters, ARM, end);
    code.alu(Alu::Mov, R8, R0).alu(Alu::Mov, R2, 1);
    count(code, OPENED);
    let remember = code.label();
    code.jump_if(R9, If::Equal, 0, remember);
    for (at, option) in OPTIONS {
        set(code, option, NUMBERS + at, (Width::Word, 4));
    }
    set(code, libc::TCP_CONGESTION, CONGESTION, (Width::Byte, CONGESTION_LEN as i32));
    code.place(remember).alu(Alu::Mov, R2, 0).store(Width::Word, R10, NEW + Remembered::DONE, R2).store(
        Width::Word,
        R10,
        NEW + Remembered::ARM,
        R9,
    );
    code.call(Helper::KtimeGetNs).store(Width::Double, R10, NEW + Remembered::OPENED_NS, R0);
    cookie(code);
    code.map(R1, sockets)
        .alu(Alu::Mov, R2, R10)
        .alu(Alu::Add, R2, i32::from(COOKIE))
        .alu(Alu::Mov, R3, R10)
        .alu(Alu::Add, R3, i32::from(NEW))
        .alu(Alu::Mov, R4, 0)
        .call(Helper::MapUpdate);
    call_for(code, FOR_STATE | FOR_RTT);
}

/// Asks to be called for these events of the connection, and no others.
fn call_for(code: &mut Assembler, events: i32) {
    use Reg::{R1, R2, R6};
    code.alu(Alu::Mov, R1, R6).alu(Alu::Mov, R2, events).call(Helper::SockOpsCbFlagsSet);
}

/// Goes to `end` unless the settings are for the connection's local port and destination.
fn unless_of_port_and_destination(code: &mut Assembler, end: Label) {
    use Reg::{R2, R3, R4, R6, R7};
    let [any_port, v4, v6, of_them] = [(); 4].map(|()| code.label());
    code.load(Width::Word, R2, R7, PORT)
        .jump_if(R2, If::Equal, 0, any_port)
        .load(Width::Word, R3, R6, LOCAL_PORT)
        .jump_if(R2, If::NotEqual, R3, end)
        .place(any_port)
        .load(Width::Word, R2, R7, FAMILY)
        .load(Width::Word, R3, R6, FAMILY_OF)
        .jump_if(R2, If::Equal, 4, v4)
        .jump_if(R2, If::Equal, 6, v6)
        .jump(of_them);
    // IPv4 on a socket of IPv6 lies behind ::ffff:0:0/96 (RFC 4291 §2.5.5.2).
    let [mapped, masked] = [(); 2].map(|()| code.label());
    code.place(v4)
        .jump_if(R3, If::NotEqual, libc::AF_INET, mapped)
        .load(Width::Word, R4, R6, REMOTE_IP4)
        .jump(masked)
        .place(mapped);
    for (word, value) in [(0, 0), (4, 0), (8, 0xffff_u32.to_be())] {
        code.number(R2, u64::from(value)).load(Width::Word, R4, R6, REMOTE_IP6 + word).jump_if(
            R4,
            If::NotEqual,
            R2,
            end,
        );
    }
    code.load(Width::Word, R4, R6, REMOTE_IP6 + 12)
        .place(masked)
        .load(Width::Word, R2, R7, MASK)
        .alu(Alu::And, R4, R2)
        .load(Width::Word, R2, R7, NETWORK)
        .jump_if(R4, If::NotEqual, R2, end)
        .jump(of_them);
    code.place(v6).jump_if(R3, If::NotEqual, libc::AF_INET6, end);
    for word in [0, 4, 8, 12] {
        code.load(Width::Word, R4, R6, REMOTE_IP6 + word)
            .load(Width::Word, R2, R7, MASK + word)
            .alu(Alu::And, R4, R2)
            .load(Width::Word, R2, R7, NETWORK + word)
            .jump_if(R4, If::NotEqual, R2, end);
    }
    code.place(of_them);
}

/// Sets an option to what lies at `from` in the settings, unless that begins with 0; refusals are counted.
fn set(code: &mut Assembler, option: i32, from: i16, (first, len): (Width, i32)) {
    use Reg::{R0, R1, R2, R3, R4, R5, R6, R7};
    let next = code.label();
    code.load(first, R2, R7, from)
        .jump_if(R2, If::Equal, 0, next)
        .alu(Alu::Mov, R1, R6)
        .alu(Alu::Mov, R2, libc::SOL_TCP)
        .alu(Alu::Mov, R3, option)
        .alu(Alu::Mov, R4, R7)
        .alu(Alu::Add, R4, i32::from(from))
        .alu(Alu::Mov, R5, len)
        .call(Helper::Setsockopt)
        .jump_if(R0, If::Equal, 0, next)
        .alu(Alu::Mov, R2, 1);
    count(code, REFUSED);
    code.place(next);
}

/// R9 = what is remembered of the connection, R8 = the counters of its arm.
fn remembered(code: &mut Assembler, counters: &Map, sockets: &Map, end: Label) {
    use Reg::{R0, R2, R8, R9, R10};
    cookie(code);
    lookup(code, sockets, COOKIE, end);
    code.alu(Alu::Mov, R9, R0).load(Width::Word, R2, R9, Remembered::ARM).store(Width::Word, R10, ARM, R2);
    lookup(code, counters, ARM, end);
    code.alu(Alu::Mov, R8, R0);
}

fn on_round_trip(code: &mut Assembler, counters: &Map, sockets: &Map, end: Label) {
    use Reg::{R0, R2, R3, R6, R7, R9};
    // Most have not got so far.
    code.load(Width::Double, R2, R6, BYTES_ACKED).load(Width::Double, R3, R7, FIRST).jump_if(R2, If::Less, R3, end);
    remembered(code, counters, sockets, end);
    let [short, unsent] = [(); 2].map(|()| code.label());
    code.load(Width::Word, R2, R9, Remembered::DONE)
        .jump_if(R2, If::NotEqual, 0, end)
        .alu(Alu::Mov, R2, 1)
        .store(Width::Word, R9, Remembered::DONE, R2)
        .call(Helper::KtimeGetNs)
        .load(Width::Double, R2, R9, Remembered::OPENED_NS)
        .alu(Alu::Sub, R0, R2)
        .alu(Alu::Div, R0, UNIT_NS)
        .jump_if(R0, If::LessOrEqual, LONGEST, short)
        .alu(Alu::Mov, R0, LONGEST)
        .place(short)
        .alu(Alu::Mov, R2, R0);
    count(code, FIRST_SUM);
    code.alu(Alu::Mul, R2, R0);
    count(code, FIRST_SQUARES);
    code.alu(Alu::Mov, R2, 1);
    count(code, FIRST_COUNT);
    code.load(Width::Word, R3, R6, TOTAL_RETRANS).jump_if(R3, If::Equal, 0, unsent);
    count(code, FIRST_RESENT);
    code.place(unsent);
    call_for(code, FOR_STATE);
}

fn on_close(code: &mut Assembler, counters: &Map, sockets: &Map, end: Label) {
    use Reg::{R1, R2, R6, R10};
    code.load(Width::Word, R2, R6, NEW_STATE).jump_if(R2, If::NotEqual, TCP_CLOSE, end);
    remembered(code, counters, sockets, end);
    code.alu(Alu::Mov, R2, 1);
    count(code, CLOSED);
    for (width, field, counter) in [
        (Width::Double, BYTES_ACKED, BYTES),
        (Width::Word, DATA_SEGS_OUT, SEGMENTS),
        (Width::Word, TOTAL_RETRANS, RETRANSMITS),
    ] {
        code.load(width, R2, R6, field);
        count(code, counter);
    }
    code.map(R1, sockets).alu(Alu::Mov, R2, R10).alu(Alu::Add, R2, i32::from(COOKIE)).call(Helper::MapDelete);
}
