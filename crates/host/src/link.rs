//! Links between namespaces: veth pairs, addresses, neighbours, offloads.
//!
//! Source: linux/if_link.h, linux/veth.h, linux/ethtool.h.

use crate::error::{HostError, check};
use crate::netlink::{Message, Netlink, attributes, u32_at};
use crate::netns::NetNs;
use std::ffi::CString;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Index of the loopback device in every namespace.
pub const LOOPBACK: u32 = 1;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_OPERSTATE: u16 = 16;
const IF_OPER_UP: u8 = 6;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// The address is usable at once, without duplicate address detection.
const IFA_F_NODAD: u8 = 0x02;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
/// Where `struct rtmsg` has the type of the route.
const RTMSG_TYPE: usize = 7;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const ETHTOOL_GLINK: u32 = 0x0a;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;
const ETHTOOL_SGRO: u32 = 0x2c;

/// One end of a link.
#[derive(Debug)]
pub struct End<'a> {
    /// Namespace it is in.
    pub ns: &'a NetNs,
    /// Its device's name there.
    pub name: &'a str,
    /// Its hardware address.
    pub mac: [u8; 6],
    /// Its address; the prefix is 24 bits.
    pub address: Ipv4Addr,
}

/// Joins two namespaces by a veth pair, addressed and up, with permanent neighbour entries so that no ARP crosses it.
///
/// # Errors
/// Whatever the kernel refuses.
pub fn connect(a: &End<'_>, b: &End<'_>, mtu: u16) -> Result<(), HostError> {
    a.ns.run(|| {
        let act = format!("make the link {}–{}", a.name, b.name);
        let mut message = Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        message
            .raw(&[0; 16])
            .text(IFLA_IFNAME, a.name)
            .attribute(IFLA_ADDRESS, &a.mac)
            .number(IFLA_MTU, u32::from(mtu));
        message.nest(IFLA_LINKINFO, |info| {
            info.text(IFLA_INFO_KIND, "veth").nest(IFLA_INFO_DATA, |data| {
                data.nest(VETH_INFO_PEER, |peer| {
                    peer.raw(&[0; 16])
                        .text(IFLA_IFNAME, b.name)
                        .attribute(IFLA_ADDRESS, &b.mac)
                        .number(IFLA_MTU, u32::from(mtu))
                        .number(IFLA_NET_NS_FD, b.ns.as_fd().as_raw_fd() as u32);
                });
            });
        });
        Netlink::open()?.request(&mut message, &act).map(drop)
    })?;
    for (own, other) in [(a, b), (b, a)] {
        own.ns.run(|| {
            let index = index(own.name)?;
            set_address(index, own.address)?;
            set_up(index)?;
            set_neighbour(index, other.address, other.mac)
        })?;
    }
    // The end that came up first got its carrier when the other did.
    [a, b].into_iter().try_for_each(|end| end.ns.run(|| note_carrier(end.name)))
}

/// The name of a device of the current namespace; `None` where it is gone.
pub fn name(index: u32) -> Option<String> {
    let mut name = [0u8; libc::IF_NAMESIZE];
    // SAFETY: the buffer is as long as the call asks for, and outlives it.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast()) };
    if found.is_null() {
        return None;
    }
    let end = name.iter().position(|&byte| byte == 0)?;
    Some(String::from_utf8_lossy(&name[..end]).into_owned())
}

/// What packets of a device begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// An Ethernet header, as on the loopback device.
    Ethernet,
    /// The IP header.
    Ip,
    /// Something else, by the kernel's number.
    Other(u16),
}

/// What packets of a device of the current namespace begin with.
///
/// # Errors
/// When there is no such device.
pub fn kind(index: u32) -> Result<LinkKind, HostError> {
    let mut message = Message::new(libc::RTM_GETLINK, 0);
    // `struct ifinfomsg`: family, padding, type, index, flags, change.
    message.raw(&[&[0; 4], &index.to_ne_bytes()[..], &[0; 8]].concat());
    let answers = Netlink::open()?.request(&mut message, &format!("look at device {index}"))?;
    let number = answers.first().and_then(|answer| answer.get(2..4)).map_or(0, |b| u16::from_ne_bytes([b[0], b[1]]));
    Ok(match number {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => LinkKind::Ethernet,
        // TUN devices, WireGuard's, and tunnels of IP in IP.
        libc::ARPHRD_NONE | libc::ARPHRD_TUNNEL | libc::ARPHRD_TUNNEL6 => LinkKind::Ip,
        other => LinkKind::Other(other),
    })
}

