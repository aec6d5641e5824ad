//! What a test's streams did in each interval, and as a whole.

use crate::protocol::datagram::Received;
use crate::protocol::results::{Results, StreamResult};
use crate::stream::{Link, Stream};
use std::sync::Arc;
use std::time::Duration;
use thalweg_infer::socket::{Sample, limit_now, limits, verdict};
use thalweg_model::{
    Code, EndTotal, LimitNow, Limits, Percentiles, StreamInterval, StreamTotal, StreamVerdict, TcpInterval, TcpTotal,
    UdpInterval, UdpTotal, Way,
};

use thalweg_units::figures;

/// Time between two looks at the kernel's figures, as long as there are not too many.
const SAMPLE_PERIOD: Duration = Duration::from_millis(100);
/// Samples that are kept of all streams, and of one at least and at most: two minutes. When there are more, every second one goes and the
/// period doubles.
const SAMPLES_MAX: usize = 20_000;
const STREAM_SAMPLES: (usize, usize) = (64, 1_200);
/// Rows that are kept of a test: 256 streams for a minute and a half, or one for six hours. Later intervals are counted in the sums.
const ROWS_MAX: usize = 25_000;

/// What a stream had come to at a moment.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Delivered: [`Stream::delivered`].
    delivered: u64,
    bytes: u64,
    packets: u64,
    received: Received,
    retransmits: u64,
}

struct Track {
    stream: Arc<Stream>,
    /// The socket's `SO_MAX_PACING_RATE`, which the test's own rate sets, in bits per second.
    paced_bps: Option<f64>,
    /// When the interval began.
    before: Counts,
    /// When the counting began.
    base: Counts,
    /// Of the interval, and of the whole.
    recent: Vec<Sample>,
    samples: Vec<Sample>,
}

/// The course of a test at this end.
pub(crate) struct Sampler {
    tracks: Vec<Track>,
    interval: Duration,
    omit: Duration,
    /// The intervals are still of those that count for nothing.
    is_omitting: bool,
    row_begun: Duration,
    next_sample: Duration,
    period: Duration,
    rows: Vec<StreamInterval>,
    is_cut: bool,
}

impl Sampler {
    /// At the start of the test: time is counted from there.
    pub(crate) fn new(streams: &[Arc<Stream>], interval: Duration, omit: Duration) -> Self {
        let track = |stream: &Arc<Stream>| Track {
            stream: Arc::clone(stream),
            paced_bps: paced_bps(stream),
            before: Counts::default(),
            base: Counts::default(),
            recent: Vec::new(),
            samples: Vec::new(),
        };
        let mut sampler = Self {
            tracks: streams.iter().map(track).collect(),
            interval,
            omit,
            is_omitting: !omit.is_zero(),
            row_begun: Duration::ZERO,
            next_sample: Duration::ZERO,
            period: SAMPLE_PERIOD,
            rows: Vec::new(),
            is_cut: false,
        };
        sampler.sample(Duration::ZERO);
        // The cookie may still be on its way: it is no data of the stream.
        for track in &mut sampler.tracks {
            let counts = Counts { delivered: 0, bytes: 0, ..track.counts() };
            (track.before, track.base) = (counts, counts);
        }
        sampler
    }

    /// When [`Sampler::tick`] is due.
    pub(crate) fn due(&self) -> Duration {
        self.next_sample.min(self.row_end())
    }

    fn row_end(&self) -> Duration {
        let end = self.row_begun + self.interval;
        if self.is_omitting { end.min(self.omit) } else { end }
    }

    /// Looks at the streams; returns the rows of an interval that is over.
    pub(crate) fn tick(&mut self, now: Duration) -> Vec<StreamInterval> {
        if now < self.due() {
            return Vec::new();
        }
        self.sample(now);
        if now < self.row_end() { Vec::new() } else { self.end_row(now) }
    }

