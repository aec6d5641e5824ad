//! TUN devices that carry whole offload frames: one read is up to 64 KiB of one connection.
//!
//! Source: Documentation/networking/tuntap.rst; linux/if_tun.h; linux/virtio_net.h.

use crate::error::{HostError, check, wrap};
use crate::link;
use rustix::fs::{Mode, OFlags};
use std::ffi::CString;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Where TUN devices come from.
pub const CLONE_DEVICE: &str = "/dev/net/tun";
/// `sizeof(struct virtio_net_hdr)`: what stands before each packet, in the host's byte order.
pub const VNET_HEADER_LEN: usize = 10;

const TUN_F_CSUM: libc::c_uint = 0x01;
const TUN_F_TSO4: libc::c_uint = 0x02;
const TUN_F_TSO6: libc::c_uint = 0x04;
const TUN_F_TSO_ECN: libc::c_uint = 0x08;
const TUN_F_USO4: libc::c_uint = 0x20;
const TUN_F_USO6: libc::c_uint = 0x40;
/// Frames that wait to be read; the kernel's default of 500 loses packets whenever the reader is late by a millisecond.
const QUEUE_FRAMES: u32 = 8192;

/// A TUN device with checksum and segmentation offload.
///
/// It is in the namespace it was opened in, and gone once this is dropped. Descriptors can be used from any namespace.
#[derive(Debug)]
pub struct Tun {
    file: OwnedFd,
    name: String,
}

/// What the device counted as lost, since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TunLosses {
    /// Frames the reader was too slow to take.
    pub unread: u64,
    /// Frames written that the kernel's input queue had no room for.
    pub refused: u64,
}

