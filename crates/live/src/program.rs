//! A program in a network namespace of this process's, with all that it starts.

use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use thalweg_host::HostError;
use thalweg_host::confined::{self, Confined, ReplacedFile, Signal};
use thalweg_host::user_namespace::Privilege;

/// A program at an end of a path, or on a host.
#[derive(Debug)]
pub struct Program {
    id: u32,
    ended: Receiver<Result<u8, HostError>>,
}

impl Program {
    /// Starts a program, which sees `files` as they say, in a thread that `spawn` makes where the program is to run. What it starts
    /// ends with it, and all of it with this process.
    pub(crate) fn start(
        mut command: Command,
        privilege: Privilege,
        files: Vec<ReplacedFile>,
        spawn: impl FnOnce(Box<dyn FnOnce() + Send>) -> Result<(), HostError>,
    ) -> Result<Self, HostError> {
        let (started, answer) = channel();
        let (end, ended) = channel();
        let live = move || {
            let program = Confined::start(&mut command, privilege, &files);
            let id = program.as_ref().map(Confined::id).map_err(|_| ());
            let (answer, program) = match (id, program) {
                (Ok(id), Ok(program)) => (Ok(id), Some(program)),
                (_, Err(error)) => (Err(error), None),
                (Err(()), Ok(_)) => unreachable!("invariant: a program has a number"),
            };
            // The starter waits for it.
            let _ = started.send(answer);
            if let Some(mut program) = program {
                // The starter may not care.
                let _ = end.send(program.wait());
            }
        };
        spawn(Box::new(live))?;
        let id = answer.recv().expect("invariant: the thread answers")?;
        Ok(Self { id, ended })
    }

    /// Its exit code, if it ends within `most`; 128 and a signal's number if that ended it.
    ///
    /// # Errors
    /// When the kernel does not say how it ended.
    pub fn wait(&self, most: Duration) -> Result<Option<u8>, HostError> {
        match self.ended.recv_timeout(most) {
            Ok(ended) => ended.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Ok(Some(255)),
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        confined::signal(self.id, signal);
    }
}
