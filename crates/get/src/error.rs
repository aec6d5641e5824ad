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
        /// What to do about it.
        hint: &'static str,
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
        /// What the next call finds.
        left: Left,
    },
    /// The object changed while it was fetched, or since.
    #[error("{url} changed while it was fetched")]
    Changed {
        /// Without secrets.
        url: String,
    },
    /// The data is not what it should be.
    #[error("the checksum is {found}, but the {by} says {expected}")]
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
    Stopped {
        /// What the next call finds.
        left: Left,
    },
}

/// What a download that failed leaves for the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// What was stored, to go on with.
    Part,
    /// What there was before: nothing has come yet.
    AsBefore,
    /// Nothing, as the server sends no ranges, or nothing identifies the object.
    Nothing,
    /// Nothing, as what went to the output cannot be taken back.
    Written,
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

    /// Why TLS cannot be agreed on with `host`. A certificate that may sign others, as `openssl req -x509` makes one, is no server's to webpki,
    /// whether it is trusted or not.
    pub(crate) fn tls(host: &str, error: &io::Error) -> Self {
        let found = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        let is_of_authority = matches!(
            found,
            Some(rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other)))
                if other.to_string() == "CaUsedAsEndEntity"
        );
        let is_of_another_name = matches!(
            found,
            Some(rustls::Error::InvalidCertificate(
                rustls::CertificateError::NotValidForName | rustls::CertificateError::NotValidForNameContext { .. }
            ))
        );
        let (why, hint) = if is_of_authority {
            (
                "the server shows the certificate of an authority (CA:TRUE), which is not one of a server".to_owned(),
                "--cacert FILE with this very certificate trusts it; else give the server one with basicConstraints=CA:FALSE",
            )
        } else if is_of_another_name {
            (error.to_string(), "use the name that the certificate has; --cacert changes nothing here")
        } else {
            (
                error.to_string(),
                "--cacert FILE trusts the authorities in it, and a server that shows a certificate of it",
            )
        };
        Self::Tls { host: host.to_owned(), why, hint }
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
            Self::Stopped { .. } => Blame::Stopped,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Url { .. } => "write it as https://host/path or http://host/path",
            Self::Proxy { .. } => "write it as http://host:port, or name the host in no_proxy",
            Self::Certificates { .. } => "give a file of PEM certificates",
            Self::Tls { hint, .. } => hint,
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
            Self::GivenUp { left, .. } | Self::Stopped { left } => match left {
                Left::Part => "run the same command again: it goes on where it stopped",
                Left::AsBefore => "run the same command again when the server answers",
                Left::Nothing => {
                    "run the same command again: it begins from the start, because the server sends no ranges or no validator"
                }
                Left::Written => {
                    "run the same command again: it begins from the start, because what was written to the output cannot be taken back; -o FILE can go on"
                }
            },
            Self::Changed { .. } => {
                "fetch it when the server no longer changes it, or store it in a file, which starts again"
            }
            Self::Checksum { .. } => "the data was removed; compare the checksum with its source, then fetch it again",
            Self::Stream { .. } => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// As webpki's error prints itself.
    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Webpki(&'static str);

    #[test]
    fn the_certificate_of_an_authority_and_another_name_are_told() {
        let other = |why| rustls::CertificateError::Other(rustls::OtherError(Arc::new(Webpki(why))));
        let of = |error| {
            GetError::tls("host", &io::Error::new(io::ErrorKind::InvalidData, rustls::Error::InvalidCertificate(error)))
        };
        let authority = of(other("CaUsedAsEndEntity"));
        assert!(authority.to_string().contains("certificate of an authority (CA:TRUE)"), "{authority}");
        assert!(authority.hint().is_some_and(|hint| hint.contains("CA:FALSE")));
        let name = of(rustls::CertificateError::NotValidForName);
        assert!(name.hint().is_some_and(|hint| hint.contains("--cacert changes nothing")), "{name}");
        for error in [other("UnsupportedCertVersion"), rustls::CertificateError::UnknownIssuer] {
            assert_eq!(
                of(error).hint(),
                Some("--cacert FILE trusts the authorities in it, and a server that shows a certificate of it")
            );
        }
    }

    #[test]
    fn only_what_is_kept_goes_on_where_it_stopped() {
        let given_up = |left| GetError::GivenUp { url: "u".to_owned(), tries: 3, why: "w".to_owned(), left };
        for (error, says) in [
            (given_up(Left::Part), "it goes on where it stopped"),
            (given_up(Left::AsBefore), "when the server answers"),
            (GetError::Stopped { left: Left::Part }, "it goes on where it stopped"),
            (GetError::Stopped { left: Left::Nothing }, "no ranges or no validator"),
            (GetError::Stopped { left: Left::Written }, "cannot be taken back"),
        ] {
            assert!(error.hint().is_some_and(|hint| hint.contains(says)), "{error:?}");
        }
    }
}
