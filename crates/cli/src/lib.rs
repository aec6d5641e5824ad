//! The command line: what was typed, resolved once, and one file per verb.

#![warn(clippy::too_many_lines)]

mod args;
mod failure;
mod live;
mod output;
mod plots;
mod progress;
mod scenarios;
mod sinks;
mod stop;
mod tables;
mod targets;
mod usage;
mod verbs;
mod watch;

use args::{Args, LabVerb, LoadVerb, Verb};
use output::Output;
use std::process::ExitCode;
use verbs::{
    diagnose, explain, fix, get, kernel, lab_compare, lab_run, load, load_stream, load_topics, load_transactions,
    load_udp_train, path, serve, tune, watch as watch_verb,
};

/// Runs `thalweg`: reads the command line, does what it says, and returns the exit code.
///
/// As the first process of a lab kernel it runs the experiment instead, and does not return. As a run in real time, which `lab run --live`
/// starts, it does so too, and `path up` starts it to keep hosts.
pub fn main() -> ExitCode {
    if thalweg_host::guest::is_first_process_of_a_lab_kernel() {
        match std::env::var("THALWEG_GUEST").as_deref() {
            Ok("run") => thalweg_lab::guest_main(),
            Ok("self-test") => thalweg_lab::kernel::self_test::guest(),
            _ => {}
        }
    }
    if let Some(code) = thalweg_lab::live_part() {
        return code;
    }
    let args = usage::parse();
    let output = Output::new(&args.global);
    let result = match args.verb {
        Verb::Lab(LabVerb::Run(args)) => lab_run::run(args, &output),
        Verb::Lab(LabVerb::Compare(args)) => lab_compare::run(&args, &output),
        Verb::Lab(LabVerb::List) => scenarios::list(&output),
        Verb::Lab(LabVerb::Kernel(verb)) => kernel::run(verb, &output),
        Verb::Diagnose(args) => diagnose::run(&args, &output),
        Verb::Fix(args) => fix::run(&args, &output),
        Verb::Get(args) => get::run(&args, &output),
        Verb::Explain(args) => explain::run(&args, &output),
        Verb::Tune(verb) => tune::run(verb, &output),
        Verb::Load(LoadVerb::Hls(args)) => load::run(thalweg_load::Kind::Hls, &args, &output),
        Verb::Load(LoadVerb::Flv(args)) => load::run(thalweg_load::Kind::Flv, &args, &output),
        Verb::Load(LoadVerb::Stream(args)) => load_stream::run(&args, &output),
        Verb::Load(LoadVerb::Rr(args)) => load_transactions::run(false, &args, &output),
        Verb::Load(LoadVerb::Crr(args)) => load_transactions::run(true, &args, &output),
        Verb::Load(LoadVerb::UdpTrain(args)) => load_udp_train::run(&args, &output),
        Verb::Load(LoadVerb::Topics(args)) => load_topics::run(&args, &output),
        Verb::Load(LoadVerb::Serve(args)) => load_stream::serve(&args, &output),
        Verb::Path(args) => path::run(args, &output),
        Verb::Watch(args) => watch_verb::run(&args, &output),
        Verb::Serve(args) => serve::run(&args, &output),
    };
    match result {
        Ok(code) => code,
        Err(failure) => {
            output.failure(&failure);
            failure::exit_code(&failure)
        }
    }
}

/// The definition of the command line, from which man pages and completions are made.
#[must_use]
pub fn command() -> clap::Command {
    <Args as clap::CommandFactory>::command()
}

#[cfg(test)]
mod tests;
