//! What can be typed after `thalweg path`.

use super::path_preset::Preset;
use clap::{Args as ClapArgs, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use thalweg_units::Span;

/// A program behind a path.
#[derive(Debug, Clone, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  thalweg path --delay 50ms --loss 2% -- curl -O https://example.com/file\n  thalweg path --preset lte                        a shell behind LTE\n  thalweg path --rtt 100ms --rate 1gbit --server 'iperf3 -s' -- iperf3 -c server\n  thalweg path --rate 50mbit --up rate=10mbit,queue=100ms --capture seen.pcapng -- firefox\n  thalweg path set loss 5%                         while it runs, from another terminal\n\nThe program is in a network of its own; nothing of this host's network changes. The other end of the path is called server: there 127.0.0.1 of this host is reached, and what this host reaches by TCP is reached through it. Its exit code is this command's."
)]
pub(crate) struct PathArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<PathVerb>,
    #[command(flatten)]
    pub(crate) run: PathRunArgs,
}

/// What a path is, and what runs behind it.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct PathRunArgs {
    /// Delay of each direction
    #[arg(long, value_name = "TIME", conflicts_with = "rtt")]
    pub(crate) delay: Option<Span>,
    /// Delay of both directions together
    #[arg(long, value_name = "TIME")]
    pub(crate) rtt: Option<Span>,
    /// Standard deviation of the delay; packets keep their order
    #[arg(long, value_name = "TIME")]
    pub(crate) jitter: Option<String>,
    /// Packets lost, of each direction
    #[arg(long, value_name = "PART")]
    pub(crate) loss: Option<String>,
    /// Rate of each direction
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<String>,
    /// What waits at most: '1000 packets', 128KiB or 20ms
    #[arg(long, value_name = "LIMIT")]
    pub(crate) queue: Option<String>,
    /// Other values of the direction to the program: keys of a scenario's [path.down], such as rate=50mbit,discipline=fq_codel
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub(crate) down: Vec<String>,
    /// Other values of the direction from the program
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub(crate) up: Vec<String>,
    /// Begins with this path; other options change it
    #[arg(long, value_enum, conflicts_with = "scenario")]
    pub(crate) preset: Option<Preset>,
    /// Begins with the path of this scenario's first arm: a built-in one's name, or a file
    #[arg(long, value_name = "SCENARIO")]
    pub(crate) scenario: Option<String>,
    /// What loss and jitter derive from
    #[arg(long, default_value = "1", value_name = "N")]
    pub(crate) seed: u64,
    /// Writes what the program sends and receives to this pcapng file
    #[arg(long, value_name = "FILE")]
    pub(crate) capture: Option<PathBuf>,
    /// This port of 127.0.0.1 leads to the program (repeatable)
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) publish: Vec<u16>,
    /// At the other end of the path this port leads to HOST:PORT of this host's network: 5432=db.example:5432, or db.example:5432 (repeatable)
    #[arg(long, value_name = "[PORT=]HOST:PORT", value_parser = expose)]
    pub(crate) expose: Vec<(u16, String)>,
    /// Reaches nothing but --server and --expose
    #[arg(long)]
    pub(crate) isolated: bool,
    /// Runs this shell command at the other end of the path, so that it is TCP of this host's kernel at both ends
    #[arg(long, value_name = "COMMAND")]
    pub(crate) server: Option<String>,
    /// The program and its arguments; default: a shell
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum PathVerb {
    /// Changes a path that runs
    #[command(
        override_usage = "thalweg path set [OPTIONS] [ID] <KEY> <VALUE>",
        after_help = "Examples:\n  thalweg path set loss 5%\n  thalweg path set 4711 rate 10mbit --up\n  thalweg path set delay 200ms"
    )]
    Set(PathSetArgs),
    /// Lists the paths that run, and what they do
    #[command(after_help = "Example:\n  thalweg path list")]
    List,
    /// Shows what a path does, until it ends or Ctrl-C
    #[command(after_help = "Example:\n  thalweg path watch")]
    Watch {
        /// Its number; default: the only one that runs
        id: Option<u32>,
    },
    /// Brings up the hosts of a scenario, and leaves them up
    #[command(
        after_help = "Examples:\n  thalweg path up car.toml\n  thalweg path exec server -- iperf3 -s\n  thalweg path exec client2 -- iperf3 -c server\n  thalweg path down\n\nThe file is a scenario's, of which [path], [topology] and the hosts' settings count; it needs no [workload]. The hosts are network namespaces on this host's kernel, in real time, and reach each other by name and nothing else."
    )]
    Up(PathUpArgs),
    /// Runs a program on a host that is up
    #[command(
        override_usage = "thalweg path exec [OPTIONS] [ID] <HOST> [-- <COMMAND>...]",
        after_help = "Examples:\n  thalweg path exec client                        a shell\n  thalweg path exec server -- python3 -m http.server\n  thalweg path exec 4711 client2 -- ping server\n\nIts exit code is the program's."
    )]
    Exec(PathExecArgs),
    /// Takes hosts down, with all that runs on them
    #[command(after_help = "Example:\n  thalweg path down")]
    Down {
        /// Their number; default: the only ones that are up
        id: Option<u32>,
    },
}

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct PathUpArgs {
    /// A file, or a built-in scenario's name
    pub(crate) scenario: String,
    /// The arm whose path and hosts they are; default: the first
    #[arg(long, value_name = "NAME")]
    pub(crate) arm: Option<String>,
    /// Sets a value of the scenario (repeatable): topology.clients=8
    #[arg(long, value_name = "KEY=VALUE", value_parser = super::key_value)]
    pub(crate) set: Vec<(String, String)>,
    /// What loss and jitter derive from
    #[arg(long, default_value = "1", value_name = "N")]
    pub(crate) seed: u64,
}

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct PathExecArgs {
    /// The hosts' number, where several are up; then the host's name
    #[arg(required = true, num_args = 1..=2, value_names = ["ID", "HOST"])]
    pub(crate) host: Vec<String>,
    /// The program and its arguments; default: a shell
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct PathSetArgs {
    /// The path's number, where several run; then rate, delay or loss; then the value
    #[arg(required = true, num_args = 2..=3, value_names = ["ID", "KEY", "VALUE"])]
    pub(crate) change: Vec<String>,
    /// Changes the direction from the program only
    #[arg(long, conflicts_with = "down")]
    pub(crate) up: bool,
    /// Changes the direction to the program only
    #[arg(long)]
    pub(crate) down: bool,
}

fn expose(text: &str) -> Result<(u16, String), String> {
    let wrong = || "write it as HOST:PORT or PORT=HOST:PORT, such as 127.0.0.1:8080".to_owned();
    let (port, target) = text.split_once('=').map_or((None, text), |(port, target)| (Some(port), target));
    let (host, own) = target.rsplit_once(':').ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let own = number(own).filter(|_| !host.is_empty()).ok_or_else(wrong)?;
    Ok((port.map_or(Some(own), number).ok_or_else(wrong)?, target.to_owned()))
}
