//! A host that another process keeps up, and the programs that this one starts there.

use crate::control::{self, Entrance};
use crate::program::Program;
use crate::resolver;
use crate::site::spawn;
use std::io;
use std::os::fd::OwnedFd;
use std::process::Command;
use thalweg_host::confined::ReplacedFile;
use thalweg_host::netns::NetNs;
use thalweg_host::user_namespace::{self, Privilege};
use thalweg_host::{HostError, descriptors};
use thiserror::Error;

/// Why a host cannot be entered.
#[derive(Debug, Error)]
pub enum EnterError {
    /// It was not reached.
    #[error("cannot ask {id} for a host: {source}")]
    NotReached {
        /// The number asked.
        id: u32,
        /// What the system said.
        source: io::Error,
    },
    /// There is no such host.
    #[error("{0}")]
    Refused(String),
    /// The kernel refused.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// A host's namespaces, which this process is in.
#[derive(Debug)]
pub struct Entered {
    life: OwnedFd,
    privilege: Privilege,
    files: Vec<ReplacedFile>,
}

impl Entered {
    /// Moves this process to the host of this name that `id` keeps up. To be called while the process has one thread.
    ///
    /// # Errors
    /// [`EnterError`].
    pub fn enter(id: u32, host: &str) -> Result<Self, EnterError> {
        let answered = control::enter(id, host).map_err(|source| EnterError::NotReached { id, source })?;
        let Entrance { hosts, network, user, life } = answered.map_err(EnterError::Refused)?;
        let privilege = user_namespace::join(&user)?;
        NetNs::received(network, host).enter()?;
        Ok(Self { life, privilege, files: resolver::alone(&hosts) })
    }

    /// Starts a program on the host. What it starts ends with it, and all of it with this process.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn run(&self, command: Command) -> Result<Program, HostError> {
        Program::start(command, self.privilege, self.files.clone(), |live| spawn("program", live).map(drop))
    }

    /// Whether the hosts are gone.
    pub fn is_over(&self) -> bool {
        descriptors::is_closed(&self.life)
    }
}
