//! `thalweg tune congestion`: a congestion control of ours in this host's kernel.

use crate::args::tune_congestion::{PinArgs, TuneCongestionArgs, TuneCongestionVerb};
use crate::failure::Failure;
use crate::output::Output;
use std::io::ErrorKind;
use std::process::ExitCode;
use thalweg_host::bpf::Periodic;
use thalweg_host::{HostError, sysctl};
use thalweg_model::{CongestionControl, TuneCongestion};

pub(crate) fn run(args: &TuneCongestionArgs, output: &Output) -> Result<ExitCode, Failure> {
    match &args.verb {
        TuneCongestionVerb::Load(args) => load(args, output),
        TuneCongestionVerb::Unload(args) => unload(args, output),
        TuneCongestionVerb::List(args) => list(args, output),
    }
}

fn load(args: &PinArgs, output: &Output) -> Result<ExitCode, Failure> {
    let name = Periodic::NAME;
    if args.pin.exists() {
        return Err(Failure::user(format!("{} exists already", args.pin.display()))
            .hint("thalweg tune congestion list shows whether it is loaded; unload removes it"));
    }
    if available()?.iter().any(|one| one == name) {
        return Err(Failure::user(format!("this kernel has a congestion control {name} already"))
            .hint("it was built with it, or it is loaded under another --pin"));
    }
    Periodic::load(&args.pin).map_err(refused)?;
    if output.json {
        return list(args, output);
    }
    output.result(&format!("loaded {name}: connections use it by TCP_CONGESTION, or by their route's congctl"))?;
    output.note("the route's initcwnd is a connection's share of the switch's buffer, in segments");
    Ok(ExitCode::SUCCESS)
}

fn unload(args: &PinArgs, output: &Output) -> Result<ExitCode, Failure> {
    if !args.pin.exists() {
        return Err(Failure::user(format!("nothing is loaded as {}", args.pin.display()))
            .hint("thalweg tune congestion load loads it"));
    }
    Periodic::unload(&args.pin).map_err(refused)?;
    if output.json {
        return list(args, output);
    }
    output.result(&format!("unloaded {}; connections that use it keep it until they end", Periodic::NAME))?;
    Ok(ExitCode::SUCCESS)
}

fn list(args: &PinArgs, output: &Output) -> Result<ExitCode, Failure> {
    let all = available()?;
    let is_ours = |name: &str| name == Periodic::NAME && args.pin.exists();
    if output.json {
        let one = |name: &String| CongestionControl { name: name.clone(), loaded_by_thalweg: is_ours(name) };
        let available = all.iter().map(one).collect();
        output.json_result(&TuneCongestion { schema: "thalweg.tune-congestion/1", available })?;
    } else {
        let line = |name: &String| if is_ours(name) { format!("{name}  loaded by thalweg") } else { name.clone() };
        output.result(&all.iter().map(line).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn available() -> Result<Vec<String>, Failure> {
    let text = sysctl::read("net.ipv4.tcp_available_congestion_control").map_err(Failure::host)?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// What the kernel refused, with what to do about it.
fn refused(error: HostError) -> Failure {
    let hint = match error.source.kind() {
        ErrorKind::PermissionDenied => "it needs root, or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, outside a container",
        _ if error.act.starts_with("pin ") => {
            "its name is in the BPF file system: mount -t bpf bpf /sys/fs/bpf, or --pin FILE in one that is mounted"
        }
        _ => "it needs Linux 6.4 or later, built with CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF",
    };
    Failure::host(error).hint(hint)
}
