//! The sentence of each cause.

use super::Cause;
use super::figures::{
    ApplicationWindow, CarriedData, Clamp, CongestionLosses, FullQueue, FullSendBuffer, LargePackets, Losses,
    OvertakenPackets, Restarts, SendBufferSeen, SlowReader, Timeouts, TooBigErrors, UsedPath, WindowGrowth,
};
use super::life::{LastSilence, Opening, ProgramWait, ResetSeen, times};
use super::middlebox::ForeignBlocks;
use super::receive_buffer::OverrunBuffer;
use super::receive_window::FullWindow;
use super::undecided::UndecidedBy;
use crate::Side;
use thalweg_units::figures::{count, counted, data, elapsed, fine_percent as percent, rate};

/// The largest window without scaling (RFC 9293 §3.1).
const UNSCALED_MAX_BYTES: f64 = 65_535.0;
/// Silence from which on a sentence names an idle time-out. A choice of ours: RFC 5382 REQ-5 asks for two hours, and middleboxes have minutes.
const MIN_IDLE_S: f64 = 30.0;

pub(super) fn of(cause: &Cause, share: f64) -> String {
    let part = percent(share);
    match cause {
        Cause::ReceiveWindow(window) => receive_window(window, &part),
        Cause::WindowScalingMissing(window) => format!(
            "The handshake left window scaling out, so the window cannot pass 65,535 bytes; it was full for {part} of the time, which over a round trip of {} allows {}.",
            elapsed(window.rtt_min_s),
            per_round_trip(UNSCALED_MAX_BYTES, window.rtt_min_s),
        ),
        Cause::WindowScaleIgnored(edge) => format!(
            "A middlebox ignores window scaling: nothing beyond {} of the receiver's window of {} ever arrives. Repairing that takes {part} of the time.",
            data(edge.field_bytes as f64),
            data(edge.window_bytes as f64),
        ),
        Cause::ReceiveBufferOverrun(buffer) => overrun_buffer(buffer, &part),
        Cause::ReceiverDrops(drops) => format!(
            "The receiving host drops packets that have reached it ({} of them): a firewall, a wrong checksum or a full queue of its own. That holds the congestion window down for {part} of the time.",
            percent(drops.part),
        ),
        Cause::Reader(reader) => slow_reader(reader, &part),
        Cause::SendBuffer(buffer) => send_buffer(buffer, &part),
        Cause::InitialWindow(growth) => window_growth(growth, &part),
        Cause::RandomLoss(losses) => format!(
            "Packets are lost{} ({} of them); repairing that and growing again takes {part} of the time.",
            if losses.is_origin_unknown() { "" } else { " without a queue before them" },
            percent(losses.part),
        ),
        Cause::CongestionLoss(losses) => congestion_loss(losses, &part),
        Cause::Policer(policed) => format!(
            "A policer drops what is over {} and queues nothing; it lets {} through at once. It holds the connection for {part} of the time.",
            rate(policed.rate_bps),
            data(policed.burst_bytes),
        ),
        Cause::RetransmissionTimeout(timeouts) => self::timeouts(timeouts, &part),
        Cause::PathRate(path) => used_path(path, &part),
        Cause::CongestionWindowClamp(clamp) => self::clamp(clamp, &part),
        Cause::PacingRate(paced) => format!(
            "The sender paces its data at {}, for {part} of the time: SO_MAX_PACING_RATE, or a queueing discipline with a rate for each flow.",
            rate(paced.rate_bps),
        ),
        Cause::IdleRestart(restarts) => idle_restart(restarts, &part),
        Cause::DelayedAck(writes) => format!(
            "{} waited {} each for {}: {part} of the time.",
            counted(writes.writes.count, "small write"),
            elapsed(writes.waited_s / writes.writes.count.max(1) as f64),
            if writes.by_round_trips {
                "the acknowledgement of a small one before (Nagle's algorithm)"
            } else {
                "an acknowledgement that the other side delays"
            },
        ),
        Cause::PathMtuBlackHole(large) => large_packets(large, &part),
        Cause::SackNotTranslated(foreign) => foreign_blocks(foreign, &part),
        Cause::Reordering(late) => overtaken_packets(late, &part),
        Cause::Bufferbloat(queue) => full_queue(queue),
        Cause::ApplicationWindow(window) => format!(
            "{} Over a round trip of {} that allows {}.",
            held_by_messages(window, &part),
            elapsed(window.rtt_min_s),
            per_round_trip(window.window_bytes as f64, window.rtt_min_s),
        ),
        Cause::Connecting(opening) => self::opening(opening, &part),
        Cause::AcceptQueue(queue) => format!(
            "For {}, {part} of the connection's life, the accept queue of the server's listener was full: the server sent its SYN-ACK again although the client had acknowledged it.",
            elapsed(queue.seconds),
        ),
        Cause::RequestLost(request) => format!(
            "For {}, {part} of the connection's life, a request was not acknowledged: the client's timer sent it again {}.",
            elapsed(request.seconds),
            times(request.again),
        ),
        Cause::WaitingForServer(wait) => waited_for_server(wait, &part),
        Cause::WaitingForClient(wait) => waited_for_client(wait, &part),
        Cause::Reset(reset) => self::reset(reset),
        Cause::VanishedPeer(silence) => last_silence(silence),
        Cause::Application(_) => format!(
            "The sending program had nothing to send for {part} of the time; the connection would have taken more."
        ),
        Cause::NothingToGain(carried) => nothing_to_gain(carried),
        Cause::Unknown(reason) => undecided(reason),
    }
}

