//! `thalweg path set`, `list` and `watch`: paths that run.

use crate::args::path::PathSetArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::scenarios::{self, Typed};
use crate::{progress, stop};
use anyhow::anyhow;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thalweg_live::control::{self, Answer, Request};
use thalweg_live::{PerWay, Progress};
use thalweg_model::{LivePathReport, Loss, PathDirection, PathList, Step, Way};
use thalweg_path::DropReason;
use thalweg_report::figures;
use thalweg_units::Span;

const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn set(args: &PathSetArgs, output: &Output) -> Result<ExitCode, Failure> {
    let (id, key, value) = match args.change.as_slice() {
        [key, value] => (None, key, value),
        [id, key, value] => {
            let number = id.parse().map_err(|_| Failure::user(anyhow!("'{id}' is no number of a path")))?;
            (Some(number), key, value)
        }
        _ => return Err(Failure::user(anyhow!("a change is a key and a value, such as loss 5%"))),
    };
    let step = change(key, value)?;
    let ways = match (args.up, args.down) {
        (true, _) => vec![Way::Up],
        (_, true) => vec![Way::Down],
        _ => vec![Way::Down, Way::Up],
    };
    let id = only(id)?;
    match ask(id, &Request::Change { ways, step })? {
        Answer::Refused(why) => Err(Failure::user(anyhow!("path {id} cannot change its {key}: {why}"))),
        _ => {
            output.note(&format!("path {id}: {key} is {value} from now on"));
            if output.json {
                match ask(id, &Request::Report)? {
                    Answer::Report(report) => output.json_result(&report)?,
                    Answer::Hosts(report) => output.json_result(&report)?,
                    _ => {}
                }
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The change that a key and its value ask for, within the bounds that a path begins with.
fn change(key: &str, value: &str) -> Result<Step, Failure> {
    if !["rate", "delay", "loss"].contains(&key) {
        return Err(Failure::user(anyhow!("a running path has no '{key}' to change"))
            .hint("rate, delay and loss can change: thalweg path set loss 5%"));
    }
    let typed = Typed { option: format!("{key} {value}"), key: format!("path.{key}"), value: value.to_owned() };
    let scenario = scenarios::of_path("", &[typed])?;
    let arm = scenario.arms.into_iter().next().expect("invariant: a scenario has an arm");
    let PathDirection { rate, delay, loss, .. } = arm.experiment.path.down;
    if matches!(loss, Loss::List { .. }) {
        return Err(Failure::user(anyhow!("a list of losses is for the whole run of a path, which has begun")));
    }
    let is = |name: &str| (key == name).then_some(());
    Ok(Step { at: Span::ZERO, rate, delay: is("delay").map(|()| delay), loss: is("loss").map(|()| loss) })
}

pub(crate) fn list(output: &Output) -> Result<ExitCode, Failure> {
    let (mut paths, mut hosts) = (Vec::new(), Vec::new());
    for id in ids()? {
        match control::ask(id, &Request::Report) {
            Ok(Answer::Report(report)) => paths.push(*report),
            Ok(Answer::Hosts(report)) => hosts.push(*report),
            // It has ended since.
            _ => {}
        }
    }
    if output.json {
        output.json_result(&PathList { schema: "thalweg.paths/1", paths, hosts })?;
        return Ok(ExitCode::SUCCESS);
    }
    if paths.is_empty() && hosts.is_empty() {
        output.note("no path runs, and no hosts are up");
    }
    for report in &paths {
        output.result(&thalweg_report::terminal::live_path_line(report))?;
    }
    for report in &hosts {
        output.result(&thalweg_report::terminal::live_hosts(report))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn watch(id: Option<u32>, output: &Output) -> Result<ExitCode, Failure> {
    let id = only(id)?;
    let stop = stop::listen()?;
    if output.json {
        return watch_as_json(id, &stop, output);
    }
    let bar = progress::line(output, &format!("path {id}"));
    let mut before: Option<LivePathReport> = None;
    let first = report(id)?;
    output.note(&thalweg_report::terminal::live_path_line(&first));
    // It has ended when it no longer answers.
    while let Some(now) = report(id).ok().filter(|_| !stop.load(Ordering::Relaxed)) {
        if let Some(before) = &before {
            let line = format!(
                "{}   {}",
                seen("down", &before.down, &now.down, before, &now),
                seen("up", &before.up, &now.up, before, &now)
            );
            if output.progress { bar.set_message(line) } else { output.result(&line)? }
        }
        before = Some(now);
        std::thread::sleep(SECOND);
    }
    bar.finish_and_clear();
    Ok(ExitCode::SUCCESS)
}

/// A document a line and second.
fn watch_as_json(id: u32, stop: &AtomicBool, output: &Output) -> Result<ExitCode, Failure> {
    let mut next = Some(report(id)?);
    while let Some(now) = next.filter(|_| !stop.load(Ordering::Relaxed)) {
        output.result(&serde_json::to_string(&now).map_err(Failure::host)?)?;
        std::thread::sleep(SECOND);
        next = report(id).ok();
    }
    Ok(ExitCode::SUCCESS)
}

fn seen(
    name: &str,
    before: &thalweg_model::LiveDirection,
    now: &thalweg_model::LiveDirection,
    began: &LivePathReport,
    ends: &LivePathReport,
) -> String {
    let seconds = (ends.wall_s - began.wall_s).max(1e-3);
    let rate = now.departed_bytes.saturating_sub(before.departed_bytes) as f64 * 8.0 / seconds;
    let dropped = now.dropped_packets.iter().map(|(reason, packets)| (reason.as_str(), *packets));
    shown(name, rate, now.queue_bytes, dropped)
}

/// The line of a path that runs: rates between two looks, queues, and drops by reason since it began.
pub(crate) fn line(before: &PerWay<Progress>, now: &PerWay<Progress>) -> String {
    let one = |name: &str, before: &Progress, now: &Progress| {
        let seconds = now.at.saturating_sub(before.at).as_secs_f64().max(1e-3);
        let bytes = now.counters.departed.bytes.get() - before.counters.departed.bytes.get();
        let dropped = DropReason::ALL.into_iter().map(|reason| (reason.name(), now.counters.dropped(reason).packets));
        shown(name, bytes as f64 * 8.0 / seconds, now.queued.bytes.get(), dropped)
    };
    format!("{}   {}", one("down", &before.down, &now.down), one("up", &before.up, &now.up))
}

fn shown<'a>(name: &str, rate_bps: f64, queue_bytes: u64, dropped: impl Iterator<Item = (&'a str, u64)>) -> String {
    let mut line = format!("{name} {}, queue {}", figures::rate(rate_bps), figures::data(queue_bytes as f64));
    for (reason, packets) in dropped.filter(|(_, packets)| *packets > 0) {
        line.push_str(&format!(", {} {packets}", reason.replace('_', " ")));
    }
    line
}

/// The path that is meant where no number is given.
fn only(id: Option<u32>) -> Result<u32, Failure> {
    let none = || Failure::user(anyhow!("no path runs")).hint("start one: thalweg path --delay 50ms");
    id.map_or_else(|| the_one(&ids()?, none, "several paths run"), Ok)
}

/// The hosts that are meant where no number is given.
pub(super) fn only_hosts(id: Option<u32>) -> Result<u32, Failure> {
    let none = || Failure::user(anyhow!("no hosts are up")).hint("bring some up: thalweg path up car-plan");
    let are_hosts = |id: &u32| matches!(control::ask(*id, &Request::Report), Ok(Answer::Hosts(_)));
    let Some(id) = id else {
        let up: Vec<u32> = ids()?.into_iter().filter(are_hosts).collect();
        return the_one(&up, none, "several sets of hosts are up");
    };
    Ok(id)
}

fn the_one(all: &[u32], none: impl FnOnce() -> Failure, several: &str) -> Result<u32, Failure> {
    match all {
        [id] => Ok(*id),
        [] => Err(none()),
        all => {
            let numbers: Vec<String> = all.iter().map(u32::to_string).collect();
            Err(Failure::user(anyhow!("{several}: {}", numbers.join(", ")))
                .hint("give the number of one: thalweg path list shows them"))
        }
    }
}

/// Whether a path or hosts of this number are still there.
pub(super) fn is_there(id: u32) -> Result<bool, Failure> {
    Ok(ids()?.contains(&id))
}

fn ids() -> Result<Vec<u32>, Failure> {
    control::list().map_err(|error| Failure::host(anyhow!("cannot list the paths that run: {error}")))
}

pub(super) fn ask(id: u32, request: &Request) -> Result<Answer, Failure> {
    control::ask(id, request).map_err(|error| {
        Failure::user(anyhow!("cannot ask path {id}: {error}")).hint("thalweg path list shows those that run")
    })
}

fn report(id: u32) -> Result<LivePathReport, Failure> {
    match ask(id, &Request::Report)? {
        Answer::Report(report) => Ok(*report),
        Answer::Hosts(_) => Err(Failure::user(anyhow!("{id} is hosts, which have no line to watch"))
            .hint("thalweg path list shows what is between them")),
        _ => Err(Failure::host(anyhow!("path {id} answers something else"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_the_bounds_that_a_path_begins_with() {
        let delay = change("delay", "200ms").expect("a delay");
        assert_eq!((delay.delay, delay.rate, delay.loss), (Some(Span::from_millis(200)), None, None));
        assert!(change("loss", "0%").expect("no loss").loss.is_some());
        assert!(change("rate", "3mbit").expect("a rate").rate.is_some());
        for (key, value, says) in [
            ("delay", "120s", "delay 120s: 'path.delay': a one-way delay of 120s is more than 60s"),
            ("rate", "1kbit", "rate 1kbit: a rate of 1kbit is below 8kbit"),
            ("loss", "200%", "loss 200%: 'path.loss' cannot be read"),
            ("loss", "{ model = \"list\", segments = [1] }", "a list of losses is for the whole run of a path"),
            ("queue", "5ms", "a running path has no 'queue' to change"),
        ] {
            let failure = change(key, value).expect_err(value).to_string();
            assert!(failure.contains(says), "{failure}");
        }
    }
}
