//! Flows that have a number: the program gives one to a new flow as long as there is room, and this process takes it back.

use crate::bpf::assembler::{Alu, Assembler, Helper, If, Label, Reg, Width};
use crate::bpf::map::Map;
use crate::bpf::mapped::Mapped;
use crate::bpf::{IPV4, IPV6, SKB_PROTOCOL};
use crate::error::HostError;
use crate::filter::Direction;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A TCP or UDP flow, as this host sees it: both directions of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrafficFlow {
    /// 6 or 17.
    pub protocol: u8,
    /// This host's end: what sends the packets that leave the device.
    pub local: SocketAddr,
    /// The other.
    pub peer: SocketAddr,
}

/// A flow's key: this host's address, the other's, both ports in the network's order, protocol, family, zero.
const KEY_LEN: usize = 40;
const LOCAL: i16 = 0;
const PEER: i16 = 16;
const LOCAL_PORT: i16 = 32;
const PEER_PORT: i16 = 34;
const PROTOCOL: i16 = 36;
const FAMILY: i16 = 37;

/// Of the memory: how many flows may still be opened, the next number; then the keys by number.
const ROOM: i16 = 0;
const NEXT: i16 = 8;
const HEAD: usize = 64;
/// Keys that are remembered, by the low bits of the number, each with its whole number before it; more than flows, since a number that was
/// taken back may still be in a bin.
const KEYS: usize = 256;
const SLOT_LEN: usize = 48;

/// Stack: the key, and headers.
const KEY: i16 = -48;
const HEADERS: i16 = -88;

/// What programs and this process share.
#[derive(Debug)]
pub(super) struct FlowMaps {
    /// Numbers by key.
    numbers: Map,
    memory: Map,
}

impl FlowMaps {
    fn new(most: usize) -> Result<Self, HostError> {
        Ok(Self { numbers: Map::by_key(KEY_LEN, 8, most)?, memory: Map::shared(HEAD + KEYS * SLOT_LEN)? })
    }
}

/// The flows that have a number.
#[derive(Debug)]
pub(super) struct Flows {
    maps: FlowMaps,
    memory: Mapped,
    most: usize,
    known: HashMap<u64, Known>,
    /// The next number that is not looked at.
    next: u64,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    key: [u8; KEY_LEN],
    flow: TrafficFlow,
    is_open: bool,
}

impl Flows {
    /// Room for so many flows at a time.
    pub(super) fn new(most: usize) -> Result<Self, HostError> {
        let most = most.clamp(1, KEYS / 2);
        let maps = FlowMaps::new(most)?;
        let memory = Mapped::of(&maps.memory, HEAD + KEYS * SLOT_LEN)?;
        memory.set(NEXT as usize / 8, 1);
        memory.set(ROOM as usize / 8, most as u64);
        Ok(Self { maps, memory, most, known: HashMap::new(), next: 1 })
    }

    pub(super) const fn maps(&self) -> &FlowMaps {
        &self.maps
    }

    /// Learns the flows that were given a number since the last call.
    pub(super) fn look(&mut self) {
        let end = self.memory.get(NEXT as usize / 8);
        for number in self.next.max(end.saturating_sub(KEYS as u64))..end {
            let slot = (HEAD + (number as usize % KEYS) * SLOT_LEN) / 8;
            // Its program may not have written it yet, or never will.
            if self.memory.get(slot) != number {
                continue;
            }
            let mut key = [0; KEY_LEN];
            for (word, bytes) in key.chunks_exact_mut(8).enumerate() {
                bytes.copy_from_slice(&self.memory.get(slot + 1 + word).to_ne_bytes());
            }
            if let Some(flow) = decoded(&key) {
                self.known.insert(number, Known { key, flow, is_open: true });
            }
        }
        self.next = end;
        // Numbers that were taken back long ago are in no bin.
        self.known.retain(|number, known| known.is_open || number + KEYS as u64 > end);
    }

