//! A refresh of `thalweg watch`.

use thalweg_model::*;

/// Two sockets, of which nothing is known about one.
pub fn report() -> WatchReport {
    let idle = SocketRow {
        process: None,
        rtt: SocketRtt::default(),
        limit: SocketLimit::default(),
        send: SendSide::default(),
        ..row()
    };
    WatchReport {
        schema: "thalweg.watch/1".to_owned(),
        at_s: 1.75e9,
        interval_s: 1.0,
        sockets_total: 2,
        backlog: Backlog {
            queued_bytes: 2 << 20,
            growth_bytes_per_s: -1.5,
            tcp_memory: Some(TcpMemoryUse { used_bytes: 4_096, pressure_bytes: 1 << 30, limit_bytes: 2 << 30 }),
            growing: vec![GrowingProgram {
                pid: 4711,
                name: "nginx".to_owned(),
                queued_bytes: 2 << 20,
                resident_bytes: 1 << 30,
                growth_bytes_per_s: 1e7,
                available_bytes: 1 << 28,
                full_in_s: 26.8,
            }],
            warnings: vec!["nginx grows".to_owned()],
        },
        notes: vec!["one is hidden".to_owned()],
        sockets: vec![row(), idle],
        closed: Some(ClosedSockets {
            total: 3,
            missed: 1,
            sockets: vec![SocketRow { state: SocketState::Closed, uid: u32::MAX, ..row() }],
        }),
    }
}

/// An interface's bursts, with and without a port.
pub fn bursts() -> BurstsReport {
    let bins = BurstBins {
        width_us: 100,
        count: 10_000,
        busy: 100,
        p50_bps: 0.0,
        p90_bps: 0.0,
        p99_bps: 1e9,
        p999_bps: 2e9,
        max_bps: 1e10,
        max_at_s: 1.75e9,
    };
    let port = PortBursts {
        rate_bps: 1e9,
        buffer_bytes: 131_072,
        queue_max_bytes: 131_072,
        overflows: 2,
        excess_bytes: 5_000,
    };
    let sent = BurstDirection {
        packets: 10,
        bytes: 15_000,
        packet_max_bytes: 1_500,
        bins: vec![bins],
        port: Some(port),
        overflows: vec![PortOverflow { at_s: 1.75e9, duration_ms: 0.4, excess_bytes: 2_500 }],
    };
    let side = BurstFlowSide { packets: 10, bytes: 15_000, overflow_bytes: 3_000, bins: vec![bins] };
    let classes = FlowResentClasses { syn: 0, fast: 2, timeout: 1, probe: 0, after_overflow: 2 };
    let ends = BurstFlowEnds {
        protocol: FlowProtocol::Tcp,
        local: "192.0.2.1:443".parse().expect("an end"),
        peer: "[2001:db8::1]:40001".parse().expect("an end"),
    };
    let flow = BurstFlow {
        ends: Some(ends),
        sent: side.clone(),
        received: side,
        resent: Some(FlowResent { segments: 3, classes: Some(classes) }),
    };
    let again =
        ResentSegment { at_s: 1.75e9, flow: 0, kind: ResentKind::Fast, segments: 2, overflow_at_s: Some(1.75e9) };
    BurstsReport {
        schema: "thalweg.bursts/1".to_owned(),
        interface: "eth0".to_owned(),
        at_s: 1.75e9,
        interval_s: 1.0,
        source: BurstSource {
            kind: BurstSourceKind::AfPacket,
            reason: Some("BPF needs CAP_BPF and CAP_NET_ADMIN".to_owned()),
            step_us: 0,
        },
        missed_packets: 0,
        received: BurstDirection { port: None, overflows: Vec::new(), ..sent.clone() },
        sent,
        flows: vec![flow.clone(), BurstFlow { ends: None, resent: None, ..flow }],
        resent: Some(BurstResent {
            source: ResentSource::SockDiag,
            reason: Some("BPF is refused".to_owned()),
            segments: vec![again],
            missed: 0,
        }),
    }
}

/// A web server's socket, behind its peer's window.
fn row() -> SocketRow {
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
