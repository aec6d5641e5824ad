//! Why a change was not made, or not undone.

use crate::state::State;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use thalweg_host::HostError;
use thiserror::Error;

/// What refused a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The value, or that it has no effect.
    Value,
    /// This host: a privilege is missing, or a file system cannot be written.
    Host,
    /// This network namespace: the setting is one for the whole host.
    Namespace,
}

/// Why a change was not made, or not undone.
#[derive(Debug, Error)]
pub enum ApplyError {
    /// The journal's folder or a file in it.
    #[error("cannot {act} '{path}': {source}")]
    Journal {
        /// What was tried.
        act: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A journal that cannot be read.
    #[error("the journal '{path}' cannot be read: {reason}")]
    Broken {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Another process applies or undoes.
    #[error("another thalweg changes settings now")]
    InUse,
    /// An earlier application is neither confirmed nor undone.
    #[error("application {0} is neither confirmed nor undone")]
    Unfinished(String),
    /// No application is open.
    #[error("no application waits for a confirmation")]
    NoneWaits {
        /// The last one that was confirmed.
        confirmed: Option<String>,
    },
    /// There is no such application.
    #[error("there is no application '{0}'")]
    Unknown(String),
    /// It is in another state than that act takes.
    #[error("application {id} is {}", .state.name())]
    State {
        /// Which.
        id: String,
        /// Its state.
        state: State,
    },
    /// It was made in another network namespace.
    #[error("application {0} was made in another network namespace")]
    OtherNamespace(String),
    /// A socket option, which no command of the system sets.
    #[error("the socket option {0} cannot be applied: the program that has the socket sets it")]
    SocketOption(String),
    /// A setting that cannot be written.
    #[error("{0} cannot be applied: {1}")]
    Unsupported(String, &'static str),
    /// A route that is not there.
    #[error("there is no route {0}")]
    Vanished(String),
    /// Several routes between which the kernel does not distinguish when one is replaced.
    #[error("several routes to {0} differ in their next hops alone, and the kernel would replace another of them")]
    Ambiguous(String),
    /// A setting that has two values in the plan.
    #[error("the plan sets {0} twice, to different values")]
    Twice(String),
    /// A setting is not what it was when the plan was made.
    #[error("{setting} is '{now}', and the plan was made when it was '{then}'")]
    Drift {
        /// The setting.
        setting: String,
        /// What it is.
        now: String,
        /// What it was.
        then: String,
    },
    /// A setting that cannot be read.
    #[error(transparent)]
    Read(HostError),
    /// A write failed; what was written before it is undone, as the text says.
    #[error("{cause}; {undone}")]
    Failed {
        /// What failed.
        cause: String,
        /// What became of the changes before it.
        undone: String,
        /// What refused it.
        fault: Fault,
    },
    /// Nothing to do.
    #[error("the plan changes nothing")]
    Empty,
}

impl ApplyError {
    /// Whether the user can mend it; otherwise this host lacks something.
    pub const fn is_users_mistake(&self) -> bool {
        !matches!(
            self,
            Self::Journal { .. } | Self::Read(_) | Self::Failed { fault: Fault::Host | Fault::Namespace, .. }
        )
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Journal { source, .. } => match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    "free space there, or choose another folder by --state".to_owned()
                }
                ErrorKind::PermissionDenied => {
                    "run as root, or choose a folder that can be written by --state".to_owned()
                }
                _ => "choose a folder that can be written by --state".to_owned(),
            },
            Self::Broken { .. } => "look at it, and move it away if its settings are as they should be".to_owned(),
            Self::InUse => "wait until it is done; `thalweg tune log` shows what it did".to_owned(),
            Self::Unfinished(id) => format!("thalweg tune confirm {id}, or thalweg tune rollback {id}"),
            Self::NoneWaits { confirmed: Some(id) } => {
                format!("the last confirmed one is undone by thalweg tune rollback {id}")
            }
            Self::State { id, state: State::Unconfirmed } => format!("thalweg tune confirm {id} lets it stay"),
            Self::NoneWaits { .. } | Self::Unknown(_) | Self::State { .. } => "thalweg tune log lists them".to_owned(),
            Self::Twice(_) => "leave one of the two in the plan".to_owned(),
            Self::OtherNamespace(_) => "run it there: nsenter --net=/proc/PID/ns/net thalweg tune …".to_owned(),
            Self::Unsupported(..) => {
                "take it out of the plan; thalweg explain says which values a setting takes".to_owned()
            }
            Self::Ambiguous(_) => {
                "make one route of several next hops of them, or give each a metric of its own".to_owned()
            }
            Self::SocketOption(_) => "--skip-sockets leaves it out; the program sets it by setsockopt".to_owned(),
            Self::Vanished(_) => {
                "`ip route` and `ip -6 route` list those that are there: thalweg tune plan --to DESTINATION".to_owned()
            }
            Self::Drift { .. } => "make the plan again: thalweg tune plan".to_owned(),
            Self::Failed { fault: Fault::Namespace, .. } => {
                "it is one for the whole host: apply it outside of this network namespace".to_owned()
            }
            Self::Read(_) | Self::Failed { fault: Fault::Host, .. } => {
                "it needs root (CAP_NET_ADMIN) and a /proc/sys that can be written".to_owned()
            }
            Self::Failed { .. } => {
                "thalweg explain SETTING says which values it takes; nothing is left changed unless the text says so"
                    .to_owned()
            }
            Self::Empty => "nothing has to be set".to_owned(),
        }
    }
}
