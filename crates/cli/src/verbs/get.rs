//! `thalweg get`: a download.

use crate::args::get::GetArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::{progress, stop};
use anyhow::anyhow;
use indicatif::{HumanDuration, ProgressBar};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use thalweg_get::{Blame, GetError, HeaderRefused, Observer, Options, Progress, ProxySettings};
use thalweg_model::since;
use thalweg_model::{Code, GetReport, HostReport, Measured, Remedy, SettingsReport, Way};
use thalweg_report::figures;
use thalweg_units::{Rate, Span};

/// What one window must fall short of the goodput by before a larger one is advised.
const WORTH: f64 = 1.1;

pub(crate) fn run(args: &GetArgs, output: &Output) -> Result<ExitCode, Failure> {
    let options = options(args)?;
    let to_stdout = options.output == thalweg_get::Output::Stdout;
    if to_stdout && output.json {
        let error = anyhow!("the data and the JSON document cannot both go to stdout");
        return Err(Failure::user(error).hint("store the data with -o FILE"));
    }
    let stop = stop::listen()?;
    let bar = progress::bar(output, "connecting");
    let result = thalweg_get::run(&options, &stop, &mut Console { output, bar: &bar });
    bar.finish_and_clear();
    let report = match result {
        Ok(report) => report,
        Err(error) if error.blame() == Blame::Data => {
            output.failure(&failure(error));
            return Ok(ExitCode::from(1));
        }
        Err(error) => return Err(failure(error)),
    };
    if output.json {
        output.json_result(&report)?;
        return Ok(ExitCode::SUCCESS);
    }
    let remedy = remedy(&report);
    let (width, color) = (output.width, output.color && !to_stdout);
    let text = thalweg_report::terminal::get(&report, remedy.as_ref(), width, color);
    // Of a stream, stdout is the data.
    if to_stdout {
        output.note(text.trim_end());
    } else if !output.quiet {
        output.result(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn options(args: &GetArgs) -> Result<Options, Failure> {
    let output = match &args.output {
        None => thalweg_get::Output::Folder(PathBuf::from(".")),
        Some(path) if path == Path::new("-") => thalweg_get::Output::Stdout,
        Some(path) if path.is_dir() => thalweg_get::Output::Folder(path.clone()),
        Some(path) => thalweg_get::Output::File(path.clone()),
    };
    if args.limit_rate.is_some_and(|rate| rate.bytes_per_second() == 0) {
        return Err(Failure::user(anyhow!("--limit-rate 0 lets nothing through")).hint("leave it out for no limit"));
    }
    let headers = args.header.iter().map(|text| header(text)).collect::<Result<_, _>>()?;
    Ok(Options {
        url: args.url.clone(),
        output,
        force: args.force,
        max_ranges: usize::from(args.max_ranges),
        limit: args.limit_rate,
        checksum: args.checksum.clone(),
        retries: args.retries,
        stall: args.stall.to_duration().max(Duration::from_secs(1)),
        ca: args.cacert.clone(),
        headers,
        http1: args.http1,
        proxies: ProxySettings::read(|name| std::env::var(name).ok()),
    })
}

/// Reads `NAME: VALUE`. The failure does not repeat it: it may be a secret.
fn header(text: &str) -> Result<thalweg_get::Header, Failure> {
    thalweg_get::header(text).map_err(|refused| match refused {
        HeaderRefused::Malformed => {
            Failure::user(anyhow!("a --header is no header field")).hint("write it as --header 'Name: value'")
        }
        HeaderRefused::Own(name) => {
            Failure::user(anyhow!("get sets the field {name} itself")).hint("leave that --header out")
        }
    })
}

fn failure(error: GetError) -> Failure {
    let hint = error.hint();
    let failure = match error.blame() {
        Blame::Stopped => Failure::stopped(),
        Blame::User => Failure::user(error),
        Blame::Host | Blame::Data => Failure::host(error),
    };
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// What lets one connection do what the ranges did: the planner's remedy for a receive window, with this host's own settings.
fn remedy(report: &GetReport) -> Option<Remedy> {
    let connection = report.connection;
    let rate = report.goodput_steady_bps.unwrap_or(report.goodput_bps);
    let limited = report.limits.first().is_some_and(|one| one.limit == thalweg_model::GetLimit::ReceiveWindow);
    if report.proxy || !limited && (report.ranges.most < 2 || rate < connection.window_allows_bps * WORTH) {
        return None;
    }
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?;
        Some((name.to_owned(), text.split_whitespace().collect::<Vec<_>>().join(" ")))
    };
    let names = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_adv_win_scale", "net.core.rmem_max"];
    let client = HostReport { sysctl: names.into_iter().filter_map(read).collect(), ..HostReport::default() };
    let settings = SettingsReport { client, ..SettingsReport::default() };
    // A rate that the window limited is not the path's.
    let path_rate = (!limited).then(|| Rate::from_bits_per_second(rate as u64));
    let facts = thalweg_tune::Facts {
        direction: Way::Down,
        kernel: thalweg_host::sysctl::read("kernel.osrelease").ok().and_then(|text| since::release(&text)),
        settings: &settings,
        fixed_buffers: Vec::new(),
        rtt: Span::from_secs_f64(connection.min_rtt_ms / 1e3),
        path_rate,
        measured: Measured { window_max_bytes: connection.window_bytes, ..Measured::default() },
        handshake: thalweg_model::Handshake::default(),
        first_flight: None,
        silence: Span::ZERO,
        acks_wait: false,
        family: None,
        crept: false,
        ack_timing: thalweg_tune::AckTiming::default(),
        policer: None,
        bytes: report.bytes,
        ipv6: false,
    };
    thalweg_tune::plan(Code::ReceiveWindow, &facts).into_iter().find(|remedy| !remedy.changes.is_empty())
}

/// Notes and progress on stderr.
struct Console<'a> {
    output: &'a Output,
    bar: &'a ProgressBar,
}

impl Observer for Console<'_> {
    fn note(&mut self, text: &str) {
        self.bar.suspend(|| self.output.note(&figures::clean(text)));
    }

    fn progress(&mut self, progress: &Progress) {
        let (done, rate) = (figures::data(progress.done as f64), figures::rate(progress.goodput_bps));
        let ranges = if progress.ranges == 1 { "1 range".to_owned() } else { format!("{} ranges", progress.ranges) };
        let left = progress.total.filter(|_| progress.goodput_bps > 0.0).map(|total| {
            let seconds = total.saturating_sub(progress.done) as f64 * 8.0 / progress.goodput_bps;
            format!(", {} left", HumanDuration(Duration::from_secs_f64(seconds.min(1e7))))
        });
        self.bar.set_message(format!("{done} at {rate}, {ranges}{}", left.unwrap_or_default()));
        if let Some(total) = progress.total.filter(|total| *total > 0) {
            progress::set(self.bar, progress.done as f64 / total as f64);
        }
    }
}
