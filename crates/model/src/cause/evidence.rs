//! The facts that each cause rests on, as text.

use super::figures::{
    BucketFit, Clamp, CongestionLosses, DelayedWrites, FirstFlight, FullQueue, FullSendBuffer, HostDrops,
    KernelCounters, LargePackets, Losses, Occurrences, PacedData, Pauses, PausesSeen, Repairs, SendBufferSeen, Sights,
    SlowReader, SlowStartSeen, UsedPath, WaitedFor, WindowGrowth,
};
use super::life::{Opening, SentAgain, SynRequest, times};
use super::receive_buffer::OverrunBuffer;
use super::receive_window::FullWindow;
use super::undecided::UndecidedBy;
use super::{Cause, Code, Context, Evidence};
use crate::{SharedPath, SlowStartExit};
use thalweg_units::figures::{count, counted, data, elapsed, fine_percent as percent, rate};

pub(super) fn of(cause: &Cause) -> Vec<Evidence> {
    match cause {
        Cause::ReceiveWindow(window) | Cause::WindowScalingMissing(window) => full_window(window),
        Cause::WindowScaleIgnored(edge) => vec![fact(format!(
            "{} nothing arrived beyond the end of the window without its scale, the window field alone, although more had been sent",
            times(edge.stops)
        ))],
        Cause::ReceiveBufferOverrun(buffer) => overrun_buffer(buffer),
        Cause::ReceiverDrops(drops) => host_drops(drops),
        Cause::Reader(reader) => slow_reader(reader),
        Cause::SendBuffer(buffer) => send_buffer(buffer),
        Cause::InitialWindow(growth) => window_growth(growth),
        Cause::RandomLoss(losses) => random_losses(losses),
        Cause::CongestionLoss(losses) => congestion_loss(losses),
        Cause::Policer(policed) => [repairs(&policed.repairs)].into_iter().chain(bucket_fit(&policed.fit)).collect(),
        Cause::RetransmissionTimeout(timeouts) if !timeouts.sights.packets.is_empty() => {
            vec![seen("the retransmissions that ended the silences", &timeouts.sights)]
        }
        Cause::PathRate(path) => used_path(path),
        Cause::CongestionWindowClamp(clamp) => self::clamp(clamp),
        Cause::PacingRate(paced) => paced_data(paced),
        Cause::IdleRestart(restarts) => {
            let began = seen(
                "bursts that began with half of the earlier flight or less, and grew it again",
                &restarts.restarted.sights,
            );
            let carried = restarts.timing.map(|timing| {
                fact(format!("together they carried {} in {}", data(timing.bytes as f64), elapsed(timing.seconds)))
            });
            [began].into_iter().chain(carried).collect()
        }
        Cause::DelayedAck(writes) => vec![delayed_writes(writes)],
        Cause::PathMtuBlackHole(large) => large_packets(large),
        Cause::SackNotTranslated(foreign) => {
            vec![seen("blocks that lie more than 64 MiB from all that was sent", &foreign.blocks.sights)]
        }
        Cause::Reordering(late) => vec![
            repairs(&late.repairs),
            fact(format!(
                "{} were reported received twice, or acknowledged before what was sent again could have arrived; {} were seen to come late",
                counted(late.needless, "packet"),
                late.late
            )),
        ],
        Cause::Bufferbloat(queue) => vec![full_queue(queue)],
        Cause::ApplicationWindow(window) => vec![
            seen(
                if window.in_pieces {
                    format!("{} of the receiving program let data go", counted(window.rounds.count, "message"))
                } else {
                    format!("{} of that size, one each round trip", counted(window.rounds.count, "burst"))
                },
                &window.rounds.sights,
            ),
            fact(format!("the receiver's TCP window is up to {}", data(window.receive_window_bytes as f64))),
        ],
        Cause::Application(pauses) => self::pauses(pauses),
        Cause::Connecting(opening) => self::opening(opening),
        Cause::AcceptQueue(queue) => vec![fact(format!(
            "SYN-ACKs sent again {}, client data {}",
            times(queue.syn_acks_again),
            times(queue.data_again)
        ))],
        Cause::WaitingForServer(wait) | Cause::WaitingForClient(wait) if wait.answered > 0 => {
            vec![fact(format!("{} answered", counted(wait.answered, "request")))]
        }
        Cause::Reset(reset) => vec![seen("the reset", &reset.sights)],
        Cause::VanishedPeer(silence) => vec![seen("the first of them", &silence.sights)],
        Cause::Unknown(reason) => undecided(reason),
        Cause::RetransmissionTimeout(_)
        | Cause::RequestLost(_)
        | Cause::WaitingForServer(_)
        | Cause::WaitingForClient(_)
        | Cause::NothingToGain(_) => Vec::new(),
    }
}

