//! The kernel's description of its own types: where the fields of its structures are.
//!
//! Source: Documentation/bpf/btf.rst; linux/btf.h.

use super::{bpf, pointer};
use crate::error::{HostError, wrap};
use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

const BPF_BTF_LOAD: libc::c_int = 18;
const KERNEL: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;
const HEADER_LEN: usize = 24;
const TYPE_LEN: usize = 12;

const KIND_INT: u8 = 1;
const KIND_POINTER: u8 = 2;
const KIND_ARRAY: u8 = 3;
const KIND_STRUCT: u8 = 4;
const KIND_UNION: u8 = 5;
const KIND_ENUM: u8 = 6;
const KIND_FUNCTION_PROTOTYPE: u8 = 13;
const KIND_VARIABLE: u8 = 14;
const KIND_SECTION: u8 = 15;
const KIND_DECLARATION_TAG: u8 = 17;
const KIND_ENUM_64: u8 = 19;

/// Types by their number; that of type 1 is at 0.
#[derive(Debug)]
pub(super) struct Btf {
    types: Vec<Type>,
    strings: Vec<u8>,
}

#[derive(Debug)]
struct Type {
    name: u32,
    kind: u8,
    /// Members' offsets hold the width of a bit field too.
    flag: bool,
    /// Its size, or the type that it points to.
    size: u32,
    /// What follows it: members, parameters.
    words: Vec<u32>,
}

/// A structure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Struct<'a> {
    btf: &'a Btf,
    name: &'a str,
    of: &'a Type,
    pub(super) id: u32,
}

/// A member of a structure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub(super) index: u32,
    pub(super) offset: usize,
    kind: u32,
}

impl Btf {
    /// The running kernel's.
    pub(super) fn of_kernel() -> Result<Self, HostError> {
        let bytes = wrap(fs::read(KERNEL), || format!("read the kernel's types in {KERNEL}"))?;
        Self::parse(&bytes).ok_or_else(|| lacks(format!("{KERNEL} is no description of types")))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?));
        if u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?) != MAGIC {
            return None;
        }
        let header = word(4)? as usize;
        let part = |offset: u32, len: u32| {
            let begin = header.checked_add(offset as usize)?;
            bytes.get(begin..begin.checked_add(len as usize)?)
        };
        let strings = part(word(16)?, word(20)?)?.to_vec();
        let mut words = part(word(8)?, word(12)?)?.chunks_exact(4).map(|bytes| {
            let [a, b, c, d] = [bytes[0], bytes[1], bytes[2], bytes[3]];
            u32::from_ne_bytes([a, b, c, d])
        });
        let mut types = Vec::new();
        while let Some(name) = words.next() {
            let (info, size) = (words.next()?, words.next()?);
            let (kind, count) = ((info >> 24 & 31) as u8, (info & 0xffff) as usize);
            let follow = match kind {
                KIND_INT | KIND_VARIABLE | KIND_DECLARATION_TAG => 1,
                KIND_ARRAY => 3,
                KIND_STRUCT | KIND_UNION | KIND_SECTION | KIND_ENUM_64 => 3 * count,
                KIND_ENUM | KIND_FUNCTION_PROTOTYPE => 2 * count,
                _ => 0,
            };
            let of: Vec<u32> = words.by_ref().take(follow).collect();
            if of.len() < follow {
                return None;
            }
            types.push(Type { name, kind, flag: info >> 31 != 0, size, words: of });
        }
        Some(Self { types, strings })
    }

    fn is_named(&self, name: u32, wanted: &str) -> bool {
        let from = self.strings.get(name as usize..).unwrap_or_default();
        from.strip_prefix(wanted.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    }

    fn get(&self, id: u32) -> Option<&Type> {
        self.types.get((id as usize).checked_sub(1)?)
    }

    /// The structure of this name.
    pub(super) fn structure<'a>(&'a self, name: &'a str) -> Result<Struct<'a>, HostError> {
        let at = self.types.iter().position(|one| one.kind == KIND_STRUCT && self.is_named(one.name, name));
        let at = at.ok_or_else(|| lacks(format!("it has no struct {name}")))?;
        Ok(Struct { btf: self, name, of: &self.types[at], id: at as u32 + 1 })
    }

    /// How many bits into a type the member of this name is, also if it is in structures or unions without a name.
    fn bits_of(&self, of: &Type, name: &str, depth: usize) -> Option<u32> {
        const DEEPEST: usize = 8;
        if depth > DEEPEST || ![KIND_STRUCT, KIND_UNION].contains(&of.kind) {
            return None;
        }
        of.words.chunks_exact(3).find_map(|words| {
            let bits = if of.flag { words[2] & 0x00ff_ffff } else { words[2] };
            if self.is_named(words[0], name) {
                return Some(bits);
            }
            let inner = self.is_named(words[0], "").then(|| self.get(words[1])).flatten()?;
            self.bits_of(inner, name, depth + 1)?.checked_add(bits)
        })
    }

    /// How many parameters a member that is a pointer to a function has.
    pub(super) fn parameters(&self, member: Member) -> Option<usize> {
        let function = self.get(self.get(member.kind).filter(|one| one.kind == KIND_POINTER)?.size)?;
        (function.kind == KIND_FUNCTION_PROTOTYPE).then_some(function.words.len() / 2)
    }
}

