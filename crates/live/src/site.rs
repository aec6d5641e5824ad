//! A network namespace with a thread that lives in it.

use std::sync::mpsc::{self, Sender};
use std::thread;
use thalweg_host::netns::NetNs;
use thalweg_host::{HostError, link};

/// What a thread is to do.
type Job = Box<dyn FnOnce() + Send>;

/// One end of the path: a new namespace, in which jobs run one after the other. It exists as long as this and the threads,
/// devices and programs that were made in it.
#[derive(Debug)]
pub(crate) struct Site {
    jobs: Sender<Job>,
}

impl Site {
    /// Makes a namespace whose loopback is up.
    pub(crate) fn new(name: &'static str) -> Result<Self, HostError> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (made, answer) = mpsc::channel();
        let live = move || {
            let entered = NetNs::enter_new(name).and_then(|()| link::set_up(link::LOOPBACK));
            let goes_on = entered.is_ok();
            // The maker waits for it.
            let _ = made.send(entered);
            if goes_on {
                queue.iter().for_each(|job| job());
            }
        };
        spawn(name, live)?;
        answer.recv().expect("invariant: the thread answers")?;
        Ok(Self { jobs })
    }

    /// Does something in the namespace; sockets and threads that it makes stay there.
    pub(crate) fn run<T: Send + 'static>(&self, act: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, answer) = mpsc::channel();
        let job = move || {
            // The caller waits for it.
            let _ = done.send(act());
        };
        self.jobs.send(Box::new(job)).expect("invariant: the thread waits for jobs");
        answer.recv().expect("invariant: a job answers")
    }
}

/// Starts a thread in the namespaces of this one.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    act: impl FnOnce() -> T + Send + 'static,
) -> Result<thread::JoinHandle<T>, HostError> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(act);
    started.map_err(|source| HostError { act: format!("start the thread '{name}'"), source })
}
