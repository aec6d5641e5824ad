//! Why text is no playlist.

/// Why text is no playlist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// §4.3.1.1: the first line is `#EXTM3U`.
    #[error("the first line is not #EXTM3U")]
    Begin,
    /// A tag's value is none.
    #[error("line {line}: the value of {tag} makes no sense")]
    Value {
        /// Counted from 1.
        line: usize,
        /// The tag's name.
        tag: &'static str,
    },
    /// §4.3.2.1: a segment has a duration.
    #[error("line {0}: a segment without #EXTINF")]
    NoDuration(usize),
    /// §4.3.3.1: a media playlist has a target duration.
    #[error("there is no #EXT-X-TARGETDURATION")]
    NoTarget,
    /// A tag that there is one of at most comes again, or behind the first segment.
    #[error("line {line}: {tag} is twice or too late")]
    Place {
        /// Counted from 1.
        line: usize,
        /// The tag's name.
        tag: &'static str,
    },
    /// §4.1: one kind or the other.
    #[error("line {0}: tags of media and of multivariant playlists are mixed")]
    Mixed(usize),
    /// RFC 8216bis §4.3: a variable is defined before it is used.
    #[error("line {line}: the variable '{name}' is used, and no #EXT-X-DEFINE before it defines it")]
    Undefined {
        /// Counted from 1.
        line: usize,
        /// The variable's name.
        name: String,
    },
    /// RFC 8216bis §4.4.2.3: a name is defined once.
    #[error("line {line}: the variable '{name}' is defined twice")]
    DefinedTwice {
        /// Counted from 1.
        line: usize,
        /// The variable's name.
        name: String,
    },
    /// RFC 8216bis §4.4.2.3: what is imported is there.
    #[error("line {line}: #EXT-X-DEFINE takes the variable '{name}' from {from}, where it is not")]
    NoSource {
        /// Counted from 1.
        line: usize,
        /// The variable's name.
        name: String,
        /// Where it should be.
        from: &'static str,
    },
    /// References to variables would make the playlist too long.
    #[error("line {line}: the values of variables make the playlist longer by more than 1 MiB")]
    Substituted {
        /// Counted from 1.
        line: usize,
    },
}
