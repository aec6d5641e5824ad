//! What can be typed.

mod expect;
pub(crate) mod get;
pub(crate) mod load;
pub(crate) mod load_stream;
pub(crate) mod load_topics;
pub(crate) mod load_transactions;
pub(crate) mod load_udp_train;
pub(crate) mod path;
mod path_preset;
pub(crate) mod tune;
pub(crate) mod tune_attach;
pub(crate) mod tune_congestion;
mod values;
pub(crate) mod watch;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use get::GetArgs;
use load::LoadArgs;
use load_stream::{LoadServeArgs, LoadStreamArgs};
use load_topics::LoadTopicsArgs;
use load_transactions::LoadTransactionArgs;
use load_udp_train::LoadUdpTrainArgs;
use path::PathArgs;
use std::path::PathBuf;
use thalweg_lab::Part;
use thalweg_model::since::Release;
use thalweg_model::{LogFormat, LogLevel};
use thalweg_pipeline::BenchOptions;
use thalweg_units::Span;
use thalweg_wire::filter::{Filter, FilterError};
use tune::TuneVerb;
use watch::WatchArgs;

/// Why is this TCP stream slow, and what makes it fast?
#[derive(Debug, Parser)]
#[command(name = "thalweg", version, propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Example:\n  thalweg fix slow-download      a slow download, its cause, a proven fix\n\nExit: 0 ok, 1 a problem was found or an expectation failed, 2 the command is wrong, 3 this host cannot."
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Options of every verb.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Global {
    /// One JSON document on stdout, and nothing else there
    #[arg(long, global = true, env = "THALWEG_JSON", value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
    pub(crate) json: bool,
    /// Results only: no notes, no progress
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Colour in the terminal
    #[arg(long, global = true, value_enum, default_value = "auto", env = "THALWEG_COLOR")]
    pub(crate) color: Color,
    /// No progress bars, even on a terminal
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Experiments on the Linux kernel's own TCP, in virtual time
    #[command(subcommand)]
    Lab(LabVerb),
    /// Why is it slow: reads captures and says where the time went
    Diagnose(DiagnoseArgs),
    /// Finds the cause, derives the remedy, and proves it in the lab
    Fix(FixArgs),
    /// Downloads over as many ranges as the receive window needs, and says what limited it
    Get(GetArgs),
    /// What a verdict or a setting means
    Explain(ExplainArgs),
    /// This host's settings of TCP: what they are, and what to set
    #[command(subcommand)]
    Tune(TuneVerb),
    /// Runs a program behind an emulated path, in real time and without root
    Path(PathArgs),
    /// What this host's TCP sockets do now, and what limits each
    Watch(WatchArgs),
    /// Serves live streams: RTMP in, HLS and HTTP-FLV out
    Serve(ServeArgs),
    /// Load: players of live streams by the thousand, or streams between two hosts
    #[command(subcommand)]
    Load(LoadVerb),
}

