//! A device through which big packets vanish.

use super::assembler::{Alu, Assembler, If, Reg, Width};
use super::{ETHERNET_LEN, IPV4, IPV6, Program, SKB_LEN, SKB_PROTOCOL, TC_ACT_SHOT, TC_ACT_UNSPEC};
use crate::error::HostError;

/// Drops every IPv4 and IPv6 packet longer than `longest` bytes, its header included, silently: no ICMP message
/// comes back, as behind a tunnel whose router filters them. Anything else passes.
///
/// A packet of segmentation offload counts as a whole.
#[derive(Debug)]
pub struct BlackHole {
    program: Program,
}

impl BlackHole {
    /// Loads it.
    ///
    /// # Errors
    /// When the kernel refuses the program.
    pub fn load(longest: u16) -> Result<Self, HostError> {
        use Reg::{R1, R2};
        let mut code = Assembler::default();
        let (ip, pass) = (code.label(), code.label());
        code.load(Width::Word, R2, R1, SKB_PROTOCOL)
            .jump_if(R2, If::Equal, IPV4, ip)
            .jump_if(R2, If::NotEqual, IPV6, pass)
            .place(ip)
            .load(Width::Word, R2, R1, SKB_LEN)
            .alu(Alu::Sub, R2, ETHERNET_LEN)
            .jump_if(R2, If::SignedLessOrEqual, i32::from(longest), pass)
            .answer(TC_ACT_SHOT)
            .place(pass)
            .answer(TC_ACT_UNSPEC);
        Ok(Self { program: Program::load("black_hole", code)? })
    }

    /// What to attach.
    pub const fn program(&self) -> &Program {
        &self.program
    }
}