    /// The flow of this number.
    pub(super) fn get(&self, number: u64) -> Option<TrafficFlow> {
        self.known.get(&number).map(|known| known.flow)
    }

    /// Takes the numbers back of all flows but these, for others.
    pub(super) fn keep(&mut self, keep: impl Fn(&TrafficFlow) -> bool) {
        for known in self.known.values_mut().filter(|known| known.is_open && !keep(&known.flow)) {
            known.is_open = false;
            // One that is not there has lost a race with itself.
            let _ = self.maps.numbers.delete(&known.key);
        }
        let open = self.known.values().filter(|known| known.is_open).count();
        self.memory.set(ROOM as usize / 8, self.most.saturating_sub(open) as u64);
    }
}

fn decoded(key: &[u8; KEY_LEN]) -> Option<TrafficFlow> {
    let address = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; 16] = key[at..at + 16].try_into().ok()?;
        match key[FAMILY as usize] {
            4 => Some(IpAddr::V4(Ipv4Addr::from(*bytes.first_chunk::<4>()?))),
            6 => Some(IpAddr::V6(Ipv6Addr::from(bytes))),
            _ => None,
        }
    };
    let port = |at: usize| u16::from_be_bytes([key[at], key[at + 1]]);
    Some(TrafficFlow {
        protocol: key[PROTOCOL as usize],
        local: SocketAddr::new(address(LOCAL as usize)?, port(LOCAL_PORT as usize)),
        peer: SocketAddr::new(address(PEER as usize)?, port(PEER_PORT as usize)),
    })
}

/// R0 = the number of the flow of the packet in R6, 0 for none. Takes R7 to R9.
pub(super) fn number(code: &mut Assembler, maps: &FlowMaps, direction: Direction, header_len: usize) {
    use Reg::{R0, R1, R2, R3, R7, R8, R10};
    let [none, known, full, end] = [(); 4].map(|()| code.label());
    key(code, direction, header_len as i32, none);
    code.map(R1, &maps.numbers)
        .alu(Alu::Mov, R2, R10)
        .alu(Alu::Add, R2, i32::from(KEY))
        .call(Helper::MapLookup)
        .jump_if(R0, If::NotEqual, 0, known)
        // A new flow: is there room?
        .value(R8, &maps.memory)
        .load(Width::Double, R2, R8, ROOM)
        .jump_if(R2, If::SignedLessOrEqual, 0, none)
        .alu(Alu::Mov, R2, -1)
        .fetch_add(R8, ROOM, R2)
        .jump_if(R2, If::SignedLessOrEqual, 0, none)
        .alu(Alu::Mov, R7, 1)
        .fetch_add(R8, NEXT, R7);
    // The key by its number, then the number, which says that it is there.
    code.alu(Alu::Mov, R3, R7).alu(Alu::And, R3, KEYS as i32 - 1).alu(Alu::Mul, R3, SLOT_LEN as i32).alu(
        Alu::Add,
        R3,
        R8,
    );
    for word in 0..KEY_LEN as i16 / 8 {
        code.load(Width::Double, R2, R10, KEY + word * 8).store(Width::Double, R3, HEAD as i16 + 8 + word * 8, R2);
    }
    code.store(Width::Double, R3, HEAD as i16, R7)
        .store(Width::Double, R10, HEADERS, R7)
        .map(R1, &maps.numbers)
        .alu(Alu::Mov, R2, R10)
        .alu(Alu::Add, R2, i32::from(KEY))
        .alu(Alu::Mov, R3, R10)
        .alu(Alu::Add, R3, i32::from(HEADERS))
        // BPF_NOEXIST: another processor may have given it one.
        .alu(Alu::Mov, Reg::R4, 1)
        .call(Helper::MapUpdate)
        .jump_if(R0, If::NotEqual, 0, full)
        .alu(Alu::Mov, R0, R7)
        .jump(end)
        .place(full)
        .place(none)
        .alu(Alu::Mov, R0, 0)
        .jump(end)
        .place(known)
        .load(Width::Double, R0, R0, 0)
        .place(end);
}

