//! Why a request is not served.

use super::response::Status;

/// Why a request is not served. The connection ends after it, since what follows may not be a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It is not HTTP.
    Malformed,
    /// It has no `Host` field, or several.
    Host,
    /// A line ends without a carriage return.
    LineEnd,
    /// The path is none of ours.
    BadTarget,
    /// The request line alone is past the limit.
    TargetTooLong,
    /// The head is past the limits.
    HeadTooLarge,
    /// It announces a body, and nothing here takes one.
    Body,
    /// Its method is one with a body, and nothing here takes one.
    Method,
    /// A transfer coding.
    TransferCoding,
    /// Another major version.
    Version,
}

impl Refusal {
    /// What the response says.
    pub const fn status(self) -> Status {
        match self {
            Self::Malformed | Self::Host | Self::LineEnd | Self::BadTarget => Status::BadRequest,
            Self::TargetTooLong => Status::UriTooLong,
            Self::HeadTooLarge => Status::HeaderFieldsTooLarge,
            Self::Body => Status::ContentTooLarge,
            Self::Method => Status::MethodNotAllowed,
            Self::TransferCoding => Status::NotImplemented,
            Self::Version => Status::VersionNotSupported,
        }
    }

    /// The same in words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Malformed => "this is not a request of HTTP/1",
            Self::Host => "a request of HTTP/1.1 has one Host field, and of HTTP/1.0 no more",
            Self::LineEnd => "each line of a request's head ends with a carriage return and a line feed",
            Self::BadTarget => {
                "the path has a part that no name here can be: empty, '.', '..', or with a slash or control character in it"
            }
            Self::TargetTooLong => "the request line is longer than limits.head",
            Self::HeadTooLarge => "the head is longer than limits.head, or has more than 64 fields",
            Self::Body => "a request here has no body",
            Self::Method => "no request with a body is served here",
            Self::TransferCoding => "transfer codings of requests are not served",
            Self::Version => "another version of HTTP than 1.0 and 1.1 is not served",
        }
    }
}
