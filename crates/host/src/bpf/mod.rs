//! Programs that run in the kernel for each packet of a device, and the maps they keep their state in.
//!
//! Source: bpf(2); linux/bpf.h; Documentation/bpf. They are written by an assembler of our own, so nothing is compiled or
//! linked; the lab kernel interprets them. Loading needs CAP_BPF outside any user namespace, which a lab kernel's first
//! process has.

mod assembler;
mod black_hole;
mod btf;
mod clock;
mod congestion;
mod correlated_delay;
mod drop_segments;
mod map;
mod mapped;
mod pin;
mod retransmissions;
mod serializer;
mod sock_ops;
mod tcx;
#[cfg(test)]
mod tests;
mod traffic;

pub use black_hole::BlackHole;
pub use congestion::Periodic;
pub use correlated_delay::{CorrelatedDelay, Variation};
pub use drop_segments::{Counted, DropSegments, Dropped};
pub use retransmissions::{Retransmission, RetransmissionKind, Retransmissions};
pub use serializer::{Buffer, Occupancy, PortCounters, Serializer, Service, Trace, TraceError};
pub use sock_ops::{ArmCounters, ConnectionProgram, ConnectionSettings};
pub use traffic::{Traffic, TrafficBin, TrafficFlow, TrafficHook, TrafficPart};

use crate::error::{HostError, check};
use assembler::Assembler;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
/// Programs that read the clock must be under a licence the GPL is compatible with.
const LICENCE: &[u8] = b"Dual MIT/GPL\0";

/// What a program answers: leave the packet to the next filter, or drop it. Source: linux/pkt_cls.h.
const TC_ACT_UNSPEC: i32 = -1;
const TC_ACT_SHOT: i32 = 2;

/// Offsets in `struct __sk_buff`.
const SKB_LEN: i16 = 0;
const SKB_PROTOCOL: i16 = 16;
const SKB_TSTAMP: i16 = 152;
/// `protocol` of an IPv4 and an IPv6 packet, as it stands in the packet.
const IPV4: i32 = (libc::ETH_P_IP as u16).to_be() as i32;
const IPV6: i32 = (libc::ETH_P_IPV6 as u16).to_be() as i32;
/// Length of an Ethernet header, which every packet a program sees begins with.
const ETHERNET_LEN: i32 = 14;

/// A program for packets of a device, loaded; [`crate::filter::attach`] puts it to work.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
}

impl Program {
    fn load(name: &str, code: Assembler) -> Result<Self, HostError> {
        Self::load_as(BPF_PROG_TYPE_SCHED_CLS, name, code)
    }

    fn load_as(kind: u32, name: &str, code: Assembler) -> Result<Self, HostError> {
        Self::load_for(kind, name, code, Hook::default())
    }

    fn load_for(kind: u32, name: &str, code: Assembler, hook: Hook) -> Result<Self, HostError> {
        let code = code.finish();
        let mut log = vec![0u8; 1 << 16];
        let mut attributes = [
            u64::from(kind) | (code.len() as u64) << 32,
            pointer(code.as_ptr()),
            pointer(LICENCE.as_ptr()),
            1 | (log.len() as u64) << 32,
            pointer(log.as_mut_ptr()),
            0,
            0,
            0,
            u64::from(hook.member) << 32,
            0,
            0,
            0,
            0,
            u64::from(hook.structure) << 32,
        ];
        let fd = bpf(BPF_PROG_LOAD, &mut attributes, || format!("load the program {name}")).map_err(|error| {
            let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
            let said = String::from_utf8_lossy(&log[..end]);
            match said.trim().lines().rev().take(3).collect::<Vec<_>>() {
                none if none.is_empty() => error,
                lines => {
                    let lines: Vec<&str> = lines.into_iter().rev().collect();
                    let source = io::Error::new(error.source.kind(), format!("{}: {}", error.source, lines.join("; ")));
                    HostError { act: error.act, source }
                }
            }
        })?;
        // SAFETY: the descriptor was just made and has no other owner.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }
}

/// The member of one of the kernel's structures of functions that a program is for.
#[derive(Debug, Clone, Copy, Default)]
struct Hook {
    /// By its place: `expected_attach_type`.
    member: u32,
    /// By its number among the kernel's types: `attach_btf_id`.
    structure: u32,
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// One call of bpf(2); what the attributes point to outlives it, since callers own it.
fn bpf<T>(command: libc::c_int, attributes: &mut [T], act: impl FnOnce() -> String) -> Result<libc::c_int, HostError> {
    // SAFETY: the attributes outlive the call and their length is given; every pointer in them is to memory of the caller,
    // of the length passed to the kernel, or known to it from the map.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), size_of_val(attributes) as libc::c_uint)
    };
    check(result as libc::c_int, act)
}

fn pointer<T>(to: *const T) -> u64 {
    to as usize as u64
}
