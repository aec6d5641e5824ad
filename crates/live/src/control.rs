//! Looking at paths that run, and changing them, from other processes of the same user.
//!
//! Each path listens on an abstract socket of its host's network namespace, so that nothing is left of it when it is killed.
//! It answers its own user and root only.

use crate::live_path::Handle;
use crate::site::spawn;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;
use thalweg_host::{HostError, peer};
use thalweg_model::{LivePathReport, Step, Way};

/// Longest request or answer; traces of a million opportunities are part of a path.
const MESSAGE_BYTES_MAX: u64 = 64 << 20;
/// How long one side waits for the other.
const TIMEOUT: Duration = Duration::from_secs(5);
const PREFIX: &str = "thalweg-path-";

/// What is asked of a path.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Request {
    /// What it did until now.
    Report,
    /// Another rate, delay or loss from now on; the step's time does not count.
    Change {
        /// Its directions.
        ways: Vec<Way>,
        /// The change.
        step: Step,
    },
}

/// What a path answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Answer {
    /// What it did until now.
    Report(Box<LivePathReport>),
    /// It has changed.
    Changed,
    /// It cannot be changed so.
    Refused(String),
}

/// Answers requests to the path `id` until the process ends.
///
/// # Errors
/// When the socket cannot be made.
pub fn serve(
    id: u32,
    handle: Handle,
    report: impl Fn(&Handle) -> LivePathReport + Send + 'static,
) -> Result<(), HostError> {
    let act = || "listen for changes of the path".to_owned();
    let user = peer::own_user();
    let listener = SocketAddr::from_abstract_name(name(user, id)).and_then(|address| UnixListener::bind_addr(&address));
    let listener = listener.map_err(|source| HostError { act: act(), source })?;
    let answer_all = move || {
        for connection in listener.incoming().flatten() {
            if peer::user(&connection).is_ok_and(|peer| peer == user || peer == 0) {
                // Who asked badly asks again.
                let _ = answer(connection, &handle, &report);
            }
        }
    };
    spawn("control", answer_all).map(drop)
}

fn answer(mut connection: UnixStream, handle: &Handle, report: &impl Fn(&Handle) -> LivePathReport) -> io::Result<()> {
    let answer = match receive(&mut connection)? {
        Request::Report => Answer::Report(Box::new(report(handle))),
        Request::Change { ways, step } => match ways.iter().try_for_each(|way| handle.change(*way, &step)) {
            Ok(()) => Answer::Changed,
            Err(unsupported) => Answer::Refused(unsupported.to_string()),
        },
    };
    send(&mut connection, &answer)
}

/// Asks the path `id` of this user.
///
/// # Errors
/// When there is no such path, or it does not answer.
pub fn ask(id: u32, request: &Request) -> io::Result<Answer> {
    let name = names()?.into_iter().find(|(number, _)| *number == id).map(|(_, name)| name);
    let name = name.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no path {id} runs")))?;
    let mut connection = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
    let (user, owner) = (peer::own_user(), peer::user(&connection)?);
    if user != 0 && owner != user {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "its socket is another user's"));
    }
    send(&mut connection, request)?;
    receive(&mut connection)
}

/// Numbers of the paths that run, this user's alone unless that is root.
///
/// # Errors
/// When /proc is not mounted.
pub fn list() -> io::Result<Vec<u32>> {
    let mut ids: Vec<u32> = names()?.into_iter().map(|(id, _)| id).collect();
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

fn name(user: u32, id: u32) -> String {
    format!("{PREFIX}{user}-{id}")
}

/// Numbers and sockets' names.
fn names() -> io::Result<Vec<(u32, String)>> {
    let user = peer::own_user();
    let sockets = fs::read_to_string("/proc/net/unix")?;
    let read = |line: &str| {
        let socket = line.split_whitespace().last()?.strip_prefix('@')?;
        let (owner, id) = socket.strip_prefix(PREFIX)?.split_once('-')?;
        let is_mine = user == 0 || owner.parse() == Ok(user);
        is_mine.then_some((id.parse().ok()?, socket.to_owned()))
    };
    Ok(sockets.lines().filter_map(read).collect())
}

fn send(connection: &mut UnixStream, message: &impl Serialize) -> io::Result<()> {
    connection.set_write_timeout(Some(TIMEOUT))?;
    connection.write_all(&serde_json::to_vec(message)?)?;
    connection.shutdown(Shutdown::Write)
}

fn receive<T: for<'a> Deserialize<'a>>(connection: &mut UnixStream) -> io::Result<T> {
    connection.set_read_timeout(Some(TIMEOUT))?;
    let mut bytes = Vec::new();
    connection.take(MESSAGE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}
