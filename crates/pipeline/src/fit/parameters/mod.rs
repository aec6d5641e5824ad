//! The parameters of a model of a connection's path and hosts, and the scenario they make.

use crate::chance::meets_chance;
use crate::failure::Failure;
use crate::fit::observed::{FullQueue, LIMIT_BELOW_PATH, RTT_RESOLUTION, ShownBy, delivered};
use std::fmt::Write as _;
use thalweg_lab::CaptureEnds;
use thalweg_model::{
    BufferState, Change, Code, FamilyName, FittedParameter, Flow, Handshake, LossClass, Origin, RttSource, Scenario,
    Setting, Side, Vantage, Way,
};
use thalweg_units::{Bytes, Rate, Ratio, Span};

/// What a model holds for the origin of losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LossModel {
    /// Nothing is lost but what a queue has no room for.
    Queue,
    /// Packets vanish independently of each other and of the queue.
    Random,
    /// Packets vanish in bursts: a chain of two states.
    Bursts,
    /// A token bucket discards what is over its rate.
    Policer,
}

impl LossModel {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Queue => "drop-tail queue",
            Self::Random => "random loss",
            Self::Bursts => "bursts of loss",
            Self::Policer => "policer",
        }
    }

    /// Whether another mechanism drops the packets; losses one by one and in bursts are of one kind.
    pub(crate) fn has_other_origin(self, other: Self) -> bool {
        self != other && !(self.is_random() && other.is_random())
    }

    /// Whether packets vanish by chance.
    pub(crate) const fn is_random(self) -> bool {
        matches!(self, Self::Random | Self::Bursts)
    }
}

/// A limit of a socket buffer, and whether a program fixed it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buffer {
    pub(crate) bytes: f64,
    pub(crate) fixed: bool,
    pub(crate) origin: Origin,
}

/// A model's parameters.
#[derive(Debug, Clone)]
pub(crate) struct Parameters {
    pub(crate) loss_model: LossModel,
    pub(crate) direction: Way,
    /// At which end the capture was taken.
    pub(crate) tap: Side,
    pub(crate) rtt_s: f64,
    /// On the wire, Ethernet's header included.
    pub(crate) rate_bps: f64,
    pub(crate) rate_origin: Origin,
    pub(crate) queue_bytes: f64,
    pub(crate) queue_origin: Origin,
    pub(crate) loss: f64,
    /// Mean packets of a burst.
    pub(crate) burst_packets: f64,
    pub(crate) jitter_s: f64,
    pub(crate) policer: Option<(f64, f64)>,
    pub(crate) mtu: u16,
    pub(crate) receive: Buffer,
    pub(crate) send: Buffer,
    pub(crate) first_window: u64,
    pub(crate) initcwnd: Option<u64>,
    /// Segments that a bound on the sender's congestion window leaves it.
    pub(crate) clamp: Option<f64>,
    /// The rate that the sending program paces at, bits per second.
    pub(crate) pacing_bps: Option<f64>,
    pub(crate) congestion: &'static str,
    pub(crate) congestion_origin: Origin,
    pub(crate) window_scaling: bool,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    /// All of the transfer, or its first seconds.
    pub(crate) amount: Amount,
}

/// How much is transferred.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Amount {
    Bytes(u64),
    Seconds(f64),
}

/// Windows are at most this part of a receive buffer on kernels that measure it. Source: Linux 6.6, `TCP_DEFAULT_SCALING_RATIO`.
const WINDOW_PART: f64 = 0.5;
/// Linux's defaults of the largest receive and send buffer: net/ipv4/tcp.c, `tcp_init`, before 6.16.
const RECEIVE_BUFFER: f64 = (6 << 20) as f64;
const SEND_BUFFER: f64 = (4 << 20) as f64;
const ETHERNET_HEADER: u64 = 14;
/// If the capture never shows the path's rate: this multiple of the largest delivery rate.
const RATE_UNSEEN: f64 = 4.0;
/// Losses of one round trip that a queue explains and independent losses do not.
pub(crate) const OVERRUN_PACKETS: u64 = 8;
/// The least confidence with which the sender's congestion control is taken from the capture.
const FAMILY_CONFIDENCE: f64 = 0.6;

