//! `thalweg path`: a program behind an emulated path, in real time.

use crate::args::path::{PathArgs, PathRunArgs, PathVerb};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress;
use crate::scenarios::{self, Typed};
use crate::verbs::path_program::{attend, not_started, program};
use crate::verbs::{path_control, path_hosts};
use anyhow::anyhow;
use rustix::termios::isatty;
use std::fs::File;
use std::io::{self, stderr};
use std::os::fd::AsFd;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use thalweg_host::peer::processor_time;
use thalweg_live::{Asked, Carriers, End, LiveError, LivePath, Program, Signal, control, report};
use thalweg_model::{Between, Path};
use thalweg_units::{Seed, Span};

/// How long a server's program may take until it listens.
const SERVER_START: Duration = Duration::from_secs(1);
/// How long what the program sent before it ended may take to arrive: a round trip over a satellite and some retransmissions.
const DRAIN: Duration = Duration::from_secs(3);

pub(crate) fn run(args: PathArgs, output: &Output) -> Result<ExitCode, Failure> {
    match args.verb {
        Some(PathVerb::Set(set)) => path_control::set(&set, output),
        Some(PathVerb::List) => path_control::list(output),
        Some(PathVerb::Watch { id }) => path_control::watch(id, output),
        Some(PathVerb::Up(up)) => path_hosts::up(&up, output),
        Some(PathVerb::Exec(exec)) => path_hosts::exec(&exec, output),
        Some(PathVerb::Down { id }) => path_hosts::down(id, output),
        None => start(&args.run, output),
    }
}

fn start(args: &PathRunArgs, output: &Output) -> Result<ExitCode, Failure> {
    let asked = Asked {
        path: path(args, output)?,
        seed: Seed::new(args.seed),
        world: !args.isolated,
        publish: args.publish.clone(),
        expose: args.expose.clone(),
        has_server: args.server.is_some(),
    };
    let capture = args.capture.as_deref().map(|file| {
        File::create(file).map_err(|error| Failure::user(anyhow!("cannot write {}: {error}", file.display())))
    });
    let live = LivePath::start(&asked, capture.transpose()?, &Carriers::default()).map_err(|error| {
        if let Some(file) = &args.capture {
            // It holds nothing.
            let _ = std::fs::remove_file(file);
        }
        failure(error)
    })?;
    live.notes().iter().for_each(|note| output.note(&format!("note: {note}")));
    let id = std::process::id();
    let (texts, command) = program(&args.command, id, output)?;
    let (shown, path) = (texts.clone(), asked.path.clone());
    let own = move |handle: &thalweg_live::Handle| report(id, &shown, &path, &handle.progress(), processor_time());
    control::serve(id, live.handle(), own).map_err(Failure::host)?;
    let server = args.server.as_deref().map(|command| start_server(&live, command)).transpose()?;

    let program = match live.run(End::Near, command) {
        Ok(program) => program,
        Err(error) => return not_started(&texts[0], error, output),
    };
    let draws = !args.command.is_empty() && !isatty(io::stdout());
    let line = draws.then(|| progress::line(output, "path"));
    let mut before = live.progress();
    let code = attend(&program, |_| {
        if let Some(line) = &line {
            let now = live.progress();
            line.set_message(path_control::line(&before, &now));
            before = now;
        }
    })?;
    if let Some(line) = line {
        line.finish_and_clear();
    }
    live.drain(DRAIN);
    if let Some(server) = server {
        server.signal(Signal::TERM);
    }
    let ended = live.finish().map_err(Failure::host)?;
    let mut done = report(id, &texts, &asked.path, &ended.progress, processor_time());
    done.exit_code = Some(code);
    done.verdict.faults.extend(match ended.left_out {
        Ok(0) => None,
        Ok(packets) => Some(format!("the capture lacks {packets} packets: the disk was too slow")),
        Err(error) => Some(format!("the capture ends early: {error}")),
    });
    if output.json {
        output.json_result(&done)?;
    } else if !output.quiet {
        output.note(&thalweg_report::terminal::live_path(&done));
    }
    Ok(ExitCode::from(code))
}