impl Tun {
    /// Makes the device `name` in the current namespace, with links of `mtu`; it has no address and is down.
    ///
    /// # Errors
    /// When [`CLONE_DEVICE`] is absent or closed to this user, or the kernel refuses the device.
    pub fn create(name: &str, mtu: u16) -> Result<Self, HostError> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(CLONE_DEVICE, flags, Mode::empty()).map_err(io::Error::from);
        let file = wrap(file, || format!("open {CLONE_DEVICE}"))?;
        let mut request = link::request_for(name);
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        // SAFETY: the request outlives the call.
        let made = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &mut request) };
        check(made, || format!("make the TUN device '{name}'"))?;
        let tun = Self { file, name: name.to_owned() };
        tun.set_offloads()?;
        let index = link::index(name)?;
        link::set_size(index, mtu, QUEUE_FRAMES)?;
        Ok(tun)
    }

    /// Asks for frames that are not segmented yet; USO is there from Linux 6.2 on.
    fn set_offloads(&self) -> Result<(), HostError> {
        let tcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
        let set = |offloads: libc::c_uint| {
            // SAFETY: the third argument is a number.
            unsafe { libc::ioctl(self.file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads)) }
        };
        if set(tcp | TUN_F_USO4 | TUN_F_USO6) == 0 {
            return Ok(());
        }
        check(set(tcp), || format!("give the TUN device '{}' its offloads", self.name)).map(drop)
    }

    /// Gives the device an address of the current namespace and brings it up.
    ///
    /// # Errors
    /// Whatever the kernel refuses.
    pub fn set_up(&self, addresses: &[(IpAddr, u8)]) -> Result<(), HostError> {
        let index = link::index(&self.name)?;
        addresses.iter().try_for_each(|(address, bits)| link::add_address(index, *address, *bits))?;
        link::set_up(index)?;
        addresses.iter().try_for_each(|(address, _)| link::wait_until_delivered(*address))
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads one frame, its vnet header first; `None` if none waits.
    ///
    /// # Errors
    /// When the device is gone.
    pub fn read(&self, into: &mut [u8]) -> Result<Option<usize>, HostError> {
        match rustix::io::read(&self.file, into) {
            Ok(length) => Ok(Some(length)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(HostError { act: format!("read from '{}'", self.name), source: error.into() }),
        }
    }

    /// Writes one frame, its vnet header first; `false` if the kernel refused it.
    ///
    /// # Errors
    /// When the device is gone.
    pub fn write(&self, parts: &[IoSlice<'_>]) -> Result<bool, HostError> {
        use rustix::io::Errno;
        match rustix::io::writev(&self.file, parts) {
            Ok(_) => Ok(true),
            // A frame that is malformed, for which there is no memory, or whose device is down, is lost as on a wire.
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INVAL | Errno::INTR | Errno::IO) => Ok(false),
            Err(error) => Err(HostError { act: format!("write to '{}'", self.name), source: error.into() }),
        }
    }

    /// What the device lost. To be called in its namespace.
    ///
    /// # Errors
    /// When /proc is not mounted.
    pub fn losses(&self) -> Result<TunLosses, HostError> {
        let text = wrap(std::fs::read_to_string("/proc/thread-self/net/dev"), || format!("count '{}'", self.name))?;
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(self.name.as_str())?.strip_prefix(':'));
        let numbers: Vec<u64> =
            line.unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
        Ok(TunLosses { refused: number(3), unread: number(11) })
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Whether this user may open [`CLONE_DEVICE`].
pub fn is_open_to_this_user() -> bool {
    let path = CString::new(CLONE_DEVICE).expect("invariant: no NUL");
    rustix::fs::access(path, rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespaces::{inside, skip};
    use crate::netns::NetNs;
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    const A: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

    fn tun(ns: &NetNs, address: Ipv4Addr) -> Tun {
        let make = || {
            let tun = Tun::create("path0", 1500)?;
            tun.set_up(&[(IpAddr::V4(address), 24)])?;
            Ok(tun)
        };
        ns.run(make).expect("a device")
    }

    /// Passes frames both ways until `stop`; returns the longest.
    fn pass(a: &Tun, b: &Tun, stop: &std::sync::atomic::AtomicBool) -> usize {
        let mut buffer = vec![0; 70_000];
        let mut longest = 0;
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            for (from, to) in [(a, b), (b, a)] {
                while let Some(length) = from.read(&mut buffer).expect("read") {
                    longest = longest.max(length);
                    assert!(to.write(&[IoSlice::new(&buffer[..length])]).expect("written"));
                }
            }
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
        longest
    }

    #[test]
    fn whole_offload_frames_pass_between_two_namespaces() {
        if !is_open_to_this_user() {
            return skip("/dev/net/tun is closed to this user");
        }
        inside("tun::tests::whole_offload_frames_pass_between_two_namespaces", || {
            let (near, far) = (NetNs::create("near").expect("made"), NetNs::create("far").expect("made"));
            let (a, b) = (tun(&near, A), tun(&far, B));
            let listener = far.run(|| Ok(TcpListener::bind((B, 0)).expect("bound"))).expect("bound");
            let address = listener.local_addr().expect("bound");
            let stop = std::sync::atomic::AtomicBool::new(false);
            let longest = std::thread::scope(|scope| {
                let passing = scope.spawn(|| pass(&a, &b, &stop));
                let mut client = near.run(|| Ok(TcpStream::connect(address).expect("connected"))).expect("connected");
                let sending = scope.spawn(move || {
                    let (mut server, _) = listener.accept().expect("accepted");
                    server.write_all(&vec![7; 20_000_000]).expect("sent");
                });
                let mut got = Vec::new();
                client.read_to_end(&mut got).expect("received");
                assert!(got.len() == 20_000_000 && got.iter().all(|byte| *byte == 7));
                sending.join().expect("sent");
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
                passing.join().expect("passed")
            });
            assert!(longest > 30_000, "{longest}");
            let losses = near.run(|| a.losses()).expect("counted");
            assert_eq!(losses, TunLosses::default());
        });
    }
}
