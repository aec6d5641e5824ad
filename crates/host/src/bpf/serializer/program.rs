//! The two programs of a link.

use super::trace::{FRAME_SURPLUS, OPPORTUNITY_BYTES};
use super::{Occupancy, Service, Trace};
use crate::bpf::assembler::{Alu, Assembler, Helper, If, Reg, Width};
use crate::bpf::map::Map;
use crate::bpf::{Program, SKB_LEN, SKB_TSTAMP, TC_ACT_SHOT, TC_ACT_UNSPEC};
use crate::error::HostError;
use Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9};
use thalweg_units::{Bytes, Rate, Span};

/// State of a port, 64-bit numbers: bytes and packets that wait, the most of each; packets and bytes taken, packets dropped;
/// when the last packet will have left; and what remains of that moment: a fraction of a nanosecond at a rate, bytes of an
/// opportunity in a trace; the number of that opportunity.
pub(super) const PORT_LEN: usize = 80;
const WAITING: i16 = 0;
const WAITING_PACKETS: i16 = 8;
const PEAK: i16 = 16;
const PEAK_PACKETS: i16 = 24;
const PACKETS: i16 = 32;
const BYTES: i16 = 40;
const DROPS: i16 = 48;
const LEFT_AT: i16 = 56;
const REMAINDER: i16 = 64;
const OPPORTUNITY: i16 = 72;

/// State of a shared memory: bytes in it, the most there were.
pub(super) const BUFFER_LEN: usize = 16;
const USED: i16 = 0;
const USED_PEAK: i16 = 8;

/// Bits after the point of a time per byte: at 8 kb/s a packet of 64 KiB still fits 63 bits, at 100 Gb/s the rate is exact
/// to one part in a million.
const FRACTION_BITS: i32 = 24;
const MILLISECOND: i32 = 1_000_000;

/// On the way out: takes the packet, or drops it, and writes when it leaves. R6 is the packet, R7 the time, R8 the port,
/// R9 the shared memory, R1 the packet's length.
pub(super) fn arrive(
    service: &Service,
    limit: Occupancy,
    port: &Map,
    shared: Option<(&Map, Bytes)>,
) -> Result<Program, HostError> {
    let mut code = Assembler::default();
    let full = code.label();
    code.alu(Alu::Mov, R6, R1).call(Helper::KtimeGetNs).alu(Alu::Mov, R7, R0);
    code.value(R8, port).load(Width::Word, R1, R6, SKB_LEN);

    // Whether it fits, everywhere, before anything is changed.
    code.load(Width::Double, R2, R8, WAITING).alu(Alu::Add, R2, R1);
    if let Some(bytes) = limit.bytes {
        code.number(R5, bytes.get()).jump_if(R2, If::Greater, R5, full);
    }
    code.load(Width::Double, R3, R8, WAITING_PACKETS).alu(Alu::Add, R3, 1);
    if let Some(packets) = limit.packets {
        code.number(R5, u64::from(packets)).jump_if(R3, If::Greater, R5, full);
    }
    if let Some((buffer, most)) = shared {
        code.value(R9, buffer).load(Width::Double, R4, R9, USED).alu(Alu::Add, R4, R1);
        code.number(R5, most.get()).jump_if(R4, If::Greater, R5, full);
        code.store(Width::Double, R9, USED, R4);
        raise(&mut code, R9, USED_PEAK, R4);
    }
    code.store(Width::Double, R8, WAITING, R2).store(Width::Double, R8, WAITING_PACKETS, R3);
    raise(&mut code, R8, PEAK, R2);
    raise(&mut code, R8, PEAK_PACKETS, R3);
    code.add_at(R8, PACKETS, 1, R2).add_at(R8, BYTES, R1, R2);

    // Maps must live until the program that names them is loaded.
    let _tables = match service {
        Service::Rate { rate, overhead } => {
            at_rate(&mut code, *rate, *overhead);
            None
        }
        Service::Trace { trace, begins } => Some(at_opportunity(&mut code, trace, *begins)?),
    };
    // R2 is when it leaves.
    code.store(Width::Double, R8, LEFT_AT, R2).store(Width::Double, R6, SKB_TSTAMP, R2).answer(TC_ACT_UNSPEC);
    if limit != Occupancy::default() || shared.is_some() {
        code.place(full).add_at(R8, DROPS, 1, R2).answer(TC_ACT_SHOT);
    }
    Program::load("serializer_arrive", code)
}

/// Where it arrives: takes the packet off the accounts.
pub(super) fn leave(port: &Map, shared: Option<&Map>) -> Result<Program, HostError> {
    let mut code = Assembler::default();
    let unknown = code.label();
    code.load(Width::Word, R1, R1, SKB_LEN).value(R8, port);
    // What went out before the link was attached is on no account.
    code.load(Width::Double, R2, R8, WAITING_PACKETS).jump_if(R2, If::Equal, 0, unknown);
    code.alu(Alu::Sub, R2, 1).store(Width::Double, R8, WAITING_PACKETS, R2);
    code.load(Width::Double, R2, R8, WAITING).alu(Alu::Sub, R2, R1).store(Width::Double, R8, WAITING, R2);
    if let Some(buffer) = shared {
        code.value(R9, buffer).load(Width::Double, R2, R9, USED).alu(Alu::Sub, R2, R1);
        code.store(Width::Double, R9, USED, R2);
    }
    code.place(unknown).answer(TC_ACT_UNSPEC);
    Program::load("serializer_leave", code)
}

