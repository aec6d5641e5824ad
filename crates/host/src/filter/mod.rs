//! Filters on the way into and out of a device: programs, and a policer.
//!
//! Source: linux/pkt_sched.h, linux/pkt_cls.h; net/sched/cls_bpf.c, cls_matchall.c, act_police.c.

mod attached;

pub use attached::{Attached, remove_stale};

use crate::bpf::Program;
use crate::error::HostError;
use crate::netlink::{Message, Netlink, attributes, u32_at, u64_at};
use std::os::fd::{AsFd, AsRawFd};
use thalweg_units::{Bytes, Rate};

const TC_H_CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
const TCA_BPF_FLAG_ACT_DIRECT: u32 = 1;
const TCA_MATCHALL_ACT: u16 = 2;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_ACT_STATS: u16 = 4;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_POLICE_TBF: u16 = 1;
const TCA_POLICE_RATE: u16 = 2;
const TCA_POLICE_RESULT: u16 = 5;
const TCA_POLICE_RATE64: u16 = 8;
const TC_ACT_UNSPEC: i32 = -1;
const TC_ACT_SHOT: i32 = 2;
const TC_LINKLAYER_ETHERNET: u8 = 1;
/// Size of the rate table the kernel asks for and has not read since 3.8, and the cell it takes to be valid.
const RATE_TABLE_LEN: usize = 1024;
const CELL_LOG: u8 = 3;
/// More than any packet, so that the policer drops none for its length.
const LONGEST_PACKET: u32 = 1 << 20;
const TICK_NANOS: u64 = 64;

/// Which way packets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Into the device, from its peer.
    Ingress,
    /// Out of it, before its queueing discipline.
    Egress,
}

impl Direction {
    const fn parent(self) -> u32 {
        match self {
            Self::Ingress => 0xffff_fff2,
            Self::Egress => 0xffff_fff3,
        }
    }
}

/// A policer: drops what exceeds a rate, and queues nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Police {
    /// The rate: on the way out of Ethernet frames without checksum, on the way in of IP packets.
    pub rate: Rate,
    /// Bytes that may come at once.
    pub burst: Bytes,
}

/// What a policer has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policed {
    /// Packets it saw.
    pub packets: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// Packets it dropped.
    pub drops: u64,
}

/// Runs `program` for each packet of a device of the current namespace, those of filters with a lower `priority` first.
///
/// # Errors
/// Whatever the kernel refuses, also when the priority is taken.
pub fn attach(index: u32, direction: Direction, priority: u16, program: &Program) -> Result<(), HostError> {
    attach_as("thalweg", index, direction, priority, program)
}

