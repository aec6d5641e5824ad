//! Writing eBPF programs, instruction by instruction.
//!
//! Source: Documentation/bpf/standardization/instruction-set.rst.

use super::map::Map;
use std::os::fd::{AsFd, AsRawFd};

/// A register. R1 is the packet at the start; calls take R1 to R5, answer in R0 and keep R6 to R9; R10 is the stack's top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// A second operand.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operand {
    Reg(Reg),
    Number(i32),
}

impl From<Reg> for Operand {
    fn from(reg: Reg) -> Self {
        Self::Reg(reg)
    }
}

impl From<i32> for Operand {
    fn from(number: i32) -> Self {
        Self::Number(number)
    }
}

/// 64-bit arithmetic.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Alu {
    Add = 0x00,
    Sub = 0x10,
    Mul = 0x20,
    Div = 0x30,
    And = 0x50,
    Shl = 0x60,
    Shr = 0x70,
    Mod = 0x90,
    Mov = 0xb0,
    ShrSigned = 0xc0,
}

/// A comparison, unsigned unless it says so.
#[derive(Debug, Clone, Copy)]
pub(crate) enum If {
    Equal = 0x10,
    Greater = 0x20,
    GreaterOrEqual = 0x30,
    NotEqual = 0x50,
    Less = 0xa0,
    LessOrEqual = 0xb0,
    SignedGreaterOrEqual = 0x70,
    SignedLess = 0xc0,
    SignedLessOrEqual = 0xd0,
}

/// Bytes in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Width {
    Word = 0x00,
    Half = 0x08,
    Byte = 0x10,
    Double = 0x18,
}

/// A function of the kernel. Source: linux/bpf.h.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Helper {
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    KtimeGetNs = 5,
    PrandomU32 = 7,
    SmpProcessorId = 8,
    SkbLoadBytes = 26,
    SocketCookie = 46,
    Setsockopt = 49,
    SockOpsCbFlagsSet = 59,
    ProbeReadKernel = 113,
}

/// A place in the program to jump to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label(usize);

