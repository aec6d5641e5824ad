//! Why a change was not made, or not undone.

use std::io;
use std::path::PathBuf;
use thalweg_host::HostError;
use thiserror::Error;

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
    /// There is no such application.
    #[error("there is no application '{0}'")]
    Unknown(String),
    /// It is in another state than that act takes.
    #[error("application {id} is {state}")]
    State {
        /// Which.
        id: String,
        /// Its state.
        state: &'static str,
    },
    /// It was made in another network namespace.
    #[error("application {0} was made in another network namespace")]
    OtherNamespace(String),
    /// A setting that no command of the system sets.
    #[error("{0} cannot be applied: {1}")]
    Unsupported(String, &'static str),
    /// A route that is not there.
    #[error("there is no route {0}")]
    Vanished(String),
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
        /// This host does not allow it, whatever is asked.
        forbidden: bool,
    },
    /// Nothing to do.
    #[error("the plan changes nothing")]
    Empty,
}

impl ApplyError {
    /// Whether the user can mend it; otherwise this host lacks something.
    pub const fn is_users_mistake(&self) -> bool {
        !matches!(self, Self::Journal { .. } | Self::Read(_) | Self::Failed { forbidden: true, .. })
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Journal { .. } => {
                "the journal needs a folder that root can write: run as root, or choose one by --state".to_owned()
            }
            Self::Broken { .. } => "look at it, and move it away if its settings are as they should be".to_owned(),
            Self::InUse => "wait until it is done; `thalweg tune log` shows what it did".to_owned(),
            Self::Unfinished(id) => format!("thalweg tune confirm {id}, or thalweg tune rollback {id}"),
            Self::Unknown(_) | Self::State { .. } => "thalweg tune log lists them".to_owned(),
            Self::OtherNamespace(_) => "run it there: nsenter --net=/proc/PID/ns/net thalweg tune …".to_owned(),
            Self::Unsupported(..) => "take it out of the plan, and set it in the program".to_owned(),
            Self::Vanished(_) | Self::Drift { .. } => "make the plan again: thalweg tune plan".to_owned(),
            Self::Read(_) | Self::Failed { forbidden: true, .. } => {
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