fn overrun_buffer(buffer: &OverrunBuffer) -> Vec<Evidence> {
    let dropped = seen(
        format!(
            "{} ending before data that was selectively acknowledged earlier",
            counted(buffer.dropped.count, "acknowledgement")
        ),
        &buffer.dropped.sights,
    );
    let refused = buffer.refused.map(|refused| {
        fact(format!(
            "{} reached this tap, and the receiver neither acknowledged nor kept them",
            counted(refused, "segment")
        ))
    });
    let window = fact(format!(
        "the receiver's window was {} then, at the least, and {} at most; segments carry {} bytes on average",
        data(buffer.window_bytes as f64),
        data(buffer.window_max_bytes as f64),
        count(buffer.segment_bytes)
    ));
    [dropped].into_iter().chain(refused).chain([window]).collect()
}

fn clamp(clamp: &Clamp) -> Vec<Evidence> {
    let mut facts = vec![fact(format!(
        "the largest flight of each round trip is {} bytes, {} whole segments of {}; the receiver's window is up to {} bytes",
        clamp.window_bytes,
        clamp.window_bytes / clamp.segment_bytes.max(1),
        clamp.segment_bytes,
        clamp.window_max_bytes
    ))];
    if !clamp.at_sender {
        facts.push(fact("the flight is what the sender had sent, less what it had heard of, by its timestamps"));
        facts.push(fact("a send buffer that BBR empties evenly looks the same from here: on the sender, ss -tm tells"));
    }
    facts
}

fn paced_data(paced: &PacedData) -> Vec<Evidence> {
    let pieces = fact(format!(
        "{} of {} of {} each left at that rate within 15 %, one every {}",
        count(paced.even as f64),
        counted(paced.pieces, "piece"),
        data(paced.piece_bytes),
        elapsed(paced.interval_s),
    ));
    let from_afar =
        (!paced.at_sender).then(|| fact("a link at that rate that nothing else uses looks the same from here"));
    [pieces].into_iter().chain(from_afar).collect()
}

/// A fact without packets to point at.
fn fact(text: impl Into<String>) -> Evidence {
    Evidence { text: text.into(), packets: Vec::new(), time_s: None }
}

fn seen(text: impl Into<String>, sights: &Sights) -> Evidence {
    Evidence { text: text.into(), packets: sights.packets.clone(), time_s: sights.time_s }
}

fn filled(filled: &Occurrences) -> Evidence {
    seen(format!("{} filled the window to within one segment", counted(filled.count, "packet")), &filled.sights)
}

fn full_window(window: &FullWindow) -> Vec<Evidence> {
    let largest = format!("the largest window advertised is {} bytes", window.largest_bytes);
    let largest = window.largest.as_ref().map(|sights| seen(largest, sights));
    let path = window.path.map(|path| {
        let (rate, holds) = (rate(path.rate_bps), data(path.bytes));
        fact(if path.at_least {
            format!("varying delays bunch packets up: the path delivers {rate} at least, so it holds {holds} or more in a round trip")
        } else {
            format!("the path delivers bursts at {rate}, so it holds {holds} in a round trip")
        })
    });
    let scale = window.found_scale.map(|scale| {
        fact(format!(
            "the SYNs that tell the window's scale are not in the capture; at {scale} ({} times the window field) what is sent reaches the window's edge in every round trip and never passes it, at no lesser one",
            count(f64::from(1u32 << scale)),
        ))
    });
    window.filled.as_ref().map(filled).into_iter().chain(largest).chain(scale).chain(path).collect()
}

