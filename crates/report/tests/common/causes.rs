//! A cause of each kind, with all of its figures.

use thalweg_model::*;

fn sights() -> Sights {
    Sights { packets: vec![40, 80], time_s: Some(1.25) }
}

fn occurrences(count: u64) -> Occurrences {
    Occurrences { count, sights: sights() }
}

fn repairs() -> Repairs {
    Repairs { packets_again: occurrences(12), episodes: Some(3) }
}

fn losses() -> Losses {
    Losses {
        part: 0.0125,
        repairs: repairs(),
        queued_episodes: Some(1),
        judged_episodes: Some(3),
        rtt_before_s: Some(0.041),
        rtt_min_s: 0.0357,
    }
}

pub fn receive_window() -> Cause {
    Cause::ReceiveWindow(FullWindow {
        window_bytes: 2_516_582.0,
        rtt_min_s: 0.0357,
        largest_bytes: 2_516_582,
        largest: Some(Sights { packets: vec![40], time_s: Some(0.9) }),
        filled: Some(Occurrences {
            count: 12,
            sights: Sights { packets: (1..=12).map(|n| n * 40).collect(), time_s: Some(1.25) },
        }),
        path: Some(PathHolds { rate_bps: 3e9, bytes: 13_387_500.0, at_least: false }),
        found_scale: None,
    })
}

fn overrun(refused: Option<u64>) -> OverrunBuffer {
    OverrunBuffer {
        dropped: occurrences(2),
        again_bytes: 68_786,
        refused,
        window_bytes: 36_416,
        window_max_bytes: 82_944,
        segment_bytes: 171.5,
    }
}

pub fn timeouts() -> Cause {
    Cause::RetransmissionTimeout(Timeouts {
        timeouts: 1,
        probes: Some(0),
        longest_s: Some(0.204),
        never_repaired: false,
        sights: Sights::default(),
    })
}

pub fn shared_path() -> Cause {
    Cause::PathRate(UsedPath::Several { rate_bps: 20e6, own_bps: 5e6, others: 3 })
}

pub fn application() -> Cause {
    Cause::Application(Pauses {
        idle_s: 9.5,
        of_s: 10.0,
        bursts: Some(4),
        waited: Some(WaitedFor::Server { seconds: 9.0 }),
        timer: Some(WriteTimer { period_s: 0.04, bytes: 200_000 }),
        seen: PausesSeen::Silence,
    })
}