/// A program being written.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    code: Vec<u64>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    fn push(&mut self, opcode: u8, dst: Reg, src: u8, offset: i16, number: i32) -> &mut Self {
        let registers = dst as u8 | src << 4;
        let [o0, o1] = offset.to_le_bytes();
        let [n0, n1, n2, n3] = number.to_le_bytes();
        self.code.push(u64::from_le_bytes([opcode, registers, o0, o1, n0, n1, n2, n3]));
        self
    }

    fn with(&mut self, class: u8, operation: u8, dst: Reg, operand: Operand, offset: i16) -> &mut Self {
        match operand {
            Operand::Number(number) => self.push(class | operation, dst, 0, offset, number),
            Operand::Reg(src) => self.push(class | operation | 0x08, dst, src as u8, offset, 0),
        }
    }

    /// `dst = dst operation operand`.
    pub(crate) fn alu(&mut self, operation: Alu, dst: Reg, operand: impl Into<Operand>) -> &mut Self {
        self.with(0x07, operation as u8, dst, operand.into(), 0)
    }

    /// `dst = number`, of 64 bits.
    pub(crate) fn number(&mut self, dst: Reg, number: u64) -> &mut Self {
        self.wide(dst, 0, number as u32 as i32, (number >> 32) as u32 as i32)
    }

    /// `dst` = the address of a map, for helpers.
    pub(crate) fn map(&mut self, dst: Reg, map: &Map) -> &mut Self {
        self.wide(dst, 1, map.as_fd().as_raw_fd(), 0)
    }

    /// `dst` = the address of the one value of an array map.
    pub(crate) fn value(&mut self, dst: Reg, map: &Map) -> &mut Self {
        self.wide(dst, 2, map.as_fd().as_raw_fd(), 0)
    }

    fn wide(&mut self, dst: Reg, kind: u8, low: i32, high: i32) -> &mut Self {
        self.push(0x18, dst, kind, 0, low).push(0, Reg::R0, 0, 0, high)
    }

    /// `dst = *(base + offset)`.
    pub(crate) fn load(&mut self, width: Width, dst: Reg, base: Reg, offset: i16) -> &mut Self {
        self.push(0x61 | width as u8, dst, base as u8, offset, 0)
    }

    /// `*(base + offset) = src`.
    pub(crate) fn store(&mut self, width: Width, base: Reg, offset: i16, src: Reg) -> &mut Self {
        self.push(0x63 | width as u8, base, src as u8, offset, 0)
    }

    /// Adds `amount` to the 64-bit number at `base + offset` in one step that no other processor comes between.
    pub(crate) fn atomic_add(&mut self, base: Reg, offset: i16, amount: Reg) -> &mut Self {
        self.push(0xdb, base, amount as u8, offset, 0)
    }

    /// The same, and `amount` becomes what the number was before. Since Linux 5.12.
    pub(crate) fn fetch_add(&mut self, base: Reg, offset: i16, amount: Reg) -> &mut Self {
        self.push(0xdb, base, amount as u8, offset, 1)
    }

    /// Turns the low 16 bits of `dst` from the network's order into the machine's.
    pub(crate) fn swap_network_16(&mut self, dst: Reg) -> &mut Self {
        self.push(0xdc, dst, 0, 0, 16)
    }

    /// Calls a function of the kernel.
    pub(crate) fn call(&mut self, helper: Helper) -> &mut Self {
        self.push(0x85, Reg::R0, 0, 0, helper as i32)
    }

    /// A label, to be placed by [`Assembler::place`].
    pub(crate) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Puts a label here.
    pub(crate) fn place(&mut self, label: Label) -> &mut Self {
        self.labels[label.0] = Some(self.code.len());
        self
    }

    /// Jumps where the comparison holds.
    pub(crate) fn jump_if(&mut self, left: Reg, test: If, right: impl Into<Operand>, to: Label) -> &mut Self {
        self.jumps.push((self.code.len(), to));
        self.with(0x05, test as u8, left, right.into(), 0)
    }

    /// Jumps.
    pub(crate) fn jump(&mut self, to: Label) -> &mut Self {
        self.jumps.push((self.code.len(), to));
        self.push(0x05, Reg::R0, 0, 0, 0)
    }

    /// Ends the program with a verdict.
    pub(crate) fn answer(&mut self, verdict: i32) -> &mut Self {
        self.alu(Alu::Mov, Reg::R0, verdict).answer_r0()
    }

    /// Ends the program with what R0 holds.
    pub(crate) fn answer_r0(&mut self) -> &mut Self {
        self.push(0x95, Reg::R0, 0, 0, 0)
    }

    /// Adds `amount` to the 64-bit number at `base + offset`, by way of `with`.
    pub(crate) fn add_at(&mut self, base: Reg, offset: i16, amount: impl Into<Operand>, with: Reg) -> &mut Self {
        self.load(Width::Double, with, base, offset).alu(Alu::Add, with, amount).store(
            Width::Double,
            base,
            offset,
            with,
        )
    }

    /// The program, its jumps resolved.
    pub(crate) fn finish(mut self) -> Vec<u64> {
        for (at, Label(label)) in self.jumps {
            let to = self.labels[label].expect("invariant: every label is placed");
            let offset = i16::try_from(to as i64 - at as i64 - 1).expect("invariant: programs are short");
            let [o0, o1] = offset.to_le_bytes();
            let mut bytes = self.code[at].to_le_bytes();
            (bytes[2], bytes[3]) = (o0, o1);
            self.code[at] = u64::from_le_bytes(bytes);
        }
        self.code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_encoded_as_the_kernel_reads_them() {
        let mut code = Assembler::default();
        let end = code.label();
        code.jump_if(Reg::R1, If::Equal, 7, end)
            .alu(Alu::Add, Reg::R2, Reg::R3)
            .number(Reg::R4, 0x1_0000_0002)
            .load(Width::Half, Reg::R5, Reg::R10, -8)
            .place(end)
            .answer(-1);
        let bytes: Vec<[u8; 8]> = code.finish().into_iter().map(u64::to_le_bytes).collect();
        assert_eq!(
            bytes,
            [
                [0x15, 0x01, 4, 0, 7, 0, 0, 0],
                [0x0f, 0x32, 0, 0, 0, 0, 0, 0],
                [0x18, 0x04, 0, 0, 2, 0, 0, 0],
                [0x00, 0x00, 0, 0, 1, 0, 0, 0],
                [0x69, 0xa5, 0xf8, 0xff, 0, 0, 0, 0],
                [0xb7, 0x00, 0, 0, 0xff, 0xff, 0xff, 0xff],
                [0x95, 0x00, 0, 0, 0, 0, 0, 0],
            ]
        );
    }
}
