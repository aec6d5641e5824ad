//! What is counted about one direction of a connection while it lasts; nothing here concludes anything.

pub(crate) mod ack_stream;
pub(crate) mod congestion_control;
pub(crate) mod connection_phases;
pub(crate) mod example_packets;
pub(crate) mod flight_levels;
pub(crate) mod idle_restarts;
pub(crate) mod log_histogram;
pub(crate) mod loss_episodes;
pub(crate) mod microbursts;
pub(crate) mod nagle_delayed_ack;
pub(crate) mod packet_trains;
pub(crate) mod plot_series;
pub(crate) mod policer_log;
pub(crate) mod pruned_data;
pub(crate) mod reordering;
pub(crate) mod requests;
pub(crate) mod rtt_before_loss;
pub(crate) mod send_spacing;
pub(crate) mod short_trains;
pub(crate) mod slow_start;
pub(crate) mod sndbuf_wakeups;
pub(crate) mod stop_and_wait;
pub(crate) mod tail_losses;
pub(crate) mod time_by_limit;
pub(crate) mod tls_handshake;
pub(crate) mod unscaled_window;
pub(crate) mod window_growth;
pub(crate) mod write_timer;

use crate::reset::{Reset, reset_keeping};
use congestion_control::CongestionControl;
use example_packets::ExamplePackets;
use idle_restarts::IdleRestarts;
use loss_episodes::LossEpisodes;
use microbursts::Microbursts;
use nagle_delayed_ack::NagleDelayedAck;
use packet_trains::PacketTrains;
use plot_series::PlotRecorder;
use policer_log::PolicerLog;
use pruned_data::PrunedData;
use reordering::Reordering;
use rtt_before_loss::RttBeforeLoss;
use send_spacing::SendSpacing;
use short_trains::ShortTrains;
use slow_start::SlowStart;
use sndbuf_wakeups::SndbufWakeups;
use stop_and_wait::StopAndWait;
use tail_losses::TailLosses;
use time_by_limit::TimeByLimit;
use unscaled_window::UnscaledWindow;
use window_growth::WindowGrowth;
use write_timer::WriteTimer;

/// Observers of one direction.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    pub(crate) time: TimeByLimit,
    pub(crate) packet_trains: PacketTrains,
    pub(crate) short_trains: ShortTrains,
    pub(crate) slow_start: SlowStart,
    pub(crate) sndbuf_wakeups: SndbufWakeups,
    pub(crate) stop_and_wait: StopAndWait,
    pub(crate) policer_log: PolicerLog,
    pub(crate) rtt_before_loss: RttBeforeLoss,
    pub(crate) idle_restarts: IdleRestarts,
    pub(crate) nagle: NagleDelayedAck,
    pub(crate) examples: ExamplePackets,
    pub(crate) plots: Option<Box<PlotRecorder>>,
    pub(crate) reordering: Reordering,
    pub(crate) tail_losses: TailLosses,
    pub(crate) loss_episodes: LossEpisodes,
    pub(crate) microbursts: Microbursts,
    pub(crate) congestion_control: CongestionControl,
    pub(crate) window_growth: WindowGrowth,
    pub(crate) write_timer: WriteTimer,
    pub(crate) unscaled_window: UnscaledWindow,
    pub(crate) send_spacing: SendSpacing,
    /// Of few connections.
    pub(crate) pruned: Option<Box<PrunedData>>,
    /// Bytes of the millisecond that the current packet left in.
    pub(crate) burst: u32,
    /// A TSval whose echo is awaited, and when it was sent first.
    pub(crate) awaited_echo: Option<(u32, u64)>,
    /// The shortest time to an echo, in nanoseconds.
    pub(crate) echo_min: Option<u64>,
}

impl Observers {
    /// Notes that `delivered` bytes in all have been delivered at `now` (nanoseconds).
    pub(crate) fn delivered(&mut self, now: u64, delivered: u64, mss: u64) {
        self.packet_trains.delivered(now, delivered, mss);
        self.short_trains.delivered(now, delivered, mss);
    }

    /// The rate of trains, in bytes per second; of few segments, that of short ones where it is higher.
    pub(crate) fn train_rate(&self) -> Option<f64> {
        let rates = [self.packet_trains.rate(), self.short_trains.of_all()];
        rates.into_iter().flatten().max_by(f64::total_cmp)
    }
}

impl Reset for Observers {
    fn reset(&mut self) {
        reset_keeping!(self, time, packet_trains, rtt_before_loss);
    }
}