#[derive(Debug, Subcommand)]
pub(crate) enum LoadVerb {
    /// Players of HLS: how do I load-test HLS? like this
    Hls(LoadArgs),
    /// Players of HTTP-FLV
    Flv(LoadArgs),
    /// Streams to or from a server of iperf3's protocol, and what limits them
    Stream(LoadStreamArgs),
    /// Requests and responses, many on a connection
    Rr(LoadTransactionArgs),
    /// Requests and responses, each on a connection of its own
    Crr(LoadTransactionArgs),
    /// Trains of UDP packets: the bottleneck's rate and the size of its buffer
    UdpTrain(LoadUdpTrainArgs),
    /// Messages at fixed periods, as a scenario's topics, and how late each comes
    Topics(LoadTopicsArgs),
    /// The server of all of these but players, for several clients at once, iperf3's own among them
    Serve(LoadServeArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabVerb {
    /// Runs scenarios and compares their arms
    Run(LabRunArgs),
    /// Compares reports of runs, or joins the parts of one run
    Compare(LabCompareArgs),
    /// Lists the built-in scenarios
    #[command(after_help = "Example:\n  thalweg lab list")]
    List,
    /// Builds and lists lab kernels
    #[command(subcommand)]
    Kernel(KernelVerb),
}

#[derive(Debug, Subcommand)]
pub(crate) enum KernelVerb {
    /// Builds a lab kernel; does nothing when it is there
    #[command(after_help = "Example:\n  thalweg lab kernel build 6.1\n  thalweg lab kernel build --source ~/src/linux")]
    Build {
        /// Version: 6.12 or 6.1, from Debian's linux-source package
        #[arg(id = "release", value_name = "VERSION", default_value = "6.12", conflicts_with = "source")]
        version: String,
        /// A kernel source tree to build instead; it is not changed
        #[arg(long, value_name = "DIR")]
        source: Option<PathBuf>,
        /// Compilers at a time; default: one for each processor
        #[arg(short, long)]
        jobs: Option<usize>,
        /// Timer frequency, which rounds timeouts and delayed acknowledgements
        #[arg(long, default_value = "250", value_parser = clap::value_parser!(u32).range(100..=1000))]
        hz: u32,
    },
    /// Lists the lab kernels that are there
    #[command(after_help = "Example:\n  thalweg lab kernel list")]
    List,
}

#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg lab run first-frame\n  thalweg lab run slow-download --kernel 6.1,6.12\n  thalweg lab run first-frame --live --repeat 5\n  thalweg lab run my.toml --set path.loss=0.1% --repeat 20 --json\n  thalweg lab run a.toml b.toml --junit results.xml"
)]
pub(crate) struct LabRunArgs {
    /// Built-in scenarios' names, or scenario files
    #[arg(required = true, value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<String>,
    #[command(flatten)]
    pub(crate) lab: LabOptions,
    /// Only these arms, by whole name or by their own without the matrix (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) arm: Vec<String>,
    /// In real time on this host's kernel, over an emulated path; one run at a time, and no lab kernel is needed
    #[arg(long)]
    pub(crate) live: bool,
    /// Repeats of each arm, with seeds N, N+1, …
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) repeat: u32,
    /// At which ends packets are captured
    #[arg(long, value_enum, default_value = "both")]
    pub(crate) capture: Capture,
    /// How often tcp_info is sampled, in the run's time: 10ms, or off
    #[arg(long, default_value = "10ms", value_name = "INTERVAL")]
    pub(crate) samples: String,
    /// Runs part I of N of all runs; lab compare joins the parts' reports
    #[arg(long, value_name = "I/N", value_parser = values::part)]
    pub(crate) shard: Option<Part>,
    /// Takes the runs of an earlier command that was stopped, or failed, from the folder --out, and runs the others
    #[arg(long, requires = "out")]
    pub(crate) resume: bool,
    /// Also writes the expectations as JUnit XML, for CI systems
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Also writes the tables runs, flows, samples and packets into the run's folder
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) export: Option<ExportFormat>,
    /// Shows the one-second intervals of streams
    #[arg(long)]
    pub(crate) intervals: bool,
}

#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg lab compare before/report.json after/report.json --fail-worse 5\n  thalweg lab compare part-*/report.json --json > whole.json"
)]
pub(crate) struct LabCompareArgs {
    /// Reports of lab run, or the folders they are in; the first is what the others are compared with
    #[arg(required = true, value_name = "REPORT")]
    pub(crate) reports: Vec<PathBuf>,
    /// Exit 1 when an arm's leading figure got worse by more than this, and not within noise
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) fail_worse: Option<f64>,
    /// Also writes a page, without plots, of the joined run
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also writes the joined run's expectations as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

