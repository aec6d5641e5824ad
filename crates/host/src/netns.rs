//! Network namespaces: the hosts and routers of an experiment.

use crate::error::{HostError, wrap};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A network namespace, kept alive by a descriptor.
#[derive(Debug)]
pub struct NetNs {
    file: File,
    name: String,
}

impl NetNs {
    /// The namespace the calling thread is in.
    ///
    /// # Errors
    /// When /proc is not mounted.
    pub fn current(name: &str) -> Result<Self, HostError> {
        let file = wrap(File::open("/proc/thread-self/ns/net"), || format!("open the network namespace '{name}'"))?;
        Ok(Self { file, name: name.to_owned() })
    }

    /// The namespace that a descriptor of another process's is of.
    pub fn received(descriptor: OwnedFd, name: &str) -> Self {
        Self { file: descriptor.into(), name: name.to_owned() }
    }

    /// Makes a new, empty namespace and goes back to the one the thread was in.
    ///
    /// # Errors
    /// When the kernel refuses, as it does without privilege outside a user namespace.
    pub fn create(name: &str) -> Result<Self, HostError> {
        let here = Self::current("own")?;
        // SAFETY: only the network namespace of this thread changes; no memory is shared or unshared.
        wrap(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.map_err(Into::into), || {
            format!("make the network namespace '{name}'")
        })?;
        let made = Self::current(name);
        here.enter()?;
        made
    }

    /// Moves the calling thread, and those it starts, into a new, empty namespace for good: a user namespace does not allow
    /// the way back.
    ///
    /// # Errors
    /// When the kernel refuses, as it does without privilege.
    pub fn enter_new(name: &str) -> Result<(), HostError> {
        // SAFETY: only the network namespace of this thread changes; no memory is shared or unshared.
        wrap(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.map_err(Into::into), || {
            format!("make the network namespace '{name}'")
        })
    }

    /// Another descriptor of it, to hand over.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn descriptor(&self) -> Result<OwnedFd, HostError> {
        wrap(self.file.try_clone(), || format!("hand over the network namespace '{}'", self.name)).map(Into::into)
    }

    /// Moves the calling thread into this namespace.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn enter(&self) -> Result<(), HostError> {
        wrap(
            rustix::thread::move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(Into::into),
            || format!("enter the network namespace '{}'", self.name),
        )
    }

    /// Runs `act` inside this namespace; sockets opened by it stay there.
    ///
    /// # Errors
    /// Those of `act`, or when a namespace cannot be entered.
    pub fn run<T>(&self, act: impl FnOnce() -> Result<T, HostError>) -> Result<T, HostError> {
        let here = Self::current("own")?;
        self.enter()?;
        let result = act();
        here.enter()?;
        result
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
