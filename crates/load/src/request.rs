//! What a player requests next.

use std::time::Duration;
use url::Url;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// A playlist, or a stream.
    Playlist,
    /// An initialization section, or the range of a resource that holds it.
    Map(Option<(u64, u64)>),
    /// A segment of this duration, or the range of a resource that holds it.
    Segment(Duration, Option<(u64, u64)>),
}

impl What {
    /// The first byte that is asked for, and how many; `None` is the whole resource.
    pub(crate) const fn range(self) -> Option<(u64, u64)> {
        match self {
            Self::Playlist => None,
            Self::Map(range) | Self::Segment(_, range) => range,
        }
    }

    /// The status of an answer that holds what was asked for.
    pub(crate) const fn status(self) -> u16 {
        if self.range().is_some() { 206 } else { 200 }
    }
}

/// What a player does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// Ask for something when it is due.
    Ask {
        url: Url,
        what: What,
        /// After the player's start.
        due: Duration,
    },
    /// Nothing more.
    Over,
}
