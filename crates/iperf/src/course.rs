//! The course of a test at one end: its streams, the threads that move them, and what is counted.

use crate::control::Control;
use crate::protocol::parameters::{Parameters, Senders, Transport};
use crate::protocol::results::{Results, ServerOutput, StreamResult};
use crate::sampler::Sampler;
use crate::stream::{Link, Stream};
use crate::worker::{Phase, Shared, Workers};
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;
use thalweg_host::HostError;
use thalweg_host::cpu_time::CpuTime;
use thalweg_host::tcp_info::TcpInfo;
use thalweg_model::{CpuShare, StreamCpu, StreamInterval, StreamLoadReport, StreamTest, Way};

/// Time for what a sender has written to be acknowledged, after its last write.
const ACKNOWLEDGED: Duration = Duration::from_secs(1);
/// Time for what is on its way to a receiver to come, after the end.
const ARRIVED: Duration = Duration::from_secs(2);
/// With that, two round trips: nothing more comes when nothing has come for so long.
const QUIET: Duration = Duration::from_millis(20);
/// How often a wait for data looks.
const LOOK: Duration = Duration::from_millis(2);

/// A test that runs.
pub(crate) struct Course {
    pub(crate) parameters: Parameters,
    pub(crate) streams: Vec<Arc<Stream>>,
    workers: Workers,
    sampler: Sampler,
    cpu_before: CpuTime,
    is_limited: bool,
    is_finished: bool,
    /// When it ended, and when all that was sent had arrived.
    ended: Duration,
    drained: Duration,
    cpu: [f64; 3],
}

impl Course {
    /// Begins: data flows from here on.
    ///
    /// # Errors
    /// When the kernel gives no descriptor or thread.
    pub(crate) fn start(
        parameters: Parameters,
        streams: Vec<Arc<Stream>>,
        is_server: bool,
        file: Option<File>,
        interval: Duration,
    ) -> Result<Self, HostError> {
        let workers = Workers::start(Shared::new(&parameters, is_server, file), &streams)?;
        let omit = Duration::from_secs(parameters.ending.omit_seconds);
        let sampler = Sampler::new(&streams, interval, omit);
        let mut course = Self {
            parameters,
            streams,
            workers,
            sampler,
            cpu_before: CpuTime::of_thread(),
            is_limited: false,
            is_finished: false,
            ended: Duration::ZERO,
            drained: Duration::ZERO,
            cpu: [0.0; 3],
        };
        course.limit();
        course.workers.enter(Phase::Running);
        Ok(course)
    }

    /// What is sent counts from here on against the bytes that end the test.
    fn limit(&mut self) {
        let begins = !self.sampler.is_omitting() && !std::mem::replace(&mut self.is_limited, true);
        if let Some(bytes) = self.parameters.budget().filter(|_| begins) {
            self.workers.shared.limit(bytes);
        }
    }

    /// Since the start.
    pub(crate) fn now(&self) -> Duration {
        self.workers.shared.begun.elapsed()
    }

    /// Looks at the streams; returns the rows of an interval that is over.
    pub(crate) fn tick(&mut self) -> Vec<StreamInterval> {
        let rows = self.sampler.tick(self.now());
        self.limit();
        rows
    }

    /// How long until the next [`Course::tick`], and at most until `end`.
    pub(crate) fn wait(&self, end: Option<Duration>) -> Duration {
        let due = self.sampler.due();
        end.map_or(due, |end| due.min(end)).saturating_sub(self.now())
    }

    /// When the clock ends it.
    pub(crate) fn end(&self) -> Option<Duration> {
        let ending = self.parameters.ending;
        (ending.seconds > 0).then(|| Duration::from_secs(ending.omit_seconds + ending.seconds))
    }

    /// Whether the bytes that end the test were sent, or received; or a receiver of UDP waits for what was lost.
    pub(crate) fn is_spent(&self) -> bool {
        let Some(budget) = self.parameters.budget().filter(|_| !self.sampler.is_omitting()) else { return false };
        let is_udp = self.parameters.transport == Transport::Udp;
        let mut receivers = self.streams.iter().filter(|stream| !stream.sends).peekable();
        let now = self.now();
        let received = receivers.peek().is_none()
            || self.sampler.bytes(false) >= budget
            || receivers.all(|one| {
                one.has_ended() || is_udp && one.bytes() > 0 && now.saturating_sub(one.last()) > ACKNOWLEDGED
            });
        let sends = self.streams.iter().any(|stream| stream.sends);
        received && (!sends || self.workers.shared.is_spent())
    }

    /// Whether every sender has ended by itself, as with a file.
    pub(crate) fn is_sent(&self) -> bool {
        self.streams.iter().filter(|stream| stream.sends).all(|stream| stream.has_ended())
    }

    /// Whether a file is sent.
    pub(crate) fn sends_file(&self) -> bool {
        self.workers.shared.file.is_some()
    }

    /// Why a stream broke.
    pub(crate) fn failure(&self) -> Option<String> {
        self.streams.iter().find_map(|stream| stream.failure().map(str::to_owned))
    }

    /// When data came last, of all streams that this end receives; `None` if it receives none.
    pub(crate) fn last_received(&self) -> Option<Duration> {
        self.streams.iter().filter(|stream| !stream.sends).map(|stream| stream.last()).max()
    }

