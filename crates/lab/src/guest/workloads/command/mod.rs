//! `command`: programs of the user's own, the server's in the server's namespace and the client's in the client's.

mod log;

use crate::guest::clock::{minus, plus};
use crate::guest::counters::{self, Counters};
use crate::guest::event_loop::{Event, EventLoop, Key};
use crate::guest::hosts::{HostId, SERVER};
use crate::guest::metrics::{one_or_percentiles, percentiles};
use crate::guest::workload::{Findings, RunningWorkload};
use crate::plan::Clock;
use log::Log;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use thalweg_host::HostError;
use thalweg_host::process::Program;
use thalweg_host::sandbox::OWN_PROGRAM;
use thalweg_model::{Command, Metric, Metrics};
use thalweg_units::Span;

/// The folder that `{folder}` is: in the guest's memory, and every program's working directory.
const FOLDER: &str = "/tmp/thalweg";
/// The file that `{thalweg}` is in a guest: this same program, which the first process is, wherever it lies.
const THALWEG: &str = "/proc/1/exe";
/// Where programs are looked for: the host's own folders, as its root is the guest's.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How often it is looked whether the server listens.
const LOOK_EVERY: Span = Span::from_millis(10);
/// How long a server may go on after the last client: some end by themselves, and the last connection is still being closed.
const LINGER: Span = Span::from_millis(1_000);
/// How long a program may take to end once it was asked to.
const GRACE: Span = Span::from_millis(2_000);
/// The most that the programs of a run in real time may take; the run is ended a minute later, at `boot::LIVE_MOST`.
const TIMEOUT_REAL: Span = Span::from_millis(240_000);
/// The exit code of a client's program that still ran at the workload's timeout. Source: timeout(1).
const TIMED_OUT: u64 = 124;
/// The state of a socket that listens, in /proc/net/tcp. Source: include/net/tcp_states.h.
const TCP_LISTEN: &str = "0A";

const LOOK: u64 = 0;
const TIMEOUT: u64 = 1;
const KILL: u64 = 2;
const LINGERED: u64 = 3;

/// The programs of a `command`.
pub(super) struct Commands {
    spec: Command,
    /// Where logs go.
    out: PathBuf,
    server: Option<Running>,
    server_exit: Option<u64>,
    clients: Vec<Runner>,
    /// Whether the clients were started.
    started: bool,
    before: Vec<Counters>,
    began: Span,
    phase: Phase,
    notes: Vec<String>,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Clients run, or wait for the server.
    Acting,
    /// The clients are done, and the server may still end by itself.
    Lingering,
    /// What still runs was asked to end.
    Ending,
    Over,
}

/// A client host and what it runs.
struct Runner {
    host: HostId,
    running: Option<Running>,
    log: Log,
    /// How long each run took.
    durations_s: Vec<f64>,
    /// The first exit code that is not zero.
    failed: Option<u64>,
    failures: u32,
    over: bool,
}

/// A program under way.
struct Running {
    program: Program,
    key: Key,
    began: Span,
}

impl Commands {
    pub(super) fn new(spec: Command, clients: &[HostId], out: &Path) -> Self {
        let clients = clients.iter().map(|host| Runner {
            host: *host,
            running: None,
            log: Log::default(),
            durations_s: Vec::new(),
            failed: None,
            failures: 0,
            over: false,
        });
        Self {
            spec,
            out: out.to_owned(),
            server: None,
            server_exit: None,
            clients: clients.collect(),
            started: false,
            before: Vec::new(),
            began: Span::ZERO,
            phase: Phase::Acting,
            notes: Vec::new(),
        }
    }

    /// Starts a program of `host`.
    fn start(
        &self,
        event_loop: &mut EventLoop,
        host: HostId,
        words: &[String],
        log: &Log,
    ) -> Result<Running, HostError> {
        let server = event_loop.topology.host(SERVER).address;
        let client = event_loop.topology.host(if host == SERVER { self.clients[0].host } else { host }).address;
        let mut words = words.iter().map(|word| fill(word, server, client, event_loop.topology.clock()));
        let name = words.next().unwrap_or_default();
        let mut command = std::process::Command::new(&name);
        command.args(words).current_dir(FOLDER);
        command.env_clear().env("PATH", PATH).env("HOME", FOLDER).env("LANG", "C.UTF-8");
        let of = &event_loop.topology.host(host).name;
        let (stdout, stderr) = log.files()?;
        let program =
            Program::start(&mut command, &event_loop.topology.host(host).ns, stdout, stderr).map_err(|error| {
                let missing = error.source.kind() == io::ErrorKind::NotFound;
                let source = if missing { io::Error::other("there is no such program") } else { error.source };
                HostError { act: format!("start '{name}' on the {of}"), source }
            })?;
        let pidfd = program.as_fd().try_clone_to_owned();
        let pidfd = pidfd.map_err(|source| HostError { act: format!("watch '{name}'"), source })?;
        let key = event_loop.add_descriptor(pidfd, host)?;
        Ok(Running { program, key, began: event_loop.now() })
    }