fn slow_reader(reader: &SlowReader) -> Vec<Evidence> {
    match reader {
        SlowReader::Window { zero, filled: full, .. } => {
            let some = |seen: &&Occurrences| seen.count > 0;
            let zero = zero.as_ref().filter(some).map(|zero| {
                seen(format!("{} of a window of zero", counted(zero.count, "advertisement")), &zero.sights)
            });
            zero.into_iter().chain(full.as_ref().filter(some).map(filled)).collect()
        }
        SlowReader::Unread { samples, of } => vec![unread(*samples, *of)],
    }
}

fn unread(samples: u64, of: u64) -> Evidence {
    fact(format!("received data lay unread in {samples} of {}", counted(of, "sample")))
}

fn send_buffer(buffer: &FullSendBuffer) -> Vec<Evidence> {
    let mut facts = Vec::new();
    match buffer.seen {
        SendBufferSeen::Level { flight_max_bytes, .. } => facts.push(fact(format!(
            "up to {} are in flight in between: Linux lets a program write past the limit while the congestion window is open",
            data(flight_max_bytes as f64)
        ))),
        SendBufferSeen::Flight { flight_bytes, window_max_bytes, .. } => facts.push(fact(format!(
            "the flight stands at {flight_bytes:.0} bytes, neither growing nor cut; the receiver's window is up to {window_max_bytes} bytes"
        ))),
        SendBufferSeen::Emptied { writes, ack_delay_s, .. } => {
            facts.push(fact(format!(
                "{} of that size, each with nothing left in flight; a program that itself waits for its acknowledgements looks the same",
                counted(writes, "write")
            )));
            facts.extend(ack_delay_s.map(|_| {
                fact("the receiver delays the ACK of an odd segment (RFC 1122 section 4.2.3.2); more than one write in flight ends that".to_owned())
            }));
        }
        SendBufferSeen::Counted { .. } => {}
    }
    if let Some(wakeups) = buffer.wakeups {
        facts.push(fact(format!(
            "{}, {} together, ended with an acknowledgement that left about {} in flight: a program may write again when a third of its buffer is free, which holds about {} then",
            counted(wakeups.count, "pause"),
            elapsed(wakeups.seconds),
            data(wakeups.level_bytes),
            data(wakeups.buffer_bytes),
        )));
    }
    if !buffer.at_sender {
        facts.push(fact(if buffer.wakeups.is_some() {
            "when the sender sent, and what it had heard by then, is known from its timestamps"
        } else {
            "the flight is reconstructed from round-trip times, and a clamped congestion window may look the same from here; capture at the sender"
        }));
    }
    facts
}

/// The first flight in words: `about 10 segments`.
pub(super) fn first_flight(first: FirstFlight) -> String {
    format!("{} {:.0} segments", if first.is_window { "about" } else { "at least" }, first.segments)
}

fn window_growth(growth: &WindowGrowth) -> Vec<Evidence> {
    let Some(start) = &growth.slow_start else { return Vec::new() };
    let first = start.first.map_or_else(
        || "the first data; its window cannot be told from here".to_owned(),
        |first| format!("the first flight is {} of {} bytes", first_flight(first), first.segment_bytes),
    );
    let delivered = format!(
        "{} were delivered in {} of window growth; slow start {}",
        data(growth.bytes),
        elapsed(growth.seconds),
        slow_start_end(start),
    );
    vec![seen(first, &start.first_data), fact(delivered)]
}

fn slow_start_end(start: &SlowStartSeen) -> String {
    let at = start.exit_s.map_or(String::new(), |at| format!(" at {}", elapsed(at)));
    match start.exit {
        None => "did not end before the data did".to_owned(),
        Some(SlowStartExit::Loss) => format!("ended with a loss{at}"),
        Some(SlowStartExit::EcnEcho) => format!("ended with an ECN echo{at}"),
        Some(SlowStartExit::GrowthStopped | SlowStartExit::ReceiveWindow | SlowStartExit::Application) => {
            format!("ended without loss{at}")
        }
    }
}

