//! `thalweg tune apply`, `confirm`, `rollback` and `persist`.

use super::failure::failure;
use super::timer;
use crate::args::tune::{TuneApplyArgs, TuneIdArgs, TunePersistArgs, TuneRollbackArgs};
use crate::failure::Failure;
use crate::output::Output;
use anyhow::anyhow;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;
use thalweg_apply::{ApplyError, Journal, Options, State, Store, Target, TuneRollback, Unwatched, note_persisted};
use thalweg_model::{Setting, TunePlan, since};
use thalweg_tune::catalogue::{self, Known};

/// The longest plan that is read, in bytes.
const PLAN_MAX: u64 = 16 << 20;

pub(crate) fn run(args: &TuneApplyArgs, output: &Output) -> Result<ExitCode, Failure> {
    let mut plan = read(&args.plan)?;
    if args.skip_sockets {
        plan.changes.retain(|change| !matches!(change.setting, Setting::Socket(_)));
    }
    check(&plan)?;
    let within = args.confirm_within.map(|span| span.to_duration().as_secs_f64().ceil() as u64);
    if within == Some(0) {
        return Err(Failure::user(anyhow!("--confirm-within must be more than nothing")));
    }
    let store = Store::new(&args.journals.state);
    let locked = store.lock(false).map_err(failure)?;
    let options = Options { confirm_within_s: within };
    let systemd = timer::is_systemd(args.timer);
    let arm = |journal: &Journal| timer::arm(journal, &store, systemd);
    let applied = match thalweg_apply::apply(&plan, options, &locked, arm, &mut Unwatched) {
        Err(ApplyError::Empty) => {
            output.note("nothing has to be set");
            return Ok(ExitCode::SUCCESS);
        }
        applied => applied.map_err(failure)?,
    };
    if output.json {
        output.json_result(&applied)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("application {}: {} set\n", applied.id, settings(applied.entries.len()));
    for entry in &applied.entries {
        let _ = match &entry.target {
            Target::Sysctl(name) => writeln!(text, "  {name} = {}  (was {})", entry.after, entry.before),
            route => writeln!(text, "  {route}: {}", route.difference(&entry.before, &entry.after)),
        };
    }
    output.result(&text)?;
    if let Some(seconds) = within {
        output.note(&format!(
            "undone in {seconds} s unless: thalweg tune confirm {}\n{}",
            applied.id,
            timer::named(systemd)
        ));
    } else {
        output.note(&format!("undo: thalweg tune rollback {}", applied.id));
    }
    Ok(ExitCode::SUCCESS)
}

fn settings(count: usize) -> String {
    if count == 1 { "1 setting".to_owned() } else { format!("{count} settings") }
}

fn read(path: &Path) -> Result<TunePlan, Failure> {
    let name = path.display();
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        io::stdin().lock().take(PLAN_MAX).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(PLAN_MAX).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::user(anyhow!("cannot read '{name}': {error}")))?;
    let hint = "make one by `thalweg tune plan … --json`";
    let plan: TunePlan = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::user(anyhow!("'{name}' is no plan: {error}")).hint(hint))?;
    if plan.schema != TunePlan::SCHEMA {
        return Err(Failure::user(anyhow!("'{name}' is no plan: its schema is '{}'", plan.schema)).hint(hint));
    }
    Ok(plan)
}

/// Refuses, before anything is read or written, names and values that this kernel would refuse.
fn check(plan: &TunePlan) -> Result<(), Failure> {
    let kernel = thalweg_host::sysctl::read("kernel.osrelease").ok().and_then(|text| since::release(&text));
    for change in &plan.changes {
        let Setting::Sysctl(name) = &change.setting else { continue };
        let wrong = |text: String| Failure::user(anyhow!(text)).hint(format!("thalweg explain {name}"));
        match catalogue::known(name) {
            Known::Setting(entry) => {
                if let Some(reason) = entry.refuses(&change.to, kernel) {
                    return Err(wrong(reason));
                }
            }
            Known::Mistyped(entry) => {
                return Err(wrong(format!("there is no sysctl '{name}'; {} is near", entry.name)));
            }
            _ => return Err(wrong(format!("'{name}' is no sysctl of TCP that this program knows"))),
        }
    }
    Ok(())
}