fn held_by_messages(window: &ApplicationWindow, part: &str) -> String {
    let bytes = count(window.window_bytes as f64);
    if window.are_requests {
        format!(
            "Each request is sent when the one before was answered, and an answer has {bytes} bytes: the sending program waits for {part} of the time."
        )
    } else if window.in_pieces {
        format!(
            "The sending program has {bytes} bytes in flight and no more, and goes on by messages of the receiving program, {part} of the time: a window above TCP, as HTTP/2 and SSH have."
        )
    } else {
        format!(
            "After every {bytes} bytes the sending program waits for a message of the receiving program, {part} of the time: a window above TCP, as HTTP/2 and SSH have, or one request after another."
        )
    }
}

fn clamp(clamp: &Clamp, part: &str) -> String {
    format!(
        "The congestion window never passes {} segments, for {part} of the time: over a round trip of {} that allows {}.",
        clamp.window_bytes / clamp.segment_bytes.max(1),
        elapsed(clamp.rtt_min_s),
        per_round_trip(clamp.window_bytes as f64, clamp.rtt_min_s),
    )
}

fn foreign_blocks(foreign: &ForeignBlocks, part: &str) -> String {
    format!(
        "A firewall changes sequence numbers and leaves selective acknowledgements as they are: {} of {} blocks are about data that was never sent. The sender ignores them, and repairing losses takes {part} of the time.",
        count(foreign.blocks.count as f64),
        count(foreign.of as f64),
    )
}

fn overrun_buffer(buffer: &OverrunBuffer, part: &str) -> String {
    format!(
        "The receiver's buffer overran while it held data out of order, and dropped data that had been selectively acknowledged: {} came again. Repairing that takes {part} of the time.",
        data(buffer.again_bytes as f64),
    )
}

fn overtaken_packets(late: &OvertakenPackets, part: &str) -> String {
    let again = late.repairs.packets_again.count;
    let seen = if late.needless > late.late {
        format!("{} of the {} sent again were not needed", late.needless, counted(again, "packet"))
    } else {
        format!("{} came late, and {} were sent again", counted(late.late, "packet"), count(again as f64))
    };
    format!("Packets overtake each other, and the sender takes that for loss: {seen}. That costs {part} of the time.")
}

/// The rate of a flight that is acknowledged once in a round trip.
fn per_round_trip(bytes: f64, rtt_s: f64) -> String {
    rate(bytes * 8.0 / rtt_s.max(1e-6))
}

