//! A sandbox for users' programs on this host's kernel: they see what a lab kernel's guest lets them see, and end with this process.
//!
//! Source: pid_namespaces(7), mount_namespaces(7), mount_setattr(2), open_tree(2), capabilities(7).

use crate::error::{HostError, check, wrap};
use crate::guest::mount;
use crate::poll::wait_readable;
use rustix::fs::CWD;
use rustix::mount::{MountPropagationFlags, MoveMountFlags, OpenTreeFlags, move_mount, open_tree};
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::{CapabilitySet, UnshareFlags};
use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// This program, wherever it lies on the host.
pub const OWN_PROGRAM: &str = "/run/thalweg";
/// The folder of the run, which alone of the host's files can be written.
const OUT: &str = "/run/out";
/// The devices that programs expect, and the one that makes network devices.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "net/tun"];
/// What root's programs may do at most: nothing that undoes a read-only mount or reaches beyond the namespaces.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::NET_RAW);

/// Divides the process in two: the child returns, as the first process of a process namespace and with files of its own; this one only
/// waits for it, and ends as it does.
///
/// The child sees the host's files, read-only, an empty folder in memory at /tmp, /run and /dev/shm, and no devices but the harmless ones.
/// `out` can be written, and is the child's working directory. When the child ends, the kernel ends all that it started.
///
/// To be called while the process has one thread, with the privilege of [`crate::user_namespace::enter`].
///
/// # Errors
/// In either process: when the kernel refuses a namespace or a mount. Before Linux 5.12 there is no `mount_setattr`.
pub fn enter(out: &Path) -> Result<(), HostError> {
    let act = || "make a process namespace".to_owned();
    let parent =
        wrap(rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).map_err(Into::into), act)?;
    // SAFETY: only processes started from now on are concerned, and later the mounts of this one; no memory is unshared.
    wrap(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWPID) }.map_err(Into::into), act)?;
    // SAFETY: the process has one thread, so the child's memory is whole.
    match unsafe { libc::fork() } {
        -1 => wrap(Err(io::Error::last_os_error()), act),
        0 => {
            tie_to(&parent)?;
            see_own_files(out)?;
            drop_capabilities()
        }
        child => wait_for(child),
    }
}

/// Ends as the child does.
fn wait_for(child: libc::pid_t) -> ! {
    let child = Pid::from_raw(child).expect("invariant: a child has a number");
    let status = loop {
        match rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(Some((_, status))) => break status.exit_status(),
            _ => break None,
        }
    };
    std::process::exit(status.unwrap_or(255))
}

/// Lets the kernel kill this process when its parent ends.
fn tie_to(parent: &OwnedFd) -> Result<(), HostError> {
    let act = || "end with the process that waits".to_owned();
    wrap(rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(Into::into), act)?;
    // It may have ended before the line above: then nobody would send the signal.
    match wait_readable([parent.as_fd()], Some(Duration::ZERO))? {
        [false] => Ok(()),
        [true] => wrap(Err(io::ErrorKind::Interrupted.into()), act),
    }
}

fn see_own_files(out: &Path) -> Result<(), HostError> {
    let own = || "see files of its own".to_owned();
    // SAFETY: no memory is unshared.
    wrap(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.map_err(Into::into), own)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    wrap(rustix::mount::mount_change(c"/", private).map_err(Into::into), own)?;
    // Taken before empty folders hide them.
    let folder = tree(out)?;
    let program = tree(&wrap(std::env::current_exe(), || "find this program".to_owned())?)?;
    let devices: Vec<(PathBuf, OwnedFd)> = DEVICES
        .iter()
        .map(|name| Path::new("/dev").join(name))
        .filter_map(|path| tree(&path).ok().map(|tree| (path, tree)))
        .collect();
    // A failure from here on is written there.
    wrap(rustix::process::fchdir(&folder).map_err(Into::into), own)?;
    make_read_only(CWD, c"/", libc::AT_RECURSIVE)?;
    make_read_only(program.as_fd(), c"", libc::AT_EMPTY_PATH)?;
    mount("proc", "/proc", "proc", "")?;
    mount("tmpfs", "/tmp", "tmpfs", "")?;
    mount("tmpfs", "/run", "tmpfs", "")?;
    // In a folder where everybody may write, nobody may open another's device by O_CREAT. Source: fs/namei.c, may_create_in_sticky.
    mount("tmpfs", "/dev", "tmpfs", "mode=0755")?;
    wrap(fs::create_dir_all("/dev/net").and_then(|()| fs::create_dir("/dev/shm")), own)?;
    mount("tmpfs", "/dev/shm", "tmpfs", "")?;
    for (path, tree) in &devices {
        attach(tree, path)?;
    }
    attach(&program, Path::new(OWN_PROGRAM))?;
    wrap(fs::create_dir(OUT), own)?;
    place(&folder, Path::new(OUT))
}

/// A copy of what is mounted at a path, not attached anywhere yet.
fn tree(path: &Path) -> Result<OwnedFd, HostError> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    wrap(open_tree(CWD, path, flags).map_err(Into::into), || format!("take {} along", path.display()))
}

/// Attaches a file to a new file.
fn attach(tree: &OwnedFd, path: &Path) -> Result<(), HostError> {
    wrap(File::create(path), || format!("make {}", path.display()))?;
    place(tree, path)
}

fn place(tree: &OwnedFd, path: &Path) -> Result<(), HostError> {
    let moved = move_mount(tree.as_fd(), c"", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH);
    wrap(moved.map_err(Into::into), || format!("mount {}", path.display()))
}

fn make_read_only(at: BorrowedFd<'_>, path: &CStr, flags: libc::c_int) -> Result<(), HostError> {
    // SAFETY: plain data for which zeroes are valid.
    let mut change: libc::mount_attr = unsafe { std::mem::zeroed() };
    change.attr_set = libc::MOUNT_ATTR_RDONLY;
    // SAFETY: the path and the structure, whose size is given, outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const change,
            size_of_val(&change),
        )
    };
    check(result as libc::c_int, || "make this host's files read-only".to_owned()).map(drop)
}

/// Programs that are started from now on get nothing beyond [`KEPT`], whoever they run as.
fn drop_capabilities() -> Result<(), HostError> {
    let dropped = CapabilitySet::all().difference(KEPT);
    let drop_one = |capability| match rustix::thread::remove_capability_from_bounding_set(capability) {
        // An older kernel has not all of them.
        Ok(()) | Err(rustix::io::Errno::INVAL) => Ok(()),
        Err(error) => Err(error),
    };
    wrap(dropped.iter().try_for_each(drop_one).map_err(Into::into), || "drop capabilities".to_owned())
}
