//! Why a viewer's request is not served.

use crate::http::Status;

/// A status, and the sentence that goes with it as the body: for whoever looks why nothing plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Denied(pub(super) Status, pub(super) &'static str);

impl Denied {
    pub(super) const PATH: Self = Self(Status::NotFound, "play /APP/NAME.m3u8 or /APP/NAME.flv");
    pub(super) const STREAM: Self = Self(Status::NotFound, "no stream of this name is published");
    pub(super) const SEGMENT: Self = Self(
        Status::NotFound,
        "the stream has no such segment: those that left the playlist are kept for a while only",
    );
    pub(super) const METHOD: Self = Self(Status::MethodNotAllowed, "GET, HEAD and OPTIONS are served here");
    pub(super) const TOKEN_MISSING: Self = Self(Status::Unauthorized, "a token is needed: ?token=EXPIRES.SUBJECT.MAC");
    pub(super) const TOKEN: Self =
        Self(Status::Forbidden, "the token has expired, or is not for this stream and address");
    pub(super) const SESSION: Self = Self(
        Status::Forbidden,
        "the session has expired, or is not for this stream and address: begin with /APP/NAME.m3u8",
    );
    pub(super) const KICKED: Self = Self(Status::Forbidden, "an operator ended this session");
    pub(super) const APPLICATION: Self =
        Self(Status::Forbidden, "the application that decides who may play (webhooks.on_play) refuses");
    pub(super) const NO_ANSWER: Self = Self(
        Status::ServiceUnavailable,
        "the application that decides who may play (webhooks.on_play) gives no usable answer",
    );
    pub(super) const VIEWERS: Self =
        Self(Status::ServiceUnavailable, "the server has as many viewers as limits.viewers allows");
    pub(super) const ADDRESS: Self =
        Self(Status::TooManyRequests, "the address has as many viewers as limits.viewers_per_address allows");
    pub(super) const RATE: Self =
        Self(Status::TooManyRequests, "the connection has more requests a second than limits.request_rate allows");
    pub(super) const NO_SEGMENT: Self = Self(Status::ServiceUnavailable, "the stream has no segment yet");
}
