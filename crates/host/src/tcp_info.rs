//! `struct tcp_info`, decoded by its kernel names.
//!
//! Source: include/uapi/linux/tcp.h of Linux 6.12. The kernel only ever appends to it, so a shorter answer from an older
//! kernel simply lacks the later fields.

use crate::error::{HostError, check};
use std::os::fd::{AsFd, AsRawFd};

/// Bytes of the struct as of Linux 6.12.
pub const LEN: usize = 248;

#[derive(Debug, Clone, Copy)]
enum Width {
    One,
    LowNibble,
    HighNibble,
    Two,
    Four,
    Eight,
}
use Width::{Eight, Four, HighNibble, LowNibble, One, Two};

/// The fields in order: kernel name, offset, width.
const FIELDS: [(&str, usize, Width); 60] = [
    ("tcpi_state", 0, One),
    ("tcpi_ca_state", 1, One),
    ("tcpi_retransmits", 2, One),
    ("tcpi_probes", 3, One),
    ("tcpi_backoff", 4, One),
    ("tcpi_options", 5, One),
    ("tcpi_snd_wscale", 6, LowNibble),
    ("tcpi_rcv_wscale", 6, HighNibble),
    ("tcpi_delivery_rate_app_limited", 7, One),
    ("tcpi_rto", 8, Four),
    ("tcpi_ato", 12, Four),
    ("tcpi_snd_mss", 16, Four),
    ("tcpi_rcv_mss", 20, Four),
    ("tcpi_unacked", 24, Four),
    ("tcpi_sacked", 28, Four),
    ("tcpi_lost", 32, Four),
    ("tcpi_retrans", 36, Four),
    ("tcpi_fackets", 40, Four),
    ("tcpi_last_data_sent", 44, Four),
    ("tcpi_last_ack_sent", 48, Four),
    ("tcpi_last_data_recv", 52, Four),
    ("tcpi_last_ack_recv", 56, Four),
    ("tcpi_pmtu", 60, Four),
    ("tcpi_rcv_ssthresh", 64, Four),
    ("tcpi_rtt", 68, Four),
    ("tcpi_rttvar", 72, Four),
    ("tcpi_snd_ssthresh", 76, Four),
    ("tcpi_snd_cwnd", 80, Four),
    ("tcpi_advmss", 84, Four),
    ("tcpi_reordering", 88, Four),
    ("tcpi_rcv_rtt", 92, Four),
    ("tcpi_rcv_space", 96, Four),
    ("tcpi_total_retrans", 100, Four),
    ("tcpi_pacing_rate", 104, Eight),
    ("tcpi_max_pacing_rate", 112, Eight),
    ("tcpi_bytes_acked", 120, Eight),
    ("tcpi_bytes_received", 128, Eight),
    ("tcpi_segs_out", 136, Four),
    ("tcpi_segs_in", 140, Four),
    ("tcpi_notsent_bytes", 144, Four),
    ("tcpi_min_rtt", 148, Four),
    ("tcpi_data_segs_in", 152, Four),
    ("tcpi_data_segs_out", 156, Four),
    ("tcpi_delivery_rate", 160, Eight),
    ("tcpi_busy_time", 168, Eight),
    ("tcpi_rwnd_limited", 176, Eight),
    ("tcpi_sndbuf_limited", 184, Eight),
    ("tcpi_delivered", 192, Four),
    ("tcpi_delivered_ce", 196, Four),
    ("tcpi_bytes_sent", 200, Eight),
    ("tcpi_bytes_retrans", 208, Eight),
    ("tcpi_dsack_dups", 216, Four),
    ("tcpi_reord_seen", 220, Four),
    ("tcpi_rcv_ooopack", 224, Four),
    ("tcpi_snd_wnd", 228, Four),
    ("tcpi_rcv_wnd", 232, Four),
    ("tcpi_rehash", 236, Four),
    ("tcpi_total_rto", 240, Two),
    ("tcpi_total_rto_recoveries", 242, Two),
    ("tcpi_total_rto_time", 244, Four),
];

/// What the kernel says of one connection.
#[derive(Debug, Clone, Copy)]
pub struct TcpInfo {
    bytes: [u8; LEN],
    len: usize,
}

impl TcpInfo {
    /// Asks the kernel.
    ///
    /// # Errors
    /// When the descriptor is no TCP socket.
    pub fn of(socket: impl AsFd) -> Result<Self, HostError> {
        let mut bytes = [0u8; LEN];
        let mut len = LEN as libc::socklen_t;
        // SAFETY: the buffer outlives the call and its length is given.
        let result = unsafe {
            let fd = socket.as_fd().as_raw_fd();
            libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, bytes.as_mut_ptr().cast(), &mut len)
        };
        check(result, || "read TCP_INFO".to_owned())?;
        Ok(Self { bytes, len: len as usize })
    }

    /// What the kernel sent by another way; what is past the struct of Linux 6.12 is left out.
    pub(crate) fn from_bytes(from: &[u8]) -> Self {
        let len = from.len().min(LEN);
        let mut bytes = [0u8; LEN];
        bytes[..len].copy_from_slice(&from[..len]);
        Self { bytes, len }
    }

    /// The fields this kernel has, by name, in the struct's order.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        FIELDS.iter().filter_map(|&(name, at, width)| self.read(at, width).map(|value| (name, value)))
    }

    /// The field of that name; zero where this kernel does not have it.
    pub fn get(&self, name: &str) -> u64 {
        FIELDS.iter().find(|field| field.0 == name).and_then(|&(_, at, width)| self.read(at, width)).unwrap_or(0)
    }

    fn read(&self, at: usize, width: Width) -> Option<u64> {
        let bytes = match width {
            One | LowNibble | HighNibble => 1,
            Two => 2,
            Four => 4,
            Eight => 8,
        };
        if at + bytes > self.len {
            return None;
        }
        let mut word = [0u8; 8];
        word[..bytes].copy_from_slice(&self.bytes[at..at + bytes]);
        let value = u64::from_le_bytes(word);
        Some(match width {
            LowNibble => value & 15,
            HighNibble => value >> 4,
            _ => value,
        })
    }
}