fn delayed_writes(writes: &DelayedWrites) -> Evidence {
    let text = if writes.by_round_trips {
        "small segments that left the moment one before them was acknowledged, though the windows had room"
    } else {
        "small segments that left the moment the one before them was acknowledged, long after a round trip"
    };
    seen(text, &writes.writes.sights)
}

fn repairs(repairs: &Repairs) -> Evidence {
    let again = counted(repairs.packets_again.count, "packet");
    match repairs.episodes {
        Some(episodes) => {
            let text = format!("{again} sent again in {}", counted(episodes, "episode"));
            seen(text, &repairs.packets_again.sights)
        }
        None => fact(format!("{again} sent again")),
    }
}

fn random_losses(losses: &Losses) -> Vec<Evidence> {
    let doubt = losses.is_origin_unknown().then(|| {
        fact("no round trip of data is known here, so a full queue may have dropped the packets; capture at the sender")
    });
    self::losses(losses, "before the losses the round trip is").into_iter().chain(doubt).collect()
}

fn losses(losses: &Losses, before: &str) -> Vec<Evidence> {
    let round_trip = losses.rtt_before_s.map(|before_s| {
        fact(format!("{before} {} on average; its minimum is {}", elapsed(before_s), elapsed(losses.rtt_min_s)))
    });
    let queued = losses
        .queued_episodes
        .zip(losses.judged_episodes)
        .filter(|(_, of)| *of > 0)
        .map(|(queued, of)| fact(format!("{queued} of {} came behind a standing queue", counted(of, "episode"))));
    [repairs(&losses.repairs)].into_iter().chain(round_trip).chain(queued).collect()
}

fn host_drops(drops: &HostDrops) -> Vec<Evidence> {
    let arrived = fact(format!(
        "{} sent again had come to this tap before, and the host had not taken {}",
        counted(drops.arrived, "segment"),
        if drops.arrived == 1 { "it" } else { "them" },
    ));
    vec![repairs(&drops.repairs), arrived]
}

fn congestion_loss(seen: &CongestionLosses) -> Vec<Evidence> {
    match seen {
        CongestionLosses::Dropped(losses) => self::losses(losses, "just before the losses the round trip reaches"),
        CongestionLosses::Marked(marks) => vec![fact(format!(
            "{} with ECE, and {} of the sender's with CWR",
            counted(marks.echoes, "packet"),
            count(marks.reductions as f64)
        ))],
        CongestionLosses::SharedPath(dropped) => vec![repairs(&dropped.repairs)],
        CongestionLosses::Counted(_) => Vec::new(),
    }
}

fn bucket_fit(fit: &BucketFit) -> [Evidence; 2] {
    [
        fact(format!(
            "a token bucket of that rate and size is empty at {} of the {}, round trips weighed alike, and holds enough for {} of the packets that passed",
            percent(fit.empty_part),
            if fit.losses == 1 { "1 loss".to_owned() } else { format!("{} losses", count(fit.losses as f64)) },
            percent(fit.held_part),
        )),
        // A queue of its size delays nothing by more than all of it.
        if fit.delayed_part > 1.0 {
            fact(
                "packets before losses waited for longer than a queue of that size takes to empty: they waited elsewhere",
            )
        } else {
            fact(format!(
                "packets sent while the bucket was empty were delayed by {} of what a queue would have added: it drops, it does not queue",
                percent(fit.delayed_part)
            ))
        },
    ]
}

fn used_path(path: &UsedPath) -> Vec<Evidence> {
    let UsedPath::Connection { rate_bps, trains_bps, or_paced, .. } = path else { return Vec::new() };
    let highest = fact(format!("the highest rate over a round trip is {}", rate(*rate_bps)));
    let trains = trains_bps.map(|trains| fact(format!("trains of packets arrive at {}", rate(trains))));
    let doubt = or_paced
        .then(|| fact("a sender that paces its data at that rate looks the same from here; capture at the sender"));
    [highest].into_iter().chain(trains).chain(doubt).collect()
}

