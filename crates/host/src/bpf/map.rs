//! Maps: what programs and user space share.
//!
//! Source: bpf(2); linux/bpf.h.

use super::{bpf, pin, pointer};
use crate::error::HostError;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_MAP_LOOKUP_ELEM: libc::c_int = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_MAP_DELETE_ELEM: libc::c_int = 3;
const BPF_MAP_TYPE_HASH: u32 = 1;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_MAP_TYPE_LRU_HASH: u32 = 9;
/// The values can be mapped into a process. Since Linux 5.5.
const BPF_F_MMAPABLE: u32 = 1 << 10;
const KEY_LEN: usize = 4;

/// A map, with 32-bit keys unless it says so; it lives as long as this or a loaded program does.
#[derive(Debug)]
pub(crate) struct Map {
    fd: OwnedFd,
    value_len: usize,
}

impl Map {
    /// A map of one value, at key 0, which programs read and write by its address.
    pub(crate) fn of_one(value: &[u8]) -> Result<Self, HostError> {
        let map = Self::create(BPF_MAP_TYPE_ARRAY, KEY_LEN, value.len(), 1)?;
        map.set(0, value)?;
        Ok(map)
    }

    /// A set of numbers.
    pub(crate) fn set_of(numbers: impl ExactSizeIterator<Item = u32>) -> Result<Self, HostError> {
        let map = Self::create(BPF_MAP_TYPE_HASH, KEY_LEN, 1, numbers.len().max(1))?;
        for number in numbers {
            map.set(number, &[1])?;
        }
        Ok(map)
    }

    /// So many values of this length, all zero, at the keys from 0 on.
    pub(crate) fn array(value_len: usize, entries: usize) -> Result<Self, HostError> {
        Self::create(BPF_MAP_TYPE_ARRAY, KEY_LEN, value_len, entries)
    }

    /// Values of this length by 64-bit keys; past `entries` the ones that were not used for longest are dropped.
    pub(crate) fn recent(value_len: usize, entries: usize) -> Result<Self, HostError> {
        Self::create(BPF_MAP_TYPE_LRU_HASH, 8, value_len, entries)
    }

    /// Values of this length by keys of this length, no more than `entries`.
    pub(crate) fn by_key(key_len: usize, value_len: usize, entries: usize) -> Result<Self, HostError> {
        Self::create(BPF_MAP_TYPE_HASH, key_len, value_len, entries)
    }

    /// Removes what is at `key`, which has the map's length.
    pub(crate) fn delete(&self, key: &[u8]) -> Result<(), HostError> {
        let mut attributes = [self.fd.as_raw_fd() as u64, pointer(key.as_ptr()), 0, 0];
        bpf(BPF_MAP_DELETE_ELEM, &mut attributes, || "remove from a map".to_owned()).map(drop)
    }

    /// That which is pinned at `path`; its values have `value_len` bytes.
    pub(crate) fn pinned(path: &Path, value_len: usize) -> Result<Self, HostError> {
        Ok(Self { fd: pin::get(path)?, value_len })
    }

    /// One value of this length, all zero, which programs know by its address and this process by [`Mapped`].
    pub(crate) fn shared(value_len: usize) -> Result<Self, HostError> {
        Self::create_with(BPF_MAP_TYPE_ARRAY, KEY_LEN, value_len, 1, BPF_F_MMAPABLE)
    }

    fn create(kind: u32, key_len: usize, value_len: usize, entries: usize) -> Result<Self, HostError> {
        Self::create_with(kind, key_len, value_len, entries, 0)
    }

    fn create_with(kind: u32, key_len: usize, value_len: usize, entries: usize, flags: u32) -> Result<Self, HostError> {
        let mut attributes = [kind, key_len as u32, value_len as u32, entries as u32, flags];
        let act = || format!("make a map of {entries} values of {value_len} bytes");
        let fd = bpf(BPF_MAP_CREATE, &mut attributes, act)?;
        // SAFETY: the descriptor was just made and has no other owner.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, value_len })
    }

    pub(crate) fn set(&self, key: u32, value: &[u8]) -> Result<(), HostError> {
        assert_eq!(value.len(), self.value_len, "invariant: a map's values are of one length");
        let fd = self.fd.as_raw_fd() as u64;
        let mut attributes = [fd, pointer(&raw const key), pointer(value.as_ptr()), 0];
        bpf(BPF_MAP_UPDATE_ELEM, &mut attributes, || "write to a map".to_owned()).map(drop)
    }

    /// The 64-bit numbers of the one value.
    pub(crate) fn numbers<const N: usize>(&self) -> Result<[u64; N], HostError> {
        self.numbers_at(0)
    }

    /// The 64-bit numbers of the value at `key`.
    pub(crate) fn numbers_at<const N: usize>(&self, key: u32) -> Result<[u64; N], HostError> {
        assert_eq!(N * 8, self.value_len, "invariant: a map's values are of one length");
        let mut value = [0u64; N];
        let fd = self.fd.as_raw_fd() as u64;
        let mut attributes = [fd, pointer(&raw const key), pointer(value.as_mut_ptr()), 0];
        bpf(BPF_MAP_LOOKUP_ELEM, &mut attributes, || "read a map".to_owned())?;
        Ok(value)
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
