//! HTTP/1.1 as far as a media server needs it, on bytes alone: requests without bodies in, heads of responses out.

mod date;
pub mod forwarded;
pub mod proxy;
mod range;
mod refusal;
mod request;
mod response;
mod target;

pub use date::{imf_fixdate, rfc3339};
pub use range::{Range, Selected, matches_any};
pub use refusal::Refusal;
pub use request::{Limits, Method, Request, parse};
pub use response::{Head, Status};
pub use target::{Query, Target, percent_decode, percent_encode};

/// Fields that let pages of any origin play.
pub const CORS: &[u8] =
    b"Access-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: Content-Length, Content-Range, Date, ETag\r\n";