pub(crate) fn confirm(args: &TuneIdArgs, output: &Output) -> Result<ExitCode, Failure> {
    let store = Store::new(&args.journals.state);
    let locked = store.lock(false).map_err(failure)?;
    let journal = thalweg_apply::confirm(args.id.as_deref(), &locked, &mut Unwatched).map_err(failure)?;
    timer::disarm(&journal);
    if output.json {
        output.json_result(&journal)?;
    } else {
        output.result(&format!("application {} stays", journal.id))?;
        output.note(&format!("it is gone after a reboot unless: thalweg tune persist {}", journal.id));
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn rollback(args: &TuneRollbackArgs, output: &Output) -> Result<ExitCode, Failure> {
    let store = Store::new(&args.journals.state);
    let locked = store.lock(args.unless_confirmed).map_err(failure)?;
    let done = match thalweg_apply::rollback(args.id.as_deref(), args.unless_confirmed, &locked, &mut Unwatched) {
        Err(ApplyError::NoneWaits { .. } | ApplyError::Unknown(_)) if args.unless_confirmed => None,
        done => done.map_err(failure)?,
    };
    let Some(outcome) = done else {
        output.note("nothing is left to undo");
        return Ok(ExitCode::SUCCESS);
    };
    // A timer that runs this must not stop itself.
    if !args.unless_confirmed {
        timer::disarm(&outcome.journal);
    }
    let files = unpersist(&outcome.journal)?;
    let undone = &outcome.undone;
    if output.json {
        let (id, undone) = (&outcome.journal.id, undone.clone());
        output.json_result(&TuneRollback { schema: "thalweg.tune-rollback/1", id: id.clone(), undone })?;
    } else {
        let mut text = format!("application {}: {} restored\n", outcome.journal.id, settings(undone.restored.len()));
        for (what, list) in
            [("restored", &undone.restored), ("as it was", &undone.untouched), ("left alone", &undone.refused)]
        {
            for line in list {
                let _ = writeln!(text, "  {what}: {line}");
            }
        }
        for file in files {
            let _ = writeln!(text, "  out of {file}, which the next boot reads");
        }
        output.result(&text)?;
    }
    Ok(ExitCode::from(u8::from(!undone.refused.is_empty())))
}

pub(crate) fn persist(args: &TunePersistArgs, output: &Output) -> Result<ExitCode, Failure> {
    let store = Store::new(&args.journals.state);
    let path = std::path::absolute(&args.file).map_err(Failure::host)?;
    let file = path.display().to_string();
    let locked = store.lock(false).map_err(failure)?;
    let journal = store.journal(Some(&args.id)).map_err(failure)?;
    let routes: Vec<&Target> =
        journal.entries.iter().map(|entry| &entry.target).filter(|target| matches!(target, Target::Route(_))).collect();
    let sysctls = journal.entries.len() - routes.len();
    if sysctls > 0 || journal.state != State::Confirmed {
        let before = persisted(&path)?.unwrap_or_default();
        let journal = note_persisted(&args.id, &file, &locked).map_err(failure)?;
        thalweg_pipeline::whole::write(&path, &journal.persisted_in(&before))?;
        output.result(&format!("{}: {}", args.file.display(), settings(sysctls)))?;
    }
    for route in &routes {
        output.note(&format!(
            "{route}: sysctl.d has no routes. Instead: thalweg tune plan … --format networkd, netplan or networkmanager"
        ));
    }
    Ok(ExitCode::from(u8::from(!routes.is_empty())))
}

/// A file of `sysctl.d`; `None` where it is not there.
fn persisted(path: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::host(anyhow!("cannot read '{}': {error}", path.display()))),
    }
}

/// Takes what an application persisted out of its files; a file that held nothing else is removed. Returns those files.
fn unpersist(journal: &Journal) -> Result<Vec<String>, Failure> {
    let mut done = Vec::new();
    for file in &journal.persisted {
        let path = Path::new(file);
        let Some(rest) = persisted(path)?.and_then(|text| journal.removed_from(&text)) else { continue };
        if rest.trim().is_empty() {
            std::fs::remove_file(path).map_err(|error| Failure::host(anyhow!("cannot remove '{file}': {error}")))?;
        } else {
            thalweg_pipeline::whole::write(path, &rest)?;
        }
        done.push(file.clone());
    }
    Ok(done)
}
