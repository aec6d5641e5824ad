//! Why a load between hosts failed.

use crate::protocol::ProtocolError;
use crate::protocol::refusal::Refusal;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thalweg_host::HostError;
use thalweg_host::reach::ReachError;

/// Why a test failed, or a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum IperfError {
    /// The server was not reached.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// A file that cannot be sent.
    #[error("cannot read '{}': {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The server runs another test.
    #[error("the server is busy with another test")]
    Busy,
    /// As many tests run as this server takes.
    #[error("{0} tests run at the moment, and no more are taken")]
    Full(usize),
    /// The client has not proved the server's token.
    #[error("the client has not proved the token")]
    NotAdmitted,
    /// A connection that begins with what no client sends.
    #[error("it speaks neither iperf3's protocol nor this program's")]
    Stranger,
    /// The server refuses.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// The parameters are out of range.
    #[error("the test cannot be: {}", .0.as_str())]
    Parameters(Refusal),
    /// The other end gave up.
    #[error("the {0} ended the test")]
    Terminated(&'static str),
    /// The other end closed the control connection.
    #[error("the {0} closed the control connection")]
    Closed(&'static str),
    /// The other end sends nothing.
    #[error("the {peer} did not answer within {} s while {during}", limit.as_secs())]
    Silent {
        /// Who.
        peer: &'static str,
        /// What was waited for.
        during: &'static str,
        /// For how long.
        limit: Duration,
    },
    /// Not iperf3's protocol.
    #[error("the {peer} does not speak iperf3's protocol: {source}")]
    Protocol {
        /// Who.
        peer: &'static str,
        /// What came.
        source: ProtocolError,
    },
    /// A stream broke.
    #[error("a stream broke: {0}")]
    Stream(String),
    /// The test took longer than it said.
    #[error("the test took longer than it said")]
    Expired,
    /// A signal came.
    #[error("interrupted")]
    Stopped,
    /// This host refused.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl IperfError {
    /// The number by which a server says this to a client, if it does.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Parameters(refusal) => Some(*refusal),
            Self::NotAdmitted => Some(Refusal::Authentication),
            Self::Protocol { .. } => Some(Refusal::Parameters),
            Self::Silent { .. } => Some(Refusal::Silence),
            Self::Expired => Some(Refusal::Expired),
            Self::Stream(_) => Some(Refusal::StreamConnect),
            Self::Host(error) if error.act.contains("TCP_CONGESTION") => Some(Refusal::Congestion),
            Self::Host(_) => Some(Refusal::Buffers),
            _ => None,
        }
    }

    /// Whether the server asks for what this client did not give.
    pub fn asks_for_authentication(&self) -> bool {
        matches!(self, Self::Refused(text) if text == Refusal::Authentication.as_str())
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Reach(ReachError::Connect { .. }) => {
                Some("start 'thalweg load serve' or 'iperf3 -s' there; a firewall may close the port")
            }
            Self::Busy => Some("iperf3 serves one client at a time; 'thalweg load serve' serves several"),
            _ if self.asks_for_authentication() => Some(
                "give the token of 'thalweg load serve' with --token-file FILE; passwords of iperf3 are not supported",
            ),
            Self::Protocol { .. } => Some("is it iperf3's server that listens at this port?"),
            _ => None,
        }
    }
}
