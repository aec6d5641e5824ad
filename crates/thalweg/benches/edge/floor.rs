//! What an answer costs on this kernel with nothing else done: a server that looks at nothing of a request but its end, and sends a file.
//!
//! It has one thread, an epoll, and `sendfile`; no head is parsed, nothing is checked or counted. What it takes is the kernel's, so that
//! a figure of another machine or hour can be read as a multiple of it. Its sockets are as the kernel makes them: with short queues
//! (`net.ipv4.tcp_notsent_lowat`, which `thalweg serve` sets for its own) long answers cost less.

use crate::pin;
use crate::servers::{Running, Server};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fs::sendfile;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

/// The first word of the command line of the process that is the server.
pub(crate) const WORD: &str = "floor";

/// Starts it on processor 0 with a playlist and a segment.
pub(crate) fn start(playlist: &Path, segment: &Path) -> Option<Server> {
    let listener = TcpListener::bind("127.0.0.1:0").ok()?;
    let port = listener.local_addr().ok()?.port();
    pin(0);
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.arg(WORD).arg(playlist).arg(segment).stdin(Stdio::from(OwnedFd::from(listener)));
    let child = Running(command.spawn().ok()?);
    pin(1);
    let playlists = vec![format!("http://127.0.0.1:{port}/index.m3u8").parse().ok()?];
    let pid = child.0.id();
    Some(Server { name: "sendfile alone".into(), pid, playlists, flv: Vec::new(), _children: vec![child] })
}

/// A file, its size, and the head that goes before it.
struct Piece {
    file: File,
    size: u64,
    head: Vec<u8>,
}

impl Piece {
    fn open(path: &str) -> io::Result<Self> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { file, size, head: format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n").into_bytes() })
    }
}

struct Connection {
    stream: TcpStream,
    /// What is being sent, and how much of it was.
    sent: Option<(usize, u64)>,
}

/// The server, of a playlist and a segment; its listener is its standard input.
pub(crate) fn serve(paths: &[String]) -> io::Result<()> {
    let pieces = [Piece::open(&paths[0])?, Piece::open(&paths[1])?];
    let listener = TcpListener::from(io::stdin().as_fd().try_clone_to_owned()?);
    listener.set_nonblocking(true)?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, EventData::new_u64(0), EventFlags::IN)?;
    let (mut connections, mut next) = (HashMap::new(), 0);
    let mut events = Vec::with_capacity(64);
    loop {
        events.clear();
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let number = event.data.u64();
            if number == 0 {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true)?;
                    next += 1;
                    let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
                    epoll::add(&poll, &stream, EventData::new_u64(next), flags)?;
                    connections.insert(next, Connection { stream, sent: None });
                }
            } else if connections.get_mut(&number).is_some_and(|connection| serve_one(connection, &pieces).is_err()) {
                connections.remove(&number);
            }
        }
    }
}

/// Does what can be done for a connection without waiting.
fn serve_one(connection: &mut Connection, pieces: &[Piece; 2]) -> io::Result<()> {
    let mut request = [0; 2_048];
    loop {
        let (which, mut offset) = match connection.sent {
            Some(sent) => sent,
            None => match connection.stream.read(&mut request) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(got) => {
                    let is_segment = request[..got].windows(3).any(|three| three == b".ts");
                    let piece = &pieces[usize::from(is_segment)];
                    send(&connection.stream, &piece.head, SendFlags::MORE)?;
                    (usize::from(is_segment), 0)
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            },
        };
        let piece = &pieces[which];
        while offset < piece.size {
            let left = (piece.size - offset) as usize;
            match sendfile(&connection.stream, &piece.file, Some(&mut offset), left) {
                Ok(_) => {}
                Err(Errno::AGAIN) => {
                    connection.sent = Some((which, offset));
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        connection.sent = None;
    }
}
