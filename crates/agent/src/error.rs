//! Why a test over the control connection failed.

use crate::message::MessageError;
use crate::token::InvalidToken;
use rustix::io::Errno;
use std::time::Duration;
use thalweg_host::HostError;
use thalweg_host::reach::ReachError;

/// Why a test failed, or a server refused a client.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A token that is too short, too long or not printable.
    #[error(transparent)]
    TokenText(#[from] InvalidToken),
    /// The server was not reached.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// The server wants a token, and this end has none.
    #[error("the server asks for a token")]
    NoToken,
    /// The client proves another token than the server's, or none.
    #[error("the token is not the server's")]
    WrongToken,
    /// The server proves another token than the client's.
    #[error("the server does not know the token")]
    ServerUnproven,
    /// The server refuses.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// As many clients as this server takes.
    #[error("{0} clients are served at the moment, and no more are taken")]
    Full(usize),
    /// Trains and topics are not served without a token beyond loopback.
    #[error("this server has no token, and serves trains and topics to its own host only")]
    Unprotected,
    /// What came is not of this protocol.
    #[error("the {peer} does not speak this protocol: {source}")]
    Protocol {
        /// Who.
        peer: &'static str,
        /// What came.
        source: MessageError,
    },
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
    /// No UDP packet of the client's reaches the server.
    #[error("no UDP packet reached the server within {} s", .0.as_secs())]
    NoDatagrams(Duration),
    /// What was asked for is out of range.
    #[error("the test cannot be: {0}")]
    Plan(MessageError),
    /// A topic's connection broke, or carried what is no message.
    #[error("the connection of topic {0} broke: {1}")]
    Topic(u32, String),
    /// A signal came.
    #[error("interrupted")]
    Stopped,
    /// This host refused.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl AgentError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::TokenText(_) => Some("openssl rand -hex 16 makes one"),
            Self::Reach(ReachError::Connect { .. }) => {
                Some("start 'thalweg load serve' there; a firewall may close the port")
            }
            Self::NoToken => Some("give the server's token with --token-file FILE, or in THALWEG_LOAD_TOKEN"),
            Self::WrongToken | Self::ServerUnproven => {
                Some("both ends need the same token, in --token-file FILE or in THALWEG_LOAD_TOKEN")
            }
            Self::Unprotected => Some("start it with --token-file FILE"),
            Self::Protocol { peer: "server", .. } => Some("is it 'thalweg load serve' that listens at this port?"),
            Self::Closed("server") => Some("iperf3's own server has no trains and topics; 'thalweg load serve' has"),
            Self::Host(error) if error.source.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error()) => {
                Some("packets of this size do not pass whole: --size 1400 does on most paths")
            }
            Self::NoDatagrams(_) => Some("a firewall may let TCP through at this port and not UDP"),
            _ => None,
        }
    }
}
