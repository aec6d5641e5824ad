//! `thalweg lab kernel`: build and list.

use crate::args::KernelVerb;
use crate::failure::Failure;
use crate::output::Output;
use crate::{progress, stop};
use std::process::ExitCode;
use thalweg_lab::kernel::{self, BuildRequest, Kernel, Listed, Progress};
use thalweg_model::{BuiltKernel, KernelList, ListedKernel};

pub(crate) fn run(verb: KernelVerb, output: &Output) -> Result<ExitCode, Failure> {
    match verb {
        KernelVerb::List => list(output),
        KernelVerb::Build { version, source, jobs, hz } => {
            let defaults = BuildRequest::default();
            let init = std::env::current_exe().map_err(Failure::host)?;
            let jobs = jobs.unwrap_or(defaults.jobs).max(1);
            build(&BuildRequest { version, source, jobs, hz, init, interrupt: stop::listen()? }, output)
        }
    }
}

fn list(output: &Output) -> Result<ExitCode, Failure> {
    let kernels = kernel::list()?;
    if output.json {
        let listed = kernels.into_iter().map(|Listed { kernel: Kernel { release, id, path }, hz, current }| {
            ListedKernel { release, id, path: path.display().to_string(), hz, current }
        });
        output.json_result(&KernelList { schema: "thalweg.kernels/1", kernels: listed.collect() })?;
    } else if kernels.is_empty() {
        output.note("no lab kernel is built yet\n\nhint: thalweg lab kernel build");
    } else {
        for Listed { kernel: Kernel { release, id, path }, current, .. } in &kernels {
            let age = if *current { "current" } else { "outdated" };
            output.result(&format!("{release:<10} {id:<26} {age:<9} {}", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn build(request: &BuildRequest, output: &Output) -> Result<ExitCode, Failure> {
    let bar = progress::bar(output, "lab kernel");
    let mut phase = None;
    let built = kernel::build(request, &mut |now: Progress| {
        if phase != Some(now.phase) {
            phase = Some(now.phase);
            if !output.progress {
                output.note(&format!("lab kernel: {}", now.phase.title()));
            }
        }
        bar.set_message(format!("lab kernel: {}", now.phase.title()));
        progress::set(&bar, now.fraction.unwrap_or(0.0));
    });
    bar.finish_and_clear();
    let built = built?;
    if output.json {
        let Kernel { release, id, path } = built;
        let path = path.display().to_string();
        output.json_result(&BuiltKernel { schema: "thalweg.kernel-build/1", release, id, path })?;
    } else {
        output.result(&format!("lab kernel {} is at {}", built.release, built.path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
