//! The figures of a cause, as far as samples of a socket show them.

use super::Sample;
use super::changes::{restarts, smaller_segments};
use super::partition::{Spending, is_held_by_window};
use crate::estimate::partition::LimitShare;
use crate::tcp::sender::FULL_PART;
use thalweg_model::{
    CarriedData, Cause, Clamp, Code, CongestionLosses, FullSendBuffer, FullWindow, KernelCounters, LargePackets,
    Losses, Occurrences, OvertakenPackets, PathHolds, Pauses, PausesSeen, Repairs, Restarts, SendBufferSeen, Sights,
    SlowReader, Timeouts, UndecidedBy, UsedPath, WindowGrowth,
};

/// The cause `code`, which took `spent`.
pub(super) fn cause(code: Code, spent: LimitShare, samples: &[Sample], spending: &Spending) -> Cause {
    let seen = Seen { first: &samples[0], last: &samples[samples.len() - 1], samples, spending };
    match code {
        Code::ReceiveWindow => Cause::ReceiveWindow(seen.full_window()),
        Code::WindowScalingMissing => Cause::WindowScalingMissing(seen.full_window()),
        Code::Reader => Cause::Reader(seen.slow_reader()),
        Code::SendBuffer => Cause::SendBuffer(FullSendBuffer {
            seen: SendBufferSeen::Counted {
                buffer_bytes: samples.iter().map(|sample| sample.buffer).max().filter(|&buffer| buffer > 0),
            },
            wakeups: None,
            at_sender: true,
        }),
        Code::InitialWindow => Cause::InitialWindow(WindowGrowth {
            rtt_min_s: seen.rtt_min_s(),
            bytes: spent.bytes,
            seconds: spent.seconds,
            slow_start: None,
        }),
        Code::RandomLoss => Cause::RandomLoss(seen.losses()),
        Code::CongestionLoss => Cause::CongestionLoss(CongestionLosses::Dropped(seen.losses())),
        Code::RetransmissionTimeout => Cause::RetransmissionTimeout(Timeouts {
            timeouts: seen.since(|sample| sample.timeouts),
            probes: None,
            longest_s: None,
            never_repaired: false,
            sights: Sights::default(),
        }),
        Code::PathRate => Cause::PathRate(UsedPath::Connection {
            rate_bps: spending.capacity().unwrap_or_else(|| spending.rate()) * 8.0,
            mean_bps: spending.rate() * 8.0,
            rtt_mean_s: seen.rtt_mean_s(),
            rtt_min_s: seen.rtt_min_s(),
            trains_bps: None,
            or_paced: false,
        }),
        Code::CongestionWindowClamp => Cause::CongestionWindowClamp(seen.clamp()),
        Code::IdleRestart => Cause::IdleRestart(Restarts {
            restarted: Occurrences { count: restarts(samples).unwrap_or(0), sights: Sights::default() },
            timing: None,
        }),
        Code::PathMtuBlackHole => {
            let (from_bytes, to_bytes) = smaller_segments(samples).unwrap_or_default();
            Cause::PathMtuBlackHole(LargePackets::Probing { from_bytes, to_bytes })
        }
        Code::Reordering => Cause::Reordering(OvertakenPackets {
            repairs: seen.repairs(),
            needless: seen.since(|sample| sample.needless),
            late: seen.since(|sample| sample.overtaken),
        }),
        Code::Application => Cause::Application(Pauses {
            idle_s: spent.seconds,
            of_s: spending.split.seconds(),
            bursts: None,
            waited: None,
            timer: None,
            seen: PausesSeen::Sender,
        }),
        Code::NothingToGain => {
            let bytes = seen.since(|sample| sample.bytes_acked) as f64;
            Cause::NothingToGain(CarriedData { bytes, seconds: spending.split.seconds(), turns_s: None })
        }
        // A socket shows none of these.
        Code::Bufferbloat
        | Code::WindowScaleIgnored
        | Code::SackNotTranslated
        | Code::ReceiveBufferOverrun
        | Code::ReceiverDrops
        | Code::PacingRate
        | Code::Policer
        | Code::DelayedAck
        | Code::ApplicationWindow
        | Code::Connecting
        | Code::AcceptQueue
        | Code::RequestLost
        | Code::WaitingForServer
        | Code::WaitingForClient
        | Code::Reset
        | Code::VanishedPeer
        | Code::Unknown => Cause::Unknown(UndecidedBy::NoData),
    }
}