/// One of each kind that JSON has a shape for.
pub fn all() -> Vec<Cause> {
    let window = match receive_window() {
        Cause::ReceiveWindow(window) => window,
        other => panic!("{other:?}"),
    };
    let wakeups = Some(Wakeups { count: 9, seconds: 0.8, level_bytes: 220e3, buffer_bytes: 330e3 });
    let buffer = |seen, at_sender| Cause::SendBuffer(FullSendBuffer { seen, wakeups, at_sender });
    let flight = SendBufferSeen::Flight { flight_bytes: 330e3, rtt_min_s: 0.03, window_max_bytes: 4_194_304 };
    let start = SlowStartSeen {
        rounds: 5,
        first: Some(FirstFlight { segments: 10.0, segment_bytes: 1_448, is_window: true }),
        first_data: sights(),
        exit: Some(SlowStartExit::Loss),
        exit_s: Some(0.4),
        crept: false,
    };
    let growth = |slow_start| WindowGrowth { rtt_min_s: 0.05, bytes: 1e6, seconds: 0.4, slow_start };
    let timing = RestartTiming { bursts: 4, bytes: 800_000, seconds: 2.0, kept_s: 0.8, rtt_s: 0.1 };
    let queue = |acks| FullQueue { wait_s: 0.2, rtt_mean_s: 0.25, rtt_min_s: 0.05, acks };
    let fit = BucketFit { losses: 520, empty_part: 0.999, held_part: 0.98, delayed_part: 0.004 };
    let slow = SlowReader::Window {
        largest_bytes: 65_536,
        small_part: 0.75,
        zero: Some(occurrences(3)),
        filled: Some(occurrences(4)),
    };
    let undecided = [
        UndecidedBy::NoData,
        UndecidedBy::NoAcknowledgement,
        UndecidedBy::MissingPackets { missing_bytes: 3_000_000, bytes: 10_000_000 },
        UndecidedBy::BeginningUnseen { seconds: 7.81, of_s: 7.87 },
        UndecidedBy::Unacknowledged { packets_again: 5, seconds: 31.0, timeouts: occurrences(5), bytes: 1_448 },
        UndecidedBy::OnlyAcknowledgements {
            bytes: 10_000_000,
            seconds: 8.0,
            losses: Some(occurrences(12)),
            lost_bytes: 17_376,
            duplicates: 1,
            closed_windows: 2,
            rtt_s: Some(0.05),
        },
        UndecidedBy::ReceivingEnd { unread_samples: 1, samples: 40 },
    ];
    let path = UsedPath::Connection {
        rate_bps: 95e6,
        mean_bps: 94e6,
        rtt_mean_s: 0.05,
        rtt_min_s: 0.03,
        trains_bps: Some(96e6),
        or_paced: true,
    };
    let mut all = vec![
        receive_window(),
        Cause::ReceiveWindow(FullWindow {
            window_bytes: 61_952.0,
            rtt_min_s: 0.04,
            largest_bytes: 64_000,
            largest: None,
            filled: None,
            path: None,
            found_scale: Some(7),
        }),
        Cause::WindowScalingMissing(window),
        Cause::Reader(slow),
        Cause::Reader(SlowReader::Unread { samples: 30, of: 40 }),
        buffer(SendBufferSeen::Level { level_bytes: 220e3, flight_max_bytes: 900_000 }, true),
        buffer(flight, false),
        buffer(SendBufferSeen::Counted { buffer_bytes: Some(87_040) }, true),
        Cause::InitialWindow(growth(Some(start.clone()))),
        Cause::InitialWindow(growth(Some(SlowStartSeen { crept: true, ..start }))),
        Cause::InitialWindow(growth(None)),
        Cause::RandomLoss(losses()),
        Cause::CongestionLoss(CongestionLosses::Dropped(losses())),
        Cause::CongestionLoss(CongestionLosses::Marked(QueueMarks { reductions: 4, echoes: 40 })),
        Cause::CongestionLoss(CongestionLosses::SharedPath(Dropped { repairs: repairs() })),
        Cause::CongestionLoss(CongestionLosses::Counted(QueueDrops { packets: 40 })),
        Cause::Policer(PolicedRate { rate_bps: 10e6, burst_bytes: 75e3, repairs: repairs(), fit }),
        timeouts(),
        Cause::PathRate(path),
        shared_path(),
        Cause::CongestionWindowClamp(Clamp {
            window_bytes: 28_960,
            segment_bytes: 1_448,
            rtt_min_s: 0.03,
            window_max_bytes: 4_194_304,
            at_sender: false,
        }),
        Cause::IdleRestart(Restarts { restarted: occurrences(3), timing: Some(timing) }),
        Cause::IdleRestart(Restarts { restarted: occurrences(3), timing: None }),
        Cause::DelayedAck(DelayedWrites { writes: occurrences(30), waited_s: 1.2, by_round_trips: false }),
        Cause::DelayedAck(DelayedWrites { writes: occurrences(20), waited_s: 1.2, by_round_trips: true }),
        Cause::PathMtuBlackHole(LargePackets::Retransmissions {
            segment_bytes: 1_448,
            arrived_bytes: 452,
            timeouts: occurrences(4),
            errors: None,
        }),
        Cause::PathMtuBlackHole(LargePackets::Retransmissions {
            segment_bytes: 1_448,
            arrived_bytes: 452,
            timeouts: occurrences(4),
            errors: Some(TooBigErrors { errors: occurrences(5), mtu_bytes: Some(1_420) }),
        }),
        Cause::WindowScaleIgnored(UnscaledEdge { field_bytes: 5_800, window_bytes: 23_200, stops: 10 }),
        Cause::SackNotTranslated(ForeignBlocks { blocks: occurrences(40), of: 41 }),
        Cause::ReceiveBufferOverrun(overrun(None)),
        Cause::ReceiveBufferOverrun(overrun(Some(348))),
        Cause::ReceiverDrops(HostDrops { part: 0.012, repairs: repairs(), arrived: 12 }),
        Cause::PacingRate(PacedData {
            rate_bps: 8e6,
            piece_bytes: 2_896.0,
            interval_s: 0.002_9,
            pieces: 3_400,
            even: 3_390,
            at_sender: false,
        }),
        Cause::PathMtuBlackHole(LargePackets::Arrivals {
            silence_s: 3.1,
            longest_bytes: 988,
            agreed_bytes: 1_448,
            bytes: 2_000_000,
        }),
        Cause::PathMtuBlackHole(LargePackets::Missing {
            silence_s: 29.9,
            missing_bytes: 2_896,
            longest_bytes: 1_070,
            agreed_bytes: 1_448,
        }),
        Cause::PathMtuBlackHole(LargePackets::Probing { from_bytes: 1_448, to_bytes: 988 }),
        Cause::Reordering(OvertakenPackets { repairs: repairs(), needless: 11, late: 20 }),
        Cause::Bufferbloat(queue(None)),
        Cause::Bufferbloat(queue(Some(AckWait { rtt_without_s: 0.05 }))),
        buffer(SendBufferSeen::Emptied { write_bytes: 16_384, writes: 41, rtt_min_s: 0.15, ack_delay_s: None }, true),
        buffer(
            SendBufferSeen::Emptied { write_bytes: 1_460, writes: 60, rtt_min_s: 0.004, ack_delay_s: Some(0.2) },
            true,
        ),
        Cause::ApplicationWindow(ApplicationWindow {
            window_bytes: 65_535,
            in_pieces: false,
            are_requests: false,
            rounds: occurrences(60),
            rtt_min_s: 0.1,
            receive_window_bytes: 4_194_304,
        }),
        Cause::ApplicationWindow(ApplicationWindow {
            window_bytes: 100_274,
            in_pieces: false,
            are_requests: true,
            rounds: occurrences(24),
            rtt_min_s: 0.06,
            receive_window_bytes: 476_000,
        }),
        Cause::ApplicationWindow(ApplicationWindow {
            window_bytes: 2_097_152,
            in_pieces: true,
            are_requests: false,
            rounds: occurrences(900),
            rtt_min_s: 0.2,
            receive_window_bytes: 8_388_608,
        }),
        Cause::AcceptQueue(FullAcceptQueue { seconds: 3.2, syn_acks_again: 2, data_again: 3 }),
        Cause::RequestLost(LostRequest { seconds: 1.7, again: 3 }),
        Cause::WaitingForServer(ProgramWait { seconds: 9.0, answered: 5, tls_s: 0.0, to_end: false }),
        Cause::WaitingForServer(ProgramWait { seconds: 9.0, answered: 0, tls_s: 8.0, to_end: false }),
        Cause::WaitingForServer(ProgramWait { seconds: 9.0, answered: 0, tls_s: 0.0, to_end: true }),
        Cause::WaitingForClient(ProgramWait { seconds: 9.0, answered: 5, tls_s: 0.0, to_end: false }),
        Cause::WaitingForClient(ProgramWait { seconds: 9.0, answered: 0, tls_s: 8.0, to_end: false }),
        Cause::Reset(ResetSeen {
            by: Side::Server,
            foreign: true,
            asked: false,
            at_s: 95.0,
            idle_s: 90.0,
            closed: false,
            sights: sights(),
        }),
        Cause::VanishedPeer(LastSilence {
            side: Side::Client,
            since_s: 5.2,
            idle_s: 0.1,
            seconds: 31.0,
            unanswered: 4,
            sights: sights(),
        }),
        application(),
        Cause::NothingToGain(CarriedData { bytes: 1e6, seconds: 2.0, turns_s: None }),
        Cause::NothingToGain(CarriedData { bytes: 5e3, seconds: 0.12, turns_s: Some(0.09) }),
    ];
    let again = |times| SentAgain { times, first_s: 0.0, last_s: 3.0 };
    let openings = [
        Opening::Lookup { seconds: 2.03, again: 1 },
        Opening::Late { seconds: 3.04, challenged: 1, syn: Some(again(2)), syn_ack: Some(again(1)), left_out: None },
        Opening::Late { seconds: 3.04, challenged: 0, syn: Some(again(2)), syn_ack: None, left_out: None },
        Opening::Late {
            seconds: 1.02,
            challenged: 0,
            syn: Some(again(1)),
            syn_ack: None,
            left_out: Some(SynRequest::Ecn),
        },
        Opening::Late {
            seconds: 1.02,
            challenged: 0,
            syn: Some(again(1)),
            syn_ack: None,
            left_out: Some(SynRequest::FastOpen),
        },
        Opening::Refused(sights()),
        Opening::Unanswered { again: occurrences(5), seconds: 31.0 },
        Opening::Unconfirmed { again: occurrences(5), seconds: 31.0 },
    ];
    all.extend(openings.map(Cause::Connecting));
    all.extend(undecided.map(Cause::Unknown));
    all
}
