//! Segments that TCP sends again, from the kernel's tracepoint: which connection's, when, how many, and in what state.
//!
//! Source: include/trace/events/tcp.h, `tcp_retransmit_skb`; include/net/tcp.h, `tcp_skb_pcount`; linux/bpf.h, `BPF_RAW_TRACEPOINT_OPEN`. The
//! kernel's types give the offsets of fields.

use super::assembler::{Alu, Assembler, Helper, If, Label, Reg, Width};
use super::btf::Btf;
use super::map::Map;
use super::mapped::Mapped;
use super::{Program, bpf, clock, pointer};
use crate::error::{HostError, wrap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use thalweg_units::{Span, Timestamp};

const BPF_RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const BPF_PROG_TYPE_RAW_TRACEPOINT: u32 = 17;
/// Records that wait to be read; older ones are overwritten.
const RECORDS: usize = 4_096;
/// Of the memory: records that were begun; they follow.
const BEGUN: i16 = 0;
const HEAD: usize = 64;
/// Of a record: its number from 1 on, written last; the time; both ends' ports; the family and the states; the round trip; how many segments;
/// the addresses.
const RECORD_LEN: usize = 64;
const NUMBER: i16 = 0;
const TIME: i16 = 8;
const PEER_PORT: i16 = 16;
const LOCAL_PORT: i16 = 18;
const FAMILY: i16 = 20;
const STATE: i16 = 22;
const RECOVERY: i16 = 23;
const ROUND_TRIP: i16 = 24;
const SEGMENTS: i16 = 28;
const PEER: i16 = 32;
const LOCAL: i16 = 48;
/// Stack: a record, and one word.
const RECORD: i16 = -64;
const WORD: i16 = -72;
/// `TCP_SYN_SENT`, include/net/tcp_states.h; `TCP_CA_Recovery` and `TCP_CA_Loss`, include/net/tcp.h.
const SYN_SENT: u8 = 2;
const CA_RECOVERY: u8 = 3;
const CA_LOSS: u8 = 4;

/// Why a segment was sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetransmissionKind {
    /// The first of a connection, that was not answered.
    Syn,
    /// Acknowledgements showed that it is lost.
    Fast,
    /// A timeout, or what follows one.
    Timeout,
    /// A probe for the last segments' loss, or before the connection knows of any.
    Probe,
}

/// What was sent again at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retransmission {
    /// When.
    pub at: Timestamp,
    /// This host's end.
    pub local: SocketAddr,
    /// The other.
    pub peer: SocketAddr,
    /// Why.
    pub kind: RetransmissionKind,
    /// Segments: several where segmentation offload sends them as one.
    pub segments: u64,
    /// The smoothed round trip; zero before the first.
    pub round_trip: Span,
}

/// A program at the tracepoint, for the connections of the current network namespace.
#[derive(Debug)]
pub struct Retransmissions {
    memory: Mapped,
    next: u64,
    lost: u64,
    epoch_ns: u64,
    _link: OwnedFd,
}

impl Retransmissions {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the kernel refuses, which it does without CAP_BPF and CAP_PERFMON or where it has no description of its types.
    pub fn start() -> Result<Self, HostError> {
        let own = wrap(std::fs::metadata("/proc/thread-self/ns/net"), || "look at the network namespace".to_owned())?;
        let fields = Fields::of(&Btf::of_kernel()?)?;
        let len = HEAD + RECORDS * RECORD_LEN;
        let map = Map::shared(len)?;
        let memory = Mapped::of(&map, len)?;
        let program = load(&map, &fields, own.ino() as u32)?;
        let mut attributes = [pointer(c"tcp_retransmit_skb".as_ptr()), program.as_fd().as_raw_fd() as u64];
        let act = || "listen to the tracepoint tcp_retransmit_skb".to_owned();
        let fd = bpf(BPF_RAW_TRACEPOINT_OPEN, &mut attributes, act)?;
        // SAFETY: the descriptor was just made and has no other owner.
        let link = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { memory, next: 0, lost: 0, epoch_ns: clock::epoch_ns(), _link: link })
    }

    /// What was sent again since the last call.
    pub fn read(&mut self) -> Vec<Retransmission> {
        let begun = self.memory.get(BEGUN as usize / 8);
        let first = self.next.max(begun.saturating_sub(RECORDS as u64));
        self.lost += first - self.next;
        self.next = first;
        let mut found = Vec::new();
        while self.next < begun {
            let at = (HEAD + (self.next as usize % RECORDS) * RECORD_LEN) / 8;
            let number = self.memory.get(at);
            if number < self.next + 1 {
                // It is being written.
                break;
            }
            let mut record = [0; RECORD_LEN];
            for (word, bytes) in record.chunks_exact_mut(8).enumerate() {
                bytes.copy_from_slice(&self.memory.get(at + word).to_ne_bytes());
            }
            let is_whole = number == self.next + 1 && self.memory.get(at) == number;
            match decoded(&record, self.epoch_ns).filter(|_| is_whole) {
                Some(one) => found.push(one),
                None => self.lost += 1,
            }
            self.next += 1;
        }
        found
    }

    /// Those since the last call that were not read: too many came at once.
    pub fn lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }
}

