//! Capturing a device's packets through a memory-mapped ring.
//!
//! The ring is read when the owner chooses, without a system call: nothing wakes up per packet, so a capture does not
//! disturb a run in virtual time. Source: Documentation/networking/packet_mmap.rst, `TPACKET_V2`.

use crate::error::{HostError, check};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use thalweg_units::Timestamp;

/// A slot holds the ring's own header, of 80 bytes at most, and what is kept of the packet.
const SLOT_BYTES: usize = 256;
const WIDE_SLOT_BYTES: usize = 512;
const BLOCK_BYTES: usize = 1 << 18;
const STATUS_USER: u32 = 1;
/// `sizeof(struct tpacket2_hdr)`, aligned: where `struct sockaddr_ll` begins.
const ADDRESS_AT: usize = 32;
const PACKET_TYPE_AT: usize = ADDRESS_AT + 10;

/// Bytes of each packet that are kept at most. Of a TCP segment over IPv4 its headers are, with every option, and none of
/// its payload, which would be a third of a bulk transfer's capture.
pub const SNAPLEN: u32 = 128;

/// Bytes that are kept at most of a packet that may hold another. GENEVE over IPv6 with IPv6 and TCP in it has 188 bytes of headers
/// with every TCP option and none of its own, and a VLAN and a few of those are more.
pub const TUNNEL_SNAPLEN: u32 = 320;

const ETHER_TYPE_AT: u32 = 12;
const IP_AT: u32 = 14;
/// The accumulator, as what a filter returns. Source: linux/filter.h.
const BPF_A: u32 = 0x10;

/// A packet in the ring.
#[derive(Debug)]
pub struct Captured<'a> {
    /// When the kernel saw it.
    pub at: Timestamp,
    /// Its length on the wire, link header included.
    pub original_len: u32,
    /// Its first bytes.
    pub bytes: &'a [u8],
    /// Whether this host sent it.
    pub outgoing: bool,
    /// Index of the device it was seen on.
    pub device: u32,
    /// Whether that is a loopback device, on which every packet is seen going out and coming in.
    pub loopback: bool,
}

/// A running capture of one device.
#[derive(Debug)]
pub struct Capture {
    socket: OwnedFd,
    ring: *mut u8,
    slots: usize,
    slot_bytes: usize,
    next: usize,
}

impl Capture {
    /// Begins to capture a device of the current namespace into a ring of `slots` packets.
    ///
    /// # Errors
    /// When the kernel refuses; capturing needs CAP_NET_RAW in the namespace.
    pub fn start(index: u32, slots: usize) -> Result<Self, HostError> {
        let mut keep = keep_program();
        Self::open(libc::SOCK_RAW, index, slots, SLOT_BYTES, &mut keep)
    }

    /// Begins to capture a device, or all with an index of 0, from the IP header on. `program` is classic BPF, as (code, jt, jf, k),
    /// and says how much of each packet is kept, up to [`TUNNEL_SNAPLEN`] bytes; without one those are. A slot takes 512 bytes.
    ///
    /// # Errors
    /// When the kernel refuses; capturing needs CAP_NET_RAW in the namespace.
    pub fn start_network_layer(
        index: u32,
        slots: usize,
        program: Option<&[(u16, u8, u8, u32)]>,
    ) -> Result<Self, HostError> {
        let all = [(libc::BPF_RET as u16, 0, 0, TUNNEL_SNAPLEN)];
        let mut steps: Vec<libc::sock_filter> =
            program.unwrap_or(&all).iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
        Self::open(libc::SOCK_DGRAM, index, slots, WIDE_SLOT_BYTES, &mut steps)
    }

