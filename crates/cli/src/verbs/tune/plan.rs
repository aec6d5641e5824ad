//! `thalweg tune plan`: what to set, and why that much.

use super::{show, this_host};
use crate::args::tune::TunePlanArgs;
use crate::failure::Failure;
use crate::output::Output;
use anyhow::anyhow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;
use thalweg_model::TunePlan;
use thalweg_tune::proposal::format::{Emission, Format, emit};
use thalweg_tune::proposal::{Demand, DiagnosisError, NoRoute, for_purpose, from_diagnosis};
use thalweg_tune::state::HostState;

/// The longest diagnosis that is read, in bytes.
const DIAGNOSIS_MAX: u64 = 256 << 20;

pub(crate) fn run(args: &TunePlanArgs, output: &Output) -> Result<ExitCode, Failure> {
    let mut state = match &args.from {
        Some(path) => show::pasted(path)?,
        None => this_host::read()?,
    };
    state.kernel = args.kernel.or(state.kernel);
    let plan = plan(args, &state)?;
    if output.json {
        output.json_result(&plan)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(format) = args.format else {
        output.result(&thalweg_report::terminal::tune_plan(&plan, output.width, output.color))?;
        return Ok(ExitCode::SUCCESS);
    };
    emitted(&emit(&plan, format), format, &plan, output)
}

fn plan(args: &TunePlanArgs, state: &HostState) -> Result<TunePlan, Failure> {
    let demand = Demand {
        rtt: args.rtt.unwrap_or_default(),
        rate: args.rate.unwrap_or_default(),
        connections: args.connections,
        queue: args.queue,
        to: args.to.clone(),
    };
    if let Some(purpose) = args.purpose {
        if demand.rate.bdp(demand.rtt).get() == 0 {
            return Err(Failure::user(anyhow!("--rtt {} and --rate {} hold no byte", demand.rtt, demand.rate))
                .hint("give the path's round-trip time and one connection's rate, such as --rtt 100ms --rate 8mbit"));
        }
        return for_purpose(purpose, &demand, state).map_err(no_route);
    }
    let path = args.diagnosis.as_deref().expect("invariant: clap asks for one of both");
    let name = path.display().to_string();
    let document = document(path)?;
    from_diagnosis(&document, args.here, &name, &demand, state).map_err(|error| match error {
        DiagnosisError::NoRoute(error) => no_route(error),
        error => Failure::user(anyhow!("'{name}': {error}"))
            .hint("make one by `thalweg diagnose CAPTURE --json` or `thalweg fix SCENARIO --json`; --here says which side this host is"),
    })
}

fn no_route(error: NoRoute) -> Failure {
    Failure::user(error)
        .hint("--to takes the destination of a route that `ip route` or `ip -6 route` lists; ::/0 is the default route of IPv6")
}

fn document(path: &Path) -> Result<serde_json::Value, Failure> {
    let name = path.display();
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        io::stdin().lock().take(DIAGNOSIS_MAX + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(DIAGNOSIS_MAX + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::user(anyhow!("cannot read '{name}': {error}")))?;
    if bytes.len() as u64 > DIAGNOSIS_MAX {
        return Err(Failure::user(anyhow!("'{name}' is larger than {} MiB", DIAGNOSIS_MAX >> 20)));
    }
    serde_json::from_slice(&bytes).map_err(|error| Failure::user(anyhow!("'{name}' is not JSON: {error}")))
}

fn emitted(emission: &Emission, format: Format, plan: &TunePlan, output: &Output) -> Result<ExitCode, Failure> {
    if plan.changes.is_empty() {
        output.note("nothing has to be set");
    }
    if !emission.text.is_empty() {
        output.result(&emission.text)?;
    }
    for refusal in &emission.refused {
        output.note(&format!("{}: {} Instead: {}", refusal.setting, refusal.why, refusal.instead));
    }
    if emission.refused.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    output.note(&format!(
        "{} of {} changes cannot be expressed in {}",
        emission.refused.len(),
        plan.changes.len(),
        format.name()
    ));
    Ok(ExitCode::from(1))
}
