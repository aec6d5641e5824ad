//! Why a request is not served.

use super::response::Status;
use thiserror::Error;

/// Why a request is not served. The connection ends after it, since what follows may not be a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    /// It is not HTTP.
    #[error("this is not a request of HTTP/1")]
    Malformed,
    /// The path is none of ours.
    #[error("the path holds what no name here does")]
    BadTarget,
    /// The request line alone is past the limit.
    #[error("the request line is too long")]
    TargetTooLong,
    /// The head is past the limits.
    #[error("the head is too long, or has too many fields")]
    HeadTooLarge,
    /// It announces a body, and nothing here takes one.
    #[error("a request here has no body")]
    Body,
    /// A transfer coding.
    #[error("transfer codings of requests are not served")]
    TransferCoding,
    /// Another major version.
    #[error("this is another version of HTTP")]
    Version,
}

impl Refusal {
    /// What the response says.
    pub const fn status(self) -> Status {
        match self {
            Self::Malformed | Self::BadTarget => Status::BadRequest,
            Self::TargetTooLong => Status::UriTooLong,
            Self::HeadTooLarge => Status::HeaderFieldsTooLarge,
            Self::Body => Status::ContentTooLarge,
            Self::TransferCoding => Status::NotImplemented,
            Self::Version => Status::VersionNotSupported,
        }
    }
}
