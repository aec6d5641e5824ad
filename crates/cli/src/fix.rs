//! `thalweg fix`: what slows a scenario, and a proven remedy.

use crate::args::FixArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Console;
use crate::{plots, scenarios, stop};
use model::Code;
use pipeline::Bench;
use pipeline::fix::{self, Fixed};
use report::html::Page;
use std::process::ExitCode;

pub(crate) fn run(args: &FixArgs, output: &Output) -> Result<ExitCode, Failure> {
    let scenario = scenarios::find(&args.scenario, &args.lab.set)?;
    let bench = Bench::prepare(scenario, &args.lab.bench(), args.lab.out.as_deref(), &stop::listen()?)?;
    let Fixed { report: fix, findings } = fix::scenario(&bench, &mut Console::new(output))?;
    let json = report::json::to_string(&fix).map_err(Failure::host)?;
    bench.out.write("fix.json", &json)?;
    let page = Page {
        title: format!("fix {}", bench.scenario.name),
        notes: Vec::new(),
        lab: Some(&fix.proof),
        fix: Some(&fix),
        arms: plots::of_arms(&fix.proof, findings),
    };
    let html = bench.out.write("report.html", &report::html::page(&page))?;
    let html = html.canonicalize().unwrap_or(html).display().to_string();
    if output.json {
        output.result(&json)?;
    } else {
        output.result(&report::terminal::fix(&fix, Some(&html), output.width, output.color))?;
    }
    let mended = fix.remedy.is_some() || fix.cause.code == Code::NothingToGain;
    Ok(if mended { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
