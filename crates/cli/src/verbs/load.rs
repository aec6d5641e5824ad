//! `thalweg load`: players by the thousand.

use crate::args::load::LoadArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::{progress, stop};
use anyhow::{Context, anyhow};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use thalweg_load::{Kind, LoadError, Plan, Tally};
use thalweg_units::Span;

/// Descriptors a process needs besides its players' connections.
const OTHER_DESCRIPTORS: u64 = 64;
/// Players that one source address is enough for. Linux's range has 28,232 local ports, and `connect` looks at one half of them first:
/// when that is used up it walks through all of it each time (`__inet_hash_connect`), for milliseconds.
const PLAYERS_EACH: u32 = 10_000;

pub(crate) fn run(kind: Kind, args: &LoadArgs, output: &Output) -> Result<ExitCode, Failure> {
    let mut plan = plan(kind, args)?;
    if let Some(part) = args.part {
        plan.part = (part.index - 1, part.of);
        let stop = stop::listen()?;
        let tally = thalweg_load::run(&plan, &stop, |_, _| {}).map_err(failure)?;
        output.result(&serde_json::to_string(&tally).map_err(Failure::host)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let each = limit.saturating_sub(OTHER_DESCRIPTORS).max(1);
    let processes = args.processes.unwrap_or_else(|| u64::from(plan.players).div_ceil(each).min(1_000) as u32);
    let begun = Instant::now();
    let tally = if processes > 1 { several(&plan, processes, output)? } else { one(&plan, output)? };
    tell(&plan, args, &tally, begun.elapsed(), output)
}

fn plan(kind: Kind, args: &LoadArgs) -> Result<Plan, Failure> {
    let percent = |part: thalweg_units::Ratio| (part.get() * 100.0).round() as u32;
    let (slow_percent, stalled_percent) = (percent(args.slow), percent(args.stalled));
    if slow_percent + stalled_percent > 100 {
        return Err(Failure::user(anyhow!("--slow and --stalled are more than all players together")));
    }
    let span = |span: Span| Duration::from_secs_f64(span.as_secs_f64());
    if span(args.duration).is_zero() {
        return Err(Failure::user(anyhow!("--duration is 0: no player could have a picture")));
    }
    let mut plan = Plan {
        kind,
        url: args.url.clone(),
        players: args.players,
        ramp: span(args.ramp),
        duration: span(args.duration),
        slow_percent,
        slow_bytes: u32::try_from(args.slow_rate.get()).unwrap_or(u32::MAX),
        stalled_percent,
        sources: args.source.clone(),
        buffer: span(args.buffer),
        fastopen: args.fastopen,
        insecure: args.insecure,
        threads: args.threads as usize,
        part: (0, 1),
    };
    let address = plan.address().map_err(failure)?;
    if plan.sources.is_empty() && plan.players > PLAYERS_EACH && address.ip().is_loopback() && address.is_ipv4() {
        let count = plan.players.div_ceil(PLAYERS_EACH);
        plan.sources = (0..count).map(|n| IpAddr::V4(Ipv4Addr::from_bits(0x7f01_0001 + n))).collect();
    }
    if plan.sources.iter().any(|source| source.is_ipv4() != address.is_ipv4()) {
        return Err(Failure::user(anyhow!("the addresses of --source are of another family than {address}")));
    }
    Ok(plan)
}

fn failure(error: LoadError) -> Failure {
    match error {
        LoadError::Url { .. } => Failure::user(error),
        LoadError::Host(_) => Failure::host(error),
    }
}

/// In this process.
fn one(plan: &Plan, output: &Output) -> Result<Tally, Failure> {
    let stop = stop::listen()?;
    let bar = progress::bar(output, "loading");
    let begun = Instant::now();
    let tally = thalweg_load::run(plan, &stop, |started, playing| {
        bar.set_message(format!("{playing} of {started} players play"));
        progress::set(&bar, begun.elapsed().as_secs_f64() / plan.duration.as_secs_f64());
    });
    bar.finish_and_clear();
    tally.map_err(failure)
}

/// In processes of their own, each with a part of the players.
fn several(plan: &Plan, processes: u32, output: &Output) -> Result<Tally, Failure> {
    let stop = stop::listen()?;
    let program = std::env::current_exe().context("cannot find this program's file").map_err(Failure::host)?;
    let start = |index: u32| {
        let part = format!("--part={}/{processes}", index + 1);
        let mut command = Command::new(&program);
        command.args(std::env::args_os().skip(1)).arg(part).stdin(Stdio::null()).stdout(Stdio::piped());
        command.spawn().context("cannot start another process").map_err(Failure::host)
    };
    let children = (0..processes).map(start).collect::<Result<Vec<_>, _>>()?;
    let bar = progress::bar(output, &format!("{processes} processes"));
    let begun = Instant::now();
    let readers: Vec<_> = children.into_iter().map(|child| std::thread::spawn(|| child.wait_with_output())).collect();
    while readers.iter().any(|reader| !reader.is_finished()) {
        progress::set(&bar, begun.elapsed().as_secs_f64() / plan.duration.as_secs_f64());
        std::thread::sleep(Duration::from_millis(100));
    }
    bar.finish_and_clear();
    let mut tally = Tally::default();
    for reader in readers {
        let ended = reader.join().expect("invariant: reading does not panic").map_err(Failure::host)?;
        if !ended.status.success() {
            // It has said why.
            return Err(Failure::host(anyhow!("one of the {processes} processes ended with {}", ended.status)));
        }
        let part = serde_json::from_slice(&ended.stdout).context("a process's result makes no sense");
        tally.add(&part.map_err(Failure::host)?);
    }
    if stop.load(Ordering::Relaxed) && tally.players == 0 {
        return Err(Failure::stopped());
    }
    Ok(tally)
}

fn tell(plan: &Plan, args: &LoadArgs, tally: &Tally, took: Duration, output: &Output) -> Result<ExitCode, Failure> {
    let expect: Vec<_> = args.expect.iter().map(|expectation| expectation.check(tally)).collect();
    // A load that nobody had anything of shows nothing, whatever was expected of it.
    let holds = expect.iter().all(|held| held.holds) && tally.playing > 0;
    let report = tally.report(plan, took.as_secs_f64(), expect);
    if output.json {
        output.json_result(&report)?;
    } else {
        output.result(&thalweg_report::terminal::load(&report, output.width, output.color))?;
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
