//! Where the running kernel has what the programs read and write.

use crate::bpf::btf::Btf;
use crate::error::HostError;

/// Offsets from the socket, and from what a hook gives besides it.
#[derive(Debug)]
pub(super) struct Fields {
    pub(super) socket: Socket,
    pub(super) rate: RateSample,
    /// Which argument of `cong_control` the rate sample is. Source: Linux 6.10, commit 57bfc7605ca5.
    pub(super) rate_argument: i16,
}

/// Of `struct sock`, `inet_connection_sock` and `tcp_sock`, each of which begins with the one before.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) priority: i16,
    pub(super) pacing_rate: i16,
    pub(super) max_pacing_rate: i16,
    pub(super) pacing_status: i16,
    /// Room for a congestion control's own state.
    pub(super) private: i16,
    pub(super) mstamp_us: i16,
    pub(super) snd_nxt: i16,
    pub(super) write_seq: i16,
    pub(super) snd_cwnd: i16,
    pub(super) snd_cwnd_clamp: i16,
    pub(super) snd_ssthresh: i16,
    pub(super) delivered: i16,
    pub(super) data_segs_out: i16,
    pub(super) min_rtt_us: i16,
}

/// Of `struct rate_sample`.
#[derive(Debug)]
pub(super) struct RateSample {
    pub(super) prior_delivered: i16,
    pub(super) delivered: i16,
    pub(super) rtt_us: i16,
    pub(super) prior_in_flight: i16,
    pub(super) is_ack_delayed: i16,
}

impl Fields {
    pub(super) fn of(btf: &Btf) -> Result<Self, HostError> {
        let sock = btf.structure("sock")?;
        let connection = btf.structure("inet_connection_sock")?;
        let tcp = btf.structure("tcp_sock")?;
        let sample = btf.structure("rate_sample")?;
        // The least of the three samples of a windowed minimum is the first. Source: lib/win_minmax.c.
        let min_rtt_us = tcp.offset("rtt_min")?
            + btf.structure("minmax")?.offset("s")?
            + btf.structure("minmax_sample")?.offset("v")?;
        let control = btf.structure("tcp_congestion_ops")?.member("cong_control")?;
        Ok(Self {
            socket: Socket {
                priority: sock.offset("sk_priority")?,
                pacing_rate: sock.offset("sk_pacing_rate")?,
                max_pacing_rate: sock.offset("sk_max_pacing_rate")?,
                pacing_status: sock.offset("sk_pacing_status")?,
                private: connection.offset("icsk_ca_priv")?,
                mstamp_us: tcp.offset("tcp_mstamp")?,
                snd_nxt: tcp.offset("snd_nxt")?,
                write_seq: tcp.offset("write_seq")?,
                snd_cwnd: tcp.offset("snd_cwnd")?,
                snd_cwnd_clamp: tcp.offset("snd_cwnd_clamp")?,
                snd_ssthresh: tcp.offset("snd_ssthresh")?,
                delivered: tcp.offset("delivered")?,
                data_segs_out: tcp.offset("data_segs_out")?,
                min_rtt_us,
            },
            rate: RateSample {
                prior_delivered: sample.offset("prior_delivered")?,
                delivered: sample.offset("delivered")?,
                rtt_us: sample.offset("rtt_us")?,
                prior_in_flight: sample.offset("prior_in_flight")?,
                is_ack_delayed: sample.offset("is_ack_delayed")?,
            },
            rate_argument: if btf.parameters(control) == Some(2) { 1 } else { 3 },
        })
    }
}
