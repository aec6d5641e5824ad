//! The program: it finds a packet's bin among those of its processor, and counts it there, with its flow.

use super::flows::{self, FlowMaps};
use super::layout::{
    BIN_FLOWS, BIN_LEN, BYTES, ENTRY_BYTES, ENTRY_LEN, ENTRY_PACKETS, FIRST_OPEN, LONGEST, Layout, MISSED, NUMBER,
    PACKETS,
};
use crate::bpf::assembler::{Alu, Assembler, Helper, If, Label, Reg, Width};
use crate::bpf::map::Map;
use crate::bpf::{Program, SKB_LEN, SKB_TSTAMP, TC_ACT_UNSPEC};
use crate::error::HostError;
use crate::filter::Direction;

/// A packet that is paced counts when it is to leave, if that is no later than so.
const PACED_MAX_NS: i32 = 50_000_000;
/// Stack: the flow's number.
const FLOW: i16 = -8;

/// Loads the program of one direction. R6 is the packet, R7 its bin's number, R8 the memory, R9 the bin.
pub(super) fn load(
    memory: &Map,
    direction: Direction,
    layout: &Layout,
    flows: Option<&FlowMaps>,
) -> Result<Program, HostError> {
    use Reg::{R0, R1, R2, R6, R7, R8, R9, R10};
    let mut code = Assembler::default();
    let [open, end] = [(); 2].map(|()| code.label());
    code.alu(Alu::Mov, R6, R1);
    if let Some(maps) = flows {
        flows::number(&mut code, maps, direction, layout.header_len);
        code.store(Width::Double, R10, FLOW, R0);
    }
    time(&mut code, direction);
    code.number(R2, layout.epoch_ns)
        .alu(Alu::Add, R7, R2)
        .alu(Alu::Div, R7, layout.bin_ns as i32)
        .value(R8, memory)
        // What comes for a bin that is read counts in the first that is not.
        .load(Width::Double, R2, R8, FIRST_OPEN)
        .jump_if(R7, If::GreaterOrEqual, R2, open)
        .alu(Alu::Mov, R7, R2)
        .place(open)
        .call(Helper::SmpProcessorId)
        .alu(Alu::And, R0, layout.processors as i32 - 1)
        .alu(Alu::Shl, R0, layout.bins.ilog2() as i32)
        .alu(Alu::Mov, R9, R7)
        .alu(Alu::And, R9, layout.bins as i32 - 1)
        .alu(Alu::Add, R9, R0)
        .alu(Alu::Mul, R9, layout.bin_len as i32)
        .alu(Alu::Add, R9, layout.begin_of(direction) as i32)
        .alu(Alu::Add, R9, R8);
    count(&mut code, layout, flows.is_some());
    // The bin was read meanwhile: nobody knows whether with this packet.
    code.load(Width::Double, R2, R8, FIRST_OPEN)
        .jump_if(R7, If::GreaterOrEqual, R2, end)
        .alu(Alu::Mov, Reg::R3, 1)
        .atomic_add(R8, MISSED, Reg::R3)
        .place(end)
        .answer(TC_ACT_UNSPEC);
    Program::load("traffic_bins", code)
}

/// R7 = when the packet counts, by CLOCK_MONOTONIC.
fn time(code: &mut Assembler, direction: Direction) {
    use Reg::{R0, R2, R3, R6, R7};
    let at_once = code.label();
    code.call(Helper::KtimeGetNs).alu(Alu::Mov, R7, R0);
    if direction == Direction::Egress {
        // TCP says when a packet may leave, and fq holds it until then.
        code.load(Width::Double, R2, R6, SKB_TSTAMP)
            .jump_if(R2, If::LessOrEqual, R7, at_once)
            .alu(Alu::Mov, R3, R2)
            .alu(Alu::Sub, R3, R7)
            .jump_if(R3, If::Greater, PACED_MAX_NS, at_once)
            .alu(Alu::Mov, R7, R2);
    }
    code.place(at_once);
}

/// Adds the packet in R6 to the bin in R9, of number R7, and to its flow's entry there.
fn count(code: &mut Assembler, layout: &Layout, with_flows: bool) {
    use Reg::{R2, R3, R4, R6, R7, R8, R9, R10};
    let [fresh, same, shorter, done] = [(); 4].map(|()| code.label());
    let entry = |place: usize| (BIN_LEN + place * ENTRY_LEN) as i16;
    code.load(Width::Word, R4, R6, SKB_LEN)
        .alu(Alu::Sub, R4, layout.header_len as i32)
        .load(Width::Double, R2, R9, NUMBER)
        .jump_if(R2, If::Equal, R7, same)
        // Another bin was here. What of it is not read never will be.
        .load(Width::Double, R3, R8, FIRST_OPEN)
        .jump_if(R2, If::Less, R3, fresh)
        .load(Width::Double, R3, R9, PACKETS)
        .atomic_add(R8, MISSED, R3)
        .place(fresh)
        .store(Width::Double, R9, NUMBER, R7)
        .alu(Alu::Mov, R2, 0);
    for at in [BYTES, PACKETS, LONGEST] {
        code.store(Width::Double, R9, at, R2);
    }
    for place in 0..if with_flows { BIN_FLOWS } else { 0 } {
        code.store(Width::Double, R9, entry(place), R2).store(Width::Double, R9, entry(place) + ENTRY_BYTES, R2);
    }
    code.place(same)
        .add_at(R9, BYTES, R4, R2)
        .add_at(R9, PACKETS, 1, R2)
        .load(Width::Double, R2, R9, LONGEST)
        .jump_if(R2, If::GreaterOrEqual, R4, shorter)
        .store(Width::Double, R9, LONGEST, R4)
        .place(shorter);
    if with_flows {
        code.load(Width::Double, R3, R10, FLOW).jump_if(R3, If::Equal, 0, done);
        for place in 0..BIN_FLOWS {
            of_flow(code, entry(place), done);
        }
    }
    code.place(done);
}

/// Adds R4 bytes of flow R3 to this entry of the bin in R9 if it is the flow's or nobody's, and goes to `done`.
fn of_flow(code: &mut Assembler, entry: i16, done: Label) {
    use Reg::{R2, R3, R4, R9};
    let [own, other] = [(); 2].map(|()| code.label());
    code.load(Width::Double, R2, R9, entry)
        .jump_if(R2, If::Equal, R3, own)
        .jump_if(R2, If::NotEqual, 0, other)
        .store(Width::Double, R9, entry, R3)
        .place(own)
        .load(Width::Word, R2, R9, entry + ENTRY_BYTES)
        .alu(Alu::Add, R2, R4)
        .store(Width::Word, R9, entry + ENTRY_BYTES, R2)
        .load(Width::Word, R2, R9, entry + ENTRY_PACKETS)
        .alu(Alu::Add, R2, 1)
        .store(Width::Word, R9, entry + ENTRY_PACKETS, R2)
        .jump(done)
        .place(other);
}
