//! Settings for connections as they open, by local port and destination, for a share of them, with counters of both shares.
//!
//! A program of type `sock_ops` on a cgroup sees each connection of its processes. Source: linux/bpf.h; Lawrence Brakmo, "TCP-BPF:
//! Programmatically tuning TCP behavior through BPF" (Netdev 2.2, 2017); net/core/filter.c, `bpf_sock_ops_setsockopt`.

mod program;
mod settings;

pub use settings::ConnectionSettings;

use super::map::Map;
use super::{bpf, pin};
use crate::error::{HostError, wrap};
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_CGROUP_SOCK_OPS: u32 = 3;

/// Connections whose beginning is remembered; past it the first bytes of the oldest ones are not timed.
const REMEMBERED: usize = 65_536;

/// Names of what is pinned.
const LINK: &str = "link";
const SETTINGS: &str = "settings";
const COUNTERS: &str = "counters";

/// What was counted of the connections that got the settings, or of those that did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArmCounters {
    /// Connections that opened.
    pub opened: u64,
    /// Of those, the ones that closed; the next three are theirs.
    pub closed: u64,
    /// Bytes that were acknowledged.
    pub bytes: u64,
    /// Segments sent with data.
    pub segments: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Connections whose first bytes were acknowledged, as many as the settings say.
    pub first: u64,
    /// Time that this took from the handshake on: the sum, in units of 100 µs.
    pub first_sum: u64,
    /// The sum of its squares, in those units.
    pub first_squares: u64,
    /// Of those connections, the ones that had sent something again by then.
    pub first_resent: u64,
    /// Settings that the kernel refused.
    pub refused: u64,
}

impl ArmCounters {
    /// The unit of times, in seconds.
    pub const UNIT_S: f64 = 1e-4;
    const NUMBERS: usize = 10;
}

/// A program on a cgroup, which stays there until it is detached or the host restarts.
#[derive(Debug)]
pub struct ConnectionProgram {
    settings: Map,
    counters: Map,
}

impl ConnectionProgram {
    /// Puts the settings to work for processes of the cgroup with this folder, and pins them in the folder `pins`, which is made.
    ///
    /// # Errors
    /// When the kernel refuses; then nothing is left.
    pub fn attach(cgroup: &Path, pins: &Path, settings: &ConnectionSettings) -> Result<Self, HostError> {
        let maps =
            Self { settings: Map::of_one(&settings.bytes())?, counters: Map::array(ArmCounters::NUMBERS * 8, 2)? };
        let sockets = Map::recent(program::Remembered::LEN, REMEMBERED)?;
        let program = program::load(&maps.settings, &maps.counters, &sockets)?;
        let folder = wrap(File::open(cgroup), || format!("open the cgroup {}", cgroup.display()))?;
        wrap(fs::create_dir_all(pins), || format!("make {}", pins.display()))?;
        let attached = (|| {
            pin::put(maps.settings.as_fd(), &pins.join(SETTINGS))?;
            pin::put(maps.counters.as_fd(), &pins.join(COUNTERS))?;
            let mut attributes =
                [program.as_fd().as_raw_fd() as u32, folder.as_raw_fd() as u32, BPF_CGROUP_SOCK_OPS, 0];
            let act = || format!("attach a program to the cgroup {}", cgroup.display());
            let fd = bpf(BPF_LINK_CREATE, &mut attributes, act)?;
            // SAFETY: the descriptor was just made and has no other owner.
            let link = unsafe { OwnedFd::from_raw_fd(fd) };
            // The program ends with this process unless its link has a name.
            pin::put(link.as_fd(), &pins.join(LINK))
        })();
        if let Err(error) = attached {
            let _ = Self::detach(pins);
            return Err(error);
        }
        Ok(maps)
    }

    /// That which is pinned in the folder `pins`.
    ///
    /// # Errors
    /// When there is none, or it is not this one's to see.
    pub fn open(pins: &Path) -> Result<Self, HostError> {
        Ok(Self {
            settings: Map::pinned(&pins.join(SETTINGS), ConnectionSettings::LEN)?,
            counters: Map::pinned(&pins.join(COUNTERS), ArmCounters::NUMBERS * 8)?,
        })
    }

    /// Ends what is pinned in the folder `pins`, and removes that.
    ///
    /// # Errors
    /// When there is none, or it is not this one's to remove.
    pub fn detach(pins: &Path) -> Result<(), HostError> {
        for name in [LINK, SETTINGS, COUNTERS] {
            let _ = fs::remove_file(pins.join(name));
        }
        wrap(fs::remove_dir(pins), || format!("remove {}", pins.display()))
    }

    /// What it sets.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn settings(&self) -> Result<ConnectionSettings, HostError> {
        self.settings.numbers().map(|numbers| ConnectionSettings::from_numbers(&numbers))
    }

    /// Changes the share of connections that get the settings from now on, in percent.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_share(&self, percent: u8) -> Result<(), HostError> {
        let settings = ConnectionSettings { share: percent, ..self.settings()? };
        self.settings.set(0, &settings.bytes())
    }

    /// Of the connections that did not get the settings, then of those that did.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn counters(&self) -> Result<[ArmCounters; 2], HostError> {
        let arm = |index| {
            let [opened, closed, bytes, segments, retransmits, first, first_sum, first_squares, first_resent, refused] =
                self.counters.numbers_at::<{ ArmCounters::NUMBERS }>(index)?;
            Ok(ArmCounters {
                opened,
                closed,
                bytes,
                segments,
                retransmits,
                first,
                first_sum,
                first_squares,
                first_resent,
                refused,
            })
        };
        Ok([arm(0)?, arm(1)?])
    }
}

#[cfg(test)]
mod tests;