fn decoded(record: &[u8; RECORD_LEN], epoch_ns: u64) -> Option<Retransmission> {
    let number = |at: i16| u64::from_ne_bytes(*record[at as usize..].first_chunk().unwrap_or(&[0; 8]));
    let half = |at: i16| [record[at as usize], record[at as usize + 1]];
    let family = i32::from(u16::from_ne_bytes(half(FAMILY)));
    let address = |at: i16| -> Option<IpAddr> {
        let bytes: &[u8; 16] = record[at as usize..].first_chunk()?;
        match family {
            libc::AF_INET => Some(IpAddr::V4(Ipv4Addr::from(*bytes.first_chunk::<4>()?))),
            libc::AF_INET6 => Some(IpAddr::V6(Ipv6Addr::from(*bytes)).to_canonical()),
            _ => None,
        }
    };
    let (state, recovery) = (record[STATE as usize], record[RECOVERY as usize] & 0x1f);
    let kind = match recovery {
        _ if state == SYN_SENT => RetransmissionKind::Syn,
        CA_RECOVERY => RetransmissionKind::Fast,
        CA_LOSS => RetransmissionKind::Timeout,
        _ => RetransmissionKind::Probe,
    };
    // In eighths of a microsecond.
    let round_trip = Span::from_nanos((number(ROUND_TRIP) & 0xffff_ffff) / 8 * 1_000);
    Some(Retransmission {
        at: Timestamp::from_nanos(epoch_ns + number(TIME)),
        local: SocketAddr::new(address(LOCAL)?, u16::from_ne_bytes(half(LOCAL_PORT))),
        peer: SocketAddr::new(address(PEER)?, u16::from_be_bytes(half(PEER_PORT))),
        kind,
        segments: u64::from(u16::from_ne_bytes(half(SEGMENTS))).max(1),
        round_trip,
    })
}

/// Offsets from the socket, if nothing else is said.
#[derive(Debug)]
struct Fields {
    family: i32,
    state: i32,
    peer_port: i32,
    local_port: i32,
    /// Of IPv4 and of IPv6: the peer's address, this host's.
    addresses: [(i32, i32); 2],
    namespace: i32,
    /// From the namespace.
    inode: i32,
    recovery: i32,
    round_trip: i32,
    /// From the buffer that is sent.
    segments: i32,
}

impl Fields {
    fn of(btf: &Btf) -> Result<Self, HostError> {
        // `struct sock` begins with it.
        let common = btf.structure("sock_common")?;
        let at = |name: &str| common.offset_within(name).map(i32::from);
        let control = i32::from(btf.structure("sk_buff")?.offset_within("cb")?);
        let net = btf.structure("net")?.offset("ns")? + btf.structure("ns_common")?.offset("inum")?;
        Ok(Self {
            family: at("skc_family")?,
            state: at("skc_state")?,
            peer_port: at("skc_dport")?,
            local_port: at("skc_num")?,
            addresses: [(at("skc_daddr")?, at("skc_rcv_saddr")?), (at("skc_v6_daddr")?, at("skc_v6_rcv_saddr")?)],
            namespace: at("skc_net")?,
            inode: i32::from(net),
            recovery: i32::from(btf.structure("inet_connection_sock")?.offset_within("icsk_ca_state")?),
            round_trip: i32::from(btf.structure("tcp_sock")?.offset("srtt_us")?),
            segments: control + i32::from(btf.structure("tcp_skb_cb")?.offset_within("tcp_gso_segs")?),
        })
    }
}