impl Parameters {
    /// Multiplies what is measured: the path's rate, the round trip, the queue or the bucket, and what a host limits itself to.
    pub(crate) const MEASURED: [fn(&mut Self, f64); 4] = [
        |model, factor| {
            model.rate_bps *= factor;
            model.policer = model.policer.map(|(rate, burst)| (rate * factor, burst));
        },
        |model, factor| model.rtt_s *= factor,
        |model, factor| {
            model.queue_bytes *= factor;
            model.policer = model.policer.map(|(rate, burst)| (rate, burst * factor));
        },
        Self::multiply_bounds,
    ];

    /// Multiplies what the capture shows of the hosts' own limits.
    pub(crate) fn multiply_bounds(&mut self, factor: f64) {
        let buffers = [&mut self.receive, &mut self.send].into_iter();
        buffers.filter(|buffer| buffer.origin == Origin::Calibrated).for_each(|buffer| buffer.bytes *= factor);
        self.clamp = self.clamp.map(|segments| segments * factor);
        self.pacing_bps = self.pacing_bps.map(|bps| bps * factor);
    }

    /// What it holds for the origin of losses, and the buffer that they are behind.
    pub(crate) fn name(&self) -> String {
        let buffer = if self.send.origin == Origin::Calibrated { " behind a send buffer" } else { "" };
        let control =
            if self.sends_with_bbr() && self.congestion_origin == Origin::Assumed { ", sent by BBR" } else { "" };
        format!("{}{buffer}{control}", self.loss_model.name())
    }

    pub(crate) fn sends_with_bbr(&self) -> bool {
        self.congestion == "bbr"
    }

    /// Bounds what is in flight by the send buffer.
    pub(crate) fn bound_flight(&mut self, flow: &Flow) {
        let bytes = flow.measured.send_buffer_bytes.unwrap_or(flow.measured.flight_max_bytes) as f64;
        self.send = Buffer { bytes, fixed: false, origin: Origin::Calibrated };
    }

    /// Whether the capture shows a limit of a host's own.
    pub(crate) fn is_bounded(&self) -> bool {
        let buffers = [&self.receive, &self.send];
        buffers.iter().any(|buffer| buffer.origin == Origin::Calibrated)
            || self.clamp.is_some()
            || self.pacing_bps.is_some()
    }

