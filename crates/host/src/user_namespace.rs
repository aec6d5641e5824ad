//! The privilege to make network namespaces: root's, or that of a user namespace of this process's own.
//!
//! Source: user_namespaces(7); capabilities(7).

use crate::error::{HostError, wrap};
use rustix::thread::{CapabilitySet, LinkNameSpaceType, UnshareFlags};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// What namespaces and their devices need.
const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::NET_ADMIN);

/// Where the privilege comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// This process had it.
    Own,
    /// It is the owner of a user namespace, in which the user keeps the number it has outside.
    UserNamespace,
}

/// Gets the privilege to make network namespaces. The process stays in the network namespace it is in.
///
/// To be called while the process has one thread.
///
/// # Errors
/// When this user may not make user namespaces; [`why_refused`] says which switch it is.
pub fn enter() -> Result<Privilege, HostError> {
    let act = || "make a user namespace".to_owned();
    if rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(NEEDED)) {
        return Ok(Privilege::Own);
    }
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    // SAFETY: the process has one thread, or the kernel refuses; no memory is unshared.
    wrap(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }.map_err(Into::into), act)?;
    let write = |file: &str, text: String| wrap(fs::write(format!("/proc/self/{file}"), text), act);
    write("uid_map", format!("{user} {user} 1\n"))?;
    write("setgroups", "deny\n".to_owned())?;
    write("gid_map", format!("{group} {group} 1\n"))?;
    Ok(Privilege::UserNamespace)
}

/// The user namespace that this process is in, for another process to [`join`].
///
/// # Errors
/// When /proc is not mounted.
pub fn own() -> Result<OwnedFd, HostError> {
    wrap(File::open("/proc/self/ns/user"), || "open this user namespace".to_owned()).map(Into::into)
}

/// Joins a user namespace that another process of this user's made; it is the owner's privilege that this process has there. Nothing
/// happens if this process is in it.
///
/// To be called while the process has one thread.
///
/// # Errors
/// When the kernel refuses.
pub fn join(namespace: &OwnedFd) -> Result<Privilege, HostError> {
    let act = || "enter the user namespace".to_owned();
    let is_same = |one: &OwnedFd, other: &OwnedFd| -> io::Result<bool> {
        let (one, other) = (rustix::fs::fstat(one)?, rustix::fs::fstat(other)?);
        Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
    };
    if wrap(is_same(namespace, &own()?), act)? {
        return Ok(Privilege::Own);
    }
    let joined = rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::User));
    wrap(joined.map_err(Into::into), act)?;
    Ok(Privilege::UserNamespace)
}

/// Which switch of this host most likely refused a user namespace or one of its network namespaces, and how to open it.
pub fn why_refused() -> &'static str {
    let is = |file: &str, value: &str| fs::read_to_string(file).is_ok_and(|text| text.trim() == value);
    if is("/proc/sys/user/max_user_namespaces", "0") {
        "user.max_user_namespaces is 0: sudo sysctl -w user.max_user_namespaces=15000"
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "kernel.unprivileged_userns_clone is 0: sudo sysctl -w kernel.unprivileged_userns_clone=1"
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "AppArmor closes user namespaces: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or run this as root"
    } else {
        "a container or a seccomp filter closes user namespaces: give the container --privileged, or CAP_SYS_ADMIN and CAP_NET_ADMIN; or run this outside"
    }
}

/// Lets programs that this thread starts keep what a network administrator may do in the current user namespace, without
/// being root there: change routes and devices, capture packets, listen on low ports.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn keep_network_capabilities() -> io::Result<()> {
    let kept = [CapabilitySet::NET_ADMIN, CapabilitySet::NET_RAW, CapabilitySet::NET_BIND_SERVICE];
    let mut sets = rustix::thread::capabilities(None)?;
    kept.iter().for_each(|capability| sets.inheritable |= *capability);
    rustix::thread::set_capabilities(None, sets)?;
    for capability in kept {
        rustix::thread::configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}
