//! The filter as a classic BPF program, for the kernel to run on each packet.
//!
//! Source: Documentation/networking/filter.rst; linux/filter.h for the numbers.

use super::{Expression, Side, What, mask};
use std::net::IpAddr;

/// One instruction of classic BPF: `struct sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Instructions to skip when the condition holds.
    pub jt: u8,
    /// Instructions to skip when it does not.
    pub jf: u8,
    /// Its constant.
    pub k: u32,
}

/// Most instructions the kernel takes (`BPF_MAXINSNS`).
const LONGEST: usize = 4_096;

const LD_B: u16 = 0x30;
const LD_H: u16 = 0x28;
const LD_W: u16 = 0x20;
const LD_H_INDEXED: u16 = 0x48;
/// X = 4 · (byte & 15): the length of an IPv4 header.
const LDX_HEADER: u16 = 0xb1;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER: u16 = 0x25;
const JUMP_GREATER_EQUAL: u16 = 0x35;
const JUMP_SET: u16 = 0x45;
const RETURN: u16 = 0x06;

/// What is reached when a test holds, or does not: resolved when all code is there.
type Label = usize;
const ACCEPT: Label = 0;
const REFUSE: Label = 1;
/// Accepted for what may be in it.
const TUNNEL: Label = 2;

pub(super) fn compile(expression: &Expression, keep: u32, keep_tunnel: u32) -> Option<Vec<Instruction>> {
    let mut code = Code { instructions: Vec::new(), labels: vec![None; 3] };
    let (v4, v6) = (code.label(), code.label());
    code.load(LD_B, 0);
    code.add(AND, 0xf0);
    code.branch_or(JUMP_EQUAL, 0x40, v4);
    code.branch(JUMP_EQUAL, 0x60, v6, REFUSE);

    code.place(v4);
    let (tcp, udp) = (code.label(), code.label());
    code.load(LD_B, 9);
    code.branch_or(JUMP_EQUAL, 6, tcp);
    // IP in IP, GRE, authentication and MPLS.
    for tunnel in [4, 41, 47, 51, 137] {
        code.branch_or(JUMP_EQUAL, tunnel, TUNNEL);
    }
    code.branch(JUMP_EQUAL, 17, udp, REFUSE);
    code.place(udp);
    code.add(LDX_HEADER, 0);
    code.load(LD_H_INDEXED, 2);
    code.overlays();
    code.place(tcp);
    // A later fragment has no ports.
    let whole = code.label();
    code.load(LD_H, 6);
    code.branch(JUMP_SET, 0x1fff, ACCEPT, whole);
    code.place(whole);
    code.add(LDX_HEADER, 0);
    code.expression(expression, 4, ACCEPT, REFUSE);

    code.place(v6);
    let (tcp, udp) = (code.label(), code.label());
    code.load(LD_B, 6);
    code.branch_or(JUMP_EQUAL, 6, tcp);
    // Extension headers, of which the program does not know the length, and tunnels.
    for other in [0, 43, 44, 60, 51, 135, 139, 140, 4, 41, 47, 137] {
        code.branch_or(JUMP_EQUAL, other, TUNNEL);
    }
    code.branch(JUMP_EQUAL, 17, udp, REFUSE);
    code.place(udp);
    code.load(LD_H, 42);
    code.overlays();
    code.place(tcp);
    code.expression(expression, 6, ACCEPT, REFUSE);

    code.place(ACCEPT);
    code.add(RETURN, keep);
    code.place(TUNNEL);
    code.add(RETURN, keep_tunnel);
    code.place(REFUSE);
    code.add(RETURN, 0);
    code.finish()
}

struct Code {
    /// Of a jump, `k` is a label until the end.
    instructions: Vec<Instruction>,
    labels: Vec<Option<usize>>,
}

impl Code {
    fn label(&mut self) -> Label {
        self.labels.push(None);
        self.labels.len() - 1
    }

    fn place(&mut self, label: Label) {
        self.labels[label] = Some(self.instructions.len());
    }

    fn add(&mut self, code: u16, k: u32) {
        self.instructions.push(Instruction { code, jt: 0, jf: 0, k });
    }