    /// What the capture alone says of the connection, for a model of its losses.
    pub(crate) fn of(flow: &Flow, loss_model: LossModel, amount: Amount) -> Self {
        let handshake = &flow.handshake;
        let timestamps = handshake.timestamps.unwrap_or(true);
        let ipv6 = flow.client.starts_with('[');
        let ip = if ipv6 { 40 } else { 20 } + 20 + if timestamps { 12 } else { 0 };
        let segment = if flow.measured.segment_bytes > 0 { flow.measured.segment_bytes } else { 1448 };
        // Where offloads merge segments before the tap, the handshake knows better.
        let agreed = [handshake.mss_client, handshake.mss_server].into_iter().flatten().min();
        let segment = agreed.map_or(segment, |mss| segment.min(u64::from(mss) - if timestamps { 12 } else { 0 }));
        // The lab speaks IPv4: headers as long as the capture's are not worth a difference in the rate.
        let headers = (ip + ETHERNET_HEADER) as f64;
        let on_wire = |payload_bps: f64| payload_bps * (segment as f64 + headers) / segment as f64;
        let bucket = flow.policer.filter(|_| loss_model == LossModel::Policer);
        let seen = match bucket {
            // What passes at the policer's rate says nothing of the path that leads there.
            Some(bucket) => flow.measured.fastest_bps.filter(|seen| *seen >= bucket.rate_bps * LIMIT_BELOW_PATH),
            None => ShownBy::of(flow).and_then(|by| by.rate(&flow.measured)),
        };
        let delivered = delivered(flow);
        // The path carries a policer's bursts, and more than its rate.
        let carried = bucket.map_or(delivered, |bucket| delivered.max(bucket.rate_bps));
        let rate_bps = on_wire(seen.unwrap_or(carried * RATE_UNSEEN));
        let (rtt_s, p50_s, max_s) = round_trips(flow);
        let losses = flow.facts.losses.as_deref();
        // Random losses are seldom this many in a round trip: slow start overran the queue.
        let overran = losses.is_some_and(|losses| losses.packets_max >= OVERRUN_PACKETS);
        let lost_to_queue =
            losses.is_some() && (loss_model == LossModel::Queue || overran && loss_model == LossModel::Random);
        let full_s = FullQueue::of(flow).rtt_ms(flow.verdict.code()).map_or(max_s, |ms| ms / 1e3);
        let standing = (if lost_to_queue { full_s } else { max_s } - rtt_s).max(0.0) * rate_bps / 8.0;
        // A queue that never overflowed held at least what waited in it, and two thirds of what fills the path is usual.
        let queue_bytes = if lost_to_queue { standing } else { (standing * 1.5).max(rate_bps * rtt_s / 8.0 * 0.66) };
        let (congestion, congestion_origin) = congestion(flow);
        Self {
            loss_model,
            direction: flow.direction,
            tap: tap(flow.vantage, flow.direction),
            rtt_s,
            rate_bps,
            rate_origin: if seen.is_some() { Origin::Measured } else { Origin::Assumed },
            queue_bytes: queue_bytes.max(4.0 * 1514.0),
            queue_origin: if lost_to_queue { Origin::Measured } else { Origin::Assumed },
            loss: lost_part(flow, loss_model, congestion),
            burst_packets: losses.map_or(1.0, |all| (all.packets as f64 / all.episodes.max(1) as f64).max(1.0)),
            jitter_s: if queue_seldom(flow) { (p50_s - rtt_s - rtt_s * RTT_RESOLUTION).max(0.0) } else { 0.0 },
            policer: bucket.map(|bucket| (bucket.rate_bps, bucket.burst_bytes)),
            mtu: (segment + 40 + if timestamps { 12 } else { 0 }).clamp(576, 9000) as u16,
            receive: receive_buffer(flow, is_scaled(handshake)),
            send: send_buffer(flow),
            first_window: flow.facts.receive_window.as_deref().map_or(0, |window| window.first_bytes),
            initcwnd: flow
                .facts
                .initial_window
                .filter(|first| first.exact)
                .map(|first| first.segments.round().clamp(1.0, 200.0) as u64),
            clamp: stands(flow, Code::CongestionWindowClamp)
                .then(|| flow.measured.flight_max_bytes as f64 / segment as f64),
            pacing_bps: stands(flow, Code::PacingRate).then_some(delivered),
            congestion,
            congestion_origin,
            window_scaling: is_scaled(handshake),
            sack: handshake.sack.unwrap_or(true),
            timestamps,
            amount,
        }
    }

    /// The same, sent by BBR, where the capture does not show what it was sent by.
    pub(crate) fn by_bbr(mut self, flow: &Flow) -> Option<Self> {
        if self.congestion_origin != Origin::Assumed {
            return None;
        }
        self.congestion = "bbr";
        self.loss = lost_part(flow, self.loss_model, self.congestion);
        // It leaves no room for growth unused, so nothing but the buffer keeps what is in flight within Linux's default.
        let flight = flow.measured.flight_max_bytes as f64;
        if self.send.origin == Origin::Assumed && flight < SEND_BUFFER {
            self.send.bytes = SEND_BUFFER;
        }
        Some(self)
    }

    /// As a scenario file with one arm, `as found`, and others that add TOML to it.
    pub(crate) fn to_toml(
        &self,
        name: &str,
        about: &str,
        arms: &[(String, String)],
        expect: &[(String, String)],
    ) -> String {
        let mut toml = String::new();
        let _ = writeln!(toml, "name = \"{name}\"\nabout = \"{about}\"\n");
        let _ = writeln!(toml, "[path]\nrtt = \"{}\"\nmtu = {}\n", self.rtt(), self.mtu);
        let data = self.direction.as_str();
        let _ = writeln!(toml, "[path.{data}]\nrate = \"{}\"\nqueue = \"{}\"", self.rate(), self.queue());
        for parameter in self.of_losses() {
            let key = parameter.key.rsplit('.').next().unwrap_or_default();
            let _ = writeln!(toml, "{key} = {}", parameter.value);
        }
        let amount = match self.amount {
            Amount::Bytes(bytes) => format!("bytes = \"{}\"", Bytes::new(bytes)),
            Amount::Seconds(seconds) => format!("seconds = \"{}\"", Span::from_secs_f64(seconds)),
        };
        let _ = writeln!(toml, "\n[workload]\nkind = \"stream\"\ndirection = \"{data}\"\n{amount}");
        for side in [Side::Client, Side::Server] {
            let keys = self.of_host(side);
            if !keys.is_empty() {
                let _ = writeln!(toml, "\n[{}]", side.as_str());
                keys.iter().for_each(|(key, value, _)| {
                    let _ = writeln!(toml, "{key} = {value}");
                });
            }
        }
        let _ = writeln!(toml, "\n[[arm]]\nname = \"as found\"");
        for (name, keys) in arms {
            let _ = write!(toml, "\n[[arm]]\nname = \"{name}\"\n{keys}");
        }
        if !expect.is_empty() {
            let _ = writeln!(toml, "\n[expect]");
            expect.iter().for_each(|(figure, wanted)| {
                let _ = writeln!(toml, "\"{figure}\" = \"{wanted}\"");
            });
        }
        toml
    }