/// What running an experiment takes, whichever verb runs it.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct LabOptions {
    /// Lab kernel: a version, or the path of one; several, with commas, are compared; default: the scenario's, or 6.12
    #[arg(long, env = "THALWEG_KERNEL", value_delimiter = ',')]
    pub(crate) kernel: Vec<String>,
    /// What loss and jitter derive from; the same seed gives the same run
    #[arg(long, default_value = "1", value_name = "N")]
    pub(crate) seed: u64,
    /// Changes a value of the scenario in every arm (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
    /// Experiments at a time; default: one for each processor
    #[arg(short, long, env = "THALWEG_JOBS", value_parser = values::jobs)]
    pub(crate) jobs: Option<usize>,
    /// Folder for captures, samples and reports; default: a fresh one, which is named
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

impl LabOptions {
    /// How a scenario is run with these.
    pub(crate) fn bench(&self) -> BenchOptions {
        BenchOptions { kernels: self.kernel.clone(), seed: self.seed, jobs: self.jobs, live: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Capture {
    Both,
    Client,
    Server,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Csv,
    Parquet,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg diagnose slow.pcap\n  thalweg diagnose server.pcapng --html why.html\n  thalweg diagnose server.pcap --flow 12 --intervals 1s\n  thalweg diagnose captures/ --html worst.html\n  thalweg diagnose slow.pcap --pcapng found.pcapng && wireshark found.pcapng\n  thalweg diagnose --quiet --parquet tables day/\n  tcpdump -w - port 443 | thalweg diagnose -\n  thalweg diagnose trace.pcap.zst --filter 'host 192.0.2.1 and not port 22'\n  thalweg diagnose --live 'port 443' --for 30s\n\nWith --quiet and --html, --parquet or --pcapng the files are all there is: no text."
)]
pub(crate) struct DiagnoseArgs {
    /// Capture files, pcap or pcapng, also packed with gzip, xz or zstd; a folder stands for the captures in it; - is stdin
    #[arg(required_unless_present = "live", value_name = "CAPTURE")]
    pub(crate) captures: Vec<PathBuf>,
    /// Only these packets, such as 'host 10.0.0.1 and not port 22'; the language is tcpdump's, for addresses and ports
    #[arg(long, value_name = "EXPRESSION", value_parser = filter, conflicts_with = "live")]
    pub(crate) filter: Option<Filter>,
    /// Watches this host's own packets, those the filter wants, until Ctrl-C; without CAP_NET_RAW it asks the kernel about its sockets
    #[arg(long, value_name = "FILTER", value_parser = filter, num_args = 0..=1, default_missing_value = "", conflicts_with = "captures")]
    pub(crate) live: Option<Filter>,
    /// With --live: packets of this interface only
    // To require what conflicts with something that is there asks for nothing: clap wants both said.
    #[arg(long, value_name = "NAME", requires = "live", conflicts_with = "captures")]
    pub(crate) interface: Option<String>,
    /// With --live: asks the kernel about its sockets and captures nothing, which needs no privilege
    #[arg(long, requires = "live", conflicts_with_all = ["interface", "captures"])]
    pub(crate) sockets: bool,
    /// With --live: ends after this time, such as 10s
    #[arg(long = "for", value_name = "TIME", requires = "live", conflicts_with = "captures")]
    pub(crate) duration: Option<Span>,
    /// Also writes a page with plots of the flows; a file that is there is replaced
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also writes the tables captures, flows and findings into this folder, for DuckDB, pandas and polars; tables that are there are not replaced
    #[arg(long, value_name = "DIR")]
    pub(crate) parquet: Option<PathBuf>,
    /// Also writes a copy of the capture with what was found as packet comments, for Wireshark; a file that is there is replaced
    #[arg(long, value_name = "FILE", conflicts_with = "live")]
    pub(crate) pcapng: Option<PathBuf>,
    /// Tells of this connection alone, in full, with its flight against the window
    #[arg(long, value_name = "ID")]
    pub(crate) flow: Option<u64>,
    /// Connections listed, the worst first
    #[arg(long, default_value = "20", value_name = "N")]
    pub(crate) top: usize,
    /// Of several captures shows each in full, one after the other, instead of what they have in common
    #[arg(long, conflicts_with = "live")]
    pub(crate) each: bool,
    /// Shows what the first connections did in each interval of this length, such as 1s: data, rate, retransmissions, flight, round trip
    #[arg(long, value_name = "TIME")]
    pub(crate) intervals: Option<Span>,
    /// Linux release that the hosts run, such as 6.1: remedies for that one; default: what holds for all, and with --live this host's
    #[arg(long, value_name = "RELEASE", value_parser = values::release)]
    pub(crate) kernel: Option<Release>,
    /// Processors to use; default: all
    #[arg(short, long, env = "THALWEG_JOBS", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg fix slow.pcap\n  thalweg fix slow.pcap --flow 3 --bundle report\n  thalweg fix slow-download --kernel 6.1\n  thalweg fix --live 'port 443' --for 30s\n  thalweg fix --live 4242"
)]
pub(crate) struct FixArgs {
    /// A capture file; or a built-in scenario's name, or a scenario file
    #[arg(value_name = "CAPTURE|SCENARIO", required_unless_present = "live")]
    pub(crate) what: Option<String>,
    /// Captures this host's packets first: a filter as of diagnose, or a process by its number; kept as live.pcapng with the results
    #[arg(long, value_name = "EXPRESSION|PID", conflicts_with_all = ["what", "arm"])]
    pub(crate) live: Option<String>,
    /// With --live: for so long
    #[arg(long = "for", value_name = "TIME", requires = "live", default_value = "30s")]
    pub(crate) duration: Span,
    /// Fixes this connection of the capture, by the number diagnose shows; default: the costliest
    #[arg(long, value_name = "N")]
    pub(crate) flow: Option<u64>,
    /// Fixes this arm of the scenario, by its name; default: the first
    #[arg(long, value_name = "NAME")]
    pub(crate) arm: Option<String>,
    /// Nobody else uses the path: a remedy may take more than CUBIC's share
    #[arg(long)]
    pub(crate) own_path: bool,
    /// Makes this folder with the fitted scenario and a capture of it, without payload, names or addresses of the original
    #[arg(long, value_name = "DIR")]
    pub(crate) bundle: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) lab: LabOptions,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg explain receive-window\n  thalweg explain tcp_rmem\n  thalweg explain initcwnd\n  thalweg explain net.ipv4.tcp_tw_recycle"
)]
pub(crate) struct ExplainArgs {
    /// A verdict's code, or a setting: a sysctl, a route attribute, a socket option, a queueing discipline; without one, verdicts are listed
    pub(crate) name: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg serve --demo\n  thalweg serve edge.toml --check\n\nSIGHUP reads the configuration and the certificates again; SIGTERM ends it when responses on their way have ended."
)]
pub(crate) struct ServeArgs {
    /// The configuration; default: everything as shipped
    #[arg(value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Says whether the configuration is good, and ends
    #[arg(long)]
    pub(crate) check: bool,
    /// Puts back the routes' initial windows that a server left which was killed, and ends
    #[arg(long, conflicts_with_all = ["check", "demo"])]
    pub(crate) undo: bool,
    /// Publishes a built-in picture with sound as live/demo
    #[arg(long, conflicts_with = "check")]
    pub(crate) demo: bool,
    /// What is worth a line on stderr: error, warn, info or debug; default: as configured
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<LogLevel>,
    /// How a line is written: text or json; default: as configured
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
}

/// A filter; what is wrong with one, the place, and what to write instead.
fn filter(text: &str) -> Result<Filter, String> {
    text.parse().map_err(|error: FilterError| format!("{error}\n\nhint: {}", error.hint))
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse().ok();
    number
        .filter(|percent: &f64| percent.is_finite() && *percent >= 0.0)
        .ok_or("write it as a percentage, such as 5".to_owned())
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE, such as path.rtt=100ms")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}
