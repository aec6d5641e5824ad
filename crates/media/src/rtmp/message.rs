//! RTMP messages: what chunks carry.

/// A whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Milliseconds on the sender's clock; it wraps.
    pub timestamp_ms: u32,
    /// What the payload is.
    pub kind: MessageKind,
    /// 0 for the connection, else the number `createStream` was answered with.
    pub stream_id: u32,
    /// The message's bytes.
    pub payload: Vec<u8>,
}

/// Message types (RTMP §5.4, §7.1), by their number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageKind {
    /// Sets the sender's chunk size in bytes, from here on.
    SetChunkSize,
    /// What came of a message in a chunk stream is dropped.
    Abort,
    /// So many bytes have come.
    Acknowledgement,
    /// Pings and stream events.
    UserControl,
    /// Asks for an acknowledgement each time this many bytes arrived.
    WindowAcknowledgementSize,
    /// As above, for the other side.
    SetPeerBandwidth,
    /// An FLV audio tag's body.
    Audio,
    /// An FLV video tag's body.
    Video,
    /// A data message, behind a byte that says AMF 0.
    DataAmf3,
    /// A command, behind a byte that says AMF 0.
    CommandAmf3,
    /// A data message: `onMetaData`.
    Data,
    /// A command.
    Command,
    /// FLV tags in a row.
    Aggregate,
    /// Shared objects, and what nobody defined.
    Other(u8),
}

const KINDS: [(u8, MessageKind); 13] = [
    (1, MessageKind::SetChunkSize),
    (2, MessageKind::Abort),
    (3, MessageKind::Acknowledgement),
    (4, MessageKind::UserControl),
    (5, MessageKind::WindowAcknowledgementSize),
    (6, MessageKind::SetPeerBandwidth),
    (8, MessageKind::Audio),
    (9, MessageKind::Video),
    (15, MessageKind::DataAmf3),
    (17, MessageKind::CommandAmf3),
    (18, MessageKind::Data),
    (20, MessageKind::Command),
    (22, MessageKind::Aggregate),
];

impl From<u8> for MessageKind {
    fn from(number: u8) -> Self {
        KINDS.iter().find(|(n, _)| *n == number).map_or(Self::Other(number), |(_, kind)| *kind)
    }
}

impl From<MessageKind> for u8 {
    fn from(kind: MessageKind) -> Self {
        if let MessageKind::Other(number) = kind {
            return number;
        }
        KINDS.iter().find(|(_, k)| *k == kind).map_or(0, |(number, _)| *number)
    }
}