    /// What is run: read back from the scenario, so that the file a user gets is what was run.
    pub(crate) fn scenario(&self, name: &str) -> Result<Scenario, Failure> {
        read(name, &self.to_toml(name, "", &[], &[]))
    }

    /// Whether another seed gives another run.
    pub(crate) fn is_of_chance(&self) -> Result<bool, Failure> {
        Ok(meets_chance(&self.scenario("fitted")?.arms[0].experiment))
    }

    /// For the report.
    pub(crate) fn list(&self) -> Vec<FittedParameter> {
        let one = |key: &str, value: String, origin| FittedParameter { key: key.to_owned(), value, origin };
        let data = self.direction.as_str();
        let mut list = vec![
            one("path.rtt", self.rtt().to_string(), Origin::Measured),
            one(&format!("path.{data}.rate"), self.rate().to_string(), self.rate_origin),
            one(&format!("path.{data}.queue"), self.queue().to_string(), self.queue_origin),
        ];
        list.extend(self.of_losses());
        for side in [Side::Client, Side::Server] {
            list.extend(self.of_host(side).into_iter().map(|(key, value, origin)| {
                one(&format!("{}.{key}", side.as_str()), value.trim_matches('"').to_owned(), origin)
            }));
        }
        list
    }

    /// The buffers of both hosts that carry this rate over this path. A window is a part of what is charged to either.
    pub(crate) fn buffers_for(&self, bps: f64) -> Vec<Change> {
        let mib = (bps * self.rtt_s / 8.0 / WINDOW_PART / f64::from(1 << 20)).ceil() as u64;
        let buffer = |side, name: &str, first: u64| Change {
            side,
            setting: Setting::Sysctl(format!("net.ipv4.{name}")),
            from: None,
            to: format!("4096 {first} {}", mib << 20),
        };
        let sender = self.sender();
        vec![buffer(sender.other(), "tcp_rmem", 131_072), buffer(sender, "tcp_wmem", 16_384)]
    }

    pub(crate) const fn sender(&self) -> Side {
        match self.direction {
            Way::Down => Side::Server,
            Way::Up => Side::Client,
        }
    }

    fn rtt(&self) -> Span {
        Span::from_micros((self.rtt_s * 1e6).round().max(1.0) as u64)
    }

    fn rate(&self) -> Rate {
        Rate::from_bits_per_second(digits(self.rate_bps.max(1000.0)) as u64)
    }

    fn queue(&self) -> Bytes {
        Bytes::new(digits(self.queue_bytes.max(3000.0)) as u64)
    }

    /// Loss, jitter and policer, values as TOML has them.
    fn of_losses(&self) -> Vec<FittedParameter> {
        let data = self.direction.as_str();
        let one =
            |key: &str, value: String, origin| FittedParameter { key: format!("path.{data}.{key}"), value, origin };
        let ratio = |part: f64| Ratio::new(part.clamp(0.0, 0.9)).unwrap_or(Ratio::ZERO);
        let mut list = Vec::new();
        match self.loss_model {
            LossModel::Random if self.loss > 0.0 => {
                list.push(one("loss", format!("\"{}\"", ratio(digits(self.loss))), Origin::Calibrated));
            }
            LossModel::Bursts if self.loss > 0.0 => {
                // In the bad state everything is lost, so the burst's mean length is 1/r.
                let r = 1.0 / self.burst_packets.max(1.01);
                let p = (self.loss * r / (1.0 - self.loss).max(0.1)).min(0.5);
                let value = format!(
                    "{{ model = \"gilbert-elliott\", p = \"{}\", r = \"{}\", h = \"0%\", k = \"100%\" }}",
                    ratio(digits(p)),
                    ratio(digits(r))
                );
                list.push(one("loss", value, Origin::Calibrated));
            }
            _ => {}
        }
        if let Some((rate, burst)) = self.policer {
            let (rate, burst) = (Rate::from_bits_per_second(digits(rate) as u64), Bytes::new(digits(burst) as u64));
            list.push(one("policer", format!("{{ rate = \"{rate}\", burst = \"{burst}\" }}"), Origin::Calibrated));
        }
        if self.jitter_s > 2e-4 {
            let stddev = Span::from_micros((self.jitter_s * 1e6).round() as u64);
            let value = format!("{{ stddev = \"{stddev}\", distribution = \"normal\", reorder = false }}");
            list.push(one("jitter", value, Origin::Calibrated));
        }
        list
    }

