//! `thalweg watch`: this host's TCP sockets, live.

use crate::args::watch::WatchArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::stop;
use crate::watch::{Exporter, Live, Replay, Source, Traffic, show};
use anyhow::anyhow;
use rustix::termios::isatty;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thalweg_watch::{Filter, Port, View, bursts_text, plain};

/// How long a signal waits to be seen.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &WatchArgs, output: &Output) -> Result<ExitCode, Failure> {
    if let Some(interface) = &args.bursts {
        return bursts(args, interface, output);
    }
    let filter: Filter = args
        .filter
        .join(" ")
        .parse()
        .map_err(|error: thalweg_watch::FilterError| Failure::user(anyhow!("{error}")).hint(error.hint.clone()))?;
    let mut source = match &args.replay {
        Some(file) => Source::Replay(Box::new(Replay::open(file)?)),
        None => Source::Live(Box::new(Live::new())),
    };
    let mut view = View::new(filter, args.sort, args.reverse, args.show);
    let stop = stop::listen()?;
    let exporter = args.prometheus.map(Exporter::start).transpose()?;
    if let Some(exporter) = &exporter {
        output.note(&format!("metrics at http://{}/metrics; Ctrl-C ends it", exporter.address()));
    }
    let interval = args.interval.to_duration();
    if !output.json && !args.once && isatty(io::stdout()) {
        show(&mut source, &mut view, exporter.as_ref(), (interval, args.count), &stop)?;
    } else {
        let count = if args.once { Some(1) } else { args.count };
        stream(&mut source, &mut view, exporter.as_ref(), (interval, count), output, &stop)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints each report, or serves metrics alone, until a signal, the count, or the end of a recording.
fn stream(
    source: &mut Source,
    view: &mut View,
    exporter: Option<&Exporter>,
    (interval, count): (Duration, Option<u64>),
    output: &Output,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let is_live = matches!(source, Source::Live(_));
    let mut due = Instant::now();
    if is_live {
        // Rates are between two looks.
        source.refresh()?;
        due += interval;
    }
    if let Some(exporter) = exporter {
        exporter.publish(source.exposition());
    }
    let mut shown = 0;
    while count.is_none_or(|count| shown < count) {
        if is_live && !waited(due, stop) || stop.load(Ordering::Relaxed) || !source.refresh()? {
            break;
        }
        // Late by more than an interval, it does not try to catch up.
        due = (due + interval).max(Instant::now());
        view.update(source.report());
        if let Some(exporter) = exporter {
            exporter.publish(source.exposition());
        }
        let text = if output.json {
            serde_json::to_string(&view.wanted(source.report())).map_err(Failure::host)?
        } else if exporter.is_some() {
            String::new()
        } else {
            plain(source.report(), view)
        };
        if !text.is_empty() && !printed(&text)? {
            break;
        }
        shown += 1;
    }
    Ok(())
}

/// Counts an interface's packets into bins, and prints them each interval.
fn bursts(args: &WatchArgs, interface: &str, output: &Output) -> Result<ExitCode, Failure> {
    let stop = stop::listen()?;
    let port = args.port_rate.zip(args.port_buffer).map(|(rate, buffer)| Port { rate, buffer });
    let mut traffic = Traffic::start(interface, port)?;
    let count = if args.once { Some(1) } else { args.count };
    let interval = args.interval.to_duration();
    let mut due = Instant::now() + interval;
    let mut shown = 0;
    while count.is_none_or(|count| shown < count) && traffic.gather(due, &stop)? {
        due = (due + interval).max(Instant::now());
        let report = traffic.report()?;
        let text =
            if output.json { serde_json::to_string(&report).map_err(Failure::host)? } else { bursts_text(&report) };
        if !printed(&text)? {
            break;
        }
        shown += 1;
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits until then; `false` if a signal came first.
fn waited(due: Instant, stop: &AtomicBool) -> bool {
    while !stop.load(Ordering::Relaxed) {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK_EVERY));
    }
    false
}

/// Prints a report; `false` when its reader has gone.
fn printed(text: &str) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::host(anyhow!("cannot write to stdout: {error}"))),
        Ok(()) => Ok(true),
    }
}
