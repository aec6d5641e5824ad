//! `thalweg load stream` and `thalweg load serve`: load between hosts.

use super::load_agent::{admission, token};
use crate::args::load_stream::{LoadServeArgs, LoadStreamArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::stop;
use anyhow::anyhow;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use thalweg_agent::{Agent, AgentError, AgentObserver};
use thalweg_host::reach::ReachError;
use thalweg_iperf::protocol::parameters::{Ending, Pace, Parameters, Senders, SocketParameters, Transport};
use thalweg_iperf::protocol::results::ServerOutput;
use thalweg_iperf::protocol::{TCP_LENGTH, UDP_LENGTH};
use thalweg_iperf::{ClientObserver, ClientOptions, IperfError, ServerObserver, ServerOptions};
use thalweg_model::{StreamInterval, StreamLoadReport, StreamTest};
use thalweg_report::terminal::{stream_load, stream_load_head, stream_load_rows, stream_load_summary};

/// The rate of UDP where none is asked for, as iperf3 has it: a path shall not be flooded by accident.
const UDP_RATE_BPS: u64 = 1 << 20;
/// Columns of what a client shows of this server.
const OUTPUT_WIDTH: usize = 100;

/// Runs a client.
pub(crate) fn run(args: &LoadStreamArgs, output: &Output) -> Result<ExitCode, Failure> {
    let options = options(args)?;
    let stop = stop::listen()?;
    let _admission = admission(&args.host, args.port, &args.token, &stop)?;
    let mut console = Console { output, test: None, failed: None };
    let report = thalweg_iperf::run(&options, &stop, &mut console).map_err(failure)?;
    if let Some(failed) = console.failed {
        return Err(failed);
    }
    if output.json {
        output.json_result(&report)?;
    } else {
        output.result(&stream_load_summary(&report, output.width, output.color))?;
    }
    // Without an end of its own a test ends by a signal.
    let is_cut = stop.load(Ordering::Relaxed) && (args.seconds > 0 || args.bytes.is_some() || args.file.is_some());
    match &report.failure {
        None if is_cut => Err(Failure::stopped()),
        None => Ok(ExitCode::SUCCESS),
        Some(why) => Err(Failure::host(anyhow!("the test is not complete: {why}"))),
    }
}

fn options(args: &LoadStreamArgs) -> Result<ClientOptions, Failure> {
    let transport = if args.udp { Transport::Udp } else { Transport::Tcp };
    let own_length = if args.udp { UDP_LENGTH } else { TCP_LENGTH };
    let length = args.length.map_or(Ok(own_length), |bytes| u32::try_from(bytes.get()));
    let length = length.map_err(|_| Failure::user(anyhow!("a --length of 4 GiB and more cannot be sent at once")))?;
    let given = args.rate.map(|rate| rate.bytes_per_second().saturating_mul(8));
    let rate_bps = given.unwrap_or(if args.udp { UDP_RATE_BPS } else { 0 });
    if given == Some(0) && !args.udp {
        return Err(Failure::user(anyhow!("--rate 0 lets nothing through")).hint("leave it out for no limit"));
    }
    if args.bytes.is_some_and(|bytes| bytes.get() == 0) || length == 0 {
        return Err(Failure::user(anyhow!("--bytes and --length cannot be 0")));
    }
    let seconds = if args.bytes.is_some() { 0 } else { args.seconds };
    let parameters = Parameters {
        transport,
        senders: match (args.both, args.reverse) {
            (true, _) => Senders::Both,
            (false, true) => Senders::Server,
            (false, false) => Senders::Client,
        },
        streams: args.streams,
        ending: Ending {
            seconds,
            bytes: args.bytes.map_or(0, |bytes| bytes.get()),
            blocks: 0,
            omit_seconds: args.omit,
        },
        length,
        pace: Pace { rate_bps, ..Pace::default() },
        socket: SocketParameters {
            window: args.window.map(|bytes| bytes.get()),
            congestion: args.congestion.clone(),
            segment_bytes: args.mss,
            ..SocketParameters::default()
        },
        wide_counters: args.udp,
        client_version: Some(concat!("thalweg ", env!("CARGO_PKG_VERSION")).to_owned()),
        ..Parameters::default()
    };
    Ok(ClientOptions {
        host: args.host.clone(),
        port: args.port,
        parameters,
        own_length: args.udp && args.length.is_none(),
        interval: args.interval.to_duration(),
        file: args.file.clone(),
    })
}

pub(crate) fn failure(error: IperfError) -> Failure {
    let hint = error.hint();
    let failure = match error {
        IperfError::Stopped => return Failure::stopped(),
        IperfError::Reach(ReachError::Resolve { .. }) | IperfError::File { .. } | IperfError::Parameters(_) => {
            Failure::user(error)
        }
        _ if error.asks_for_authentication() => Failure::user(error),
        _ => Failure::host(error),
    };
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Shows rows as they come.
struct Console<'a> {
    output: &'a Output,
    test: Option<StreamTest>,
    failed: Option<Failure>,
}

impl Console<'_> {
    fn show(&mut self, text: &str) {
        if !self.output.json && !self.output.quiet && !text.is_empty() {
            self.failed = self.failed.take().or(self.output.result(text).err());
        }
    }
}

