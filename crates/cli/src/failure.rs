//! What went wrong, what to do about it, and whose turn it is.

use std::fmt;
use std::process::ExitCode;

/// Who can mend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Party {
    /// The user's mistake: exit 2.
    User,
    /// Something this host lacks: exit 3.
    Host,
    /// The user stopped it: exit 130, as shells have it.
    Stopped,
}

/// A failure of a verb.
#[derive(Debug)]
pub(crate) struct Failure {
    party: Party,
    error: anyhow::Error,
    hint: Option<String>,
}

impl Failure {
    /// The user's mistake.
    pub(crate) fn user(error: impl Into<anyhow::Error>) -> Self {
        Self { party: Party::User, error: error.into(), hint: None }
    }

    /// Something this host lacks.
    pub(crate) fn host(error: impl Into<anyhow::Error>) -> Self {
        Self { party: Party::Host, error: error.into(), hint: None }
    }

    /// The user stopped it.
    pub(crate) fn stopped() -> Self {
        Self { party: Party::Stopped, error: anyhow::anyhow!("stopped"), hint: None }
    }

    /// Adds what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The code the process ends with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.party {
            Party::User => ExitCode::from(2),
            Party::Host => ExitCode::from(3),
            Party::Stopped => ExitCode::from(130),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n\nhint: {hint}"))
    }
}
