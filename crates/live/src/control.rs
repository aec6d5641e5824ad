//! Looking at paths that run and hosts that are up, and changing them, from other processes of the same user.
//!
//! Each listens on an abstract socket of its host's network namespace, so that nothing is left of it when it is killed.
//! It answers its own user and root only.

use crate::handle::Handle;
use crate::site::spawn;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;
use thalweg_host::{HostError, descriptors, peer};
use thalweg_model::{LiveHost, LiveHostsReport, LivePathReport, Step, Way};

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
    /// The namespaces of the host of this name, to start programs there.
    Enter(String),
    /// The end of hosts that were brought up.
    End,
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
    /// What hosts that are up did until now.
    Hosts(Box<LiveHostsReport>),
    /// The names and addresses of all hosts; the descriptors that came before lead to the one asked for.
    Entered(Vec<LiveHost>),
    /// It has changed, or ends now.
    Done,
    /// That cannot be; why.
    Refused(String),
}

/// An answer, and the descriptors that go with that to [`Request::Enter`].
#[derive(Debug)]
pub struct Reply {
    answer: Answer,
    descriptors: Vec<OwnedFd>,
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self { answer, descriptors: Vec::new() }
    }
}

impl Reply {
    /// The way to a host: its network namespace, the user namespace that this belongs to, and what is readable when the hosts are gone.
    pub fn entrance(hosts: Vec<LiveHost>, network: OwnedFd, user: OwnedFd, life: OwnedFd) -> Self {
        Self { answer: Answer::Entered(hosts), descriptors: vec![network, user, life] }
    }
}

/// The way to a host of another process's.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub(crate) hosts: Vec<LiveHost>,
    pub(crate) network: OwnedFd,
    pub(crate) user: OwnedFd,
    /// Readable, with nothing to read, when the hosts are gone.
    pub(crate) life: OwnedFd,
}

/// Where requests to a path or to hosts arrive.
#[derive(Debug)]
pub struct Listener {
    listener: UnixListener,
    user: u32,
}

impl Listener {
    /// Listens for requests to `id` in the current network namespace.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn bind(id: u32) -> Result<Self, HostError> {
        let user = peer::own_user();
        let bound =
            SocketAddr::from_abstract_name(name(user, id)).and_then(|address| UnixListener::bind_addr(&address));
        let act = || "listen for requests to the path".to_owned();
        Ok(Self { listener: bound.map_err(|source| HostError { act: act(), source })?, user })
    }

    /// Waits for the next request of this user's or root's, and answers it. Who asked badly asks again.
    pub fn answer_next(&self, answer: &mut impl FnMut(Request) -> Reply) {
        if let Ok((connection, _)) = self.listener.accept()
            && peer::user(&connection).is_ok_and(|peer| peer == self.user || peer == 0)
        {
            let _ = answer_one(connection, answer);
        }
    }
}

fn answer_one(mut connection: UnixStream, answer: &mut impl FnMut(Request) -> Reply) -> io::Result<()> {
    let request = receive(&mut connection)?;
    let is_to_enter = matches!(request, Request::Enter(_));
    let Reply { answer, descriptors: handed } = answer(request);
    if is_to_enter {
        let borrowed: Vec<BorrowedFd<'_>> = handed.iter().map(AsFd::as_fd).collect();
        descriptors::send(&connection, &borrowed)?;
    }
    send(&mut connection, &answer)
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
    let listener = Listener::bind(id)?;
    let mut answer = move |request| {
        Reply::from(match request {
            Request::Report => Answer::Report(Box::new(report(&handle))),
            Request::Change { ways, step } => match ways.iter().try_for_each(|way| handle.change(*way, &step)) {
                Ok(()) => Answer::Done,
                Err(unsupported) => Answer::Refused(unsupported.to_string()),
            },
            Request::Enter(_) => Answer::Refused("it has two ends that are its own programs', and no hosts".to_owned()),
            Request::End => Answer::Refused("it ends with its program".to_owned()),
        })
    };
    let answer_all = move || {
        loop {
            listener.answer_next(&mut answer);
        }
    };
    spawn("control", answer_all).map(drop)
}

/// Asks the path `id` of this user.
///
/// # Errors
/// When there is no such path, or it does not answer.
pub fn ask(id: u32, request: &Request) -> io::Result<Answer> {
    let mut connection = connect(id)?;
    send(&mut connection, request)?;
    receive(&mut connection)
}

/// Asks the hosts `id` of this user for the way to one of them; why not, where they refuse.
///
/// # Errors
/// When there are no such hosts, or they do not answer.
pub(crate) fn enter(id: u32, host: &str) -> io::Result<Result<Entrance, String>> {
    let mut connection = connect(id)?;
    send(&mut connection, &Request::Enter(host.to_owned()))?;
    let mut received = descriptors::receive(&connection)?.into_iter();
    let else_ = || io::Error::new(io::ErrorKind::InvalidData, "it answers something else");
    match receive(&mut connection)? {
        Answer::Entered(hosts) => {
            let mut next = || received.next().ok_or_else(else_);
            Ok(Ok(Entrance { hosts, network: next()?, user: next()?, life: next()? }))
        }
        Answer::Refused(why) => Ok(Err(why)),
        _ => Err(else_()),
    }
}

fn connect(id: u32) -> io::Result<UnixStream> {
    let name = names()?.into_iter().find(|(number, _)| *number == id).map(|(_, name)| name);
    let name = name.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no path {id} runs")))?;
    let connection = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
    let (user, owner) = (peer::own_user(), peer::user(&connection)?);
    if user != 0 && owner != user {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "its socket is another user's"));
    }
    connection.set_read_timeout(Some(TIMEOUT))?;
    Ok(connection)
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