    /// Starts a client's next run.
    fn run(&mut self, event_loop: &mut EventLoop, at: usize) -> Result<(), HostError> {
        let running = self.start(event_loop, self.clients[at].host, &self.spec.client, &self.clients[at].log)?;
        self.clients[at].running = Some(running);
        Ok(())
    }

    fn start_clients(&mut self, event_loop: &mut EventLoop) -> Result<(), HostError> {
        self.started = true;
        // From here on, so that waiting for the server is not counted.
        let hosts = std::iter::once(SERVER).chain(self.clients.iter().map(|client| client.host));
        self.before = hosts.map(|host| Counters::of(&event_loop.topology.host(host).ns)).collect::<Result<_, _>>()?;
        (0..self.clients.len()).try_for_each(|at| self.run(event_loop, at))
    }

    /// Starts the clients if the server listens, and looks again later if not.
    fn look(&mut self, event_loop: &mut EventLoop, port: u16) -> Result<(), HostError> {
        if listens(event_loop, port)? {
            return self.start_clients(event_loop);
        }
        let next = plus(event_loop.now(), LOOK_EVERY);
        event_loop.wake_at(next, LOOK);
        Ok(())
    }

    /// The server has ended.
    fn server_ended(&mut self, event_loop: &mut EventLoop, status: ExitStatus) -> Result<(), HostError> {
        if let Some(server) = self.server.take() {
            event_loop.close_socket(server.key)?;
        }
        if self.phase != Phase::Ending {
            self.server_exit = Some(code(status));
            if let (false, Some(port)) = (self.started, self.spec.port) {
                let tail = Log::at(&self.out, "server").tail();
                let why = format!("it ended before, {}{tail}", told(status));
                return Err(HostError {
                    act: format!("wait for the server's program to listen on port {port}"),
                    source: io::Error::other(why),
                });
            }
            if code(status) != 0 {
                let tail = Log::at(&self.out, "server").tail();
                self.notes.push(format!("the server's program ended by itself, {}{tail}", told(status)));
            }
        }
        Ok(())
    }

    /// A client's run has ended.
    fn client_ended(&mut self, event_loop: &mut EventLoop, at: usize, status: ExitStatus) -> Result<(), HostError> {
        let now = event_loop.now();
        let client = &mut self.clients[at];
        let Some(running) = client.running.take() else { return Ok(()) };
        event_loop.close_socket(running.key)?;
        // What was ended from outside says nothing about the program.
        if self.phase == Phase::Acting {
            client.durations_s.push(minus(now, running.began).as_secs_f64());
            if code(status) != 0 {
                client.failures += 1;
                if client.failed.is_none() {
                    client.failed = Some(code(status));
                    let (name, runs) = (&event_loop.topology.host(client.host).name, self.spec.times);
                    let run = if runs > 1 {
                        format!(" in run {} of {runs}", client.durations_s.len())
                    } else {
                        String::new()
                    };
                    self.notes.push(format!("the {name}'s program ended{run}, {}{}", told(status), client.log.tail()));
                }
            }
            if (client.durations_s.len() as u32) < self.spec.times {
                return self.run(event_loop, at);
            }
            client.over = true;
        }
        Ok(())
    }

    /// Asks whatever still runs to end.
    fn end(&mut self, event_loop: &mut EventLoop) {
        self.phase = Phase::Ending;
        for running in self.clients.iter().filter_map(|client| client.running.as_ref()).chain(&self.server) {
            running.program.signal(rustix::process::Signal::TERM);
        }
        let kill = plus(event_loop.now(), GRACE);
        event_loop.wake_at(kill, KILL);
    }

    fn kill(&mut self, event_loop: &mut EventLoop) -> Result<(), HostError> {
        for mut running in self.clients.iter_mut().filter_map(|client| client.running.take()).chain(self.server.take())
        {
            running.program.kill()?;
            event_loop.close_socket(running.key)?;
        }
        Ok(())
    }