    /// Ends the last interval.
    pub(crate) fn finish(&mut self, now: Duration) -> Vec<StreamInterval> {
        self.sample(now);
        // What is left of an interval that has just begun says nothing, unless data came.
        let moved = self.tracks.iter().any(|track| track.counts().delivered > track.before.delivered);
        if moved || now > self.row_begun + self.interval / 10 { self.end_row(now) } else { Vec::new() }
    }

    /// Whether the seconds that count for nothing are not over.
    pub(crate) const fn is_omitting(&self) -> bool {
        self.is_omitting
    }

    /// Bytes that count, of what this end sends, or receives.
    pub(crate) fn bytes(&self, sends: bool) -> u64 {
        let own = self.tracks.iter().filter(|track| track.stream.sends == sends);
        own.map(|track| track.stream.bytes().saturating_sub(track.base.bytes)).sum()
    }

    fn sample(&mut self, now: Duration) {
        for track in &mut self.tracks {
            if let Some(sample) = track.read(now) {
                track.recent.push(sample);
                track.samples.push(sample);
            }
        }
        let (least, most) = STREAM_SAMPLES;
        let most = (SAMPLES_MAX / self.tracks.len().max(1)).clamp(least, most);
        if self.tracks.iter().any(|track| track.samples.len() > most) {
            self.period *= 2;
            for track in &mut self.tracks {
                let mut place = 0;
                track.samples.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
            }
        }
        self.next_sample = now + self.period;
    }

    fn end_row(&mut self, now: Duration) -> Vec<StreamInterval> {
        let zero = if self.is_omitting { Duration::ZERO } else { self.omit };
        let start_s = self.row_begun.saturating_sub(zero).as_secs_f64();
        let seconds = now.saturating_sub(self.row_begun).as_secs_f64().max(1e-9);
        let frame = |way, sender| StreamInterval {
            start_s,
            end_s: start_s + seconds,
            omitted: self.is_omitting,
            way,
            stream: None,
            sender,
            bytes: 0,
            rate_bps: 0.0,
            tcp: None,
            udp: None,
        };
        let mut rows: Vec<StreamInterval> = Vec::new();
        for track in &mut self.tracks {
            let counts = track.counts();
            let bytes = counts.delivered.saturating_sub(track.before.delivered);
            let mut row = frame(track.stream.way, track.stream.sends);
            row.stream = Some(track.stream.id);
            (row.bytes, row.rate_bps) = (bytes, bytes as f64 * 8.0 / seconds);
            (row.tcp, row.udp) = (track.tcp(&counts), track.udp(&counts));
            rows.push(row);
            track.before = counts;
            track.recent.drain(..track.recent.len().saturating_sub(1));
        }
        let sums: Vec<StreamInterval> = [Way::Up, Way::Down].into_iter().filter_map(|way| sum(&rows, way)).collect();
        // With one stream of each direction the sums say it all.
        let several = rows.len() > sums.len();
        let rows = if several { sums.into_iter().chain(rows).collect() } else { sums };
        self.keep(&rows);
        self.row_begun = now;
        if self.is_omitting && now >= self.omit {
            self.is_omitting = false;
            self.omit = now;
            self.begin_counting();
        }
        rows
    }

    fn keep(&mut self, rows: &[StreamInterval]) {
        if self.rows.len() + rows.len() <= ROWS_MAX {
            self.rows.extend_from_slice(rows);
        } else {
            self.is_cut = true;
        }
    }

    fn begin_counting(&mut self) {
        for track in &mut self.tracks {
            track.stream.received().reset_jitter();
            track.base = track.counts();
            track.samples.drain(..track.samples.len().saturating_sub(1));
        }
    }

    /// The rows so far, and whether later ones were left out.
    pub(crate) fn rows(&self) -> (&[StreamInterval], bool) {
        (&self.rows, self.is_cut)
    }

    /// What this end found of each stream, for the other end. `ended` is when the test was over, and `drained` when all that this end
    /// had sent was acknowledged.
    pub(crate) fn results(&self, ended: Duration, drained: Duration) -> Vec<StreamResult> {
        let over = |stream: &Stream| if stream.sends { drained } else { ended.max(stream.last()) };
        self.tracks.iter().map(|track| track.result(over(&track.stream).saturating_sub(self.zero()))).collect()
    }