/// Puts the key of the packet's flow on the stack; goes to `none` if it has none.
fn key(code: &mut Assembler, direction: Direction, header_len: i32, none: Label) {
    use Reg::{R2, R6, R7, R8, R10};
    let (source, destination, source_port, destination_port) = match direction {
        Direction::Egress => (LOCAL, PEER, LOCAL_PORT, PEER_PORT),
        Direction::Ingress => (PEER, LOCAL, PEER_PORT, LOCAL_PORT),
    };
    let [v6, ports, end] = [(); 3].map(|()| code.label());
    code.alu(Alu::Mov, R2, 0);
    for word in 0..KEY_LEN as i16 / 8 {
        code.store(Width::Double, R10, KEY + word * 8, R2);
    }
    // R7: the protocol; R8: where the ports are.
    code.load(Width::Word, R2, R6, SKB_PROTOCOL).jump_if(R2, If::Equal, IPV6, v6).jump_if(R2, If::NotEqual, IPV4, none);
    header(code, header_len, 20, none);
    code.load(Width::Half, R2, R10, HEADERS + 6)
        .swap_network_16(R2)
        .alu(Alu::And, R2, 0x1fff)
        .jump_if(R2, If::NotEqual, 0, none)
        .load(Width::Byte, R7, R10, HEADERS + 9)
        .load(Width::Byte, R8, R10, HEADERS)
        .alu(Alu::And, R8, 15)
        .alu(Alu::Shl, R8, 2)
        .alu(Alu::Add, R8, header_len)
        .load(Width::Word, R2, R10, HEADERS + 12)
        .store(Width::Word, R10, KEY + source, R2)
        .load(Width::Word, R2, R10, HEADERS + 16)
        .store(Width::Word, R10, KEY + destination, R2)
        .alu(Alu::Mov, R2, 4)
        .store(Width::Byte, R10, KEY + FAMILY, R2)
        .jump(ports)
        .place(v6);
    header(code, header_len, 40, none);
    code.load(Width::Byte, R7, R10, HEADERS + 6).alu(Alu::Mov, R8, header_len + 40);
    for half in [0, 8] {
        code.load(Width::Double, R2, R10, HEADERS + 8 + half)
            .store(Width::Double, R10, KEY + source + half, R2)
            .load(Width::Double, R2, R10, HEADERS + 24 + half)
            .store(Width::Double, R10, KEY + destination + half, R2);
    }
    code.alu(Alu::Mov, R2, 6)
        .store(Width::Byte, R10, KEY + FAMILY, R2)
        .place(ports)
        .store(Width::Byte, R10, KEY + PROTOCOL, R7)
        .jump_if(R7, If::Equal, libc::IPPROTO_TCP, end)
        .jump_if(R7, If::NotEqual, libc::IPPROTO_UDP, none)
        .place(end);
    bytes(code, 4, none);
    code.load(Width::Half, R2, R10, HEADERS)
        .store(Width::Half, R10, KEY + source_port, R2)
        .load(Width::Half, R2, R10, HEADERS + 2)
        .store(Width::Half, R10, KEY + destination_port, R2);
}

/// Copies so many bytes of the IP header to the stack; goes to `none` if they are not there.
fn header(code: &mut Assembler, header_len: i32, len: i32, none: Label) {
    code.alu(Alu::Mov, Reg::R8, header_len);
    bytes(code, len, none);
}

/// Copies so many bytes from R8 on to the stack; goes to `none` if they are not there.
fn bytes(code: &mut Assembler, len: i32, none: Label) {
    use Reg::{R0, R1, R2, R3, R4, R6, R8, R10};
    code.alu(Alu::Mov, R1, R6)
        .alu(Alu::Mov, R2, R8)
        .alu(Alu::Mov, R3, R10)
        .alu(Alu::Add, R3, i32::from(HEADERS))
        .alu(Alu::Mov, R4, len)
        .call(Helper::SkbLoadBytes)
        .jump_if(R0, If::NotEqual, 0, none);
}