/// Index of a device of the current namespace.
///
/// # Errors
/// When there is none of that name.
pub fn index(name: &str) -> Result<u32, HostError> {
    let text = CString::new(name).expect("invariant: device names hold no NUL");
    // SAFETY: the text is NUL-terminated and outlives the call.
    let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
    check(if index == 0 { -1 } else { 0 }, || format!("find the device '{name}'"))?;
    Ok(index)
}

/// Brings a device of the current namespace up.
///
/// # Errors
/// Whatever the kernel refuses.
pub fn set_up(index: u32) -> Result<(), HostError> {
    let mut message = Message::new(libc::RTM_NEWLINK, 0);
    let mut header = [0u8; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    let up = (libc::IFF_UP as u32).to_ne_bytes();
    header[8..12].copy_from_slice(&up);
    header[12..16].copy_from_slice(&up);
    message.raw(&header);
    Netlink::open()?.request(&mut message, &format!("bring device {index} up")).map(drop)
}

/// Waits until every device of the current namespace but the loopback is operational, which a link becomes up to a second
/// after both of its ends are up: what is sent before is lost. TUN devices do not say, and are.
///
/// Source: net/core/link_watch.c; drivers/net/tun.c, `tun_net_init`.
///
/// # Errors
/// When one is not operational after two seconds.
pub fn wait_until_operational() -> Result<(), HostError> {
    let act = "wait for the devices to be operational";
    let netlink = Netlink::open()?;
    let is_up = |answer: &Vec<u8>| {
        // Behind `struct ifinfomsg`, whose second half word is the type, and whose second word is the index.
        let is_tun = answer.get(2..4) == Some(&libc::ARPHRD_NONE.to_ne_bytes()[..]);
        let found = attributes(answer.get(16..).unwrap_or_default());
        u32_at(answer, 4) == LOOPBACK
            || is_tun
            || found.iter().any(|(kind, value)| *kind == IFLA_OPERSTATE && *value == [IF_OPER_UP])
    };
    wait_until(act, || {
        let mut message = Message::new(libc::RTM_GETLINK, libc::NLM_F_DUMP);
        message.raw(&[0; 16]);
        Ok(netlink.request(&mut message, act)?.iter().all(is_up))
    })
}

/// Looks every millisecond, for two seconds.
fn wait_until(act: &str, is_so: impl Fn() -> Result<bool, HostError>) -> Result<(), HostError> {
    for _ in 0..2000 {
        if is_so()? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(HostError { act: act.to_owned(), source: io::ErrorKind::TimedOut.into() })
}

/// An address as netlink has it.
fn family_and_octets(address: IpAddr) -> (libc::c_int, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    }
}

/// A socket to ask the kernel about devices with.
fn any_socket() -> Result<OwnedFd, HostError> {
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    let fd = check(fd, || "open a socket".to_owned())?;
    // SAFETY: the descriptor was just made and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A request about the device `name`.
pub(crate) fn request_for(name: &str) -> libc::ifreq {
    // SAFETY: `ifreq` is plain data for which zeroes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request
}

fn set_address(index: u32, address: Ipv4Addr) -> Result<(), HostError> {
    add_address(index, IpAddr::V4(address), 24)
}

/// Gives a device of the current namespace an address in a network of `bits`.
///
/// # Errors
/// Whatever the kernel refuses.
pub fn add_address(index: u32, address: IpAddr, bits: u8) -> Result<(), HostError> {
    let (family, octets) = family_and_octets(address);
    let mut message = Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    let flags = if address.is_ipv6() { IFA_F_NODAD } else { 0 };
    let mut header = [family as u8, bits, flags, 0, 0, 0, 0, 0];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    message.raw(&header).attribute(IFA_LOCAL, &octets).attribute(IFA_ADDRESS, &octets);
    Netlink::open()?.request(&mut message, &format!("give device {index} the address {address}")).map(drop)
}

/// Waits until packets to an address of a device that is up are delivered. The kernel gives an IPv6 address its local route a moment after it has
/// answered, and drops what comes before.
///
/// Source: net/ipv6/addrconf.c, `addrconf_dad_work`, `__ipv6_ifa_notify`.
///
/// # Errors
/// When they are not after two seconds.
pub(crate) fn wait_until_delivered(address: IpAddr) -> Result<(), HostError> {
    let act = format!("wait until packets to {address} are delivered");
    let (family, octets) = family_and_octets(address);
    let netlink = Netlink::open()?;
    wait_until(&act, || {
        let mut message = Message::new(libc::RTM_GETROUTE, 0);
        // Source: linux/rtnetlink.h, `struct rtmsg`.
        message
            .raw(&[family as u8, (octets.len() * 8) as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
            .attribute(RTA_DST, &octets);
        // Before, there may be no route at all.
        let answers = netlink.request(&mut message, &act).unwrap_or_default();
        Ok(answers.iter().any(|answer| answer.get(RTMSG_TYPE) == Some(&libc::RTN_LOCAL)))
    })
}

/// Sends what has no other route to a device of the current namespace; the loopback takes it in, whatever its address.
///
/// # Errors
/// Whatever the kernel refuses.
pub fn add_default_route(index: u32, ipv6: bool) -> Result<(), HostError> {
    let is_local = index == LOOPBACK;
    let family = if ipv6 { libc::AF_INET6 } else { libc::AF_INET };
    let kind = if is_local { libc::RTN_LOCAL } else { libc::RTN_UNICAST };
    let scope = if is_local { libc::RT_SCOPE_HOST } else { libc::RT_SCOPE_LINK };
    let scope = if ipv6 { libc::RT_SCOPE_UNIVERSE } else { scope };
    let mut message = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    // Source: linux/rtnetlink.h, `struct rtmsg`.
    let header = [family as u8, 0, 0, 0, libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, scope, kind, 0, 0, 0, 0];
    message.raw(&header).number(RTA_OIF, index);
    Netlink::open()?.request(&mut message, &format!("add a default route by device {index}")).map(drop)
}

/// Sets a device's MTU and the number of frames that may wait in its transmit queue.
///
/// # Errors
/// Whatever the kernel refuses.
pub fn set_size(index: u32, mtu: u16, queue_frames: u32) -> Result<(), HostError> {
    let mut message = Message::new(libc::RTM_NEWLINK, 0);
    let mut header = [0u8; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    message.raw(&header).number(IFLA_MTU, u32::from(mtu)).number(IFLA_TXQLEN, queue_frames);
    Netlink::open()?.request(&mut message, &format!("set the MTU of device {index} to {mtu}")).map(drop)
}

fn set_neighbour(index: u32, address: Ipv4Addr, mac: [u8; 6]) -> Result<(), HostError> {
    const NUD_PERMANENT: u16 = 0x80;
    let mut message = Message::new(libc::RTM_NEWNEIGH, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
    let mut header = [0u8; 12];
    header[0] = libc::AF_INET as u8;
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..10].copy_from_slice(&NUD_PERMANENT.to_ne_bytes());
    message.raw(&header).attribute(NDA_DST, &address.octets()).attribute(NDA_LLADDR, &mac);
    Netlink::open()?.request(&mut message, &format!("make {address} a neighbour of device {index}")).map(drop)
}

/// Turns TSO, GSO and GRO of a device of the current namespace off, so that every frame is one wire-size segment.
///
/// # Errors
/// Whatever the kernel refuses.
pub fn offloads_off(name: &str) -> Result<(), HostError> {
    set_offloads(name, false)
}

/// Turns TSO, GSO and GRO of a device of the current namespace on or off: with them a frame may be up to 64 KiB of one
/// connection.
///
/// # Errors
/// Whatever the kernel refuses.
pub fn set_offloads(name: &str, on: bool) -> Result<(), HostError> {
    for (command, what) in [(ETHTOOL_STSO, "TSO"), (ETHTOOL_SGSO, "GSO"), (ETHTOOL_SGRO, "GRO")] {
        ethtool(name, command, u32::from(on), || format!("turn {what} of '{name}' {}", if on { "on" } else { "off" }))?;
    }
    Ok(())
}

/// Turns GRO of a device of the current namespace on, and leaves TSO and GSO: what comes in is joined, what goes out is divided.
///
/// # Errors
/// Whatever the kernel refuses.
pub fn receive_offload_on(name: &str) -> Result<(), HostError> {
    ethtool(name, ETHTOOL_SGRO, 1, || format!("turn GRO of '{name}' on"))
}

/// Makes the kernel take note of a carrier that has just come, so that nobody need wait for it: from Linux 6.9 on.
///
/// Source: net/core/link_watch.c, `linkwatch_sync_dev`, which `ethtool_op_get_link` calls.
fn note_carrier(name: &str) -> Result<(), HostError> {
    ethtool(name, ETHTOOL_GLINK, 0, || format!("ask for the carrier of '{name}'"))
}

fn ethtool(name: &str, command: u32, value: u32, act: impl FnOnce() -> String) -> Result<(), HostError> {
    let socket = any_socket()?;
    let mut value: [u32; 2] = [command, value];
    let mut request = request_for(name);
    request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    // SAFETY: `request` and the `ethtool_value` it points to outlive the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &mut request) };
    check(result, act).map(drop)
}
