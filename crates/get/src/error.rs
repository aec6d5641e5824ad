//! Why a download failed, who can mend it, and what to do.

use std::io;
use std::path::{Path, PathBuf};

/// Why a download failed. No text holds a password or a query, which may be a secret.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    /// The URL cannot be fetched.
    #[error("cannot fetch {url}: {why}")]
    Url {
        /// Without secrets.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// A setting of the environment is wrong.
    #[error("the proxy that {name} names cannot be used: {why}")]
    Proxy {
        /// The variable.
        name: &'static str,
        /// What is wrong.
        why: String,
    },
    /// Certificates that cannot be read.
    #[error("cannot read certificates from {}: {why}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// TLS cannot be agreed on.
    #[error("cannot speak TLS with {host}: {why}")]
    Tls {
        /// The server.
        host: String,
        /// What is wrong.
        why: String,
    },
    /// The server cannot be reached.
    #[error("{why}")]
    Unreachable {
        /// What failed.
        why: String,
    },
    /// The file is there.
    #[error("{} is there already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another download writes the file.
    #[error("another download writes {}", path.display())]
    Busy {
        /// The partial file.
        path: PathBuf,
    },
    /// The disk refuses.
    #[error("cannot {act} {}: {source}", path.display())]
    Disk {
        /// What was tried.
        act: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Standard output, or what stands for it, refuses.
    #[error("cannot write to the output: {source}")]
    Stream {
        /// The system's reason.
        source: io::Error,
    },
    /// The server says no.
    #[error("{url} answers with status {status}")]
    Refused {
        /// Without secrets.
        url: String,
        /// The status.
        status: u16,
    },
    /// The redirects do not end, or lead where they should not.
    #[error("cannot follow the redirects of {url}: {why}")]
    Redirect {
        /// Without secrets.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// It was tried often enough.
    #[error("cannot fetch {url} after {tries} tries: {why}")]
    GivenUp {
        /// Without secrets.
        url: String,
        /// How often in a row.
        tries: u32,
        /// What went wrong last.
        why: String,
    },
    /// The object changed while it was fetched, or since.
    #[error("{url} changed while it was fetched")]
    Changed {
        /// Without secrets.
        url: String,
    },
    /// The data is not what it should be.
    #[error("the checksum is {found}, and {expected} is what it should be by {by}")]
    Checksum {
        /// Of the data.
        found: String,
        /// As given.
        expected: String,
        /// Who gave it.
        by: &'static str,
    },
    /// The user stopped it.
    #[error("stopped")]
    Stopped,
}

/// Who can mend a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The user: something given is wrong.
    User,
    /// The network, the server or this host.
    Host,
    /// The data itself: a problem was found.
    Data,
    /// Nobody: the user stopped it.
    Stopped,
}

impl GetError {
    /// An error of the disk, to be made of the system's reason.
    pub(crate) fn disk<'a>(act: &'static str, path: &'a Path) -> impl Fn(io::Error) -> Self + use<'a> {
        move |source| Self::Disk { act, path: path.to_owned(), source }
    }

    /// Who can mend it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Url { .. }
            | Self::Proxy { .. }
            | Self::Certificates { .. }
            | Self::Exists { .. }
            | Self::Busy { .. }
            | Self::Redirect { .. } => Blame::User,
            Self::Refused { status, .. } if *status < 500 => Blame::User,
            Self::Disk { .. }
            | Self::Stream { .. }
            | Self::Refused { .. }
            | Self::GivenUp { .. }
            | Self::Tls { .. }
            | Self::Unreachable { .. } => Blame::Host,
            Self::Changed { .. } | Self::Checksum { .. } => Blame::Data,
            Self::Stopped => Blame::Stopped,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Url { .. } => "write it as https://host/path or http://host/path",
            Self::Proxy { .. } => "write it as http://host:port, or name the host in no_proxy",
            Self::Certificates { .. } => "give a file of PEM certificates",
            Self::Tls { .. } => "--cacert FILE trusts the authorities in it",
            Self::Unreachable { .. } => {
                "check the URL, and http_proxy, https_proxy and no_proxy where a proxy is needed"
            }
            Self::Exists { .. } => "--force replaces it, -o FILE stores under another name",
            Self::Busy { .. } => "wait for it, or store under another name with -o FILE",
            Self::Disk { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "make room, then run the same command: it goes on where it stopped"
            }
            Self::Disk { .. } => "choose another place with -o FILE",
            Self::Refused { status: 401 | 403, .. } => {
                "the server wants credentials: give them in the URL or as --header 'Authorization: …'"
            }
            Self::Refused { status: 407, .. } => {
                "the proxy wants credentials: http_proxy=http://user:password@host:port"
            }
            Self::Refused { .. } => "check the URL",
            Self::Redirect { .. } => "give the URL that they lead to",
            Self::GivenUp { .. } => "run the same command again: it goes on where it stopped",
            Self::Changed { .. } => {
                "fetch it when the server no longer changes it, or store it in a file, which starts again"
            }
            Self::Checksum { .. } => "the data was removed; compare the checksum with its source, then fetch it again",
            Self::Stream { .. } | Self::Stopped => return None,
        })
    }
}