    fn load(&mut self, code: u16, at: u32) {
        self.add(code, at);
    }

    /// Goes to one label or the other. Conditions reach 255 instructions at most, so each is followed by two jumps that reach all.
    fn branch(&mut self, condition: u16, k: u32, yes: Label, no: Label) {
        self.instructions.push(Instruction { code: condition, jt: 0, jf: 1, k });
        self.add(JUMP, yes as u32);
        self.add(JUMP, no as u32);
    }

    /// Goes to the label, or on.
    fn branch_or(&mut self, condition: u16, k: u32, yes: Label) {
        self.instructions.push(Instruction { code: condition, jt: 0, jf: 1, k });
        self.add(JUMP, yes as u32);
    }

    /// Accepts the ports of overlays in the accumulator.
    fn overlays(&mut self) {
        for port in [4789, 8472, 4790, 2152, 6635] {
            self.branch_or(JUMP_EQUAL, port, TUNNEL);
        }
        self.branch(JUMP_EQUAL, 6081, TUNNEL, REFUSE);
    }

    fn expression(&mut self, expression: &Expression, version: u8, yes: Label, no: Label) {
        match expression {
            Expression::All(parts) => {
                for part in parts {
                    let next = self.label();
                    self.expression(part, version, next, no);
                    self.place(next);
                }
                self.add(JUMP, yes as u32);
            }
            Expression::Any(parts) => {
                for part in parts {
                    let next = self.label();
                    self.expression(part, version, yes, next);
                    self.place(next);
                }
                self.add(JUMP, no as u32);
            }
            Expression::Not(part) => self.expression(part, version, no, yes),
            Expression::Test(Side::Either, what) => {
                let other = self.label();
                self.test(*what, version, false, yes, other);
                self.place(other);
                self.test(*what, version, true, yes, no);
            }
            Expression::Test(side, what) => self.test(*what, version, *side == Side::Destination, yes, no),
        }
    }

    fn test(&mut self, what: What, version: u8, is_destination: bool, yes: Label, no: Label) {
        let second = u32::from(is_destination);
        match (what, version) {
            (What::Tcp, _) => self.add(JUMP, yes as u32),
            (What::Version(wanted), version) => self.add(JUMP, if wanted == version { yes } else { no } as u32),
            (What::Net(IpAddr::V4(net), bits), 4) => {
                let mask = mask(bits, 32) as u32;
                self.load(LD_W, 12 + 4 * second);
                self.add(AND, mask);
                self.branch(JUMP_EQUAL, net.to_bits() & mask, yes, no);
            }
            (What::Net(IpAddr::V6(net), bits), 6) => {
                let mask = mask(bits, 128);
                for word in 0..4u32 {
                    let part = |whole: u128| (whole >> (96 - 32 * word)) as u32;
                    if part(mask) == 0 {
                        break;
                    }
                    let next = self.label();
                    self.load(LD_W, 8 + 16 * second + 4 * word);
                    self.add(AND, part(mask));
                    self.branch(JUMP_EQUAL, part(net.to_bits()) & part(mask), next, no);
                    self.place(next);
                }
                self.add(JUMP, yes as u32);
            }
            (What::Net(..), _) => self.add(JUMP, no as u32),
            (What::Ports(first, last), version) => {
                match version {
                    4 => self.load(LD_H_INDEXED, 2 * second),
                    _ => self.load(LD_H, 40 + 2 * second),
                }
                let above = self.label();
                self.branch(JUMP_GREATER_EQUAL, u32::from(first), above, no);
                self.place(above);
                self.branch(JUMP_GREATER, u32::from(last), no, yes);
            }
        }
    }

    fn finish(mut self) -> Option<Vec<Instruction>> {
        if self.instructions.len() > LONGEST {
            return None;
        }
        for at in 0..self.instructions.len() {
            if self.instructions[at].code == JUMP {
                let to = self.labels[self.instructions[at].k as usize].expect("invariant: every label is placed");
                self.instructions[at].k = (to - at - 1) as u32;
            }
        }
        Some(self.instructions)
    }
}