/// What the kernel counted from the first sample to the last.
pub(super) fn counters(samples: &[Sample], spending: &Spending) -> KernelCounters {
    let seen = Seen { first: &samples[0], last: &samples[samples.len() - 1], samples, spending };
    KernelCounters {
        samples: samples.len() as u64,
        seconds: seen.last.at_s - seen.first.at_s,
        busy_s: seen.since(|sample| sample.busy_us) as f64 / 1e6,
        window_limited_s: seen.since(|sample| sample.window_limited_us) as f64 / 1e6,
        buffer_limited_s: seen.since(|sample| sample.buffer_limited_us) as f64 / 1e6,
        rate_bps: spending.rate() * 8.0,
        packets_again: seen.since(|sample| sample.sent_again),
        rtt_s: seen.last.rtt_us as f64 / 1e6,
        rtt_min_s: seen.rtt_min_s(),
    }
}

/// Samples of a connection, of which there are two at least.
struct Seen<'a> {
    first: &'a Sample,
    last: &'a Sample,
    samples: &'a [Sample],
    spending: &'a Spending,
}

impl Seen<'_> {
    fn since(&self, counter: fn(&Sample) -> u64) -> u64 {
        counter(self.last).saturating_sub(counter(self.first))
    }

    fn rtt_min_s(&self) -> f64 {
        self.last.rtt_min_us as f64 / 1e6
    }

    fn rtt_mean_s(&self) -> f64 {
        self.samples.iter().map(|sample| sample.rtt_us as f64 / 1e6).sum::<f64>() / self.samples.len() as f64
    }

    fn largest_window(&self) -> u64 {
        self.samples.iter().map(|sample| sample.peer_window).max().unwrap_or(0)
    }

    fn slow_reader(&self) -> SlowReader {
        SlowReader::Window { largest_bytes: self.largest_window(), small_part: FULL_PART, zero: None, filled: None }
    }

    fn clamp(&self) -> Clamp {
        Clamp {
            window_bytes: self.last.window * self.last.segment,
            segment_bytes: self.last.segment,
            rtt_min_s: self.rtt_min_s(),
            window_max_bytes: self.largest_window(),
            at_sender: true,
        }
    }

    fn full_window(&self) -> FullWindow {
        let full: Vec<u64> = self.at_full_window().map(|sample| sample.peer_window).collect();
        let largest = self.largest_window();
        FullWindow {
            window_bytes: match full.len() {
                0 => largest as f64,
                count => full.iter().sum::<u64>() as f64 / count as f64,
            },
            // On a path of microseconds a window's turn takes what both hosts take, many times the least round trip.
            rtt_min_s: self.rtt_at_full_window_s(),
            largest_bytes: largest,
            largest: None,
            filled: None,
            path: self.spending.capacity().map(|capacity| PathHolds {
                rate_bps: capacity * 8.0,
                bytes: capacity * self.rtt_min_s(),
                at_least: false,
            }),
            found_scale: None,
        }
    }

    /// Samples up to which the window was full.
    fn at_full_window(&self) -> impl Iterator<Item = &Sample> {
        let held = self.samples.windows(2).filter(|pair| is_held_by_window(&pair[0], &pair[1]));
        held.map(|pair| &pair[1])
    }

    /// The mean round trip where the window was full; the least one where it never was.
    fn rtt_at_full_window_s(&self) -> f64 {
        let all = self.at_full_window();
        let (count, sum) = all.fold((0u32, 0.0), |(count, sum), sample| (count + 1, sum + sample.rtt_us as f64 / 1e6));
        if count > 0 { sum / f64::from(count) } else { self.rtt_min_s() }
    }

    fn repairs(&self) -> Repairs {
        let count = self.since(|sample| sample.sent_again);
        Repairs { packets_again: Occurrences { count, sights: Sights::default() }, episodes: None }
    }

    fn losses(&self) -> Losses {
        let sent = self.since(|sample| sample.data_segments_out).max(1);
        Losses {
            part: (self.since(|sample| sample.sent_again) as f64 / sent as f64).min(1.0),
            repairs: self.repairs(),
            queued_episodes: None,
            judged_episodes: None,
            rtt_before_s: None,
            rtt_min_s: self.rtt_min_s(),
        }
    }
}
