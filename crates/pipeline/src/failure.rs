//! A failure, who can mend it, and what to do about it.

use std::error::Error;
use std::fmt;

/// Who can mend a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Party {
    /// The user: something given is wrong.
    User,
    /// This host lacks something, or refused it.
    Host,
    /// Nobody: the user stopped it.
    Stopped,
}

/// A failure of one of the main flows.
#[derive(Debug)]
pub struct Failure {
    party: Party,
    error: Box<dyn Error + Send + Sync>,
    hint: Option<String>,
}

impl Failure {
    /// Something given is wrong.
    pub fn user(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { party: Party::User, error: error.into(), hint: None }
    }

    /// This host lacks something, or refused it.
    pub fn host(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { party: Party::Host, error: error.into(), hint: None }
    }

    /// The user stopped it.
    pub fn stopped() -> Self {
        Self { party: Party::Stopped, error: "stopped".into(), hint: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What failed and why, without the hint.
    #[must_use]
    pub fn cause(&self) -> String {
        self.error.to_string()
    }

    /// Who can mend it.
    pub const fn party(&self) -> Party {
        self.party
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n\nhint: {hint}"))
    }
}

impl From<thalweg_lab::kernel::KernelError> for Failure {
    fn from(error: thalweg_lab::kernel::KernelError) -> Self {
        if matches!(error, thalweg_lab::kernel::KernelError::Interrupted) {
            Self::stopped()
        } else if error.is_users_mistake() {
            Self::user(error)
        } else {
            Self::host(error)
        }
    }
}

impl From<thalweg_lab::LabError> for Failure {
    fn from(error: thalweg_lab::LabError) -> Self {
        if error.is_stop() { Self::stopped() } else { Self::host(error) }
    }
}