fn receive_window(window: &FullWindow, part: &str) -> String {
    format!(
        "The receiver's window was full for {part} of the time, at {} on average; over a round trip of {} that allows {}.",
        data(window.window_bytes),
        elapsed(window.rtt_min_s),
        per_round_trip(window.window_bytes, window.rtt_min_s),
    )
}

fn slow_reader(reader: &SlowReader, part: &str) -> String {
    match reader {
        SlowReader::Window { largest_bytes, small_part, zero, .. } => {
            let zero = zero.as_ref().map_or(String::new(), |zero| format!("{}, ", counted(zero.count, "zero window")));
            format!(
                "The receiving program reads too slowly: for {part} of the time its window was closed or below {} of its largest ({zero}largest {}).",
                percent(*small_part),
                data(*largest_bytes as f64),
            )
        }
        SlowReader::Unread { .. } => {
            format!("The receiving program reads too slowly: data lay unread for {part} of the time.")
        }
    }
}

fn send_buffer(buffer: &FullSendBuffer, part: &str) -> String {
    let how = match buffer.seen {
        SendBufferSeen::Level { level_bytes, .. } => format!(
            "the program is woken to write only when unacknowledged data falls to {}, two thirds of the buffer",
            data(level_bytes)
        ),
        SendBufferSeen::Flight { flight_bytes, rtt_min_s, .. } => format!(
            "the flight stands at {}, below the receiver's window, which over {} allows {}",
            data(flight_bytes),
            elapsed(rtt_min_s),
            per_round_trip(flight_bytes, rtt_min_s),
        ),
        SendBufferSeen::Emptied { write_bytes, rtt_min_s, ack_delay_s, .. } => {
            let late =
                ack_delay_s.map_or_else(String::new, |delay| format!(" and an ACK delayed by {}", elapsed(delay)));
            format!(
                "the next {} bytes leave when the ones before are acknowledged, which over {}{late} allows {}",
                count(write_bytes as f64),
                elapsed(rtt_min_s),
                per_round_trip(write_bytes as f64, rtt_min_s + ack_delay_s.unwrap_or_default()),
            )
        }
        SendBufferSeen::Counted { buffer_bytes: Some(bytes) } => {
            format!("it holds {} of memory, and the data in it is under way", data(bytes as f64))
        }
        SendBufferSeen::Counted { buffer_bytes: None } => "the data in it is under way".to_owned(),
    };
    format!("The sender's socket buffer is full for {part} of the time: {how}.")
}

fn window_growth(growth: &WindowGrowth, part: &str) -> String {
    let Some(start) = &growth.slow_start else {
        return format!(
            "{part} of the time is growth of the congestion window; a round trip takes {}.",
            elapsed(growth.rtt_min_s)
        );
    };
    if let (true, Some(ended_s)) = (start.crept, start.exit_s) {
        return format!(
            "Slow start ended without a loss after {}, and the window crept up from there: that took {part} of the time.",
            elapsed(ended_s)
        );
    }
    let from = start.first.map_or(String::new(), |first| format!(" from {}", super::evidence::first_flight(first)));
    format!(
        "{part} of the time is growth of the congestion window{from} over {} of {}.",
        counted(start.rounds.max(1), "round trip"),
        elapsed(growth.rtt_min_s),
    )
}

fn congestion_loss(losses: &CongestionLosses, part: &str) -> String {
    match losses {
        CongestionLosses::Dropped(Losses { part: lost, .. }) => format!(
            "A full queue drops packets ({} of them); repairing that and growing again takes {part} of the time.",
            percent(*lost),
        ),
        CongestionLosses::Marked(marks) => format!(
            "A queue marks packets instead of dropping them (ECN): the congestion window was cut {}, and growing again takes {part} of the time.",
            counted(marks.reductions, "time"),
        ),
        CongestionLosses::Counted(drops) => format!(
            "The queue at the bottleneck drops {}; repairing that and growing again takes {part} of the time.",
            counted(drops.packets, "packet"),
        ),
        CongestionLosses::SharedPath(_) => {
            "A full queue drops packets: the connections that share the path send more than it takes.".to_owned()
        }
    }
}

