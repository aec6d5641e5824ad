//! iperf3's control channel: states, cookies, framed JSON. Bytes in, values out; no socket and no clock.
//!
//! A client connects, sends its cookie and then does what the server's states ask for. The parameters and the results are JSON
//! documents behind a length of 32 bits in network order. Each stream of the test is a connection of its own that begins with the
//! same cookie; a UDP stream begins with a datagram that the server answers.
//!
//! Source: esnet/iperf, src/iperf_api.h and src/iperf_api.c (3.1 … 3.21).

pub mod datagram;
pub mod exchange;
pub mod inbox;
mod lenient;
pub mod parameters;
pub mod refusal;
pub mod results;

/// The port of iperf3.
pub const PORT: u16 = 5201;
/// Most streams of one direction (`MAX_STREAMS`, src/iperf.h).
pub const MAX_STREAMS: u32 = 128;
/// Longest test in seconds (`MAX_TIME`).
pub const MAX_SECONDS: u64 = 86_400;
/// Longest start that is left out, in seconds (`MAX_OMIT_TIME`).
pub const MAX_OMIT_SECONDS: u64 = 600;
/// Largest block of TCP in bytes (`MAX_BLOCKSIZE`).
pub const MAX_TCP_LENGTH: u32 = 1 << 20;
/// Largest and smallest datagram in bytes (`MAX_UDP_BLOCKSIZE`, `MIN_UDP_BLOCKSIZE`).
pub const MAX_UDP_LENGTH: u32 = 65_507;
/// Smallest datagram: times and a counter of 64 bits.
pub const MIN_UDP_LENGTH: u32 = 16;
/// Block of TCP where none is asked for (`DEFAULT_TCP_BLKSIZE`).
pub const TCP_LENGTH: u32 = 128 << 10;
/// Datagram where neither the parameters nor the connection says another (`DEFAULT_UDP_BLKSIZE`).
pub const UDP_LENGTH: u32 = 1_460;
/// Largest socket buffer in bytes (`MAX_TCP_BUFFER`).
pub const MAX_WINDOW: u64 = 512 << 20;
/// Largest segment in bytes (`MAX_MSS`).
pub const MAX_SEGMENT: u32 = 32 * 1024 - 1;
/// Most blocks sent at once (`MAX_BURST`).
pub const MAX_BURST: u32 = 1_000;

/// Bytes of a cookie, the closing zero included (`COOKIE_SIZE`).
pub const COOKIE_LEN: usize = 37;
/// The letters of a cookie.
const COOKIE_LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// What a client and its streams are known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie(pub [u8; COOKIE_LEN]);

impl Cookie {
    /// A cookie of these random bytes.
    pub fn of_random(random: [u8; COOKIE_LEN - 1]) -> Self {
        let mut cookie = [0; COOKIE_LEN];
        for (letter, byte) in cookie.iter_mut().zip(random) {
            *letter = COOKIE_LETTERS[usize::from(byte) % COOKIE_LETTERS.len()];
        }
        Self(cookie)
    }

    /// Whether it is text as iperf3 makes it: printable, and then nothing but zeroes.
    pub fn is_valid(&self) -> bool {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(COOKIE_LEN);
        (1..COOKIE_LEN).contains(&end)
            && self.0[..end].iter().all(u8::is_ascii_graphic)
            && self.0[end..].iter().all(|byte| *byte == 0)
    }
}

/// One byte of the control channel: what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The streams are there, and the clock starts.
    TestStart,
    /// Data flows.
    TestRunning,
    /// The client ends the test.
    TestEnd,
    /// The client sends its parameters.
    ParamExchange,
    /// The client opens its streams.
    CreateStreams,
    /// The server gives up.
    ServerTerminate,
    /// The client gives up.
    ClientTerminate,
    /// The client sends its results, and then the server.
    ExchangeResults,
    /// The client shows the results.
    DisplayResults,
    /// The client has closed.
    IperfDone,
    /// The server is busy.
    AccessDenied,
    /// The server refuses; two numbers follow.
    ServerError,
}

impl State {
    /// Every state with its byte.
    pub const ALL: [(Self, i8); 12] = [
        (Self::TestStart, 1),
        (Self::TestRunning, 2),
        (Self::TestEnd, 4),
        (Self::ParamExchange, 9),
        (Self::CreateStreams, 10),
        (Self::ServerTerminate, 11),
        (Self::ClientTerminate, 12),
        (Self::ExchangeResults, 13),
        (Self::DisplayResults, 14),
        (Self::IperfDone, 16),
        (Self::AccessDenied, -1),
        (Self::ServerError, -2),
    ];

    /// The state of this byte.
    pub fn of_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, number)| *number == byte as i8).map(|(state, _)| state)
    }

    /// Its byte.
    pub fn byte(self) -> u8 {
        let found = Self::ALL.into_iter().find(|(state, _)| *state == self);
        found.map_or(0, |(_, number)| number as u8)
    }
}

/// What the other end sent and iperf3 does not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A byte that is no state.
    #[error("the byte {0} is no state of iperf3's protocol")]
    State(u8),
    /// A state at the wrong time.
    #[error("the state {0:?} was not expected")]
    Unexpected(State),
    /// A document that is empty or too long.
    #[error("a JSON document of {0} bytes, where at most {1} are taken")]
    Length(u64, usize),
    /// Not JSON, or no object.
    #[error("the {0} are no JSON object")]
    Json(&'static str),
    /// A value that is missing or out of its range.
    #[error("'{0}' is missing or out of range")]
    Value(&'static str),
}
