//! `thalweg path up`, `exec` and `down`: hosts of a scenario that stay up, and programs on them.

use crate::args::path::{PathExecArgs, PathUpArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::scenarios;
use crate::verbs::path_control;
use crate::verbs::path_program::{attend, not_started, program};
use anyhow::anyhow;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use thalweg_lab::{BootError, check_live_path, keep_hosts};
use thalweg_live::control::{Answer, Request};
use thalweg_live::{EnterError, Entered, Signal};
use thalweg_units::Seed;

/// How long a program may take to end after its host is gone.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the keeper of hosts may take to end.
const END: Duration = Duration::from_secs(10);

pub(crate) fn up(args: &PathUpArgs, output: &Output) -> Result<ExitCode, Failure> {
    let mut scenario = scenarios::find_hosts(&args.scenario, &args.set)?;
    let is_one_of_several = scenario.arms.len() > 1;
    scenarios::keep(&mut scenario, args.arm.as_slice())?;
    let arm = scenario.arms.first().expect("invariant: a scenario has an arm");
    let name = if is_one_of_several { format!("{}, {}", scenario.name, arm.name) } else { scenario.name.clone() };
    check_live_path(arm).map_err(Failure::user)?;
    if !arm.experiment.cross.is_empty() {
        output.note("note: cross traffic is not made: thalweg path exec starts programs that make it");
    }
    let report = keep_hosts(&name, &arm.experiment, Seed::new(args.seed)).map_err(|error| match error {
        BootError::Live(why) => Failure::host(anyhow!("the hosts cannot be brought up: {why}")),
        other => Failure::host(other),
    })?;
    report.skipped.iter().for_each(|why| output.note(&format!("note: the hosts do without a setting: {why}")));
    if output.json {
        output.json_result(&report)?;
    } else {
        output.result(&thalweg_report::terminal::live_hosts(&report))?;
        let last = report.hosts.last().map_or("client", |host| host.name.as_str());
        output.note(&format!("thalweg path exec {last} runs a shell there; thalweg path down takes all of them down"));
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn exec(args: &PathExecArgs, output: &Output) -> Result<ExitCode, Failure> {
    let (id, host) = match args.host.as_slice() {
        [id, host] => {
            let number = id.parse().map_err(|_| {
                Failure::user(anyhow!("'{id}' is no number of hosts"))
                    .hint("the number comes first, then the host; the program follows --")
            })?;
            (Some(number), host)
        }
        [host] => (None, host),
        _ => return Err(Failure::user(anyhow!("name the host to run a program on"))),
    };
    let id = path_control::only_hosts(id)?;
    let entered = Entered::enter(id, host).map_err(|error| match error {
        EnterError::Host(_) => Failure::host(error),
        _ => Failure::user(error).hint("thalweg path list shows which hosts are up"),
    })?;
    let (words, command) = program(&args.command, id, output)?;
    let running = match entered.run(command) {
        Ok(running) => running,
        Err(error) => return not_started(&words[0], error, output),
    };
    let mut over: Option<Instant> = None;
    let code = attend(&running, |program| match over {
        None if entered.is_over() => {
            over = Some(Instant::now());
            program.signal(Signal::TERM);
        }
        Some(since) if since.elapsed() > PATIENCE => program.signal(Signal::KILL),
        _ => {}
    })?;
    if over.is_some() {
        output.note(&format!("the hosts were taken down, and {} with them", words[0]));
    }
    Ok(ExitCode::from(code))
}

pub(crate) fn down(id: Option<u32>, output: &Output) -> Result<ExitCode, Failure> {
    let id = path_control::only_hosts(id)?;
    match path_control::ask(id, &Request::End)? {
        Answer::Refused(why) => {
            Err(Failure::user(anyhow!("path {id} cannot be taken down: {why}"))
                .hint("thalweg path list shows what runs"))
        }
        _ => {
            let began = Instant::now();
            while path_control::is_there(id)? {
                if began.elapsed() > END {
                    return Err(Failure::host(anyhow!("hosts {id} do not end"))
                        .hint(format!("kill -9 {id} ends them; nothing is left then")));
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            output.note(&format!("hosts {id} are down"));
            Ok(ExitCode::SUCCESS)
        }
    }
}