    /// Goes on to the next phase when nothing is left to do in this one.
    fn settle(&mut self, event_loop: &mut EventLoop) {
        if self.phase == Phase::Acting && self.clients.iter().all(|client| client.over) {
            self.phase = Phase::Lingering;
            let lingered = plus(event_loop.now(), LINGER);
            event_loop.wake_at(lingered, LINGERED);
        }
        let idle = self.server.is_none() && self.clients.iter().all(|client| client.running.is_none());
        if matches!(self.phase, Phase::Lingering | Phase::Ending) && idle {
            self.phase = Phase::Over;
        }
    }

    /// Figures taken from what the clients printed.
    fn printed(&mut self, metrics: &mut Metrics) -> Result<(), HostError> {
        if self.spec.figures.is_empty() {
            return Ok(());
        }
        let texts = self.clients.iter().map(|client| client.log.text()).collect::<Result<Vec<_>, _>>()?;
        for (name, pattern) in &self.spec.figures {
            let regex = Command::figure_pattern(pattern).map_err(|wrong| HostError {
                act: format!("use the regular expression of the figure '{name}'"),
                source: io::Error::other(wrong),
            })?;
            let found: Vec<&str> = texts
                .iter()
                .flat_map(|text| regex.captures_iter(text))
                .filter_map(|captures| captures.get(1).map(|group| group.as_str()))
                .collect();
            let values: Vec<f64> =
                found.iter().filter_map(|text| text.parse().ok()).filter(|v: &f64| v.is_finite()).collect();
            if let Some(text) = found.iter().find(|text| !text.parse::<f64>().is_ok_and(f64::is_finite)) {
                self.notes.push(format!("the figure '{name}' is no number where it reads '{text}'"));
            }
            if found.is_empty() {
                self.notes
                    .push(format!("the figure '{name}' is nowhere in the client's output: no match of '{pattern}'"));
            }
            if !values.is_empty() {
                metrics.insert(name.clone(), one_or_percentiles(values));
            }
        }
        Ok(())
    }
}

impl RunningWorkload for Commands {
    fn begin(&mut self, event_loop: &mut EventLoop) -> Result<(), HostError> {
        self.began = event_loop.now();
        let clock = event_loop.topology.clock();
        match clock {
            Clock::Virtual => thalweg_host::guest::mount_devices()?,
            Clock::Real => self.spec.timeout = self.spec.timeout.min(TIMEOUT_REAL),
        }
        let io = |act: &str| {
            let act = act.to_owned();
            move |source| HostError { act, source }
        };
        fs::create_dir(FOLDER).map_err(io("make the programs' folder"))?;
        let (server, client) =
            (event_loop.topology.host(SERVER).address, event_loop.topology.host(self.clients[0].host).address);
        for (name, text) in &self.spec.files {
            let path = Path::new(FOLDER).join(name);
            let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
            fs::write(&path, fill(text, server, client, clock))
                .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
                .map_err(io(&format!("make the file '{name}'")))?;
        }
        for client in &mut self.clients {
            client.log = Log::at(&self.out, &event_loop.topology.host(client.host).name);
        }
        event_loop.wake_at(plus(self.began, self.spec.timeout), TIMEOUT);
        if let Some(words) = self.spec.server.clone() {
            self.server = Some(self.start(event_loop, SERVER, &words, &Log::at(&self.out, "server"))?);
            if let Some(port) = self.spec.port {
                return self.look(event_loop, port);
            }
        }
        self.start_clients(event_loop)
    }

    fn handle(&mut self, event_loop: &mut EventLoop, event: Event) -> Result<(), HostError> {
        match event {
            Event::Timer { token: LOOK } => {
                if let (Phase::Acting, false, Some(port)) = (self.phase, self.started, self.spec.port) {
                    self.look(event_loop, port)?;
                }
            }
            Event::Timer { token: TIMEOUT } if self.phase == Phase::Acting => {
                if let (false, Some(port)) = (self.started, self.spec.port) {
                    let tail = Log::at(&self.out, "server").tail();
                    return Err(HostError {
                        act: format!("wait for the server's program to listen on port {port}"),
                        source: io::Error::other(format!("it does not after {}{tail}", self.spec.timeout)),
                    });
                }
                for client in self.clients.iter_mut().filter(|client| !client.over) {
                    client.failures += 1;
                    client.failed.get_or_insert(TIMED_OUT);
                    let (name, done) = (&event_loop.topology.host(client.host).name, client.durations_s.len());
                    let runs = if self.spec.times > 1 {
                        format!(", in run {} of {}", done + 1, self.spec.times)
                    } else {
                        String::new()
                    };
                    let (timeout, tail) = (self.spec.timeout, client.log.tail());
                    self.notes
                        .push(format!("the {name}'s program still ran after {timeout}{runs}, and was ended{tail}"));
                }
                self.end(event_loop);
            }
            Event::Timer { token: LINGERED } if self.phase == Phase::Lingering => self.end(event_loop),
            Event::Timer { token: KILL } if self.phase == Phase::Ending => self.kill(event_loop)?,
            Event::Ready { key, .. } => {
                if let Some(server) = self.server.as_mut().filter(|server| server.key == key) {
                    if let Some(status) = server.program.ended()? {
                        self.server_ended(event_loop, status)?;
                    }
                } else if let Some(at) =
                    self.clients.iter().position(|one| one.running.as_ref().is_some_and(|run| run.key == key))
                    && let Some(running) = &mut self.clients[at].running
                    && let Some(status) = running.program.ended()?
                {
                    self.client_ended(event_loop, at, status)?;
                }
            }
            Event::Timer { .. } | Event::Start => {}
        }
        self.settle(event_loop);
        Ok(())
    }