/// Loads the program. R6 is the socket, R9 the buffer that is sent.
fn load(memory: &Map, fields: &Fields, namespace: u32) -> Result<Program, HostError> {
    use Reg::{R0, R1, R2, R3, R6, R7, R8, R9, R10};
    let mut code = Assembler::default();
    let [v6, addressed, end] = [(); 3].map(|()| code.label());
    code.load(Width::Double, R6, R1, 0).load(Width::Double, R9, R1, 8).alu(Alu::Mov, R2, 0);
    for word in 0..RECORD_LEN as i16 / 8 {
        code.store(Width::Double, R10, RECORD + word * 8, R2);
    }
    // Of this network namespace?
    copy(&mut code, R6, fields.namespace, 8, WORD, end);
    code.load(Width::Double, R7, R10, WORD);
    copy(&mut code, R7, fields.inode, 4, WORD, end);
    code.load(Width::Word, R2, R10, WORD).number(R3, u64::from(namespace)).jump_if(R2, If::NotEqual, R3, end);
    for (from, len, to) in [
        (fields.family, 2, FAMILY),
        (fields.state, 1, STATE),
        (fields.recovery, 1, RECOVERY),
        (fields.peer_port, 2, PEER_PORT),
        (fields.local_port, 2, LOCAL_PORT),
        (fields.round_trip, 4, ROUND_TRIP),
    ] {
        copy(&mut code, R6, from, len, RECORD + to, end);
    }
    copy(&mut code, R9, fields.segments, 2, RECORD + SEGMENTS, end);
    code.load(Width::Half, R2, R10, RECORD + FAMILY).jump_if(R2, If::NotEqual, libc::AF_INET, v6);
    for ((peer, local), len) in fields.addresses.into_iter().zip([4, 16]) {
        copy(&mut code, R6, peer, len, RECORD + PEER, end);
        copy(&mut code, R6, local, len, RECORD + LOCAL, end);
        if len == 4 {
            code.jump(addressed).place(v6);
        }
    }
    code.place(addressed)
        .call(Helper::KtimeGetNs)
        .store(Width::Double, R10, RECORD + TIME, R0)
        .value(R8, memory)
        .alu(Alu::Mov, R7, 1)
        .fetch_add(R8, BEGUN, R7)
        .alu(Alu::Mov, R1, R7)
        .alu(Alu::And, R1, RECORDS as i32 - 1)
        .alu(Alu::Mul, R1, RECORD_LEN as i32)
        .alu(Alu::Add, R1, R8);
    for word in 1..RECORD_LEN as i16 / 8 {
        code.load(Width::Double, R2, R10, RECORD + word * 8).store(Width::Double, R1, HEAD as i16 + word * 8, R2);
    }
    code.alu(Alu::Add, R7, 1).store(Width::Double, R1, HEAD as i16 + NUMBER, R7).place(end).answer(0);
    Program::load_as(BPF_PROG_TYPE_RAW_TRACEPOINT, "retransmissions", code)
}

/// Copies `len` bytes of the kernel's, `offset` from what `base` points to, to the stack; goes to `end` if they are not there.
fn copy(code: &mut Assembler, base: Reg, offset: i32, len: i32, to: i16, end: Label) {
    use Reg::{R0, R1, R2, R3, R10};
    code.alu(Alu::Mov, R1, R10)
        .alu(Alu::Add, R1, i32::from(to))
        .alu(Alu::Mov, R2, len)
        .alu(Alu::Mov, R3, base)
        .alu(Alu::Add, R3, offset)
        .call(Helper::ProbeReadKernel)
        .jump_if(R0, If::NotEqual, 0, end);
}

#[cfg(test)]
mod tests;
