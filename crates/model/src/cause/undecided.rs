//! Why nothing can be said of a connection.

use super::figures::Occurrences;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why nothing can be said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum UndecidedBy {
    /// No data was seen.
    NoData,
    /// No acknowledgement of the data was seen.
    NoAcknowledgement,
    /// Much of the payload is missing in the capture, so that silence says nothing of the sender.
    MissingPackets {
        /// Payload that was acknowledged and is not in the capture.
        missing_bytes: u64,
        /// All payload that was acknowledged.
        bytes: u64,
    },
    /// The capture begins within the connection, and the congestion window held the sender: from where it grew, and what made it small, is not known.
    BeginningUnseen {
        /// Time in which it did.
        seconds: f64,
        /// The data phase.
        of_s: f64,
    },
    /// Nothing acknowledged the data.
    Unacknowledged {
        /// Packets that were sent again.
        packets_again: u64,
        /// Since the first data.
        seconds: f64,
        /// Timeouts, and the retransmissions that followed them.
        timeouts: Occurrences,
        /// Payload that was sent.
        bytes: u64,
    },
    /// Only packets of the data's receiver were captured.
    OnlyAcknowledgements {
        /// Payload that they acknowledge.
        bytes: u64,
        /// From the first acknowledgement of it to the last.
        seconds: f64,
        /// Gaps in the data that three or more acknowledgements reported; `None` if none has selective acknowledgements.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        losses: Option<Occurrences>,
        /// Bytes of these gaps.
        lost_bytes: u64,
        /// Reports of data that arrived twice (RFC 2883).
        duplicates: u64,
        /// Times the receiver closed its window.
        closed_windows: u64,
        /// The round trip, from the client's SYN to its next packet; `None` if the client's packets are the ones that lack.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        rtt_s: Option<f64>,
    },
    /// Only the receiver's socket was asked, and its program keeps up.
    ReceivingEnd {
        /// Samples in which data lay unread.
        unread_samples: u64,
        /// Samples.
        samples: u64,
    },
}