fn large_packets(large: &LargePackets) -> Vec<Evidence> {
    match large {
        LargePackets::Retransmissions { arrived_bytes, timeouts, errors, .. } => {
            let again = format!("the timer sent the same data again {}", counted(timeouts.count, "time"));
            let longest = fact(format!("the longest segment that arrived carried {arrived_bytes} bytes"));
            let errors = errors.as_ref().map(|told| {
                seen(
                    format!(
                        "{} (\"fragmentation needed\", \"packet too big\")",
                        counted(told.errors.count, "ICMP error")
                    ),
                    &told.errors.sights,
                )
            });
            [seen(again, &timeouts.sights), longest].into_iter().chain(errors).collect()
        }
        LargePackets::Arrivals { longest_bytes, bytes, .. } => {
            vec![fact(format!("{} arrived in segments of at most {longest_bytes} bytes", data(*bytes as f64)))]
        }
        LargePackets::Missing { .. } | LargePackets::Probing { .. } => Vec::new(),
    }
}

fn full_queue(queue: &FullQueue) -> Evidence {
    let (mean, least) = (elapsed(queue.rtt_mean_s), elapsed(queue.rtt_min_s));
    fact(match queue.acks {
        None => format!("the round trip is {mean} on average, {least} at best"),
        Some(acks) => format!(
            "the round trip is {mean} on average, {} at best, and the timestamps show that it is the ACKs that come later",
            elapsed(acks.rtt_without_s.min(queue.rtt_min_s))
        ),
    })
}

fn pauses(pauses: &Pauses) -> Vec<Evidence> {
    let bursts = pauses.bursts.map_or(String::new(), |bursts| format!(", in {} of data", counted(bursts, "burst")));
    let idle = format!(
        "for {} of {} the sender was idle although its windows were open{bursts}",
        elapsed(pauses.idle_s),
        elapsed(pauses.of_s),
    );
    let waited = pauses.waited.map(|waited| {
        fact(match waited {
            WaitedFor::Server { seconds } => format!(
                "waiting for the server: for {} a request was acknowledged and no response had come",
                elapsed(seconds)
            ),
            WaitedFor::Client { seconds } => {
                format!("waiting for the client: for {} no request was outstanding", elapsed(seconds))
            }
        })
    });
    let timer = pauses.timer.map(|timer| {
        fact(format!(
            "the program writes by a timer: {} every {}, however soon they are acknowledged",
            data(timer.bytes as f64),
            elapsed(timer.period_s)
        ))
    });
    let seen = match pauses.seen {
        PausesSeen::Sender => None,
        PausesSeen::Timestamps => Some(
            "the packets' timestamps show that most of the data left when no acknowledgement had just arrived: the program wrote it then",
        ),
        PausesSeen::Timer => Some(
            "by the sender's clock nearly all data left at multiples of 10 ms, which the round trip is not: a timer of the program let it go",
        ),
        PausesSeen::Silence => Some(
            "from this vantage a full send buffer looks the same, and so does a sender whose packets are lost before the tap; capture at the sender",
        ),
    };
    [fact(idle)].into_iter().chain(waited).chain(timer).chain(seen.map(fact)).collect()
}

fn opening(opening: &Opening) -> Vec<Evidence> {
    let sent = |name: &str, one: &SentAgain| {
        fact(format!(
            "{} {name}s, the first at {} and the last at {}",
            one.times + 1,
            elapsed(one.first_s),
            elapsed(one.last_s)
        ))
    };
    match opening {
        Opening::Lookup { .. } => Vec::new(),
        Opening::Late { syn, syn_ack, left_out, .. } => {
            let syn = syn.iter().map(|one| sent("SYN", one));
            let syn_ack = syn_ack.iter().map(|one| sent("SYN-ACK", one));
            let left_out = left_out.map(|request| {
                let (name, key, value) = match request {
                    SynRequest::Ecn => ("ECN", "net.ipv4.tcp_ecn", "2"),
                    SynRequest::FastOpen => ("Fast Open", "net.ipv4.tcp_fastopen", "without 1"),
                };
                fact(format!(
                    "the first SYN asked for {name}, and the one that was answered did not: if connections with that host always open so, something on the path discards SYNs that ask for {name} ({key} {value} on the client asks no more); once, it may be chance",
                ))
            });
            syn.chain(syn_ack).chain(left_out).collect()
        }
        Opening::Refused(syn) => vec![seen("the SYN", syn)],
        Opening::Unanswered { again, .. } => vec![seen("the first SYN", &again.sights)],
        Opening::Unconfirmed { again, .. } => vec![seen("the SYN", &again.sights)],
    }
}

