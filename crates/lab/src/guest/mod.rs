//! What runs inside the lab kernel, as its first process: one thread, one event loop, no spinning on the clock.

mod burst;
mod crr;
mod distribution;
mod record;
mod stage;
mod stream;
mod topology;

use crate::plan::{Measured, OUTCOME_FILE, Outcome, PLAN_FILE, Plan};
use host::HostError;
use host::tcp_info::TcpInfo;
use model::{Interval, Metric, Metrics, SettingsReport, Side, Workload};
use stage::Stage;
use std::fs;
use std::path::Path;
use topology::Topology;

/// The host's folder for this run: the working directory of the process that is the guest's kernel. A constant name,
/// since the kernel mixes its command line into its random numbers.
const HOST_FOLDER: &str = "/proc/self/cwd";
const FOLDER: &str = "/run/out";

/// Runs the plan in the run's folder, leaves its outcome there, and halts the machine.
pub fn main() -> ! {
    let outcome = match run() {
        Ok(measured) => Outcome::Done(Box::new(measured)),
        Err(error) => Outcome::Failed(error.to_string()),
    };
    if let Err(error) = leave(&outcome) {
        let _ = std::io::Write::write_all(&mut std::io::stdout(), format!("guest: {error}\n").as_bytes());
    }
    host::guest::halt()
}

fn leave(outcome: &Outcome) -> std::io::Result<()> {
    let text = serde_json::to_vec(outcome)?;
    let partial = Path::new(FOLDER).join("outcome.partial");
    fs::write(&partial, text)?;
    fs::rename(partial, Path::new(FOLDER).join(OUTCOME_FILE))
}

fn run() -> Result<Measured, HostError> {
    host::guest::mount_all(Path::new(HOST_FOLDER))?;
    let io = |act: &str, source: std::io::Error| HostError { act: act.to_owned(), source };
    let text = fs::read(Path::new(FOLDER).join(PLAN_FILE)).map_err(|error| io("read the plan", error))?;
    let plan: Plan = serde_json::from_slice(&text).map_err(|error| io("understand the plan", error.into()))?;

    let topology = Topology::build(&plan.experiment, plan.seed)?;
    let mut settings = topology.read_back(&plan.experiment)?;
    let experiment = plan.experiment.clone();
    let mut stage = Stage::open(topology, plan.experiment, plan.options, Path::new(FOLDER))?;
    let mut run = Findings { settings: &mut settings, metrics: Metrics::new(), intervals: Vec::new() };
    match &experiment.workload {
        Workload::Stream { direction, amount } => stream::run(&mut stage, *direction, *amount, &mut run)?,
        Workload::Crr { request, response, amount } => crr::run(&mut stage, *request, *response, *amount, &mut run)?,
        Workload::Burst { buffered, rate, total, keyframe, marks } => {
            burst::run(
                &mut stage,
                &burst::Media { buffered: *buffered, rate: *rate, total: *total, keyframe: *keyframe, marks },
                &mut run,
            )?;
        }
    }
    let Findings { metrics, intervals, .. } = run;
    let (virtual_s, capture_dropped) = stage.close()?;
    Ok(Measured { settings, metrics, intervals, virtual_s, capture_dropped })
}

/// What the sender's kernel says of its connection: retransmissions, round-trip times, and how long each side held it up.
fn sender_metrics(info: &TcpInfo, metrics: &mut Metrics) {
    let millis = |name: &str| info.get(name) as f64 / 1e3;
    for (name, metric) in [
        ("retransmits", Metric::Count(info.get("tcpi_total_retrans"))),
        ("retransmission_timeouts", Metric::Count(info.get("tcpi_total_rto"))),
        ("rtt_ms", Metric::One(millis("tcpi_rtt"))),
        ("min_rtt_ms", Metric::One(millis("tcpi_min_rtt"))),
        ("cwnd_packets", Metric::Count(info.get("tcpi_snd_cwnd"))),
        ("busy_ms", Metric::One(millis("tcpi_busy_time"))),
        ("rwnd_limited_ms", Metric::One(millis("tcpi_rwnd_limited"))),
        ("sndbuf_limited_ms", Metric::One(millis("tcpi_sndbuf_limited"))),
    ] {
        metrics.insert(name.to_owned(), metric);
    }
}

/// What a workload leaves behind.
struct Findings<'a> {
    settings: &'a mut SettingsReport,
    metrics: Metrics,
    intervals: Vec<Interval>,
}

impl Findings<'_> {
    /// Reads the options of a connection back, unless an earlier one of that side was.
    fn note_socket(&mut self, side: Side, tcp: &host::socket::Tcp) -> Result<(), HostError> {
        let report = match side {
            Side::Client => &mut self.settings.client,
            Side::Server => &mut self.settings.server,
        };
        if report.socket.is_empty() {
            report.socket = tcp.read_back()?;
        }
        Ok(())
    }
}
