//! The packets of trains: sent at their times, and taken with the times at which the kernel had them.

use crate::clock::Clock;
use crate::error::AgentError;
use crate::message::{TRAIN_SIZE_MIN, TrainPlan};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use thalweg_host::mem_info::MemInfo;
use thalweg_host::poll::wake_on_time;
use thalweg_host::socket::DatagramSocket;

/// Packets that may wait in the sending socket: few, so that packets wait on the path and not in this host. The kernel doubles the bytes that are
/// asked for, and counts each packet's own memory, too.
const WAITING_PACKETS: usize = 8;
/// The memory of a packet besides its payload. Source: `SKB_TRUESIZE` in include/linux/skbuff.h, with 256 bytes of `sk_buff`, 320 of
/// `skb_shared_info` and 192 of headers.
const PACKET_MEMORY_BYTES: usize = 768;
/// What is asked for to receive into; the kernel grants `net.core.rmem_max` at most.
const RECEIVE_BYTES: usize = 16 << 20;
/// A sender that cannot send for so long gives up.
const BLOCKED_MAX: Duration = Duration::from_secs(10);
/// What is due within this is sent at once, as a sleep does not end on time to less.
const EARLY: Duration = Duration::from_micros(20);

/// A connected UDP socket and its session's mark.
#[derive(Debug)]
pub(crate) struct Datagrams {
    socket: DatagramSocket,
    session: u64,
    payload: Vec<u8>,
}

/// Packets as they come.
#[derive(Debug)]
pub(crate) struct Receiving {
    train: u32,
    /// When each came, by the clock of the day.
    pub(crate) ns: Vec<Option<u64>>,
    missing: usize,
    pub(crate) duplicates: u64,
    drops_before: u64,
    /// When the last of them was taken.
    pub(crate) last: Instant,
}

impl Receiving {
    /// Whether every packet came.
    pub(crate) const fn is_complete(&self) -> bool {
        self.missing == 0
    }
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Datagrams {
    /// Over a socket that is connected to `peer`.
    ///
    /// # Errors
    /// When the kernel refuses an option.
    pub(crate) fn new(socket: DatagramSocket, peer: SocketAddr, session: u64) -> Result<Self, AgentError> {
        socket.set_buffers(RECEIVE_BYTES)?;
        socket.note_arrivals()?;
        socket.never_fragment(peer)?;
        Ok(Self { socket, session, payload: Vec::new() })
    }

    /// Sends bytes that are no train's.
    ///
    /// # Errors
    /// When the other end refuses packets.
    pub(crate) fn greet(&self, bytes: &[u8]) -> Result<(), AgentError> {
        // A greeting that had no room is sent again.
        self.socket.send(bytes)?;
        Ok(())
    }

    /// Sends a train; returns when each packet was given to the kernel, and how often there was no room for one.
    ///
    /// # Errors
    /// When the path refuses packets of this size, or nothing can be sent for [`BLOCKED_MAX`].
    pub(crate) fn send(&mut self, clock: Clock, plan: &TrainPlan) -> Result<(Vec<u64>, u64), AgentError> {
        wake_on_time();
        let size = plan.size_bytes.max(TRAIN_SIZE_MIN) as usize;
        self.socket.set_send_buffer(WAITING_PACKETS * (size + PACKET_MEMORY_BYTES))?;
        self.payload.clear();
        self.payload.resize(size, 0);
        self.payload[8..16].copy_from_slice(&self.session.to_be_bytes());
        let (mut sent, mut blocked) = (Vec::with_capacity(plan.packets as usize), 0);
        let begun = Instant::now();
        for packet in 0..plan.packets {
            let number = u64::from(plan.number) << 32 | u64::from(packet);
            self.payload[..8].copy_from_slice(&number.to_be_bytes());
            if plan.interval_ns > 0 {
                wait_until(begun + Duration::from_nanos(plan.interval_ns * u64::from(packet)));
            }
            let mut waited: Option<Instant> = None;
            let at = loop {
                let now = Instant::now();
                if self.socket.send(&self.payload)? {
                    break now;
                }
                if waited.get_or_insert(now).elapsed() > BLOCKED_MAX {
                    let source = std::io::ErrorKind::TimedOut.into();
                    return Err(thalweg_host::HostError { act: "send UDP packets".to_owned(), source }.into());
                }
                std::thread::yield_now();
            };
            blocked += u64::from(waited.is_some());
            sent.push(clock.at(at));
        }
        Ok((sent, blocked))
    }

    /// Begins to receive a train.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn expect(&self, plan: &TrainPlan) -> Result<Receiving, AgentError> {
        let packets = plan.packets as usize;
        let drops_before = MemInfo::of(&self.socket)?.get("sk_drops");
        let (ns, last) = (vec![None; packets], Instant::now());
        Ok(Receiving { train: plan.number, ns, missing: packets, duplicates: 0, drops_before, last })
    }

    /// Takes what has come; packets of anything else are left out.
    ///
    /// # Errors
    /// When the other end refuses packets.
    pub(crate) fn receive(&self, into: &mut Receiving) -> Result<(), AgentError> {
        let mut count = 0;
        self.socket.receive_stamped(|packet| {
            let is_own = packet.sent.as_nanos() == self.session && packet.number >> 32 == u64::from(into.train);
            let place = (packet.number & u64::from(u32::MAX)) as usize;
            if let Some(place) = into.ns.get_mut(place).filter(|_| is_own) {
                count += 1;
                if place.replace(packet.received.as_nanos()).is_some() {
                    into.duplicates += 1;
                } else {
                    into.missing -= 1;
                }
            }
        })?;
        if count > 0 {
            into.last = Instant::now();
        }
        Ok(())
    }

    /// Packets of the train that the socket had no room for.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub(crate) fn dropped(&self, of: &Receiving) -> Result<u64, AgentError> {
        Ok(MemInfo::of(&self.socket)?.get("sk_drops").saturating_sub(of.drops_before))
    }
}

/// Sleeps until `due`, unless that is about now. Who wakes late sends what is due by then.
fn wait_until(due: Instant) {
    let left = due.saturating_duration_since(Instant::now());
    if left >= EARLY {
        std::thread::sleep(left);
    }
}