fn timeouts(timeouts: &Timeouts, part: &str) -> String {
    let longest = timeouts.longest_s.map(elapsed);
    if timeouts.never_repaired {
        let silence = longest.map_or(String::new(), |longest| format!("{longest}, "));
        return format!(
            "Data was missing when packets stopped, and never came: silence for {silence}{part} of the time. The sender waited for its timer, or what the timer sent was lost as well."
        );
    }
    let probes = timeouts.probes.map_or(String::new(), |probes| format!(" and {}", counted(probes, "tail loss probe")));
    let longest = longest.map_or(String::new(), |longest| format!(", the longest silence {longest}"));
    format!(
        "The sender was silent for {part} of the time until a timer fired: {}{probes}{longest}.",
        counted(timeouts.timeouts, "timeout"),
    )
}

fn used_path(path: &UsedPath, part: &str) -> String {
    match *path {
        UsedPath::Connection { rate_bps, mean_bps, rtt_mean_s, rtt_min_s, .. } => format!(
            "The path delivers {} and no more: its rate is used up for {part} of the time (mean {}, round trip {} on average, {} at best).",
            rate(rate_bps),
            rate(mean_bps),
            elapsed(rtt_mean_s),
            elapsed(rtt_min_s),
        ),
        UsedPath::Several { rate_bps, own_bps, others } => {
            let others = if others == 1 {
                "another connection of the same two hosts shares".to_owned()
            } else {
                format!("{others} other connections of the same two hosts share")
            };
            format!(
                "The path delivers {} and no more, and {others} it: together they use it up for {part} of the time, and this one has {} of it.",
                rate(rate_bps),
                rate(own_bps),
            )
        }
    }
}

fn idle_restart(restarts: &Restarts, part: &str) -> String {
    let count = restarts.restarted.count;
    restarts.timing.map_or_else(
        || format!("After {} the congestion window began anew: growing again takes {part} of the time.", counted(count, "pause")),
        |timing| {
            let bursts = count.max(1) as f64;
            format!(
                "After each pause the congestion window begins anew: {count} of {} took {} on average, where one round trip of {} and the path's rate would do in {}.",
                counted(timing.bursts, "burst"),
                elapsed(timing.seconds / bursts),
                elapsed(timing.rtt_s),
                elapsed(timing.kept_s / bursts),
            )
        },
    )
}

fn large_packets(large: &LargePackets, part: &str) -> String {
    match *large {
        LargePackets::Retransmissions { segment_bytes, arrived_bytes, ref errors, .. } => {
            let arrived = if arrived_bytes == 0 {
                "the handshake's short packets do".to_owned()
            } else {
                format!("those of {arrived_bytes} and less do")
            };
            let why = match errors {
                None => "the path drops packets of that length without an error message".to_owned(),
                Some(TooBigErrors { errors, mtu_bytes }) => {
                    let mtu = mtu_bytes.map_or(String::new(), |mtu| format!(" (MTU {mtu})"));
                    format!(
                        "a router answers with ICMP errors{mtu}, {}, and the sender does not heed them",
                        times(errors.count)
                    )
                }
            };
            format!(
                "Segments of {segment_bytes} bytes of payload never arrive, however often they are sent; {arrived}: {why}."
            )
        }
        LargePackets::Arrivals { silence_s, longest_bytes, agreed_bytes, .. } => format!(
            "The first data came after {}, and no segment is longer than {longest_bytes} bytes of payload where {agreed_bytes} were agreed: longer ones seem to be dropped on the path. Capture at the sender to see them.",
            elapsed(silence_s),
        ),
        LargePackets::Missing { silence_s, missing_bytes, longest_bytes, agreed_bytes } => format!(
            "{} are missing, and did not come in {} of silence, while segments of {longest_bytes} bytes of payload and less behind them came; {agreed_bytes} were agreed: longer ones seem to be dropped on the path. Capture at the sender to see them.",
            data(missing_bytes as f64),
            elapsed(silence_s),
        ),
        LargePackets::Probing { from_bytes, to_bytes } => format!(
            "For {part} of the time segments of {from_bytes} bytes were lost until the sender used {to_bytes}: the path drops large packets."
        ),
    }
}