fn attach_as(name: &str, index: u32, direction: Direction, priority: u16, program: &Program) -> Result<(), HostError> {
    let fd = program.as_fd().as_raw_fd();
    add(index, direction, priority, "bpf", |options| {
        options.number(TCA_BPF_FD, fd as u32).text(TCA_BPF_NAME, name);
        options.number(TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
    })
}

/// Polices a device of the current namespace.
///
/// # Errors
/// As for [`attach`].
pub fn police(index: u32, direction: Direction, priority: u16, police: &Police) -> Result<(), HostError> {
    let rate = police.rate.bytes_per_second();
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let fill = police.rate.time_for(police.burst).as_nanos() / TICK_NANOS;
    // `struct tc_police`: index, action, limit, burst, mtu, rate, peak rate, counts.
    let mut parameters = [0u8; 56];
    parameters[4..8].copy_from_slice(&TC_ACT_SHOT.to_ne_bytes());
    parameters[12..16].copy_from_slice(&narrow(fill).to_ne_bytes());
    parameters[16..20].copy_from_slice(&LONGEST_PACKET.to_ne_bytes());
    parameters[20] = CELL_LOG;
    parameters[21] = TC_LINKLAYER_ETHERNET;
    parameters[28..32].copy_from_slice(&narrow(rate).to_ne_bytes());
    add(index, direction, priority, "matchall", |options| {
        options.nest(TCA_MATCHALL_ACT, |actions| {
            actions.nest(1, |action| {
                action.text(TCA_ACT_KIND, "police").nest(TCA_ACT_OPTIONS, |options| {
                    options.attribute(TCA_POLICE_TBF, &parameters).attribute(TCA_POLICE_RATE, &[0; RATE_TABLE_LEN]);
                    options.attribute(TCA_POLICE_RATE64, &rate.to_ne_bytes());
                    options.attribute(TCA_POLICE_RESULT, &TC_ACT_UNSPEC.to_ne_bytes());
                });
            });
        });
    })
}

/// Reads what the policers of a device of the current namespace have done, in one direction, added up.
///
/// # Errors
/// Whatever the kernel refuses.
pub fn policed(index: u32, direction: Direction) -> Result<Policed, HostError> {
    let mut message = Message::new(libc::RTM_GETTFILTER, libc::NLM_F_DUMP);
    message.raw(&header(index, 0, direction.parent(), 0));
    let answers = Netlink::open()?.request(&mut message, &format!("read the filters of device {index}"))?;
    let mut all = Policed::default();
    for answer in &answers {
        let found = inner(
            &attributes(answer.get(20..).unwrap_or_default()),
            &[TCA_OPTIONS, TCA_MATCHALL_ACT, 1, TCA_ACT_STATS],
        );
        for (kind, value) in found {
            match kind {
                TCA_STATS_BASIC => {
                    all.bytes = Bytes::new(all.bytes.get() + u64_at(value, 0));
                    all.packets += u64::from(u32_at(value, 8));
                }
                TCA_STATS_QUEUE => all.drops += u64::from(u32_at(value, 8)),
                _ => {}
            }
        }
    }
    Ok(all)
}

/// Takes every filter off a device of the current namespace.
///
/// # Errors
/// Whatever the kernel refuses, also when there is none.
pub fn detach_all(index: u32) -> Result<(), HostError> {
    let mut message = Message::new(libc::RTM_DELQDISC, 0);
    message.raw(&header(index, CLSACT_HANDLE, TC_H_CLSACT, 0));
    Netlink::open()?.request(&mut message, &format!("take the filters off device {index}")).map(drop)
}

/// The attributes at the end of a path of nested ones.
fn inner<'a>(found: &[(u16, &'a [u8])], path: &[u16]) -> Vec<(u16, &'a [u8])> {
    let Some((first, rest)) = path.split_first() else { return found.to_vec() };
    let value = found.iter().find(|(kind, _)| kind == first).map(|(_, value)| *value).unwrap_or_default();
    inner(&attributes(value), rest)
}

fn add(
    index: u32,
    direction: Direction,
    priority: u16,
    kind: &str,
    fill: impl FnOnce(&mut Message),
) -> Result<(), HostError> {
    let netlink = Netlink::open()?;
    hook(&netlink, index)?;
    let mut message = Message::new(libc::RTM_NEWTFILTER, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    message
        .raw(&header(index, 0, direction.parent(), all_protocols(priority)))
        .text(TCA_KIND, kind)
        .nest(TCA_OPTIONS, fill);
    netlink.request(&mut message, &format!("attach a {kind} filter to device {index}")).map(drop)
}

/// Makes a device filter; `false` if it did already.
fn hook(netlink: &Netlink, index: u32) -> Result<bool, HostError> {
    let mut hook = Message::new(libc::RTM_NEWQDISC, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    hook.raw(&header(index, CLSACT_HANDLE, TC_H_CLSACT, 0)).text(TCA_KIND, "clsact");
    match netlink.request(&mut hook, &format!("make device {index} filter")) {
        Err(error) if error.source.raw_os_error() == Some(libc::EEXIST) => Ok(false),
        result => result.map(|_| true),
    }
}

/// `tcm_info` of a filter of this priority for packets of every protocol.
fn all_protocols(priority: u16) -> u32 {
    u32::from(priority) << 16 | u32::from((libc::ETH_P_ALL as u16).to_be())
}

/// `struct tcmsg`.
fn header(index: u32, handle: u32, parent: u32, info: u32) -> [u8; 20] {
    let mut header = [0u8; 20];
    for (at, number) in [(4, index), (8, handle), (12, parent), (16, info)] {
        header[at..at + 4].copy_from_slice(&number.to_ne_bytes());
    }
    header
}
