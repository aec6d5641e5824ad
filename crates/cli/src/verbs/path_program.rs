//! A program behind a path or on a host: what starts it, and waiting for its end.

use crate::failure::Failure;
use crate::output::Output;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::ffi::OsString;
use std::io::{self, stderr};
use std::os::fd::AsFd;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use thalweg_host::HostError;
use thalweg_live::{Program, Signal};

/// How often the line on the terminal is drawn, and signals are looked for.
const TICK: Duration = Duration::from_millis(200);

/// Exit codes of a program that could not be started. Source: POSIX.1-2024, Shell Command Language, 2.8.2.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// The words of a program, and what starts it; a shell where no program is given.
pub(super) fn program(words: &[OsString], id: u32, output: &Output) -> Result<(Vec<String>, Command), Failure> {
    let shell = || std::env::var_os("SHELL").unwrap_or_else(|| OsString::from("/bin/sh"));
    let words = if words.is_empty() { vec![shell()] } else { words.to_vec() };
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env("THALWEG_PATH", id.to_string());
    if output.json {
        // The document has stdout to itself.
        command.stdout(stderr().as_fd().try_clone_to_owned().map(Stdio::from).map_err(Failure::host)?);
    }
    Ok((words.iter().map(|word| word.to_string_lossy().into_owned()).collect(), command))
}

/// Says why a program was not started; the code is the one that shells and env(1) have for it, as its own may be any other.
pub(super) fn not_started(program: &str, error: HostError, output: &Output) -> Result<ExitCode, Failure> {
    let code = match error.source.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        io::ErrorKind::PermissionDenied => NOT_EXECUTABLE,
        _ => return Err(Failure::host(error)),
    };
    let hint = format!("the program is what follows --: is '{program}' one?");
    output.failure(&Failure::user(error).hint(hint));
    Ok(ExitCode::from(code))
}

/// Waits for the program's end, and passes on what asks it to end; `each` is called every now and then.
pub(super) fn attend(program: &Program, mut each: impl FnMut(&Program)) -> Result<u8, Failure> {
    let asked_to_end = Arc::new(AtomicUsize::new(0));
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register_usize(signal, Arc::clone(&asked_to_end), signal as usize).map_err(Failure::host)?;
    }
    // A terminal sends these to the program too, which decides what they mean.
    let ignored = Arc::default();
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::clone(&ignored)).map_err(Failure::host)?;
    }
    loop {
        if let Some(code) = program.wait(TICK).map_err(Failure::host)? {
            return Ok(code);
        }
        match asked_to_end.swap(0, Ordering::Relaxed) {
            0 => {}
            number if number == SIGHUP as usize => program.signal(Signal::HUP),
            _ => program.signal(Signal::TERM),
        }
        each(program);
    }
}