fn full_queue(queue: &FullQueue) -> String {
    match queue.acks {
        None => format!(
            "The queue in front of the bottleneck delays packets by {} on average, {:.1} round trips: the line is full either way, and everything else that passes it waits as long.",
            elapsed(queue.wait_s),
            queue.wait_s / queue.rtt_min_s.max(1e-6),
        ),
        Some(acks) => format!(
            "ACKs wait {} on average in the reverse path's queue, which other traffic fills. The round trip is {:.1} times as long, so the window grows and losses are repaired that much slower.",
            elapsed(queue.wait_s),
            queue.rtt_mean_s / acks.rtt_without_s.max(1e-6),
        ),
    }
}

fn opening(opening: &Opening, part: &str) -> String {
    match opening {
        Opening::Lookup { seconds, again } => {
            let again = if *again > 0 { format!(": the query was sent again {}", times(*again)) } else { String::new() };
            format!(
                "Looking up the server's name took {}, {part} of the time to the connection's end{again}.",
                elapsed(*seconds)
            )
        }
        Opening::Late { seconds, challenged, syn, syn_ack, .. } => format!(
            "Connecting took {}, {part} of the connection's life: {}.",
            elapsed(*seconds),
            late_opening(*challenged, syn.as_ref().map(|one| one.times), syn_ack.as_ref().map(|one| one.times)),
        ),
        Opening::Refused(_) => {
            "The connection was refused: a reset answered the SYN. Nothing listens on the port, or a filter refuses the connection.".to_owned()
        }
        Opening::Unanswered { again, seconds } => format!(
            "The connection never opened: nothing answered the SYN, though it was sent again {} in {}. There is no such host, a filter discards packets for that port, or no route leads back.",
            times(again.count),
            elapsed(*seconds),
        ),
        Opening::Unconfirmed { again, seconds } => format!(
            "The connection never opened: nothing answered the SYN-ACK, though it was sent again {} in {}. The SYN-ACK or the client's ACK is lost on its way, or the SYN has a forged source.",
            times(again.count),
            elapsed(*seconds),
        ),
    }
}

fn nothing_to_gain(carried: &CarriedData) -> String {
    let (bytes, time) = (data(carried.bytes), elapsed(carried.seconds));
    match carried.turns_s {
        Some(turns_s) => format!(
            "Nothing but the round trips of the handshake and of the one request costs as much as five percent: {bytes} in {time}, {} of which the sender waited for its turn.",
            elapsed(turns_s)
        ),
        None => format!("No limit costs as much as five percent: {bytes} in {time}."),
    }
}

/// Why a connection opened late.
fn late_opening(challenged: u64, syn: Option<u64>, syn_ack: Option<u64>) -> String {
    let mut causes = Vec::new();
    if challenged > 0 {
        causes.push(
            "the server answered the SYN with an ACK of an older connection between the same ports (challenge ACK)"
                .to_owned(),
        );
    }
    if let Some(again) = syn_ack {
        causes.push(format!(
            "the SYN-ACK, or the ACK that answers it, was lost, and the SYN-ACK was sent again {}",
            times(again)
        ));
    }
    match (syn, syn_ack) {
        (Some(again), None) => causes
            .push(format!("the SYN was lost, or its answer before it got here, and was sent again {}", times(again))),
        (Some(again), Some(_)) => causes.push(format!("the SYN was sent again {}", times(again))),
        (None, _) => {}
    }
    causes.join("; ")
}

fn waited_for_client(wait: &ProgramWait, part: &str) -> String {
    let what = if wait.tls_s > wait.seconds / 2.0 {
        ", most of it in the TLS handshake: all that the server had sent was acknowledged, and the client had not gone on"
    } else {
        ": no request was outstanding"
    };
    format!("The connection waited for the client for {}, {part} of its life{what}.", elapsed(wait.seconds))
}

fn waited_for_server(wait: &ProgramWait, part: &str) -> String {
    let what = if wait.tls_s > wait.seconds / 2.0 {
        ", most of it in the TLS handshake: what the client had sent was acknowledged and no answer had come"
    } else if wait.to_end {
        ", to the end of the capture: a request was sent, and nothing answered it"
    } else {
        ": requests were acknowledged and no response had come"
    };
    format!("The connection waited for the server for {}, {part} of its life{what}.", elapsed(wait.seconds))
}