    /// Ends the sending; a client waits until what it has written is acknowledged.
    pub(crate) fn stop_sending(&mut self, wait: bool) {
        self.ended = self.now();
        self.workers.enter(Phase::Ending);
        let deadline = self.ended + ACKNOWLEDGED;
        let written = |stream: &Stream| stream.sends && stream.delivered() < stream.bytes() && !stream.has_ended();
        while wait && self.now() < deadline && self.streams.iter().any(|stream| written(stream)) {
            std::thread::sleep(LOOK);
        }
        self.drained = self.now();
    }

    /// Takes what is still on its way, and ends the threads; returns the rows of the last interval, the first time.
    pub(crate) fn finish(&mut self, control: &Control) -> Vec<StreamInterval> {
        if std::mem::replace(&mut self.is_finished, true) {
            return Vec::new();
        }
        let rtt = TcpInfo::of(&control.tcp).map_or(0, |info| info.get("tcpi_rtt"));
        let quiet = QUIET + Duration::from_micros(2 * rtt);
        let begun = self.now();
        let on_its_way = |stream: &Stream, now: Duration| {
            let silence = now.saturating_sub(stream.last().max(begun));
            !stream.sends && !stream.has_ended() && (silence < quiet || stream.link.unread() > 0)
        };
        while self.now() < begun + ARRIVED && self.streams.iter().any(|stream| on_its_way(stream, self.now())) {
            std::thread::sleep(LOOK);
        }
        let last = self.last_received().unwrap_or_default().max(self.drained);
        let rows = self.sampler.finish(last);
        let own = CpuTime::of_thread().since(self.cpu_before);
        let seconds = self.now().as_secs_f64().max(1e-9);
        let time = own.and(self.workers.close());
        let [user, system] = [time.user, time.system].map(|time| time.as_secs_f64() / seconds * 100.0);
        self.cpu = [user + system, user, system];
        rows
    }

    fn own(&self) -> Vec<StreamResult> {
        self.sampler.results(self.ended, self.drained)
    }

    /// What this end found, for the other one.
    pub(crate) fn results(&self, output: Option<ServerOutput>) -> Results {
        let is_tcp = self.parameters.transport == Transport::Tcp;
        Results {
            cpu_percent: self.cpu,
            has_retransmits: is_tcp && self.streams.iter().any(|stream| stream.sends),
            congestion: self.congestion(),
            streams: self.own(),
            output,
        }
    }

    fn congestion(&self) -> Option<String> {
        let names = self.streams.iter().filter_map(|stream| match &stream.link {
            Link::Tcp(tcp) => Some(tcp.congestion()),
            Link::Udp(_) => None,
        });
        names.into_iter().find(|name| !name.is_empty())
    }

    /// The report, with what the other end says.
    pub(crate) fn report(&self, frame: &Frame, peer: Option<&Results>) -> StreamLoadReport {
        let mut test = description(&self.parameters);
        (test.congestion, test.peer_congestion) = (self.congestion(), peer.and_then(|peer| peer.congestion.clone()));
        let (sums, streams) = self.sampler.totals(&self.own(), peer);
        let share = |[total_percent, user_percent, system_percent]: [f64; 3]| CpuShare {
            total_percent,
            user_percent,
            system_percent,
        };
        let (intervals, is_cut) = self.sampler.rows();
        let mut notes = frame.notes.clone();
        if is_cut {
            notes.push("later intervals are counted in the sums only".to_owned());
        }
        StreamLoadReport {
            schema: "thalweg.load-stream/1",
            role: frame.role,
            peer: frame.peer.clone(),
            title: self.parameters.title.clone(),
            extra_data: self.parameters.extra_data.clone(),
            test,
            intervals: intervals.to_vec(),
            sums,
            streams,
            cpu: StreamCpu { local: share(self.cpu), peer: peer.map(|peer| share(peer.cpu_percent)) },
            notes,
            failure: frame.failure.clone(),
        }
    }
}

/// What a report holds besides the course.
pub(crate) struct Frame {
    pub(crate) role: &'static str,
    pub(crate) peer: String,
    pub(crate) notes: Vec<String>,
    pub(crate) failure: Option<String>,
}

/// What was asked for, as reports show it.
pub(crate) fn description(parameters: &Parameters) -> StreamTest {
    let (client, server) = parameters.senders.ends();
    let ways = [(client, Way::Up), (server, Way::Down)];
    StreamTest {
        transport: if parameters.transport == Transport::Udp { "udp" } else { "tcp" },
        ways: ways.into_iter().filter(|(sends, _)| *sends).map(|(_, way)| way).collect(),
        streams: parameters.streams,
        duration_s: Some(parameters.ending.seconds).filter(|seconds| *seconds > 0),
        bytes: parameters.budget(),
        omit_s: parameters.ending.omit_seconds,
        length_bytes: parameters.length,
        rate_bps: parameters.pace.limit_bps(),
        window_bytes: parameters.socket.window,
        segment_bytes: parameters.socket.segment_bytes,
        congestion: None,
        peer_congestion: None,
    }
}

/// The directions of a test's streams in the order in which a client opens them, with whether the client sends.
pub(crate) fn directions(parameters: &Parameters) -> Vec<(Way, bool)> {
    let count = parameters.streams as usize;
    let (up, down) = (vec![(Way::Up, true); count], vec![(Way::Down, false); count]);
    match parameters.senders {
        Senders::Client => up,
        Senders::Server => down,
        Senders::Both => [up, down].concat(),
    }
}
