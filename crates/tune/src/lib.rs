//! From a cause to the settings that mend it: the planner. Pure: it reads no host and changes none.

mod commands;
mod congestion;
mod initial_window;
mod receive_buffer;
mod send_buffer;
mod timeout;
mod window_scaling;

pub use commands::{apply, undo};

use model::{Change, Code, Remedy, Setting, SettingsReport, Side, Way};
use units::{Bytes, Rate, Span};

/// What is known of the path and the hosts when a remedy is planned.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// Which way the data goes.
    pub direction: Way,
    /// Release of the kernel both hosts run, such as `6.12.117`.
    pub kernel: &'a str,
    /// Both hosts' settings as the kernel reads them back.
    pub settings: &'a SettingsReport,
    /// Options the scenario sets on sockets, by side and name: those stop auto-tuning.
    pub fixed_buffers: Vec<(Side, &'static str)>,
    /// Round-trip time without queues.
    pub rtt: Span,
    /// What the path's bottleneck carries, where it is known.
    pub path_rate: Option<Rate>,
    /// Payload of a segment.
    pub mss: u32,
}

impl Facts<'_> {
    /// The host that sends the data.
    pub const fn sender(&self) -> Side {
        match self.direction {
            Way::Down => Side::Server,
            Way::Up => Side::Client,
        }
    }

    /// The host that receives it.
    pub const fn receiver(&self) -> Side {
        match self.direction {
            Way::Down => Side::Client,
            Way::Up => Side::Server,
        }
    }

    /// What fills the path; `None` where its rate is not known.
    pub fn bdp(&self) -> Option<Bytes> {
        self.path_rate.map(|rate| rate.bdp(self.rtt))
    }

    fn sysctl(&self, side: Side, name: &str) -> Option<String> {
        let host = match side {
            Side::Client => &self.settings.client,
            Side::Server => &self.settings.server,
        };
        host.sysctl.get(name).cloned()
    }

    fn route(&self, side: Side, name: &str) -> Option<String> {
        let host = match side {
            Side::Client => &self.settings.client,
            Side::Server => &self.settings.server,
        };
        host.route.get(name).cloned()
    }

    /// Whether the kernel is at least `major.minor`; a release that cannot be read counts as new.
    fn kernel_is_at_least(&self, major: u32, minor: u32) -> bool {
        let mut numbers = self.kernel.split(['.', '-']).map_while(|word| word.parse::<u32>().ok());
        match (numbers.next(), numbers.next()) {
            (Some(a), Some(b)) => (a, b) >= (major, minor),
            _ => true,
        }
    }

    /// Raises the largest value of a `min default max` sysctl; `None` when it is that large already.
    fn raise(&self, side: Side, name: &str, to: Bytes) -> Option<Change> {
        let from = self.sysctl(side, name)?;
        let words: Vec<&str> = from.split_whitespace().collect();
        let [min, default, max] = words.as_slice() else { return None };
        if max.parse::<u64>().ok()? >= to.get() {
            return None;
        }
        let to = format!("{min} {default} {}", to.get());
        Some(Change { side, setting: Setting::Sysctl(name.to_owned()), from: Some(from), to })
    }
}

/// Plans what mends `code`; `None` where no setting of these hosts does.
pub fn plan(code: Code, facts: &Facts<'_>) -> Option<Remedy> {
    match code {
        Code::ReceiveWindow => receive_buffer::plan(facts),
        Code::WindowScalingMissing => window_scaling::plan(facts),
        Code::SendBuffer => send_buffer::plan(facts),
        Code::InitialWindow => initial_window::plan(facts),
        Code::RandomLoss | Code::CongestionLoss => congestion::plan(code, facts),
        Code::RetransmissionTimeout => timeout::plan(facts),
        Code::Reader
        | Code::Policer
        | Code::PathRate
        | Code::CongestionWindowClamp
        | Code::IdleRestart
        | Code::DelayedAck
        | Code::PathMtuBlackHole
        | Code::Reordering
        | Code::Bufferbloat
        | Code::Application
        | Code::NothingToGain
        | Code::Unknown => None,
    }
}

/// The next whole MiB: buffer limits are set in round figures.
fn round_up(bytes: u64) -> Bytes {
    Bytes::new(bytes.max(1).next_multiple_of(1 << 20))
}

fn human_time(span: Span) -> String {
    format!("{:.1} ms", span.as_millis_f64())
}

fn human(bytes: Bytes) -> String {
    format!("{:.1} MB", bytes.get() as f64 / 1e6)
}

#[cfg(test)]
mod tests;