fn reset(reset: &ResetSeen) -> String {
    let side = reset.by.as_str();
    let is_idle = reset.idle_s > MIN_IDLE_S;
    let after = match (is_idle, reset.asked) {
        (true, _) => format!(" after {} of silence", elapsed(reset.idle_s)),
        (false, true) => format!(" at {}, while a request was outstanding", elapsed(reset.at_s)),
        (false, false) => format!(" at {}", elapsed(reset.at_s)),
    };
    if reset.closed && reset.asked && !reset.foreign {
        return format!(
            "The {side} had closed the connection; {} later the other side sent a request on it, and a reset answered. Whoever keeps connections must drop those that the other side has closed, and keep them for less long than that.",
            elapsed(reset.idle_s)
        );
    }
    match (reset.foreign, is_idle) {
        (true, true) => format!(
            "Something other than the {side} reset the connection{after}: a firewall or NAT between the hosts had forgotten it (idle time-out)."
        ),
        (true, false) => format!(
            "Something other than the {side} reset the connection{after}: the reset is forged, or a middlebox's."
        ),
        (false, true) => {
            format!("The {side} reset the connection{after}: it had closed or forgotten it, or a middlebox had.")
        }
        (false, false) => format!("The {side} reset the connection{after}."),
    }
}

fn last_silence(silence: &LastSilence) -> String {
    let gone = silence.side.as_str();
    let other = if silence.side == Side::Client { "server" } else { "client" };
    if silence.idle_s > MIN_IDLE_S {
        return format!(
            "After {} without a packet the {gone} did not answer any more, for {} to the end: the {other} sent {} again. A firewall or NAT between the hosts may have forgotten the connection (idle time-out), or the {gone} is gone.",
            elapsed(silence.idle_s),
            elapsed(silence.seconds),
            counted(silence.unanswered, "packet"),
        );
    }
    format!(
        "The {gone} fell silent {} after the start and stayed so to the end, for {}: the {other} sent {} again without an answer. The {gone} is gone, or the path to it or back.",
        elapsed(silence.since_s),
        elapsed(silence.seconds),
        counted(silence.unanswered, "packet"),
    )
}

fn undecided(reason: &UndecidedBy) -> String {
    match reason {
        UndecidedBy::NoData => {
            "The capture holds no data of the connection; data lost before it reached here shows only in a capture at the sender.".to_owned()
        }
        UndecidedBy::NoAcknowledgement => {
            "The capture holds no acknowledgement of the data, so nothing can be said of what the sender waited for; capture at the sender.".to_owned()
        }
        UndecidedBy::MissingPackets { missing_bytes, bytes } => format!(
            "The capture lacks {} of the payload that was acknowledged, so the sender's pauses do not show; capture again with a larger buffer, or at one of the hosts.",
            percent(*missing_bytes as f64 / (*bytes).max(1) as f64),
        ),
        UndecidedBy::BeginningUnseen { seconds, of_s } => format!(
            "The capture begins within the connection. The congestion window held the sender for {} of {}; what made it small, and from where it grew, is not in the capture.",
            elapsed(*seconds),
            elapsed(*of_s),
        ),
        UndecidedBy::Unacknowledged { packets_again, seconds, .. } => format!(
            "Nothing acknowledged the data, though it was sent again {} in {}: its receiver is gone, or the path to it, or the path back.",
            counted(*packets_again, "time"),
            elapsed(*seconds),
        ),
        UndecidedBy::OnlyAcknowledgements { bytes, seconds, .. } => format!(
            "Only the receiver's direction was captured: it acknowledges {} in {}. What the sender waited for is not seen; capture both directions, at the sender.",
            data(*bytes as f64),
            elapsed(*seconds),
        ),
        UndecidedBy::ReceivingEnd { .. } => {
            "This end receives, and its program keeps up; look at the sender's end, or capture packets.".to_owned()
        }
    }
}