/// Makes the number at `base + offset` at least `value`.
fn raise(code: &mut Assembler, base: Reg, offset: i16, value: Reg) {
    let enough = code.label();
    code.load(Width::Double, R5, base, offset).jump_if(value, If::LessOrEqual, R5, enough);
    code.store(Width::Double, base, offset, value).place(enough);
}

/// R2 = when a packet of R1 bytes has left a link of a constant rate.
fn at_rate(code: &mut Assembler, rate: Rate, overhead: u16) {
    let bits = rate.bits_per_second().max(1);
    let per_byte = ((8_000_000_000u128 << FRACTION_BITS) + u128::from(bits / 2)) / u128::from(bits);
    let busy = code.label();
    code.load(Width::Double, R2, R8, LEFT_AT).load(Width::Double, R3, R8, REMAINDER);
    code.jump_if(R2, If::Greater, R7, busy).alu(Alu::Mov, R2, R7).alu(Alu::Mov, R3, 0).place(busy);
    code.alu(Alu::Add, R1, i32::from(overhead)).number(R4, per_byte as u64).alu(Alu::Mul, R4, R1).alu(Alu::Add, R4, R3);
    code.alu(Alu::Mov, R3, R4).alu(Alu::And, R3, (1 << FRACTION_BITS) - 1).store(Width::Double, R8, REMAINDER, R3);
    code.alu(Alu::Shr, R4, FRACTION_BITS).alu(Alu::Add, R2, R4);
}

/// R2 = when a packet of R1 bytes has left by the opportunities of a trace.
///
/// Opportunities are numbered from 0 on through all repetitions. The packet begins in the opportunity the last one ended in,
/// if that is still to come, and else in the first after now; those in between found nothing to deliver and are lost.
fn at_opportunity(code: &mut Assembler, trace: &Trace, begins: Span) -> Result<[Map; 2], HostError> {
    let bytes = |table: &[u32]| table.iter().flat_map(|entry| entry.to_ne_bytes()).collect::<Vec<u8>>();
    let times = Map::of_one(&bytes(trace.times()))?;
    let after = Map::of_one(&bytes(&trace.after()))?;
    let (count, period_ms) = (trace.times().len() as i32, trace.period_ms() as i32);
    let period = u64::from(trace.period_ms()) * MILLISECOND as u64;
    let (coming, begun, fits, timed, never) = (code.label(), code.label(), code.label(), code.label(), code.label());

    code.load(Width::Double, R2, R8, OPPORTUNITY).load(Width::Double, R3, R8, REMAINDER);
    code.load(Width::Double, R4, R8, LEFT_AT).jump_if(R4, If::Greater, R7, coming);
    // R2 = the trace's repetition, R3 = the millisecond within it.
    code.number(R5, begins.as_nanos()).jump_if(R7, If::GreaterOrEqual, R5, begun).alu(Alu::Mov, R7, R5).place(begun);
    code.alu(Alu::Mov, R2, R7).alu(Alu::Sub, R2, R5).alu(Alu::Mov, R3, R2).number(R5, period);
    code.alu(Alu::Div, R2, R5).alu(Alu::Mod, R3, R5).alu(Alu::Div, R3, MILLISECOND);
    // Never so; it shows the verifier the bounds of the table.
    code.jump_if(R3, If::GreaterOrEqual, period_ms, never);
    code.alu(Alu::Shl, R3, 2).value(R4, &after).alu(Alu::Add, R4, R3).load(Width::Word, R3, R4, 0);
    code.alu(Alu::Mul, R2, count).alu(Alu::Add, R2, R3).alu(Alu::Mov, R3, OPPORTUNITY_BYTES);
    code.place(coming);

    // R1 = bytes to deliver, R3 = bytes that remain of opportunity R2.
    code.alu(Alu::Sub, R1, FRAME_SURPLUS).jump_if(R1, If::LessOrEqual, R3, fits).alu(Alu::Sub, R1, R3);
    code.alu(Alu::Mov, R5, R1).alu(Alu::Add, R5, OPPORTUNITY_BYTES - 1).alu(Alu::Div, R5, OPPORTUNITY_BYTES);
    code.alu(Alu::Add, R2, R5).alu(Alu::Mul, R5, OPPORTUNITY_BYTES).alu(Alu::Mov, R3, R5).place(fits);
    code.alu(Alu::Sub, R3, R1).store(Width::Double, R8, REMAINDER, R3).store(Width::Double, R8, OPPORTUNITY, R2);

    // The time of opportunity R2.
    code.alu(Alu::Mov, R4, R2).alu(Alu::Div, R4, count).number(R5, period).alu(Alu::Mul, R4, R5);
    code.alu(Alu::Mod, R2, count).jump_if(R2, If::GreaterOrEqual, count, never);
    code.alu(Alu::Shl, R2, 2).value(R5, &times).alu(Alu::Add, R5, R2).load(Width::Word, R2, R5, 0);
    code.alu(Alu::Mul, R2, MILLISECOND).alu(Alu::Add, R2, R4).number(R5, begins.as_nanos()).alu(Alu::Add, R2, R5);
    code.jump(timed).place(never).answer(TC_ACT_SHOT).place(timed);
    Ok([times, after])
}