fn failure(error: LiveError) -> Failure {
    match error {
        LiveError::Unsupported(_) => Failure::user(error),
        _ => Failure::host(error),
    }
}

/// Starts the server's program and waits until it listens, or for a while.
fn start_server(live: &LivePath, command: &str) -> Result<Program, Failure> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::null());
    shell.stdout(stderr().as_fd().try_clone_to_owned().map(Stdio::from).map_err(Failure::host)?);
    let server = live.run(End::Far, shell).map_err(Failure::host)?;
    let begun = Instant::now();
    while begun.elapsed() < SERVER_START && !live.is_listening(End::Far) {
        if let Some(code) = server.wait(Duration::from_millis(10)).map_err(Failure::host)? {
            return Err(Failure::user(anyhow!("the server's program '{command}' ended with code {code}")));
        }
    }
    Ok(server)
}

/// The path that is asked for.
fn path(args: &PathRunArgs, output: &Output) -> Result<Path, Failure> {
    let mut typed: Vec<Typed> = Vec::new();
    let mut both = |option: &str, key: &str, value: Option<String>| {
        for way in ["down", "up"] {
            typed.extend(value.iter().map(|value| Typed {
                option: option.to_owned(),
                key: format!("path.{way}.{key}"),
                value: value.clone(),
            }));
        }
    };
    let shown = |name: &str, value: &Option<String>| format!("--{name} {}", value.as_deref().unwrap_or_default());
    let delay = args.delay.map(|delay| (format!("--delay {delay}"), delay));
    let half = args.rtt.map(|rtt| (format!("--rtt {rtt}"), Span::from_nanos(rtt.as_nanos() / 2)));
    if let Some((option, delay)) = delay.or(half) {
        both(&option, "delay", Some(delay.to_string()));
    }
    for (key, value) in [("jitter", &args.jitter), ("loss", &args.loss), ("rate", &args.rate), ("queue", &args.queue)] {
        both(&shown(key, value), key, value.clone());
    }
    for (way, texts) in [("down", &args.down), ("up", &args.up)] {
        for part in texts.iter().flat_map(|text| parts(text)) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(Failure::user(anyhow!("--{way} '{part}' has no value"))
                    .hint(format!("write it as --{way} rate=10mbit,queue=100ms")));
            };
            typed.push(Typed {
                option: format!("--{way} {part}"),
                key: format!("path.{way}.{}", key.trim()),
                value: value.trim().to_owned(),
            });
        }
    }
    for way in ["down", "up"] {
        let has = |key: &str| {
            let (option, key) = (format!("--{way} "), format!("path.{way}.{key}"));
            typed.iter().any(|one| one.option.starts_with(&option) && one.key == key)
        };
        if has("rate") && has("trace") {
            return Err(Failure::user(anyhow!(
                "--{way} gives both a rate and a trace, which is the rate at each moment"
            ))
            .hint("leave one of them out"));
        }
    }
    let scenario = match &args.scenario {
        Some(name) => scenarios::find_with(name, &typed)?,
        None => scenarios::of_path(args.preset.map_or("", |preset| preset.text()), &typed)?,
    };
    let experiment = scenario.arms.into_iter().next().expect("invariant: a scenario has an arm").experiment;
    if let (Between::Switch(_), Some(name)) = (&experiment.topology.between, &args.scenario) {
        return Err(Failure::user(anyhow!(
            "'{name}' is hosts on a switch, and thalweg path is a path between two ends"
        ))
        .hint(format!("thalweg path up {name} brings its hosts up, and thalweg path exec runs programs on them")));
    }
    thalweg_config::without_effect(&experiment).iter().for_each(|why| output.note(&format!("note: {why}")));
    Ok(experiment.path)
}

/// Divides `a=1,b={ c = 2, d = 3 }` at the commas that are in no brackets.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0i32, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&text[start..]);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_divided_at_commas_outside_of_brackets() {
        assert_eq!(parts("rate=1mbit,jitter={ stddev = \"1ms\", reorder = true },ecn=true").len(), 3);
        assert_eq!(parts("rate=1mbit"), ["rate=1mbit"]);
    }
}
