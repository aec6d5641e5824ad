//! `thalweg fix`: run as found, diagnose, derive the remedy, run again with it, compare.

use crate::args::FixArgs;
use crate::experiment::{self, ArmFindings, Bench, Ran, Task};
use crate::failure::Failure;
use crate::output::Output;
use crate::{scenarios, stop};
use anyhow::anyhow;
use lab::{LabArm, RunOptions};
use model::{
    Arm, ArmReport, Change, Code, Experiment, FixReport, LabReport, Metric, Remedy, Scenario, Setting, Side, Workload,
};
use report::html::Page;
use std::process::ExitCode;
use tune::Facts;
use units::{Bytes, Rate, Span};

/// Remedies tried one upon the other: behind one limit the next one shows.
const ROUNDS: usize = 3;
/// A remedy that gives less than this is none.
const WORTH: f64 = 1.05;

pub(crate) fn run(args: FixArgs, output: &Output) -> Result<ExitCode, Failure> {
    let scenario = scenarios::find(&args.scenario, &args.lab.set)?;
    let folder = args.lab.out.as_deref();
    let bench = Bench::prepare(scenario, &args.lab, folder, &stop::listen()?)?;
    let [(_, kernel)] = bench.kernels.as_slice() else {
        return Err(Failure::user(anyhow!("fix takes one kernel, not {}", bench.kernels.len()))
            .hint("choose one by --kernel; lab run compares several"));
    };
    let mut arms = vec![Arm::new(name(&[]), bench.scenario.arms[0].experiment.clone())];
    let mut found: Vec<Option<ArmFindings>> = Vec::new();
    let mut report: Option<LabReport> = None;
    let mut remedies: Vec<Remedy> = Vec::new();
    loop {
        let arm = arms[arms.len() - 1].clone();
        output.note(&match remedies.last() {
            None => format!("running '{}' as found on Linux {}", bench.scenario.name, kernel.release),
            Some(remedy) => format!("cause: {}; running again with the remedy", remedy.code),
        });
        let one = LabArm { arm, kernel: kernel.clone() };
        let task = Task {
            arms: &[one],
            expect: &[],
            first_arm: arms.len() - 1,
            repeats: 1,
            part: None,
            options: RunOptions::default(),
        };
        let Ran { report: run, mut findings, .. } = bench.run(&task, output)?;
        let step = join(&mut report, run);
        found.append(&mut findings);
        let so_far = report.as_ref().map(|report| &report.arms).map(Vec::as_slice).unwrap_or_default();
        if so_far.len() > 1 && !better(so_far, &bench.scenario, step - 1, step) {
            // The last remedy gave nothing: it is not part of the answer, though its run stays in the proof.
            remedies.pop();
            break;
        }
        let planned =
            found[step].as_ref().and_then(|found| plan(&kernel.release, &so_far[step], &arms[step].experiment, found));
        let Some(remedy) = planned.filter(|_| remedies.len() < ROUNDS) else { break };
        let mut experiment = arms[step].experiment.clone();
        remedy.changes.iter().for_each(|change| apply(&mut experiment, change));
        remedies.push(remedy);
        arms.push(Arm::new(name(&remedies), experiment));
    }

    let report = report.expect("invariant: the baseline has run");
    let fix = conclude(&bench.scenario, report, &found, remedies);
    let json = report::json::to_string(&fix).map_err(Failure::host)?;
    bench.out.write("fix.json", &json)?;
    let page = Page {
        title: format!("fix {}", bench.scenario.name),
        notes: Vec::new(),
        lab: Some(&fix.proof),
        fix: Some(&fix),
        arms: experiment::plots(&fix.proof, found),
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

/// Adds a run's arm to the report; returns its place.
fn join(report: &mut Option<LabReport>, run: LabReport) -> usize {
    match report {
        None => *report = Some(run),
        Some(whole) => {
            let baseline = whole.arms.first().map(|arm| arm.name.clone());
            whole.wall_s += run.wall_s;
            whole.virtual_s += run.virtual_s;
            whole.arms.extend(run.arms.into_iter().map(|arm| ArmReport { baseline: baseline.clone(), ..arm }));
            lab::compare_arms(&mut whole.arms, whole.seed);
        }
    }
    report.as_ref().map_or(0, |report| report.arms.len() - 1)
}

/// An arm's name: what it adds to the one before it.
fn name(remedies: &[Remedy]) -> String {
    let Some((last, before)) = remedies.split_last() else { return "as found".to_owned() };
    let again = if before.iter().any(|remedy| remedy.code == last.code) { " again" } else { "" };
    let plus = if before.is_empty() { "" } else { "+ " };
    format!("{plus}{} mended{again}", last.code)
}

/// The figure that says how fast a workload was, and whether more of it is better.
fn figure(scenario: &Scenario, arm: &ArmReport) -> (String, bool) {
    match &scenario.arms[0].experiment.workload {
        Workload::Stream(_) if arm.metrics.contains_key("goodput_steady_bps") => {
            ("goodput_steady_bps".to_owned(), true)
        }
        Workload::Rr(_) | Workload::Crr(_) => ("transactions_per_s".to_owned(), true),
        Workload::Burst(burst) => (format!("time_to_bytes_ms.{}", burst.total.get()), false),
        Workload::Stream(_) | Workload::UdpTrain(_) => ("goodput_bps".to_owned(), true),
        Workload::Topics(_) => ("latency_ms.p99".to_owned(), false),
        Workload::Mixed { .. } | Workload::Command(_) => ("duration_s".to_owned(), false),
    }
}

fn value(arm: &ArmReport, figure: &str) -> Option<f64> {
    Metric::find(&arm.metrics, &figure.split('.').collect::<Vec<_>>())?.value()
}

/// How many times better arm `b` is than arm `a`, whichever way better is.
fn ratio(arms: &[ArmReport], scenario: &Scenario, a: usize, b: usize) -> Option<f64> {
    // A figure both have: a run that ends within the first second has no steady rate.
    let (mut name, more) = figure(scenario, &arms[a]);
    if value(&arms[b], &name).is_none() {
        name = figure(scenario, &arms[b]).0;
    }
    let (a, b) = (value(&arms[a], &name)?, value(&arms[b], &name)?);
    Some(if more { b / a } else { a / b })
}

fn better(arms: &[ArmReport], scenario: &Scenario, a: usize, b: usize) -> bool {
    ratio(arms, scenario, a, b).is_some_and(|ratio| ratio >= WORTH)
}

/// Plans for the costliest cause that something can be done about.
fn plan(kernel: &str, arm: &ArmReport, experiment: &Experiment, found: &ArmFindings) -> Option<Remedy> {
    let path = experiment.path.direction(found.flow.direction);
    let mut fixed_buffers = Vec::new();
    for (side, host) in [(Side::Client, &experiment.client), (Side::Server, &experiment.server)] {
        fixed_buffers.extend(host.socket.rcvbuf.map(|_| (side, "rcvbuf")));
        fixed_buffers.extend(host.socket.sndbuf.map(|_| (side, "sndbuf")));
    }
    let seen = Facts::of_flow(&found.flow, model::since::release(kernel), &arm.settings);
    let facts = Facts {
        fixed_buffers,
        rtt: found.flow.rtt_min_ms.map_or(experiment.path.rtt(), |ms| Span::from_secs_f64(ms / 1e3)),
        path_rate: path.rate.or(seen.path_rate),
        ..seen
    };
    let first = tune::plan(found.lines.first()?.code, &facts);
    first.into_iter().find(|remedy| !remedy.changes.is_empty())
}

/// Lays a change over an experiment.
fn apply(experiment: &mut Experiment, change: &Change) {
    let host = match change.side {
        Side::Client => &mut experiment.client,
        Side::Server => &mut experiment.server,
    };
    match (&change.setting, change.to.as_str()) {
        (Setting::Sysctl(name), value) => {
            host.sysctl.insert(name.clone(), value.to_owned());
            if name == "net.ipv4.tcp_congestion_control" {
                // The scenario's program would choose otherwise.
                host.socket.congestion = None;
            }
        }
        (Setting::Route(name), value) => match name.as_str() {
            "initcwnd" => host.route.initcwnd = value.parse().ok(),
            "initrwnd" => host.route.initrwnd = value.parse().ok(),
            "rto_min" => host.route.rto_min = value.parse().ok(),
            "cwnd" => host.route.cwnd = value.parse().ok(),
            "quickack" => host.route.quickack = Some(value == "1"),
            "mtu" => host.route.mtu = value.parse().ok(),
            other => unreachable!("invariant: the planner sets no route metric '{other}'"),
        },
        (Setting::Socket(name), value) => match name.as_str() {
            "rcvbuf" => host.socket.rcvbuf = value.parse::<Bytes>().ok(),
            "sndbuf" => host.socket.sndbuf = value.parse::<Bytes>().ok(),
            "nodelay" => host.socket.nodelay = value.parse().ok(),
            "max_pacing_rate" => host.socket.max_pacing_rate = value.parse::<Rate>().ok(),
            other => unreachable!("invariant: the planner sets no socket option '{other}'"),
        },
    }
}

fn conclude(scenario: &Scenario, proof: LabReport, found: &[Option<ArmFindings>], remedies: Vec<Remedy>) -> FixReport {
    let cause = found[0].as_ref().and_then(|found| found.lines.first().cloned());
    let cause = cause.unwrap_or(model::DiagnosisLine {
        code: Code::Unknown,
        share: 0.0,
        gain: None,
        claim: "The capture holds no connection with data.".to_owned(),
    });
    let last = remedies.len();
    let (metric, _) = figure(scenario, &proof.arms[0]);
    let metric =
        if value(&proof.arms[last], &metric).is_some() { metric } else { figure(scenario, &proof.arms[last]).0 };
    let before = value(&proof.arms[0], &metric).unwrap_or_default();
    let remedy = merge(remedies);
    let proven = remedy.is_some();
    FixReport {
        schema: "thalweg.fix/1".to_owned(),
        cause,
        apply: remedy.as_ref().map(tune::apply).unwrap_or_default(),
        undo: remedy.as_ref().map(tune::undo).unwrap_or_default(),
        before,
        after: proven.then(|| value(&proof.arms[last], &metric)).flatten(),
        ratio: proven.then(|| ratio(&proof.arms, scenario, 0, last)).flatten(),
        metric,
        remedy,
        proof,
    }
}

/// Joins remedies that were laid one upon the other: a setting changed twice goes from its first value to its last.
fn merge(remedies: Vec<Remedy>) -> Option<Remedy> {
    let mut all = remedies.into_iter();
    let mut whole = all.next()?;
    for next in all {
        whole.reason = format!("{} {}", whole.reason, next.reason);
        whole.wont_help = format!("{} {}", whole.wont_help, next.wont_help);
        whole.notes.extend(next.notes);
        if next.applicability == model::Applicability::NeedsThought {
            whole.applicability = next.applicability;
        }
        for change in next.changes {
            match whole.changes.iter_mut().find(|old| old.side == change.side && old.setting == change.setting) {
                Some(old) => old.to = change.to,
                None => whole.changes.push(change),
            }
        }
    }
    Some(whole)
}