    /// A host's keys, values as TOML has them.
    fn of_host(&self, side: Side) -> Vec<(String, String, Origin)> {
        let sysctl =
            |name: &str, value: &str, origin| (format!("sysctl.\"net.{name}\""), format!("\"{value}\""), origin);
        let mut keys = Vec::new();
        if side == self.sender() {
            keys.push(("socket.congestion".to_owned(), format!("\"{}\"", self.congestion), self.congestion_origin));
            keys.extend(self.initcwnd.map(|first| ("route.initcwnd".to_owned(), first.to_string(), Origin::Measured)));
            let clamp = self.clamp.map(|segments| segments.round().max(1.0).to_string());
            keys.extend(clamp.map(|segments| ("route.cwnd".to_owned(), segments, Origin::Calibrated)));
            let pacing = self.pacing_bps.map(|bps| Rate::from_bits_per_second(digits(bps) as u64));
            keys.extend(
                pacing.map(|rate| ("socket.max_pacing_rate".to_owned(), format!("\"{rate}\""), Origin::Calibrated)),
            );
            let bytes = digits(self.send.bytes) as u64;
            keys.push(sysctl("ipv4.tcp_wmem", &format!("4096 {} {bytes}", bytes.min(16_384)), self.send.origin));
        } else if self.receive.fixed {
            let half = digits(self.receive.bytes / 2.0) as u64;
            // net.core.rmem_max is the whole kernel's and no namespace's: with `force` it does not bind.
            keys.push(("socket.rcvbuf".to_owned(), format!("\"{}\"", Bytes::new(half)), self.receive.origin));
            keys.push(("socket.force".to_owned(), "true".to_owned(), Origin::Assumed));
        } else {
            let bytes = digits(self.receive.bytes) as u64;
            // The first window is half of the second figure, less what rounding to segments takes.
            let first = if self.first_window >= 4096 { (self.first_window as f64 * 2.04) as u64 } else { 131_072 };
            let first = first.min(bytes);
            keys.push(sysctl("ipv4.tcp_rmem", &format!("4096 {first} {bytes}"), self.receive.origin));
        }
        if !self.window_scaling {
            keys.push(sysctl("ipv4.tcp_window_scaling", "0", Origin::Measured));
        }
        if !self.sack {
            keys.push(sysctl("ipv4.tcp_sack", "0", Origin::Measured));
        }
        if !self.timestamps {
            keys.push(sysctl("ipv4.tcp_timestamps", "0", Origin::Measured));
        }
        keys
    }
}

/// Four significant digits: a fitted value has no more.
fn digits(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let unit = 10f64.powf(value.log10().floor() - 3.0);
    (value / unit).round() * unit
}

/// At which end a capture was taken.
pub(crate) fn tap(vantage: Vantage, direction: Way) -> Side {
    match (vantage == Vantage::Sender, direction) {
        (true, Way::Down) | (false, Way::Up) => Side::Server,
        (true, Way::Up) | (false, Way::Down) => Side::Client,
    }
}

/// A capture of the lab at that end.
pub(crate) const fn capture_at(tap: Side) -> CaptureEnds {
    match tap {
        Side::Client => CaptureEnds::Client,
        Side::Server => CaptureEnds::Server,
    }
}

/// Reads a fitted scenario, which names no file.
pub(crate) fn read(name: &str, toml: &str) -> Result<Scenario, Failure> {
    let none = |file: &str| Err(std::io::Error::other(format!("no file '{file}'")));
    thalweg_config::parse_scenario(name, toml, &[], &none).map_err(|error| Failure::host(error.to_string()))
}