impl Struct<'_> {
    pub(super) fn size(&self) -> usize {
        self.of.size as usize
    }

    /// The member of this name.
    pub(super) fn member(&self, name: &str) -> Result<Member, HostError> {
        let found = self.of.words.chunks_exact(3).zip(0..).find(|(words, _)| self.btf.is_named(words[0], name));
        let (words, index) = found.ok_or_else(|| lacks(format!("its struct {} has no {name}", self.name)))?;
        let bits = if self.of.flag { words[2] & 0x00ff_ffff } else { words[2] };
        Ok(Member { index, offset: bits as usize / 8, kind: words[1] })
    }

    /// Where the member of this name is, for an instruction, also if it is in structures or unions without a name.
    pub(super) fn offset_within(&self, name: &str) -> Result<i16, HostError> {
        let bits = self.btf.bits_of(self.of, name, 0);
        let bits = bits.ok_or_else(|| lacks(format!("its struct {} has no {name}", self.name)))?;
        i16::try_from(bits / 8).map_err(|_| lacks(format!("{name} is too far into its struct {}", self.name)))
    }

    /// Where that member is, for an instruction.
    pub(super) fn offset(&self, name: &str) -> Result<i16, HostError> {
        let offset = self.member(name)?.offset;
        i16::try_from(offset).map_err(|_| lacks(format!("{name} is too far into its struct {}", self.name)))
    }
}

/// Types of our own: one integer, which a map needs as the company of the kernel's.
pub(super) fn load_own() -> Result<OwnedFd, HostError> {
    let strings = b"\0int\0";
    let types = [1, u32::from(KIND_INT) << 24, 4, 1 << 24 | 32];
    let types_len = size_of_val(&types) as u32;
    let mut bytes = Vec::with_capacity(HEADER_LEN + TYPE_LEN + 4 + strings.len());
    bytes.extend(MAGIC.to_ne_bytes());
    bytes.extend([1, 0]);
    for word in [HEADER_LEN as u32, 0, types_len, types_len, strings.len() as u32].into_iter().chain(types) {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(strings);
    let mut attributes = [pointer(bytes.as_ptr()), 0, bytes.len() as u64, 0];
    let fd = bpf(BPF_BTF_LOAD, &mut attributes, || "load types".to_owned())?;
    // SAFETY: the descriptor was just made and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn lacks(what: String) -> HostError {
    HostError {
        act: "use the running kernel's types".to_owned(),
        source: io::Error::new(io::ErrorKind::Unsupported, what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct s { int a; int b; }`, and a function of two integers with a pointer to it.
    fn sample() -> Vec<u8> {
        let strings = b"\0int\0s\0a\0b\0";
        let of = |kind: u8, count: u32| u32::from(kind) << 24 | count;
        let types = [
            [1, of(KIND_INT, 0), 4, 32].as_slice(),
            &[5, of(KIND_STRUCT, 2), 8, 7, 1, 0, 9, 3, 32],
            &[0, of(KIND_POINTER, 0), 4],
            &[0, of(KIND_FUNCTION_PROTOTYPE, 2), 0, 0, 1, 0, 1],
        ]
        .concat();
        let len = types.len() as u32 * 4;
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        let header = [HEADER_LEN as u32, 0, len, len, strings.len() as u32];
        bytes.extend(header.iter().chain(&types).flat_map(|word| word.to_ne_bytes()));
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn members_are_found_by_name() {
        let btf = Btf::parse(&sample()).expect("types");
        let s = btf.structure("s").expect("a struct");
        assert_eq!((s.id, s.size(), s.offset("b").expect("b")), (2, 8, 4));
        let b = s.member("b").expect("b");
        assert_eq!((b.index, btf.parameters(b)), (1, Some(2)));
        assert_eq!(btf.parameters(s.member("a").expect("a")), None);
        assert!(s.offset("c").is_err() && btf.structure("int").is_err() && btf.structure("a").is_err());
    }

    #[test]
    fn damaged_types_are_refused_and_never_panic() {
        let whole = sample();
        for len in 0..whole.len() {
            let _ = Btf::parse(&whole[..len]);
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                if let Some(btf) = Btf::parse(&changed) {
                    let _ = btf.structure("s").map(|s| s.member("b").map(|b| btf.parameters(b)));
                }
            }
        }
    }
}
