//! A congestion control of ours in the running kernel, as a BPF program (`struct_ops`).
//!
//! Source: Documentation/bpf/map_struct_ops.rst; kernel/bpf/bpf_struct_ops.c; net/ipv4/bpf_tcp_ca.c.

mod fields;
mod program;

use super::btf::{self, Btf, Struct};
use super::{Hook, Program, bpf, pin, pointer};
use crate::error::{HostError, wrap};
use fields::Fields;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_MAP_TYPE_STRUCT_OPS: u32 = 26;
const BPF_PROG_TYPE_STRUCT_OPS: u32 = 27;
const BPF_STRUCT_OPS: u32 = 44;
/// The map is registered by a link, and leaves with it. Since Linux 6.4.
const BPF_F_LINK: u32 = 1 << 13;
/// Every program may use it. Source: net/tcp.h.
const TCP_CONG_NON_RESTRICTED: u32 = 1;

/// The congestion control `periodic`, which `kernel/lab.patch` has in C.
#[derive(Debug)]
pub struct Periodic;

impl Periodic {
    /// What the kernel calls it.
    pub const NAME: &str = "periodic";

    /// Registers it with the kernel, for every program and network namespace, until [`Self::unload`] or a restart; its name in the BPF
    /// file system is `pin`.
    ///
    /// # Errors
    /// When the kernel refuses; then nothing is left.
    pub fn load(pin: &Path) -> Result<(), HostError> {
        let btf = Btf::of_kernel()?;
        let fields = Fields::of(&btf)?;
        let value = btf.structure("bpf_struct_ops_tcp_congestion_ops")?;
        let ops = btf.structure("tcp_congestion_ops")?;
        let data = value.member("data")?.offset;
        let mut bytes = vec![0u8; value.size()];
        let mut put = |name: &str, field: &[u8]| -> Result<(), HostError> {
            let at = data + ops.member(name)?.offset;
            bytes[at..at + field.len()].copy_from_slice(field);
            Ok(())
        };
        put("name", Self::NAME.as_bytes())?;
        put("flags", &TCP_CONG_NON_RESTRICTED.to_ne_bytes())?;
        let mut programs = Vec::new();
        for (member, code) in program::all(&fields) {
            let hook = Hook { member: ops.member(member)?.index, structure: ops.id };
            let program = Program::load_for(BPF_PROG_TYPE_STRUCT_OPS, member, code, hook)?;
            put(member, &u64::from(program.as_fd().as_raw_fd() as u32).to_ne_bytes())?;
            programs.push(program);
        }
        register(value, &bytes, pin)
    }

    /// Removes it. Connections that use it keep it until they end.
    ///
    /// # Errors
    /// When it is not there, or not this one's to remove.
    pub fn unload(pin: &Path) -> Result<(), HostError> {
        wrap(fs::remove_file(pin), || format!("remove {}", pin.display()))
    }
}

fn register(value: Struct<'_>, bytes: &[u8], at: &Path) -> Result<(), HostError> {
    let types = btf::load_own()?;
    let mut attributes = [0u32; 18];
    attributes[..5].copy_from_slice(&[BPF_MAP_TYPE_STRUCT_OPS, 4, bytes.len() as u32, 1, BPF_F_LINK]);
    attributes[12] = types.as_raw_fd() as u32;
    attributes[15] = value.id;
    let fd = bpf(BPF_MAP_CREATE, &mut attributes, || "make a map of struct_ops".to_owned())?;
    // SAFETY: the descriptor was just made and has no other owner.
    let map = unsafe { OwnedFd::from_raw_fd(fd) };
    let key = 0u32;
    let mut attributes = [map.as_raw_fd() as u64, pointer(&raw const key), pointer(bytes.as_ptr()), 0];
    bpf(BPF_MAP_UPDATE_ELEM, &mut attributes, || "prepare the congestion control".to_owned())?;
    let mut attributes = [map.as_raw_fd() as u32, 0, BPF_STRUCT_OPS, 0];
    let fd = bpf(BPF_LINK_CREATE, &mut attributes, || "register the congestion control".to_owned())?;
    // SAFETY: the descriptor was just made and has no other owner.
    let link = unsafe { OwnedFd::from_raw_fd(fd) };
    pin::put(link.as_fd(), at)
}

#[cfg(test)]
mod tests;