    fn done(&self, now: Span) -> f64 {
        let done: usize = self.clients.iter().map(|client| client.durations_s.len()).sum();
        let runs = done as f64 / (self.clients.len() as f64 * f64::from(self.spec.times));
        // A single run tells nothing before its end.
        runs.max(if self.spec.times == 1 {
            0.0
        } else {
            minus(now, self.began).as_secs_f64() / self.spec.timeout.as_secs_f64()
        })
    }

    fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    fn report(&mut self, event_loop: &mut EventLoop) -> Result<Findings, HostError> {
        let mut metrics = Metrics::new();
        let mut put = |name: &str, metric: Metric| metrics.insert(name.to_owned(), metric);
        let durations: Vec<f64> = self.clients.iter().flat_map(|client| client.durations_s.iter().copied()).collect();
        put("runs", Metric::Count(durations.len() as u64));
        let failures = self.clients.iter().map(|client| u64::from(client.failures)).sum();
        if !durations.is_empty() || failures > 0 {
            put("client_exit", Metric::Count(self.clients.iter().find_map(|client| client.failed).unwrap_or(0)));
            put("failed_runs", Metric::Count(failures));
        }
        if !durations.is_empty() {
            put("duration_s", if self.spec.times > 1 { percentiles(durations) } else { one_or_percentiles(durations) });
        }
        if let Some(exit) = self.server_exit {
            put("server_exit", Metric::Count(exit));
        }
        let hosts = std::iter::once(SERVER).chain(self.clients.iter().map(|client| client.host));
        let (mut retransmits, mut timeouts, mut received) = (0, 0, 0);
        for (host, before) in hosts.zip(&self.before) {
            let now = Counters::of(&event_loop.topology.host(host).ns)?;
            retransmits += now.since(before, "Tcp.RetransSegs");
            timeouts += now.since(before, "TcpExt.TCPTimeouts");
            received += if host == SERVER { 0 } else { now.since(before, "IpExt.InOctets") };
        }
        put("retransmits", Metric::Count(retransmits));
        put("retransmission_timeouts", Metric::Count(timeouts));
        put("client_received_bytes", Metric::Count(received));
        if self.clients.iter().any(|client| client.failures > 1) {
            self.notes.push(format!("{failures} runs of the client's program failed; the first is told of"));
        }
        self.printed(&mut metrics)?;
        Ok(Findings { metrics, notes: std::mem::take(&mut self.notes), ..Findings::default() })
    }
}

/// Fills in what a word or a file may name.
fn fill(text: &str, server: Ipv4Addr, client: Ipv4Addr, clock: Clock) -> String {
    let own = match clock {
        Clock::Virtual => THALWEG,
        Clock::Real => OWN_PROGRAM,
    };
    text.replace("{server}", &server.to_string())
        .replace("{client}", &client.to_string())
        .replace("{folder}", FOLDER)
        .replace("{thalweg}", own)
}

/// Whether something on the server listens on a port, of IPv4 or of both.
fn listens(event_loop: &EventLoop, port: u16) -> Result<bool, HostError> {
    for file in ["tcp", "tcp6"] {
        let text = match counters::read(&event_loop.topology.host(SERVER).ns, file) {
            // A kernel without IPv6 has no such file.
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => continue,
            other => other?,
        };
        let wanted = format!(":{port:04X}");
        // sl local_address rem_address st …
        let found = text.lines().skip(1).any(|line| {
            let mut words = line.split_whitespace().skip(1);
            words.next().is_some_and(|local| local.ends_with(&wanted)) && words.nth(1) == Some(TCP_LISTEN)
        });
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Its exit code; of one that a signal ended, what a shell makes of it.
fn code(status: ExitStatus) -> u64 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)) as u64
}

fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("with exit code {code}"),
        (None, signal) => format!("by signal {}", signal.unwrap_or(0)),
    }
}
