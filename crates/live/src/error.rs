//! Why a path cannot be, and what to do about it.

use std::io;
use thalweg_host::{HostError, tun, user_namespace};
use thalweg_path::Unsupported;
use thiserror::Error;

/// Why a path cannot be.
#[derive(Debug, Error)]
pub enum LiveError {
    /// The path asks for what is not emulated.
    #[error("{0}")]
    Unsupported(#[from] Unsupported),
    /// This user may not make namespaces.
    #[error("{error}\n\nhint: {hint}")]
    NoNamespaces {
        /// What the kernel refused.
        error: HostError,
        /// Which switch it is.
        hint: &'static str,
    },
    /// This user may not make TUN devices.
    #[error("{error}\n\nhint: {hint}")]
    NoTun {
        /// What the kernel refused.
        error: HostError,
        /// How it is opened.
        hint: &'static str,
    },
    /// Something else that this host refused.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// Why there is no TUN device, and how it is opened.
pub fn no_tun(error: HostError) -> LiveError {
    let hint = match error.source.kind() {
        io::ErrorKind::NotFound => {
            "the device is missing: sudo modprobe tun; a container needs --device /dev/net/tun. The lab needs none of this: thalweg lab run"
        }
        io::ErrorKind::PermissionDenied if !tun::is_open_to_this_user() => {
            "the device is closed to this user: sudo chmod 0666 /dev/net/tun, as most distributions have it. The lab needs none of this: thalweg lab run"
        }
        io::ErrorKind::PermissionDenied => user_namespace::why_refused(),
        _ => "is the module there? sudo modprobe tun. The lab needs none of this: thalweg lab run",
    };
    LiveError::NoTun { error, hint }
}
