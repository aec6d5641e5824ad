//! Why a publisher's connection or stream ends: in the log, in the API and to the publisher.

use std::fmt;
use std::io::ErrorKind;
use thalweg_host::HostError;
use thalweg_media::rtmp::SessionError;
use thalweg_media::{IngestError, Track};

/// Why a publisher's connection or stream ends.
#[derive(Debug)]
pub(super) enum End {
    /// The publisher closed the connection.
    Closed,
    /// The connection broke.
    Broken(HostError),
    /// The publisher ended the stream.
    Unpublished,
    /// It publishes nothing within the time it has.
    Late,
    /// It was refused, or its stream has ended, and it publishes nothing else.
    Idle,
    /// It sends nothing.
    Silent,
    /// It sends more than it may.
    BitRate,
    /// Its video has no keyframe for too long.
    Gop,
    /// Its media cannot be carried.
    Media(IngestError),
    /// Nothing of a track could be taken for too long: its configuration did not come, or its tags make no sense.
    Untaken(Track, Option<IngestError>),
    /// What it sends is not RTMP.
    Protocol(SessionError),
    /// Another publisher replaces it.
    TakenOver,
    /// An operator ended it.
    Kicked,
    /// The kernel gives no room to wait for it.
    NoRoom,
    /// As many connections of publishers as there may be are there already.
    Crowd,
    /// Its address has as many connections as it may have.
    AddressCrowd,
    /// The server ends.
    Drained,
}

impl End {
    /// Whether the server ends it, so that the publisher has to be informed.
    pub(super) const fn is_by_server(&self) -> bool {
        !matches!(self, Self::Closed | Self::Broken(_) | Self::Unpublished)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Broken(error) => match error.source.kind() {
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => "the publisher's connection was reset",
                ErrorKind::TimedOut => "the publisher's connection timed out",
                ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
                    "the publisher cannot be reached any more"
                }
                _ => return write!(f, "the publisher's connection broke: {error}"),
            },
            Self::Media(error) => return error.fmt(f),
            Self::Protocol(error) => return error.fmt(f),
            Self::Untaken(track, why) => {
                let what = if *track == Track::Video { "video" } else { "sound" };
                write!(f, "no {what} could be taken for longer than limits.publish_silence: ")?;
                return match why {
                    Some(error) => error.fmt(f),
                    None => write!(f, "its configuration does not come"),
                };
            }
            Self::Closed => "the publisher closed the connection",
            Self::Unpublished => "the publisher ended the stream",
            Self::Late => "no stream was published within limits.head_time",
            Self::Idle => "the publisher had no stream to publish for longer than limits.publish_silence",
            Self::Silent => "the publisher sent nothing for longer than limits.publish_silence",
            Self::BitRate => "the publisher sends more than limits.publish_bitrate",
            Self::Gop => "the video has no keyframe for longer than limits.gop or in more than limits.gop_bytes",
            Self::TakenOver => "another publisher took over the stream",
            Self::Kicked => "an operator ended the stream",
            Self::NoRoom => "the server has no room to wait for the publisher",
            Self::Crowd => "the server has as many publishers' connections as it takes",
            Self::AddressCrowd => {
                "its address has as many publishers' connections as limits.per_address and the server allow"
            }
            Self::Drained => "the server ends",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_connection_that_breaks_has_a_sentence() {
        let text = |kind: ErrorKind| {
            End::Broken(HostError { act: "receive".to_owned(), source: io::Error::from(kind) }).to_string()
        };
        assert_eq!(text(ErrorKind::ConnectionReset), "the publisher's connection was reset");
        assert!(text(ErrorKind::OutOfMemory).starts_with("the publisher's connection broke: "));
    }
}
