//! Dropping exactly the packets that are listed.

use super::assembler::{Alu, Assembler, Helper, If, Label, Reg, Width};
use super::map::Map;
use super::{ETHERNET_LEN, IPV4, Program, SKB_PROTOCOL, TC_ACT_SHOT, TC_ACT_UNSPEC};
use crate::error::HostError;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// TCP segments over IPv4 that carry data, retransmissions among them; of all connections together.
    DataSegments,
    /// Every packet of any protocol.
    Packets,
}

/// What was counted and dropped so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Counted, the dropped ones included.
    pub counted: u64,
    /// Dropped.
    pub dropped: u64,
}

/// Numbers the packets that pass a device in one direction, from 1 on, and drops those whose number is listed.
///
/// Whether a segment carries data follows from the lengths in its headers, options included; of a fragmented packet only the
/// first fragment can be a segment. A packet of segmentation offload counts once. It belongs on a router: the sender's own
/// device would tell its TCP of the drop.
#[derive(Debug)]
pub struct DropSegments {
    program: Program,
    state: Map,
}

/// Stack: where the IP header is copied to, and one more word.
const HEADER: i16 = -24;
const WORD: i16 = -32;
const IP_HEADER_LEN: i32 = 20;
/// State: `counted`, `dropped`.
const COUNTED: i16 = 0;
const DROPPED: i16 = 8;

impl DropSegments {
    /// Loads it.
    ///
    /// # Errors
    /// When the kernel refuses the program.
    pub fn load(counted: Counted, numbers: &[u32]) -> Result<Self, HostError> {
        use Reg::{R0, R1, R2, R3, R6, R9, R10};
        let state = Map::of_one(&[0; 16])?;
        let listed = Map::set_of(numbers.iter().copied())?;
        let mut code = Assembler::default();
        let pass = code.label();
        code.alu(Alu::Mov, R6, R1);
        if counted == Counted::DataSegments {
            pass_unless_data(&mut code, pass);
        }
        code.value(R9, &state)
            .add_at(R9, COUNTED, 1, R3)
            .store(Width::Word, R10, WORD, R3)
            .map(R1, &listed)
            .alu(Alu::Mov, R2, R10)
            .alu(Alu::Add, R2, i32::from(WORD))
            .call(Helper::MapLookup)
            .jump_if(R0, If::Equal, 0, pass)
            .add_at(R9, DROPPED, 1, R3)
            .answer(TC_ACT_SHOT)
            .place(pass)
            .answer(TC_ACT_UNSPEC);
        Ok(Self { program: Program::load("drop_segments", code)?, state })
    }

    /// What to attach.
    pub const fn program(&self) -> &Program {
        &self.program
    }

    /// What it has done.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn counters(&self) -> Result<Dropped, HostError> {
        let [counted, dropped] = self.state.numbers()?;
        Ok(Dropped { counted, dropped })
    }
}

/// Goes to `pass` unless the packet in R6 is an IPv4 TCP segment with data.
fn pass_unless_data(code: &mut Assembler, pass: Label) {
    use Reg::{R0, R1, R2, R3, R4, R6, R7, R8, R10};
    code.load(Width::Word, R2, R6, SKB_PROTOCOL)
        .jump_if(R2, If::NotEqual, IPV4, pass)
        .alu(Alu::Mov, R1, R6)
        .alu(Alu::Mov, R2, ETHERNET_LEN)
        .alu(Alu::Mov, R3, R10)
        .alu(Alu::Add, R3, i32::from(HEADER))
        .alu(Alu::Mov, R4, IP_HEADER_LEN)
        .call(Helper::SkbLoadBytes)
        .jump_if(R0, If::NotEqual, 0, pass)
        // R7: length of the IP header.
        .load(Width::Byte, R7, R10, HEADER)
        .alu(Alu::And, R7, 15)
        .alu(Alu::Shl, R7, 2)
        .jump_if(R7, If::Less, IP_HEADER_LEN, pass)
        .load(Width::Byte, R2, R10, HEADER + 9)
        .jump_if(R2, If::NotEqual, libc::IPPROTO_TCP, pass)
        .load(Width::Half, R2, R10, HEADER + 6)
        .swap_network_16(R2)
        .alu(Alu::And, R2, 0x1fff)
        .jump_if(R2, If::NotEqual, 0, pass)
        // R8: bytes after the IP header.
        .load(Width::Half, R8, R10, HEADER + 2)
        .swap_network_16(R8)
        .alu(Alu::Sub, R8, R7)
        // The byte with the TCP header's length.
        .alu(Alu::Mov, R1, R6)
        .alu(Alu::Mov, R2, R7)
        .alu(Alu::Add, R2, ETHERNET_LEN + 12)
        .alu(Alu::Mov, R3, R10)
        .alu(Alu::Add, R3, i32::from(WORD))
        .alu(Alu::Mov, R4, 1)
        .call(Helper::SkbLoadBytes)
        .jump_if(R0, If::NotEqual, 0, pass)
        .load(Width::Byte, R2, R10, WORD)
        .alu(Alu::Shr, R2, 4)
        .alu(Alu::Shl, R2, 2)
        .alu(Alu::Sub, R8, R2)
        .jump_if(R8, If::SignedLessOrEqual, 0, pass);
}
