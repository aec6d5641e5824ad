//! What takes samples of sockets at a period: a lab kernel itself, or this program where time is real.

use super::clock;
use super::timer::{clear, set_time, timer};
use crate::plan::Clock;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use thalweg_host::HostError;
use thalweg_host::mem_info::MemInfo;
use thalweg_host::tcp_info::TcpInfo;
use thalweg_host::tcp_samples::{Sample, TcpSamples};
use thalweg_units::Span;

/// A sampler; it can be polled.
pub(super) enum Sampler {
    /// The kernel takes them.
    Kernel(TcpSamples),
    /// A timer, and the sockets that are asked when it goes off.
    Program { timer: OwnedFd, sockets: BTreeMap<u64, OwnedFd> },
}

impl Sampler {
    /// Samples at `first`, on the monotonic clock, and each `period` from there.
    pub(super) fn start(clock: Clock, first: Span, period: Span) -> Result<Self, HostError> {
        if clock == Clock::Virtual {
            return TcpSamples::start(first, period).map(Self::Kernel);
        }
        let timer = timer()?;
        set_time(&timer, first, period)?;
        Ok(Self::Program { timer, sockets: BTreeMap::new() })
    }

    /// Adds a TCP socket. The samples of one time come in the order of their numbers.
    pub(super) fn add(&mut self, id: u64, socket: impl AsFd) -> Result<(), HostError> {
        match self {
            Self::Kernel(kernel) => kernel.add(id, socket),
            Self::Program { sockets, .. } => {
                let own = socket.as_fd().try_clone_to_owned();
                let act = || "add a socket to the sampler".to_owned();
                sockets.insert(id, own.map_err(|source| HostError { act: act(), source })?);
                Ok(())
            }
        }
    }

    /// Takes a last sample of a socket and removes it.
    pub(super) fn remove(
        &mut self,
        id: u64,
        mut each: impl FnMut(Sample) -> Result<(), HostError>,
    ) -> Result<(), HostError> {
        match self {
            Self::Kernel(kernel) => kernel.remove(id, each),
            Self::Program { sockets, .. } => match sockets.remove(&id) {
                Some(socket) => each(sample(id, &socket)?),
                None => Ok(()),
            },
        }
    }

    /// Hands the samples that are due to `each`, oldest first.
    pub(super) fn read(&mut self, mut each: impl FnMut(Sample) -> Result<(), HostError>) -> Result<(), HostError> {
        match self {
            Self::Kernel(kernel) => kernel.read(each),
            Self::Program { timer, sockets } => {
                // A time that was missed is not made up for.
                if clear(timer) == 0 {
                    return Ok(());
                }
                sockets.iter().try_for_each(|(id, socket)| each(sample(*id, socket)?))
            }
        }
    }
}

fn sample(id: u64, socket: &OwnedFd) -> Result<Sample, HostError> {
    Ok(Sample { at: clock::monotonic(), id, info: TcpInfo::of(socket)?, memory: MemInfo::of(socket)? })
}

impl AsFd for Sampler {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Kernel(kernel) => kernel.as_fd(),
            Self::Program { timer, .. } => timer.as_fd(),
        }
    }
}