/// The shortest round trip, half of all, and the longest without what only a timer explains, in seconds.
fn round_trips(flow: &Flow) -> (f64, f64, f64) {
    let rtt = flow.facts.rtt.as_deref();
    let min = flow.rtt_min_ms.or_else(|| rtt.map(|rtt| rtt.p50_ms)).unwrap_or(1.0);
    // A delayed acknowledgement or a retransmission makes single samples long.
    let long = rtt.filter(|rtt| rtt.source != RttSource::Handshake).map_or(min, |rtt| rtt.p99_ms);
    (min / 1e3, rtt.map_or(min, |rtt| rtt.p50_ms) / 1e3, long / 1e3)
}

/// Whether the queue has nothing to do with how long round trips are, most of the time.
fn queue_seldom(flow: &Flow) -> bool {
    let class = flow.facts.losses.as_deref().and_then(|losses| losses.class);
    flow.limits.path_rate < 0.2 && !matches!(class, Some(LossClass::Queue | LossClass::Mixed))
}

/// Whether windows are scaled; a handshake that is not in the capture says nothing against it.
fn is_scaled(handshake: &Handshake) -> bool {
    let both = handshake.wscale_client.is_some() && handshake.wscale_server.is_some();
    both || handshake.rtt_ms.is_none()
}

/// Whether a cause stands, first or beside another.
fn stands(flow: &Flow, code: Code) -> bool {
    flow.verdict.code() == code || flow.findings.iter().any(|finding| finding.code() == code)
}

/// The receive buffer behind the windows that were advertised.
fn receive_buffer(flow: &Flow, is_scaled: bool) -> Buffer {
    let window = flow.measured.window_max_bytes as f64;
    // Without a scale the field bounds the window, whatever the buffer holds.
    let state = flow.facts.receive_window.as_deref().and_then(|window| window.state);
    let is_field = !is_scaled && window >= f64::from(u16::MAX) * (1.0 - RTT_RESOLUTION);
    let state = state.filter(|_| !is_field);
    let bytes = window / WINDOW_PART;
    let fixed = state == Some(BufferState::Fixed);
    if fixed || state == Some(BufferState::Capped) || stands(flow, Code::ReceiveWindow) {
        Buffer { bytes, fixed, origin: Origin::Calibrated }
    } else {
        Buffer { bytes: RECEIVE_BUFFER.max(bytes), fixed, origin: Origin::Assumed }
    }
}

/// The sender's congestion control, and how it is known.
fn congestion(flow: &Flow) -> (&'static str, Origin) {
    let family = flow.facts.congestion_control.filter(|family| family.confidence >= FAMILY_CONFIDENCE);
    match family.map(|family| family.name) {
        Some(FamilyName::Reno) => ("reno", Origin::Measured),
        Some(FamilyName::Bbr) => ("bbr", Origin::Measured),
        Some(FamilyName::Cubic) => ("cubic", Origin::Measured),
        Some(FamilyName::Unknown) | None => ("cubic", Origin::Assumed),
    }
}

/// The part of the packets that vanish by a model.
fn lost_part(flow: &Flow, loss_model: LossModel, congestion: &str) -> f64 {
    let Some(losses) = flow.facts.losses.as_deref() else { return 0.0 };
    let lost = match loss_model {
        LossModel::Queue | LossModel::Policer => return 0.0,
        // Each independent loss is an episode of its own, mostly, and larger ones are a queue's; who sends on through losses meets many in one.
        LossModel::Random if congestion != "bbr" => losses.episodes,
        LossModel::Random | LossModel::Bursts => losses.packets,
    };
    let data = if flow.direction == Way::Down { flow.packets_down } else { flow.packets_up };
    lost as f64 / data.max(1) as f64
}

/// The send buffer behind what was in flight.
fn send_buffer(flow: &Flow) -> Buffer {
    let flight = flow.measured.flight_max_bytes as f64;
    if stands(flow, Code::SendBuffer) {
        let bytes = flow.measured.send_buffer_bytes.map_or(flight * 2.0, |bytes| bytes as f64);
        return Buffer { bytes, fixed: false, origin: Origin::Calibrated };
    }
    // A flight and what its packets cost fit in.
    Buffer { bytes: SEND_BUFFER.max(flight * 4.0), fixed: false, origin: Origin::Assumed }
}

#[cfg(test)]
pub(crate) mod tests;
