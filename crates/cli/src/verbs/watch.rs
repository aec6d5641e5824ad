//! `thalweg watch`: this host's TCP sockets, live.

use crate::args::watch::WatchArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::watch::{
    Exporter, Exports, Kept, Live, OtlpExporter, OtlpSettings, Record, Replay, Source, Traffic, is_record, show,
};
use crate::{stop, targets};
use anyhow::anyhow;
use rustix::termios::isatty;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thalweg_model::{BurstSource, BurstSourceKind, BurstsReport};
use thalweg_units::Timestamp;
use thalweg_watch::{Bursts, Filter, Port, View, bursts_text, plain};

/// What a record's bins are wide.
const RECORD_STEP_US: u64 = 100;
/// Flows that have rows of their own.
const FLOWS: u8 = 8;
/// How long a signal waits to be seen.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &WatchArgs, output: &Output) -> Result<ExitCode, Failure> {
    if let Some(interface) = &args.bursts {
        return bursts(args, interface, output);
    }
    if let Some(file) = args.replay.as_deref().filter(|file| is_record(file)) {
        return replay_bursts(args, file, output);
    }
    if args.html.is_some() || args.port_rate.is_some() || args.flows.is_some() {
        return Err(Failure::user(anyhow!(
            "--html, --port-rate, --port-buffer and --flows are for the traffic of an interface"
        ))
        .hint("with --bursts INTERFACE, or with --replay of what --bursts --record wrote"));
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
    let exports = exports(args)?;
    exports.announce(output);
    let interval = args.interval.to_duration();
    if !output.json && !args.once && isatty(io::stdout()) {
        show(&mut source, &mut view, &exports, (interval, args.count), &stop)?;
    } else {
        let count = if args.once { Some(1) } else { args.count };
        stream(&mut source, &mut view, &exports, (interval, count), output, &stop)?;
    }
    exports.finish(output);
    Ok(ExitCode::SUCCESS)
}

/// Begins the exports of metrics that were asked for.
fn exports(args: &WatchArgs) -> Result<Exports, Failure> {
    let otlp = args.otlp.as_deref().map(|endpoint| {
        let uname = rustix::system::uname();
        let host = uname.nodename().to_string_lossy();
        OtlpExporter::start(OtlpSettings::read(endpoint, &host, |name| std::env::var(name).ok())?)
    });
    Ok(Exports { prometheus: args.prometheus.map(Exporter::start).transpose()?, otlp: otlp.transpose()? })
}

/// Prints each report, or serves metrics alone, until a signal, the count, or the end of a recording.
fn stream(
    source: &mut Source,
    view: &mut View,
    exports: &Exports,
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
    exports.publish(source);
    let mut shown = 0;
    while count.is_none_or(|count| shown < count) {
        if is_live && !waited(due, stop, || source.gather()) || stop.load(Ordering::Relaxed) || !source.refresh()? {
            break;
        }
        // Late by more than an interval, it does not try to catch up.
        due = (due + interval).max(Instant::now());
        view.update(source.report());
        exports.publish(source);
        exports.say(output);
        let text = if output.json {
            serde_json::to_string(&view.wanted(source.report())).map_err(Failure::host)?
        } else if exports.is_any() {
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
    let port = port(args);
    let mut kept = Kept::begin(interface, port, args.record.as_deref(), args.html.as_deref())?;
    let mut traffic = Traffic::start(interface, args.burst_source, port, args.flows.unwrap_or(FLOWS))?;
    if let Some(reason) = &traffic.source().reason {
        output.note(&format!("packets are counted by {}: {reason}", traffic.source().kind.as_str()));
    }
    if let Some(reason) = traffic.resent_reason() {
        output.note(&format!("retransmissions are counted by sockets' counters: {reason}"));
    }
    if kept.is_wanted() {
        traffic.keep_bins();
    }
    let count = if args.once { Some(1) } else { args.count };
    let interval = args.interval.to_duration();
    let mut due = Instant::now() + interval;
    let (mut shown, mut goes_on) = (0, true);
    while goes_on && count.is_none_or(|count| shown < count) {
        goes_on = traffic.gather(due, &stop)?;
        due = (due + interval).max(Instant::now());
        // What was counted until a signal is kept, but no interval.
        let report = traffic.report()?;
        kept.add(&traffic.busy_bins())?;
        goes_on = goes_on && print_bursts(&report, output)?;
        shown += 1;
    }
    kept.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Counts what was recorded of an interface once more, and prints each interval at once.
fn replay_bursts(args: &WatchArgs, file: &Path, output: &Output) -> Result<ExitCode, Failure> {
    let port = port(args);
    targets::check(&[file], &args.html.iter().map(|page| ("--html", page.as_path())).collect::<Vec<_>>())?;
    let mut record = Record::open(file)?;
    let mut kept = Kept::begin(&record.interface, port, None, args.html.as_deref())?;
    let interval = args.interval.to_duration().as_nanos() as u64;
    let count = if args.once { Some(1) } else { args.count };
    let mut next = record.next()?;
    let begin = next.as_ref().map_or(0, |bin| bin.all.at_ns);
    let source = BurstSource { kind: BurstSourceKind::Record, reason: None, step_us: RECORD_STEP_US };
    let mut bursts = Bursts::new(&record.interface, source, Timestamp::from_nanos(begin), port);
    let flows = args.flows.unwrap_or(FLOWS);
    if record.has_flows && flows > 0 {
        bursts.tell_flows(usize::from(flows), None);
    }
    bursts.keep_bins();
    let mut shown = 0;
    while next.is_some() && count.is_none_or(|count| shown < count) {
        let until = begin.saturating_add(interval.saturating_mul(shown + 1));
        while let Some(bin) = next.take_if(|bin| bin.all.at_ns < until) {
            bursts.bin(&bin.all, bin.parts);
            next = record.next()?;
        }
        let report = bursts.report(Timestamp::from_nanos(until), 0);
        kept.add(&bursts.busy_bins())?;
        if !print_bursts(&report, output)? {
            break;
        }
        shown += 1;
    }
    kept.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn port(args: &WatchArgs) -> Option<Port> {
    args.port_rate.zip(args.port_buffer).map(|(rate, buffer)| Port { rate, buffer })
}

/// Prints an interval; `false` when its reader has gone.
fn print_bursts(report: &BurstsReport, output: &Output) -> Result<bool, Failure> {
    printed(&if output.json { serde_json::to_string(report).map_err(Failure::host)? } else { bursts_text(report) })
}

/// Waits until then, and calls `meanwhile` every now and then; `false` if a signal came first.
fn waited(due: Instant, stop: &AtomicBool, mut meanwhile: impl FnMut()) -> bool {
    while !stop.load(Ordering::Relaxed) {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK_EVERY));
        meanwhile();
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
