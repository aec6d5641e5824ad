//! `thalweg lab run`.

use crate::args::{Capture, LabRunArgs};
use crate::experiment::{self, Bench};
use crate::failure::Failure;
use crate::output::Output;
use crate::scenarios;
use anyhow::anyhow;
use lab::{CaptureEnds, RunOptions};
use model::RUNS_MAX;
use report::html::Page;
use std::process::ExitCode;
use units::Span;

pub(crate) fn run(args: LabRunArgs, output: &Output) -> Result<ExitCode, Failure> {
    let options = RunOptions {
        capture: match args.capture {
            Capture::Both => CaptureEnds::Both,
            Capture::Client => CaptureEnds::Client,
            Capture::Server => CaptureEnds::Server,
            Capture::Off => CaptureEnds::Off,
        },
        samples: interval(&args.samples)?,
    };
    // Before anything is made: a wrong arm is the user's mistake.
    let mut chosen = scenarios::find(&args.scenario, &args.lab.set)?;
    if !args.arm.is_empty()
        && let Err(unknown) = chosen.keep(&args.arm)
    {
        let known: Vec<&str> = chosen.arms.iter().map(|arm| arm.name.as_str()).collect();
        return Err(Failure::user(anyhow!("'{}' has no arm named '{unknown}'", chosen.name))
            .hint(format!("its arms are: {}", known.join(" · "))));
    }
    if chosen.arms.len().saturating_mul(args.repeat as usize) > RUNS_MAX {
        return Err(Failure::user(anyhow!(
            "{} arms and {} repeats are more than {RUNS_MAX} runs",
            chosen.arms.len(),
            args.repeat
        )));
    }
    let bench = Bench::prepare(&args.scenario, &args.lab)?;
    let (mut report, findings) = bench.run(&chosen, 0, args.repeat, options, output)?;
    report.expect = chosen
        .expect
        .iter()
        // Without a capture there is no verdict to hold an expectation against.
        .filter(|line| line.metric != "verdict" || options.capture != CaptureEnds::Off)
        .map(|line| line.check(&report.arms))
        .collect();
    let met = report.expect.iter().all(|outcome| outcome.met);

    let arms = experiment::plots(&report, findings);
    let json = report::json::to_string(&report).map_err(Failure::host)?;
    bench.out.write("report.json", &json)?;
    let page = Page { title: report.scenario.clone(), lab: Some(&report), fix: None, arms };
    let html = bench.out.write("report.html", &report::html::page(&page))?;
    if output.json {
        output.result(&json);
    } else {
        output.result(&report::terminal::lab(&report, output.width, output.color));
    }
    output.note(&format!("plots: {}", html.display()));
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn interval(text: &str) -> Result<Option<Span>, Failure> {
    if text == "off" {
        return Ok(None);
    }
    match text.parse::<Span>() {
        Ok(span) if span >= Span::from_micros(100) => Ok(Some(span)),
        Ok(span) => Err(Failure::user(anyhow!("samples every {span} are more than the lab takes: 100us is the least"))),
        Err(error) => Err(Failure::user(anyhow!("--samples: {error}, or off"))),
    }
}
