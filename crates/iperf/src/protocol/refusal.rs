//! The numbers by which an iperf3 server says why it refuses.
//!
//! Source: esnet/iperf, src/iperf_api.h, `IE…`.

/// Why a server refuses: those reasons that this server has, and those of others that a user can do something about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// `IEDURATION`.
    Duration,
    /// `IENUMSTREAMS`.
    Streams,
    /// `IEBLOCKSIZE`.
    Length,
    /// `IEBUFSIZE`.
    Window,
    /// `IEMSS`.
    Segment,
    /// `IEOMIT`.
    Omit,
    /// `IEBURST`.
    Burst,
    /// `IEUDPBLOCKSIZE`.
    DatagramLength,
    /// `IEBADTOS`.
    Service,
    /// `IETOTALRATE`.
    TotalRate,
    /// `IEMAXSERVERTESTDURATIONEXCEEDED`.
    ServerDuration,
    /// `IERECVPARAMS`.
    Parameters,
    /// `IEPROTOCOL`: SCTP at a server without it.
    Protocol,
    /// `IESETCONGESTION`.
    Congestion,
    /// `IESETBUF2`: the kernel granted less than was asked for.
    Buffers,
    /// `IEAUTHTEST`.
    Authentication,
    /// `IENOMSG`.
    Silence,
    /// `IESERVERTESTDURATIONEXPIRED`.
    Expired,
    /// `IESTREAMCONNECT`.
    StreamConnect,
}

impl Refusal {
    /// Every one with its number and its sentence.
    const ALL: [(Self, i32, &'static str); 19] = [
        (Self::Duration, 5, "the test is too long"),
        (Self::Streams, 6, "there are too many streams"),
        (Self::Length, 7, "the block is too large"),
        (Self::Window, 8, "the socket buffer is too large"),
        (Self::Segment, 10, "the segment is too large"),
        (Self::Omit, 12, "the start that is left out is too long"),
        (Self::Burst, 15, "the burst is too large"),
        (Self::DatagramLength, 20, "the datagram's length is out of range"),
        (Self::Service, 21, "the type of service is out of range"),
        (Self::TotalRate, 27, "the rate is above the server's limit"),
        (Self::ServerDuration, 37, "the test is longer than the server allows"),
        (Self::Parameters, 114, "the parameters could not be read"),
        (Self::Protocol, 131, "the protocol is not available"),
        (Self::Congestion, 134, "the congestion control is not available"),
        (Self::Buffers, 141, "the kernel grants less than the socket buffer that was asked for"),
        (Self::Authentication, 142, "it asks for authentication"),
        (Self::Silence, 144, "nothing was received for too long"),
        (Self::Expired, 160, "the test took longer than it said"),
        (Self::StreamConnect, 203, "the streams did not come"),
    ];

    fn entry(self) -> (i32, &'static str) {
        let found = Self::ALL.into_iter().find(|(one, ..)| *one == self);
        found.map_or((0, ""), |(_, code, text)| (code, text))
    }

    /// Its number.
    pub fn code(self) -> i32 {
        self.entry().0
    }

    /// What it means, as a clause.
    pub fn as_str(self) -> &'static str {
        self.entry().1
    }

    /// What a server's number means, as a clause.
    pub fn sentence(code: i32) -> String {
        let found = Self::ALL.into_iter().find(|(_, number, _)| *number == code);
        found.map_or_else(|| format!("iperf3's error {code}"), |(_, _, text)| text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_number_of_its_own() {
        for (refusal, code, text) in Refusal::ALL {
            assert_eq!((refusal.code(), refusal.as_str(), Refusal::sentence(code).as_str()), (code, text, text));
            assert_eq!(Refusal::ALL.iter().filter(|other| other.1 == code).count(), 1);
        }
        assert_eq!(Refusal::sentence(999), "iperf3's error 999");
    }
}