impl ClientObserver for Console<'_> {
    fn begun(&mut self, peer: SocketAddr, test: &StreamTest) {
        self.test = Some(test.clone());
        self.show(&stream_load_head(test, "client", &peer.to_string(), self.output.width, self.output.color));
    }

    fn rows(&mut self, rows: &[StreamInterval]) {
        if let Some(test) = self.test.take() {
            self.show(&stream_load_rows(rows, &test, self.output.width, self.output.color));
            self.test = Some(test);
        }
    }
}

/// Runs a server.
pub(crate) fn serve(args: &LoadServeArgs, output: &Output) -> Result<ExitCode, Failure> {
    let stop = stop::listen()?;
    if args.listen.len() > 1 && args.port == 0 {
        return Err(
            Failure::user(anyhow!("--port 0 with several addresses would listen at several ports")).hint("name a port")
        );
    }
    let token = token(&args.token)?;
    if let Some(address) = args.listen.iter().find(|address| !address.is_loopback())
        && token.is_none()
        && !args.open
    {
        let problem = anyhow!("without a token, whoever reaches {address} could load this host");
        return Err(Failure::user(problem).hint(
            "openssl rand -hex 16 > token; then --token-file token here and at the clients. iperf3's own clients know no token: --open serves them",
        ));
    }
    let options = ServerOptions {
        listen: args.listen.clone(),
        port: args.port,
        one_off: args.one_off,
        idle: args.idle_timeout.map(thalweg_units::Span::to_duration),
        interval: args.interval.to_duration(),
        agent: Arc::new(Agent::new(token)),
        is_open: args.open,
    };
    let desk = Desk { output, failed: Mutex::new(None) };
    thalweg_iperf::serve(&options, &stop, &desk).map_err(failure)?;
    let failed = desk.failed.into_inner().ok().flatten();
    failed.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Shows each test when it is over.
struct Desk<'a> {
    output: &'a Output,
    failed: Mutex<Option<Failure>>,
}

impl AgentObserver for Desk<'_> {
    fn session_over(&self, client: SocketAddr, what: &str) {
        self.output.note(&format!("served: {client}: {what}"));
    }

    fn session_refused(&self, client: SocketAddr, why: &AgentError) {
        self.output.note(&format!("refused: {client}: {why}"));
    }
}

impl ServerObserver for Desk<'_> {
    fn listening(&self, at: SocketAddr) {
        self.output.note(&format!("listening at {at}, TCP and UDP"));
    }

    fn begun(&self, client: SocketAddr, test: &StreamTest) {
        let head = stream_load_head(test, "server", &client.to_string(), OUTPUT_WIDTH, false);
        self.output.note(&format!("begun: {}", head.lines().next().unwrap_or_default()));
    }

    fn ended(&self, report: &StreamLoadReport) {
        let text = if self.output.json {
            serde_json::to_string(report).unwrap_or_default()
        } else {
            stream_load(report, self.output.width, self.output.color)
        };
        if let Err(failed) = self.output.result(&text)
            && let Ok(mut first) = self.failed.lock()
        {
            first.get_or_insert(failed);
        }
    }

    fn refused(&self, client: SocketAddr, why: &IperfError) {
        self.output.note(&format!("refused: {client}: {why}"));
    }

    fn output(&self, report: &StreamLoadReport) -> ServerOutput {
        match serde_json::to_value(report) {
            Ok(document) if self.output.json => ServerOutput::Json(document),
            _ => ServerOutput::Text(stream_load(report, OUTPUT_WIDTH, false)),
        }
    }
}
