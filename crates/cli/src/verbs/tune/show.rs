//! `thalweg tune show`: what is wrong with a host's settings.

use super::this_host;
use crate::args::tune::TuneShowArgs;
use crate::failure::Failure;
use crate::output::Output;
use anyhow::anyhow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;
use thalweg_model::Weight;
use thalweg_tune::show::show;
use thalweg_tune::state::{HostState, TEXT_MAX, parse};

pub(crate) fn run(args: &TuneShowArgs, output: &Output) -> Result<ExitCode, Failure> {
    let (mut state, source) = match &args.from {
        Some(path) => (pasted(path)?, named(path)),
        None => (this_host::read()?, "this host".to_owned()),
    };
    state.kernel = args.kernel.or(state.kernel);
    let report = show(&state, source, args.connections);
    if output.json {
        output.json_result(&report)?;
    } else {
        output.result(&thalweg_report::terminal::tune_show(&report, output.width, output.color))?;
    }
    let trap = report.findings.iter().any(|finding| finding.weight == Weight::Trap);
    Ok(ExitCode::from(u8::from(trap)))
}

/// A file's name; `-` is stdin.
fn named(path: &Path) -> String {
    if path.as_os_str() == "-" { "stdin".to_owned() } else { path.display().to_string() }
}

/// Reads a pasted text; one that holds nothing of what is known is refused.
pub(super) fn pasted(path: &Path) -> Result<HostState, Failure> {
    let name = named(path);
    let mut bytes = Vec::new();
    let most = TEXT_MAX as u64 + 1;
    let read = if path.as_os_str() == "-" {
        io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::user(anyhow!("cannot read '{name}': {error}")))?;
    if bytes.len() > TEXT_MAX {
        return Err(Failure::user(anyhow!("'{name}' is larger than {} MiB", TEXT_MAX >> 20))
            .hint("give it the output of sysctl -a, ip route and ss -ti alone"));
    }
    let state = parse(&String::from_utf8_lossy(&bytes));
    if state.sysctls.is_empty() && state.routes.is_empty() && state.sockets.is_empty() {
        return Err(Failure::user(anyhow!("'{name}' holds no sysctl, no route and no connection"))
            .hint("it is to hold the output of sysctl -a, ip route or ss -ti: lines such as 'net.ipv4.tcp_sack = 1'"));
    }
    Ok(state)
}