    fn zero(&self) -> Duration {
        if self.is_omitting { Duration::ZERO } else { self.omit }
    }

    /// Each direction and each stream as a whole, from what this end found and what the other end says.
    pub(crate) fn totals(&self, own: &[StreamResult], peer: Option<&Results>) -> (Vec<StreamTotal>, Vec<StreamTotal>) {
        let one = |(track, own): (&Track, &StreamResult)| track.total(own, peer);
        let streams: Vec<StreamTotal> = self.tracks.iter().zip(own).map(one).collect();
        let sums = [Way::Up, Way::Down].into_iter().filter_map(|way| {
            let of = self.tracks.iter().filter(|track| track.stream.way == way && track.stream.sends);
            whole(&streams, way, round_trips(of.map(|track| &track.samples)))
        });
        (sums.collect(), streams)
    }
}

impl Track {
    fn read(&self, now: Duration) -> Option<Sample> {
        let Link::Tcp(tcp) = &self.stream.link else { return None };
        let (info, memory) = tcp.figures().ok()?;
        let field = |name: &str| if name.starts_with("sk_") { memory.get(name) } else { info.get(name) };
        Some(Sample::of(now.as_secs_f64(), field, self.stream.link.unread()))
    }

    /// What it has come to, retransmissions as of the last sample.
    fn counts(&self) -> Counts {
        Counts {
            delivered: self.stream.delivered(),
            bytes: self.stream.bytes(),
            packets: self.stream.packets(),
            received: *self.stream.received(),
            retransmits: self.samples.last().map_or(0, |sample| sample.sent_again),
        }
    }

    fn tcp(&self, now: &Counts) -> Option<TcpInterval> {
        let last = self.recent.last().filter(|_| self.stream.sends)?;
        Some(TcpInterval {
            retransmits: now.retransmits.saturating_sub(self.before.retransmits),
            cwnd_bytes: last.window * last.segment,
            rtt_ms: (last.rtt_us > 0).then_some(last.rtt_us as f64 / 1e3),
            limit: limit_now(&self.recent),
        })
    }

    fn udp(&self, now: &Counts) -> Option<UdpInterval> {
        if !matches!(self.stream.link, Link::Udp(_)) {
            return None;
        }
        if self.stream.sends {
            let packets = now.packets - self.before.packets;
            return Some(UdpInterval { packets, lost: None, jitter_ms: None });
        }
        let (before, now) = (self.before.received, now.received);
        Some(UdpInterval {
            packets: now.highest - before.highest,
            lost: Some(now.lost.saturating_sub(before.lost)),
            jitter_ms: Some(now.jitter_s * 1e3),
        })
    }

    fn result(&self, ended: Duration) -> StreamResult {
        let counts = self.counts();
        let (packets, omitted) = if self.stream.sends {
            (counts.packets, self.base.packets)
        } else {
            (counts.received.highest, self.base.received.highest)
        };
        let is_udp = matches!(self.stream.link, Link::Udp(_));
        StreamResult {
            id: self.stream.id,
            bytes: counts.bytes - self.base.bytes,
            retransmits: (self.stream.sends && !is_udp)
                .then(|| counts.retransmits.saturating_sub(self.base.retransmits)),
            jitter_s: counts.received.jitter_s,
            lost: counts.received.lost,
            omitted_lost: self.base.received.lost.min(counts.received.lost),
            packets: if is_udp { packets } else { 0 },
            omitted_packets: if is_udp { omitted } else { 0 },
            seconds: ended.as_secs_f64(),
        }
    }

