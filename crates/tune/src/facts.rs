//! What is known of a path and its hosts when a remedy is planned.

use thalweg_model::since::Release;
use thalweg_model::{
    Cause, Change, FamilyName, Flow, Handshake, HostReport, Measured, Setting, SettingsReport, Side, TokenBucket, Way,
};
use thalweg_units::{Bytes, Rate, Span};

pub(crate) const CONGESTION_CONTROL: &str = "net.ipv4.tcp_congestion_control";

/// What is known of the path and the hosts when a remedy is planned.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// Which way the data goes.
    pub direction: Way,
    /// Release of the kernel the hosts run; `None` where it is not known.
    pub kernel: Option<Release>,
    /// The hosts' settings as their kernels read them back; what is not there is not known.
    pub settings: &'a SettingsReport,
    /// Buffers that programs set, by side and name: that stops auto-tuning.
    pub fixed_buffers: Vec<(Side, &'static str)>,
    /// Round-trip time without queues.
    pub rtt: Span,
    /// Payload rate that the path's bottleneck carries, where it is known.
    pub path_rate: Option<Rate>,
    /// What the connection shows.
    pub measured: Measured,
    /// What the handshake agreed.
    pub handshake: Handshake,
    /// Segments in the first flight, where the beginning was seen, and whether that is all that its window allowed.
    pub first_flight: Option<(u64, bool)>,
    /// How long the sender was silent until a timer fired, on average; zero where it never was.
    pub silence: Span,
    /// Acknowledgements wait in a queue of the other direction.
    pub acks_wait: bool,
    /// Whose congestion control the sender's window shows.
    pub family: Option<FamilyName>,
    /// Slow start ended without a loss, and growing on from there took longer than it did.
    pub crept: bool,
    /// When the acknowledgements come that small writes wait for.
    pub ack_timing: AckTiming,
    /// The token bucket on the path.
    pub policer: Option<TokenBucket>,
    /// Payload of the direction.
    pub bytes: u64,
    /// The hosts speak IPv6.
    pub ipv6: bool,
}

/// When the other side acknowledges what small writes wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AckTiming {
    /// After a round trip.
    AtOnce,
    /// Later: it delays them.
    #[default]
    Delayed,
}

impl AckTiming {
    fn of(flow: &Flow) -> Self {
        let verdicts = std::iter::once(&flow.verdict).chain(flow.findings.iter().map(|finding| &finding.verdict));
        let is_at_once = |cause: &Cause| matches!(cause, Cause::DelayedAck(writes) if writes.by_round_trips);
        if verdicts.into_iter().any(|verdict| is_at_once(&verdict.cause)) { Self::AtOnce } else { Self::Delayed }
    }
}

impl<'a> Facts<'a> {
    /// What a connection alone shows, with what is known of its hosts.
    pub fn of_flow(flow: &Flow, kernel: Option<Release>, settings: &'a SettingsReport) -> Self {
        Self {
            direction: flow.direction,
            kernel,
            settings,
            fixed_buffers: Vec::new(),
            rtt: Span::from_secs_f64(flow.rtt_min_ms.unwrap_or(0.0) / 1e3),
            path_rate: flow.measured.capacity_bps.map(three_digits),
            measured: flow.measured,
            handshake: flow.handshake.clone(),
            first_flight: flow.facts.initial_window.map(|first| (first.segments.round().max(1.0) as u64, first.exact)),
            silence: Span::from_secs_f64(flow.limits.timeout * flow.phase_s / flow.retransmits.rto.max(1) as f64),
            acks_wait: flow.facts.rtt.as_deref().is_some_and(|rtt| rtt.ack_wait_ms.is_some()),
            family: flow.facts.congestion_control.map(|family| family.name),
            crept: flow.facts.slow_start.is_some_and(|start| start.crept),
            ack_timing: AckTiming::of(flow),
            policer: flow.policer,
            bytes: if flow.direction == Way::Up { flow.bytes_up } else { flow.bytes_down },
            ipv6: flow.client.starts_with('['),
        }
    }

    /// The host that sends the data.
    pub const fn sender(&self) -> Side {
        match self.direction {
            Way::Down => Side::Server,
            Way::Up => Side::Client,
        }
    }

    /// The host that receives it.
    pub const fn receiver(&self) -> Side {
        self.sender().other()
    }

    /// What fills the path; `None` where its rate is not known.
    pub fn bdp(&self) -> Option<Bytes> {
        self.path_rate.map(|rate| rate.bdp(self.rtt)).filter(|bdp| bdp.get() > 0)
    }

    /// Payload of a full segment.
    pub(crate) fn segment(&self) -> u64 {
        /// Ethernet's 1500 bytes without headers and timestamps.
        const COMMON: u64 = 1448;
        if self.measured.segment_bytes > 0 { self.measured.segment_bytes } else { COMMON }
    }

    const fn host(&self, side: Side) -> &HostReport {
        match side {
            Side::Client => &self.settings.client,
            Side::Server => &self.settings.server,
        }
    }

    /// What a setting is; `None` where it is not known, or not set.
    pub(crate) fn value(&self, side: Side, setting: &Setting) -> Option<&String> {
        let host = self.host(side);
        match setting {
            Setting::Sysctl(name) => host.sysctl.get(name),
            Setting::Route(name) => host.route.get(name),
            Setting::Socket(name) => host.socket.get(name),
        }
    }

    pub(crate) fn sysctl(&self, side: Side, name: &str) -> Option<&String> {
        self.host(side).sysctl.get(name)
    }

    /// The congestion control of a host's connections; `None` where it is not known.
    pub(crate) fn congestion_control(&self, side: Side) -> Option<&String> {
        self.value(side, &Setting::Socket("congestion".to_owned())).or_else(|| self.sysctl(side, CONGESTION_CONTROL))
    }

    /// Whether a host's settings say BBR, or the sender's window shows it where they are not known.
    pub(crate) fn sends_with_bbr(&self, side: Side) -> bool {
        let is_seen = || side == self.sender() && self.family == Some(FamilyName::Bbr);
        self.congestion_control(side).map_or_else(is_seen, |chosen| chosen == "bbr")
    }

    /// Sets it; `None` where it is so already.
    pub(crate) fn set(&self, side: Side, setting: Setting, to: impl Into<String>) -> Option<Change> {
        let (from, to) = (self.value(side, &setting).cloned(), to.into());
        (from.as_ref() != Some(&to)).then_some(Change { side, setting, from, to })
    }
}

/// A measured rate, with as many digits as it is known to.
fn three_digits(bps: f64) -> Rate {
    let unit = 10f64.powf((bps.max(1.0).log10() - 2.0).floor()).max(1.0);
    Rate::from_bits_per_second(((bps / unit).round() * unit) as u64)
}

pub(crate) fn sysctl(name: &str) -> Setting {
    Setting::Sysctl(name.to_owned())
}

pub(crate) fn route(name: &str) -> Setting {
    Setting::Route(name.to_owned())
}

pub(crate) fn socket(name: &str) -> Setting {
    Setting::Socket(name.to_owned())
}
