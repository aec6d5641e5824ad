//! Programs on a device by a link: they leave with the last descriptor of it, so with a process that is killed too.
//!
//! Source: linux/bpf.h, `BPF_TCX_INGRESS`; kernel/bpf/tcx.c. Since Linux 6.6.

use super::{Program, bpf};
use crate::error::HostError;
use crate::filter::Direction;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_TCX_INGRESS: u32 = 46;
const BPF_TCX_EGRESS: u32 = 47;
/// Before all others: what they drop is seen.
const BPF_F_BEFORE: u32 = 1 << 3;

/// Runs `program` for each packet of device `index` of the current namespace until the descriptor is closed.
pub(super) fn attach(index: u32, direction: Direction, program: &Program) -> Result<OwnedFd, HostError> {
    let hook = match direction {
        Direction::Ingress => BPF_TCX_INGRESS,
        Direction::Egress => BPF_TCX_EGRESS,
    };
    // After the flags: a descriptor that it is relative to, and the revision that is expected; none and any.
    let mut attributes = [program.as_fd().as_raw_fd() as u32, index, hook, BPF_F_BEFORE, 0, 0, 0, 0];
    let fd = bpf(BPF_LINK_CREATE, &mut attributes, || format!("attach a program to device {index}"))?;
    // SAFETY: the descriptor was just made and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