fn undecided(reason: &UndecidedBy) -> Vec<Evidence> {
    match reason {
        UndecidedBy::NoData
        | UndecidedBy::NoAcknowledgement
        | UndecidedBy::MissingPackets { .. }
        | UndecidedBy::BeginningUnseen { .. } => Vec::new(),
        UndecidedBy::Unacknowledged { timeouts, bytes, .. } => vec![
            seen(format!("the retransmission timer ran out {}", counted(timeouts.count, "time")), &timeouts.sights),
            fact(format!("{} were sent", data(*bytes as f64))),
        ],
        UndecidedBy::OnlyAcknowledgements { bytes, seconds, losses, lost_bytes, duplicates, closed_windows, rtt_s } => {
            let mut facts = Vec::new();
            if *seconds > 0.0 {
                facts.push(fact(format!(
                    "acknowledgements advance by {} on average",
                    rate(*bytes as f64 * 8.0 / seconds)
                )));
            }
            facts.push(match rtt_s {
                Some(rtt) => fact(format!("the handshake's round trip is {}", elapsed(*rtt))),
                None => fact("the round trip is not known: acknowledgements alone do not show when data was sent"),
            });
            facts.push(match losses {
                None => fact("losses are not known: there are no selective acknowledgements"),
                Some(losses) if losses.count == 0 => fact("no selective acknowledgement reports a loss"),
                Some(losses) => seen(
                    format!(
                        "{} in the data, {}, that three or more acknowledgements report",
                        counted(losses.count, "gap"),
                        data(*lost_bytes as f64)
                    ),
                    &losses.sights,
                ),
            });
            if *duplicates > 0 {
                facts.push(fact(format!("{} arrived twice", counted(*duplicates, "segment"))));
            }
            if *closed_windows > 0 {
                facts.push(fact(format!("the receiver closed its window {}", counted(*closed_windows, "time"))));
            }
            facts
        }
        UndecidedBy::ReceivingEnd { unread_samples, samples } => vec![unread(*unread_samples, *samples)],
    }
}

pub(super) fn of_context(context: &Context, code: Code) -> Vec<Evidence> {
    match context {
        Context::Kernel(counters) => kernel(counters, code),
        Context::SharedPath(SharedPath { others, together_bps, path_rate_bps, .. }) => vec![fact(format!(
            "the {} connections carry {} together on average, of {}",
            others + 1,
            rate(*together_bps),
            rate(*path_rate_bps)
        ))],
    }
}

fn kernel(counters: &KernelCounters, code: Code) -> Vec<Evidence> {
    let mut facts = vec![
        fact(format!(
            "the kernel had data under way for {} of {}, of that {} limited by the receiver's window and {} by the send buffer",
            elapsed(counters.busy_s),
            elapsed(counters.seconds),
            elapsed(counters.window_limited_s),
            elapsed(counters.buffer_limited_s),
        )),
        fact(format!(
            "{} were acknowledged, {} sent again; the round trip was {} at last and {} at best, in {}",
            rate(counters.rate_bps),
            counted(counters.packets_again, "packet"),
            elapsed(counters.rtt_s),
            elapsed(counters.rtt_min_s),
            counted(counters.samples, "sample"),
        )),
    ];
    if matches!(code, Code::RandomLoss | Code::CongestionLoss) {
        facts.push(fact("a policer looks the same from a socket: capture at the sender to tell"));
    }
    if code == Code::RetransmissionTimeout {
        facts
            .push(fact("a socket does not show why packets and their retransmissions are lost: capture at the sender"));
    }
    facts
}
