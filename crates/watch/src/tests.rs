//! Sockets for the tests.

use thalweg_model::{
    LifeLimit, LimitLife, LimitName, LimitNow, Limits, ReceiveSide, SendSide, SocketLimit, SocketProcess,
    SocketRetransmissions, SocketRow, SocketRtt, SocketState,
};

/// A web server's socket, behind its peer's window.
pub(crate) fn row() -> SocketRow {
    SocketRow {
        id: 7,
        process: Some(SocketProcess {
            pid: 4711,
            name: "nginx".to_owned(),
            cgroup: "/system.slice/nginx.service".to_owned(),
        }),
        uid: 33,
        local: "192.0.2.1:443".parse().expect("an end"),
        peer: "10.1.2.3:40001".parse().expect("an end"),
        state: SocketState::Established,
        congestion_control: "cubic".to_owned(),
        rtt: SocketRtt { smoothed_ms: Some(35.7), variation_ms: Some(2.0), min_ms: Some(20.0) },
        send: SendSide {
            rate_bps: 80e6,
            bytes: 123_456_789,
            delivery_rate_bps: 85e6,
            delivery_rate_app_limited: false,
            cwnd_segments: 400,
            segment_bytes: 1_448,
            in_flight_bytes: 262_144,
            peer_window_bytes: 262_144,
            zero_window: false,
            queued_bytes: 2 << 20,
            unsent_bytes: (2 << 20) - 262_144,
            queued_s: Some(0.21),
            buffer_bytes: 4 << 20,
            buffered_bytes: 3 << 20,
        },
        receive: ReceiveSide {
            rate_bps: 1e4,
            bytes: 5_000,
            window_bytes: 65_535,
            space_bytes: 14_600,
            unread_bytes: 0,
            buffered_bytes: 0,
            buffer_bytes: 131_072,
            out_of_order_segments: 3,
        },
        retransmissions: SocketRetransmissions {
            segments: 1_500,
            rate_per_s: 2.0,
            share: 0.015,
            timeouts: 1,
            spurious_segments: 4,
            reordering_seen: 2,
        },
        limit: SocketLimit {
            now: Some(LimitNow {
                cause: LimitName::ReceiveWindow,
                share: 0.93,
                limits: Limits { receive_window: 0.93, application: 0.07, ..Limits::default() },
            }),
            life: LimitLife {
                busy_s: 12.0,
                cause: Some(LifeLimit::ReceiveWindow),
                receive_window: 0.82,
                send_buffer: 0.1,
                network: 0.08,
            },
        },
    }
}