    fn open(
        kind: i32,
        index: u32,
        slots: usize,
        slot_bytes: usize,
        steps: &mut [libc::sock_filter],
    ) -> Result<Self, HostError> {
        let act = || if index == 0 { "capture".to_owned() } else { format!("capture on device {index}") };
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: no pointers. Protocol 0: nothing arrives before the ring is set up and the socket bound.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind | libc::SOCK_CLOEXEC, 0) }, act)?;
        // SAFETY: the descriptor was just made and has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let version = libc::tpacket_versions::TPACKET_V2 as i32;
        set(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;

        let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        set(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;

        let slots = slots.next_multiple_of(BLOCK_BYTES / slot_bytes);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: (slots * slot_bytes / BLOCK_BYTES) as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: slots as u32,
        };
        set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        // SAFETY: a fresh mapping of the ring just made, of exactly its size; unmapped on drop.
        let ring = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), slots * slot_bytes, access, libc::MAP_SHARED, socket.as_raw_fd(), 0)
        };
        check(if ring == libc::MAP_FAILED { -1 } else { 0 }, || "map the capture ring".to_owned())?;
        let capture = Self { socket, ring: ring.cast(), slots, slot_bytes, next: 0 };
        // No program that is started needs the ring, and a lab kernel 6.12 dies of one that gives its copy back.
        // SAFETY: the mapping just made, of exactly its size; what this process sees of it stays as it is.
        let kept = unsafe { libc::madvise(ring, slots * slot_bytes, libc::MADV_DONTFORK) };
        check(kept, || "keep the capture ring from child processes".to_owned())?;

        // SAFETY: `sockaddr_ll` is plain data for which zeroes are valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = index as i32;
        // SAFETY: the address outlives the call and its length is given.
        let bound = unsafe {
            let len = size_of_val(&address) as u32;
            libc::bind(capture.socket.as_raw_fd(), (&raw const address).cast(), len)
        };
        check(bound, act)?;
        Ok(capture)
    }

    /// Makes the ring readable, for who polls it, from that many packets on. Only a lab kernel does so; any other wakes for each packet.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn wake_from(&self, packets: u32) -> Result<(), HostError> {
        set(&self.socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &(packets as libc::c_int))
    }

    /// Hands every packet in the ring to `each`, oldest first, and frees its slot.
    ///
    /// # Errors
    /// Those of `each`.
    pub fn drain<E>(&mut self, mut each: impl FnMut(Captured<'_>) -> Result<(), E>) -> Result<(), E> {
        loop {
            // SAFETY: `next < slots`, so the slot lies within the mapping; its status word is aligned and shared with
            // the kernel, hence atomic; the rest of the slot is ours while the status says so.
            let (status, slot) = unsafe {
                let at = self.ring.add(self.next * self.slot_bytes);
                (AtomicU32::from_ptr(at.cast()), std::slice::from_raw_parts(at, self.slot_bytes))
            };
            if status.load(Ordering::Acquire) & STATUS_USER == 0 {
                return Ok(());
            }
            let word = |at: usize| u32::from_ne_bytes([slot[at], slot[at + 1], slot[at + 2], slot[at + 3]]);
            let mac = usize::from(u16::from_ne_bytes([slot[12], slot[13]]));
            let kept = (word(8) as usize).min(self.slot_bytes.saturating_sub(mac));
            let result = each(Captured {
                at: Timestamp::from_nanos(u64::from(word(16)) * 1_000_000_000 + u64::from(word(20))),
                original_len: word(4),
                bytes: slot.get(mac..mac + kept).unwrap_or_default(),
                outgoing: slot[PACKET_TYPE_AT] == libc::PACKET_OUTGOING,
                device: word(ADDRESS_AT + 4),
                loopback: u16::from_ne_bytes([slot[ADDRESS_AT + 8], slot[ADDRESS_AT + 9]]) == libc::ARPHRD_LOOPBACK,
            });
            status.store(0, Ordering::Release);
            self.next = (self.next + 1) % self.slots;
            result?;
        }
    }

    /// Waits until a packet is there, or a time is over, or a signal came.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn wait(&self, milliseconds: i32) -> Result<(), HostError> {
        let mut poll = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the structure outlives the call, and one is what the length says.
        let result = unsafe { libc::poll(&raw mut poll, 1, milliseconds) };
        match check(result, || "wait for packets".to_owned()) {
            Err(error) if error.source.kind() != std::io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// Packets that found the ring full since the last call.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn dropped(&self) -> Result<u32, HostError> {
        let mut counts = [0u32; 2];
        let mut len = size_of_val(&counts) as libc::socklen_t;
        // SAFETY: the buffer outlives the call and its length is given.
        let result = unsafe {
            let (level, option) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
            libc::getsockopt(self.socket.as_raw_fd(), level, option, counts.as_mut_ptr().cast(), &mut len)
        };
        check(result, || "read the capture's counters".to_owned())?;
        Ok(counts[1])
    }
}

impl AsFd for Capture {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `start` with this size and nothing borrows from it any more.
        unsafe { libc::munmap(self.ring.cast(), self.slots * self.slot_bytes) };
    }
}

/// The filter program that says how much of a frame is kept.
///
/// Source: Documentation/networking/filter.rst.
fn keep_program() -> [libc::sock_filter; 14] {
    let step = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = libc::BPF_LD | libc::BPF_ABS;
    let test = |what: u32, jt: u8, jf: u8, k: u32| step(libc::BPF_JMP | what | libc::BPF_K, jt, jf, k);
    [
        step(load | libc::BPF_H, 0, 0, ETHER_TYPE_AT),
        test(libc::BPF_JEQ, 0, 11, libc::ETH_P_IP as u32),
        step(load | libc::BPF_B, 0, 0, IP_AT + 9),
        test(libc::BPF_JEQ, 0, 9, libc::IPPROTO_TCP as u32),
        step(load | libc::BPF_H, 0, 0, IP_AT + 6),
        // A later fragment has no TCP header.
        test(libc::BPF_JSET, 7, 0, 0x1fff),
        step(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, 0, 0, IP_AT),
        step(libc::BPF_LD | libc::BPF_B | libc::BPF_IND, 0, 0, IP_AT + 12),
        // The data offset is the upper four bits, in words: shifted by two instead of by four it is in bytes.
        step(libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K, 0, 0, 2),
        step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, 0x3c),
        step(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_X, 0, 0, 0),
        step(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_K, 0, 0, IP_AT),
        step(libc::BPF_RET | BPF_A, 0, 0, 0),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, SNAPLEN),
    ]
}

fn set<T>(socket: &OwnedFd, level: i32, option: i32, value: &T) -> Result<(), HostError> {
    // SAFETY: the value outlives the call and its length is given.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const *value).cast(), size_of::<T>() as u32)
    };
    check(result, || format!("set packet option {option}")).map(drop)
}
