//! `thalweg tune attach`, `attached` and `detach`: settings for connections as they open, by a BPF program on a cgroup.

use crate::args::tune_attach::{TuneAttachArgs, TuneAttachedArgs, TuneDetachArgs};
use crate::failure::Failure;
use crate::output::Output;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use thalweg_host::bpf::{ArmCounters, ConnectionProgram, ConnectionSettings};
use thalweg_host::{HostError, sysctl};
use thalweg_model::{AttachedProgram, AttachedSettings, ShareCounters, TuneAttached, TuneDetached};
use thalweg_units::{Bytes, Span};

pub(crate) fn run(args: &TuneAttachArgs, output: &Output) -> Result<ExitCode, Failure> {
    let settings = ConnectionSettings {
        share: args.share,
        port: args.port,
        destination: args.to,
        initial_window: args.initial_window,
        cwnd_clamp: args.cwnd_clamp,
        rto_min: args.rto_min,
        delack_max: args.delack_max,
        congestion: args.congestion.clone(),
        first_bytes: args.first_bytes.get(),
    };
    check(&settings)?;
    let pins = args.pinned.pins.join(&args.name);
    if pins.exists() {
        return Err(Failure::user(format!("{} is attached already", args.name))
            .hint(format!("thalweg tune detach {} ends it; another name can be attached beside it", args.name)));
    }
    in_bpf_file_system(&args.pinned.pins)?;
    let cgroup = args.cgroup.clone().map_or_else(root_cgroup, Ok)?;
    ConnectionProgram::attach(&cgroup, &pins, &settings).map_err(refused)?;
    if output.json {
        output.json_result(&document(&[(args.name.clone(), settings, [ArmCounters::default(); 2])]))?;
    } else {
        output.result(&format!("attached {}: {}", args.name, sentence(&settings)))?;
        output.note(&format!(
            "connections that open from now on; thalweg tune attached shows them, thalweg tune detach {} ends it",
            args.name
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses a folder that is in another file system, in which the kernel pins nothing.
fn in_bpf_file_system(pins: &Path) -> Result<(), Failure> {
    /// Source: linux/magic.h, `BPF_FS_MAGIC`.
    const MAGIC: rustix::fs::FsWord = 0xcafe_4a11;
    // The folder is made when the first name is attached.
    let there = pins.ancestors().find(|path| path.exists()).unwrap_or(pins);
    match rustix::fs::statfs(there) {
        Ok(system) if system.f_type != MAGIC => {
            Err(Failure::user(format!("'{}' is not in a BPF file system", pins.display()))
                .hint("mount -t bpf bpf /sys/fs/bpf, or --pins DIR in one that is mounted"))
        }
        _ => Ok(()),
    }
}

/// Refuses what the kernel would refuse at each connection, or what sets nothing.
fn check(settings: &ConnectionSettings) -> Result<(), Failure> {
    let sets = settings.initial_window.is_some()
        || settings.cwnd_clamp.is_some()
        || settings.rto_min.is_some()
        || settings.delack_max.is_some()
        || settings.congestion.is_some();
    if !sets {
        return Err(Failure::user("nothing is to be set").hint("such as --initial-window 40 or --congestion bbr"));
    }
    let micros = |time: Option<thalweg_units::Span>| time.is_some_and(|time| time.as_nanos() < 1_000_000);
    if micros(settings.rto_min) || micros(settings.delack_max) {
        return Err(Failure::user("--rto-min and --delack-max are 1 ms or more").hint("such as --rto-min 100ms"));
    }
    if let Some(name) = &settings.congestion {
        let available = sysctl::read("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
        if !available.split_whitespace().any(|one| one == name) {
            return Err(Failure::user(format!("this kernel does not have the congestion control {name}"))
                .hint(format!("it has {available}; modprobe tcp_{name} may load it")));
        }
    }
    Ok(())
}

pub(crate) fn list(args: &TuneAttachedArgs, output: &Output) -> Result<ExitCode, Failure> {
    let all = attached(&args.pinned.pins)?;
    if output.json {
        output.json_result(&document(&all))?;
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() {
        output.note("nothing is attached");
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = Vec::new();
    for (name, settings, [control, set]) in &all {
        lines.push(format!("{name}: {}", sentence(settings)));
        lines.push(format!(
            "  {:<10}{:>9}{:>9}{:>12}{:>9}{:>18}{:>10}",
            "share", "opened", "closed", "sent", "resent", "to first bytes", "resent by"
        ));
        for (label, arm) in [("without", control), ("with", set)] {
            lines.push(format!(
                "  {label:<10}{:>9}{:>9}{:>12}{:>9}{:>18}{:>10}",
                arm.opened,
                arm.closed,
                Bytes::new(arm.bytes).to_string(),
                part(arm.retransmits, arm.segments),
                mean_ms(arm).map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms ({})", arm.first)),
                part(arm.first_resent, arm.first),
            ));
        }
        if set.refused > 0 {
            lines.push(format!("  the kernel refused a setting {} times", set.refused));
        }
    }
    output.result(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn detach(args: &TuneDetachArgs, output: &Output) -> Result<ExitCode, Failure> {
    let pins = args.pinned.pins.join(&args.name);
    if !pins.exists() {
        return Err(unknown(&args.name));
    }
    ConnectionProgram::detach(&pins).map_err(refused)?;
    if output.json {
        output.json_result(&TuneDetached { schema: "thalweg.tune-detached/1", name: args.name.clone() })?;
    } else {
        output.result(&format!("detached {}; open connections keep what they were given", args.name))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The program of this name.
pub(super) fn open(pins: &Path, name: &str) -> Result<ConnectionProgram, Failure> {
    ConnectionProgram::open(&pins.join(name)).map_err(|error| match error.source.kind() {
        ErrorKind::NotFound => unknown(name),
        _ => refused(error),
    })
}

fn unknown(name: &str) -> Failure {
    Failure::user(format!("nothing is attached as {name}")).hint("thalweg tune attached lists what is")
}

/// What the kernel refused, with what to do about it.
pub(super) fn refused(error: HostError) -> Failure {
    let hint = match error.source.kind() {
        ErrorKind::PermissionDenied if error.act.starts_with("make ") => {
            "names are in the BPF file system: mount -t bpf bpf /sys/fs/bpf, or --pins DIR in one that is mounted"
        }
        ErrorKind::PermissionDenied => "it needs root, or CAP_BPF and CAP_NET_ADMIN, outside a container",
        _ => {
            "names are in the BPF file system: mount -t bpf bpf /sys/fs/bpf, or --pins DIR in one that is mounted; cgroups are folders of cgroup2; Linux 5.7 or later"
        }
    };
    Failure::host(error).hint(hint)
}

/// Everything that is attached, in order of the names.
fn attached(pins: &Path) -> Result<Vec<(String, ConnectionSettings, [ArmCounters; 2])>, Failure> {
    let entries = match fs::read_dir(pins) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(refused(HostError { act: format!("read {}", pins.display()), source })),
    };
    let mut all = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let program = open(pins, &name)?;
        all.push((name, program.settings().map_err(refused)?, program.counters().map_err(refused)?));
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(all)
}

/// The folder of all processes' cgroup.
fn root_cgroup() -> Result<PathBuf, Failure> {
    let mounts = fs::read_to_string("/proc/self/mounts").map_err(Failure::host)?;
    let mut words = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let root = words.find(|words| words.get(2) == Some(&"cgroup2")).and_then(|words| words.get(1).copied());
    root.map(PathBuf::from).ok_or_else(|| {
        Failure::host("this host has no cgroup2 that is mounted")
            .hint("mount -t cgroup2 none /sys/fs/cgroup, or --cgroup DIR")
    })
}

/// Which connections, and what is set.
fn sentence(settings: &ConnectionSettings) -> String {
    let mut of = Vec::new();
    of.extend(settings.port.map(|port| format!("local port {port}")));
    of.extend(settings.destination.map(|(address, length)| format!("to {address}/{length}")));
    let of = if of.is_empty() { "all connections".to_owned() } else { of.join(" ") };
    let mut set = Vec::new();
    set.extend(settings.initial_window.map(|segments| format!("initial window {segments}")));
    set.extend(settings.cwnd_clamp.map(|segments| format!("congestion window up to {segments}")));
    set.extend(settings.rto_min.map(|time| format!("least timeout {time}")));
    set.extend(settings.delack_max.map(|time| format!("acknowledgements within {time}")));
    set.extend(settings.congestion.as_ref().map(|name| format!("congestion control {name}")));
    format!("{of}, {} %: {}", settings.share, set.join(", "))
}

fn part(some: u64, all: u64) -> String {
    if all == 0 { "-".to_owned() } else { format!("{:.2} %", 100.0 * some as f64 / all as f64) }
}

/// Mean time until the first bytes were acknowledged.
fn mean_ms(arm: &ArmCounters) -> Option<f64> {
    (arm.first > 0).then(|| arm.first_sum as f64 / arm.first as f64 * ArmCounters::UNIT_S * 1e3)
}

fn document(all: &[(String, ConnectionSettings, [ArmCounters; 2])]) -> TuneAttached {
    let ms = |time: Option<Span>| time.map(|time| time.as_nanos() as f64 / 1e6);
    let programs = all.iter().map(|(name, settings, [control, set])| AttachedProgram {
        name: name.clone(),
        share_percent: settings.share,
        port: settings.port,
        destination: settings.destination.map(|(address, length)| format!("{address}/{length}")),
        set: AttachedSettings {
            initial_window: settings.initial_window,
            cwnd_clamp: settings.cwnd_clamp,
            rto_min_ms: ms(settings.rto_min),
            delack_max_ms: ms(settings.delack_max),
            congestion: settings.congestion.clone(),
        },
        timed_bytes: settings.first_bytes,
        without: counters(control),
        with: counters(set),
    });
    TuneAttached { schema: "thalweg.tune-attached/1", programs: programs.collect() }
}

fn counters(arm: &ArmCounters) -> ShareCounters {
    ShareCounters {
        opened: arm.opened,
        closed: arm.closed,
        bytes: arm.bytes,
        segments: arm.segments,
        retransmits: arm.retransmits,
        first_bytes: arm.first,
        first_bytes_mean_ms: mean_ms(arm),
        first_bytes_resent: arm.first_resent,
        refused: arm.refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_system_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = in_bpf_file_system(&folder.path().join("pins")).expect_err("not BPF's").to_string();
        assert!(error.contains("not in a BPF file system"), "{error}");
    }
}