    fn total(&self, own: &StreamResult, peer: Option<&Results>) -> StreamTotal {
        let stream = &self.stream;
        let peer = peer.and_then(|peer| peer.stream(stream.id));
        let (sender, receiver) = if stream.sends { (Some(own), peer) } else { (peer, Some(own)) };
        let end = |one: &StreamResult| {
            // Versions before 3.2 leave the times out.
            let seconds = if one.seconds > 0.0 { one.seconds } else { own.seconds };
            end_total(one.bytes, seconds)
        };
        let is_udp = matches!(stream.link, Link::Udp(_));
        let out_of_order = stream.received().out_of_order.saturating_sub(self.base.received.out_of_order);
        let udp = receiver.filter(|_| is_udp).map(|one| UdpTotal {
            packets: one.packets.saturating_sub(one.omitted_packets),
            lost: one.lost.saturating_sub(one.omitted_lost),
            out_of_order: (!stream.sends).then_some(out_of_order),
            jitter_ms: one.jitter_s * 1e3,
        });
        StreamTotal {
            way: stream.way,
            stream: Some(stream.id),
            sent: sender.map(end),
            received: receiver.map(end),
            retransmits: sender.filter(|_| !is_udp).and_then(|one| one.retransmits),
            tcp: (stream.sends && !is_udp).then(|| self.tcp_total()),
            udp,
        }
    }

    fn tcp_total(&self) -> TcpTotal {
        let judged = verdict(&self.samples).map(|found| {
            let (code, share) = (found.code(), found.share);
            // To the kernel a sender that keeps no more than the rate takes has nothing to send.
            let (code, claim) = match self.paced_bps.filter(|_| code == Code::Application) {
                Some(bps) => (Code::PacingRate, pacing_claim(bps, share)),
                None => (code, found.claim()),
            };
            StreamVerdict { stream: self.stream.id, code, share, claim }
        });
        TcpTotal {
            cwnd_max_bytes: self.samples.iter().map(|sample| sample.window * sample.segment).max().unwrap_or(0),
            rtt_ms: round_trips(std::iter::once(&self.samples)),
            limits: limits(&self.samples),
            verdict: judged,
        }
    }
}

/// The rate that a stream's socket is paced at. Source: Linux, `tcp_get_info`, net/ipv4/tcp.c, which gives all bits set where it is not.
fn paced_bps(stream: &Stream) -> Option<f64> {
    let Link::Tcp(tcp) = &stream.link else { return None };
    let bytes_per_s = tcp.figures().ok()?.0.get("tcpi_max_pacing_rate");
    (stream.sends && bytes_per_s != u64::MAX).then_some(bytes_per_s as f64 * 8.0)
}

fn pacing_claim(bps: f64, share: f64) -> String {
    format!(
        "The sender paces its data at {}, for {} of the time: the rate that this test was given (SO_MAX_PACING_RATE).",
        figures::rate(bps),
        figures::percent(share)
    )
}

fn end_total(bytes: u64, duration_s: f64) -> EndTotal {
    let rate_bps = if duration_s > 0.0 { bytes as f64 * 8.0 / duration_s } else { 0.0 };
    EndTotal { bytes, duration_s, rate_bps }
}

/// The round trips of all samples.
fn round_trips<'a>(of: impl Iterator<Item = &'a Vec<Sample>>) -> Option<Percentiles> {
    let known = of.flatten().filter(|sample| sample.rtt_us > 0);
    let mut all: Vec<f64> = known.map(|sample| sample.rtt_us as f64 / 1e3).collect();
    all.sort_unstable_by(f64::total_cmp);
    let last = all.len().checked_sub(1)?;
    let at = |part: f64| all[(last as f64 * part).round() as usize];
    let (p50, p90, p99, p999) = (at(0.5), at(0.9), at(0.99), at(0.999));
    Some(Percentiles { count: all.len() as u64, p50, p90, p99, p999, max: all[last] })
}

