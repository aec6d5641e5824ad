//! Running a program of the build: its output line by line, a deadline, and an end on request.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) success: bool,
    /// In words: "exit code 2".
    pub(crate) ending: String,
    /// The last lines it printed.
    pub(crate) tail: Vec<String>,
}

/// Why a program did not come to its own end.
#[derive(Debug)]
pub(crate) enum RunError {
    Start(io::Error),
    Interrupted,
    /// With the last lines it printed.
    TimedOut(Vec<String>),
}

/// Runs a program to its end, with standard output and error joined and each line handed to `on_line`.
///
/// It runs in a process group of its own, which is killed on interrupt and at the deadline. Should this process die
/// without that, the program's next line of output ends it, since nobody holds the pipe's other end any more.
pub(crate) fn run(
    mut command: Command,
    interrupt: &AtomicBool,
    limit: Option<Duration>,
    mut on_line: impl FnMut(&str),
) -> Result<Run, RunError> {
    let (reader, writer) = io::pipe().map_err(RunError::Start)?;
    let second = writer.try_clone().map_err(RunError::Start)?;
    let mut child =
        command.stdin(Stdio::null()).stdout(writer).stderr(second).process_group(0).spawn().map_err(RunError::Start)?;
    // The command holds this process's copies of the pipe's writing end, which would keep the reader waiting.
    drop(command);

    let (send, lines) = mpsc::sync_channel(64);
    let reading = std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            if send.send(text).is_err() {
                break;
            }
        }
    });

    let deadline = limit.map(|limit| Instant::now() + limit);
    let mut tail = VecDeque::with_capacity(TAIL_LINES);
    let ended = loop {
        match lines.recv_timeout(POLL) {
            Ok(line) => {
                on_line(&line);
                if tail.len() == TAIL_LINES {
                    tail.pop_front();
                }
                tail.push_back(line);
            }
            Err(RecvTimeoutError::Timeout) => (),
            Err(RecvTimeoutError::Disconnected) => match child.try_wait() {
                // Output may close before the end; poll for the end, with the same guards.
                Ok(None) => std::thread::sleep(POLL),
                Ok(Some(status)) => break Ok(status),
                Err(error) => break Err(RunError::Start(error)),
            },
        }
        if interrupt.load(Ordering::Relaxed) {
            break Err(RunError::Interrupted);
        }
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            break Err(RunError::TimedOut(Vec::new()));
        }
    };
    if ended.is_err() {
        thalweg_host::process::kill_group(&mut child);
    }
    drop(lines);
    // The reader ends with the last holder of the pipe, and all of those were in the group.
    let _ = reading.join();
    let tail = Vec::from(tail);
    match ended {
        Ok(status) => Ok(Run { success: status.success(), ending: ending(status), tail }),
        Err(RunError::TimedOut(_)) => Err(RunError::TimedOut(tail)),
        Err(error) => Err(error),
    }
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    }
}

/// Enough of a compiler's or a kernel's last words to tell the cause.
const TAIL_LINES: usize = 30;
/// How soon an interrupt is noticed.
const POLL: Duration = Duration::from_millis(50);