/// The sum of a direction's rows; `None` where there are none.
fn sum(rows: &[StreamInterval], way: Way) -> Option<StreamInterval> {
    let of: Vec<&StreamInterval> = rows.iter().filter(|row| row.way == way).collect();
    let mut sum = (*of.first()?).clone();
    sum.stream = None;
    sum.bytes = of.iter().map(|row| row.bytes).sum();
    sum.rate_bps = of.iter().map(|row| row.rate_bps).sum();
    let tcp: Vec<&TcpInterval> = of.iter().filter_map(|row| row.tcp.as_ref()).collect();
    sum.tcp = (!tcp.is_empty()).then(|| TcpInterval {
        retransmits: tcp.iter().map(|one| one.retransmits).sum(),
        cwnd_bytes: tcp.iter().map(|one| one.cwnd_bytes).sum(),
        rtt_ms: mean(tcp.iter().filter_map(|one| one.rtt_ms)),
        limit: LimitNow::largest_of(mean_limits(tcp.iter().filter_map(|one| one.limit).map(|one| one.limits))),
    });
    let udp: Vec<&UdpInterval> = of.iter().filter_map(|row| row.udp.as_ref()).collect();
    sum.udp = (!udp.is_empty()).then(|| UdpInterval {
        packets: udp.iter().map(|one| one.packets).sum(),
        lost: udp.iter().map(|one| one.lost).sum(),
        jitter_ms: mean(udp.iter().filter_map(|one| one.jitter_ms)),
    });
    Some(sum)
}

/// The sum of a direction's streams; `None` where there are none.
fn whole(streams: &[StreamTotal], way: Way, rtt_ms: Option<Percentiles>) -> Option<StreamTotal> {
    let of: Vec<&StreamTotal> = streams.iter().filter(|stream| stream.way == way).collect();
    of.first()?;
    let end = |pick: fn(&StreamTotal) -> Option<EndTotal>| {
        let ends: Vec<EndTotal> = of.iter().map(|stream| pick(stream)).collect::<Option<_>>()?;
        let seconds = ends.iter().map(|end| end.duration_s).fold(0.0, f64::max);
        Some(end_total(ends.iter().map(|end| end.bytes).sum(), seconds))
    };
    let tcp: Vec<&TcpTotal> = of.iter().filter_map(|stream| stream.tcp.as_ref()).collect();
    let udp: Vec<&UdpTotal> = of.iter().filter_map(|stream| stream.udp.as_ref()).collect();
    let verdicts = tcp.iter().filter_map(|one| one.verdict.clone());
    Some(StreamTotal {
        way,
        stream: None,
        sent: end(|stream| stream.sent),
        received: end(|stream| stream.received),
        retransmits: of.iter().map(|stream| stream.retransmits).sum(),
        tcp: (!tcp.is_empty()).then(|| TcpTotal {
            cwnd_max_bytes: tcp.iter().map(|one| one.cwnd_max_bytes).max().unwrap_or(0),
            rtt_ms,
            limits: mean_limits(tcp.iter().map(|one| one.limits)),
            verdict: verdicts.reduce(|best, one| if one.share > best.share { one } else { best }),
        }),
        udp: (!udp.is_empty()).then(|| UdpTotal {
            packets: udp.iter().map(|one| one.packets).sum(),
            lost: udp.iter().map(|one| one.lost).sum(),
            out_of_order: udp.iter().map(|one| one.out_of_order).sum(),
            jitter_ms: mean(udp.iter().map(|one| one.jitter_ms)).unwrap_or(0.0),
        }),
    })
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

fn mean_limits(all: impl Iterator<Item = Limits>) -> Limits {
    let (mut sum, mut count) = (Limits::default(), 0.0);
    for one in all {
        count += 1.0;
        sum.application += one.application;
        sum.receive_window += one.receive_window;
        sum.send_buffer += one.send_buffer;
        sum.slow_start += one.slow_start;
        sum.congestion_window += one.congestion_window;
        sum.path_rate += one.path_rate;
        sum.loss_recovery += one.loss_recovery;
        sum.timeout += one.timeout;
        sum.reader += one.reader;
    }
    let part = |value: f64| if count > 0.0 { value / count } else { 0.0 };
    Limits {
        application: part(sum.application),
        receive_window: part(sum.receive_window),
        send_buffer: part(sum.send_buffer),
        slow_start: part(sum.slow_start),
        congestion_window: part(sum.congestion_window),
        path_rate: part(sum.path_rate),
        loss_recovery: part(sum.loss_recovery),
        timeout: part(sum.timeout),
        reader: part(sum.reader),
    }
}
