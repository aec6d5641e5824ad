//! A viewer's connection: plain or TLS, one response at a time, nothing held that is not about to be sent.

use super::cursor::{Cursor, Room};
use crate::hub::{Block, Piece};
use crate::tls::RECORD_BYTES;
use crate::viewer::TcpFacts;
use rustls::ServerConnection;
use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::net::IpAddr;
use std::sync::Arc;
use thalweg_host::HostError;
use thalweg_host::segment::SplicePipe;
use thalweg_host::socket::Tcp;
use thalweg_host::tcp_info::TcpInfo;

/// What encrypted bytes may wait for the kernel, per connection.
const TLS_BUFFER: usize = 2 * RECORD_BYTES;
/// What is sent of a segment before other connections have their turn.
const TURN: usize = 1 << 20;
/// What is offered to a socket before it is known to have room for more.
const FIRST_SHARE: usize = 64 << 10;

/// A connection and the response on its way.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Tcp,
    pub(super) tls: Option<Box<ServerConnection>>,
    /// The client's address; behind a proxy, the address from the PROXY header.
    pub(super) peer: IpAddr,
    /// The address it is counted under; `None` for a trusted proxy, which has the connections of many clients.
    pub(super) counted: Option<IpAddr>,
    /// `peer` is a trusted proxy, whose `X-Forwarded-For` is read.
    pub(super) is_trusted: bool,
    /// A PROXY header has to come first.
    pub(super) awaits_proxy: bool,
    /// Requests in the second `asked_s`.
    asked: u32,
    asked_s: u32,
    /// The beginning of a request whose end has not come; without memory while there is none.
    pub(super) input: Vec<u8>,
    /// The part of the response's head that was not sent yet.
    pub(super) head: Vec<u8>,
    pub(super) body: Body,
    /// The connection ends after the response.
    pub(super) close: bool,
    /// The kernel may have bytes that were not taken, since a response was on its way.
    pub(super) unread: bool,
    /// The session that the response is for.
    pub(super) session: Option<u64>,
    /// When it is closed unless something happens, in seconds of the worker.
    pub(super) deadline_s: u32,
    /// Whether the present head's first bytes have come.
    pub(super) in_head: bool,
    /// When the request for the present response was read, milliseconds since 1970.
    pub(super) asked_ms: u64,
    /// Bytes of bodies sent since the worker last looked.
    pub(super) sent: u64,
}

/// What follows a head.
#[derive(Debug)]
pub(super) enum Body {
    /// Nothing.
    None,
    /// Bytes that many share, from one place to another.
    Shared(Arc<[u8]>, usize, usize),
    /// A segment, from one place to another.
    Piece(Arc<Piece>, usize, usize),
    /// A live stream.
    Live(Box<Cursor>),
    /// An application was asked whether this viewer may play, under this number; the request waits in the input.
    Asked(u64),
    /// The stream's first playlist is waited for, until this second.
    Playlist(Box<Waiting>),
}

/// A request that waits for the first playlist.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) stream: Box<str>,
    pub(super) keep_alive: bool,
    pub(super) head_only: bool,
    pub(super) until_s: u32,
    /// For the multivariant playlist: the URI of the session's own.
    pub(super) start: Option<String>,
}

/// How far sending came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// The response is complete.
    All,
    /// The kernel's buffer is full.
    Blocked,
    /// There is nothing to send at present.
    Idle,
    /// More could be sent, after the others' turn.
    Turn,
}

impl Connection {
    pub(super) fn new(socket: Tcp, tls: Option<Box<ServerConnection>>, peer: IpAddr, deadline_s: u32) -> Self {
        let tls = tls.map(|mut tls| {
            tls.set_buffer_limit(Some(TLS_BUFFER));
            tls
        });
        Self {
            socket,
            tls,
            peer,
            counted: Some(peer),
            is_trusted: false,
            awaits_proxy: false,
            asked: 0,
            asked_s: 0,
            input: Vec::new(),
            head: Vec::new(),
            body: Body::None,
            close: false,
            unread: true,
            session: None,
            deadline_s,
            in_head: true,
            asked_ms: 0,
            sent: 0,
        }
    }

    /// Whether a response is on its way.
    pub(super) fn is_busy(&self) -> bool {
        !self.head.is_empty() || !matches!(self.body, Body::None)
    }

    /// What the kernel says of it at present.
    pub(super) fn tcp_facts(&self) -> Option<TcpFacts> {
        TcpInfo::of(&self.socket).ok().map(|info| TcpFacts::of(&info))
    }

    /// Takes what has come; 0 at the end, `None` when there is nothing yet.
    pub(super) fn receive(&mut self, into: &mut [u8]) -> Result<Option<usize>, Broken> {
        let Some(tls) = &mut self.tls else { return Ok(self.socket.receive(into)?) };
        loop {
            match tls.reader().read(into) {
                Ok(got) => return Ok(Some(got)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Ok(Some(0)),
            }
            match tls.read_tls(&mut Wire(&self.socket)) {
                Ok(0) => return Ok(Some(0)),
                Ok(_) => {
                    let state = tls.process_new_packets();
                    flush(tls, &self.socket)?;
                    state?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The connection's own bytes begin with `bytes`, which came with a PROXY header.
    pub(super) fn begin(&mut self, bytes: Vec<u8>) -> Result<(), Broken> {
        let Some(tls) = &mut self.tls else {
            self.input = bytes;
            return Ok(());
        };
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            tls.read_tls(&mut rest)?;
            let state = tls.process_new_packets();
            flush(tls, &self.socket)?;
            state?;
        }
        Ok(())
    }

    /// Counts a request; whether there are no more than `most` in this second.
    pub(super) const fn may_ask(&mut self, now_s: u32, most: u32) -> bool {
        if self.asked_s != now_s {
            (self.asked, self.asked_s) = (0, now_s);
        }
        self.asked += 1;
        self.asked <= most
    }

    /// Sends of `parts` what there is room for; `None` when there is none.
    fn send(&mut self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        let Some(tls) = &mut self.tls else { return Ok(self.socket.send_parts(parts)?) };
        if !flush(tls, &self.socket)? {
            return Ok(None);
        }
        let taken = tls.writer().write_vectored(parts)?;
        flush(tls, &self.socket)?;
        Ok((taken > 0).then_some(taken))
    }

    /// Sends what is encrypted already.
    pub(super) fn flush(&mut self) -> Result<bool, Broken> {
        self.tls.as_mut().map_or(Ok(true), |tls| flush(tls, &self.socket))
    }

    /// Sends as much of the response as the kernel takes. `held` are the blocks of a live body's stream;
    /// `pipe` is the worker's.
    pub(super) fn advance(
        &mut self,
        held: Option<&VecDeque<Arc<Block>>>,
        pipe: &mut SplicePipe,
    ) -> Result<Sent, Broken> {
        if !self.head.is_empty() && !self.send_head()? {
            return Ok(Sent::Blocked);
        }
        match std::mem::replace(&mut self.body, Body::None) {
            Body::None => Ok(Sent::All),
            Body::Shared(bytes, mut at, end) => {
                while at < end {
                    let Some(sent) = self.send(&[IoSlice::new(&bytes[at..end])])? else {
                        self.body = Body::Shared(bytes, at, end);
                        return Ok(Sent::Blocked);
                    };
                    at += sent;
                    self.sent += sent as u64;
                }
                Ok(Sent::All)
            }
            Body::Piece(piece, at, end) => self.send_piece(piece, at, end, pipe),
            Body::Live(mut cursor) => {
                let state = held.map_or(Ok(Sent::Idle), |held| self.send_live(&mut cursor, held));
                self.body = Body::Live(cursor);
                state
            }
            waiting @ (Body::Playlist(_) | Body::Asked(_)) => {
                self.body = waiting;
                Ok(Sent::Idle)
            }
        }
    }

    /// The head, and the beginning of the body in the same packet.
    fn send_head(&mut self) -> Result<bool, Broken> {
        if self.tls.is_none() && matches!(self.body, Body::Piece(..)) {
            self.socket.cork(true)?;
        }
        while !self.head.is_empty() {
            let head = std::mem::take(&mut self.head);
            let (shared, range) = match &self.body {
                Body::Shared(bytes, at, end) => (Some(Arc::clone(bytes)), *at..*end),
                _ => (None, 0..0),
            };
            let tail = shared.as_deref().map_or(&[][..], |bytes| &bytes[range]);
            let sent = self.send(&[IoSlice::new(&head), IoSlice::new(tail)])?;
            let sent = sent.unwrap_or(0);
            if sent < head.len() {
                self.head = head;
                self.head.drain(..sent);
                if sent == 0 {
                    return Ok(false);
                }
            } else if let Body::Shared(_, at, _) = &mut self.body {
                *at += sent - head.len();
                self.sent += (sent - head.len()) as u64;
            }
        }
        Ok(true)
    }

    fn send_piece(
        &mut self,
        piece: Arc<Piece>,
        mut at: usize,
        end: usize,
        pipe: &mut SplicePipe,
    ) -> Result<Sent, Broken> {
        let turn = (at + TURN).min(end);
        let mut share = FIRST_SHARE;
        while at < turn {
            let sent = if self.tls.is_none() {
                let until = (at + share).min(turn);
                pipe.send(&self.socket, &piece.segment, at..until)?
            } else {
                let until = (at + TLS_BUFFER).min(turn);
                self.send(&[IoSlice::new(&piece.segment[at..until])])?
            };
            let Some(sent) = sent else {
                self.body = Body::Piece(piece, at, end);
                return Ok(Sent::Blocked);
            };
            at += sent;
            share = TURN;
            self.sent += sent as u64;
        }
        if at < end {
            self.body = Body::Piece(piece, at, end);
            return Ok(Sent::Turn);
        }
        if self.tls.is_none() {
            self.socket.cork(false)?;
        }
        Ok(Sent::All)
    }

    fn send_live(&mut self, cursor: &mut Cursor, held: &VecDeque<Arc<Block>>) -> Result<Sent, Broken> {
        while cursor.place(held) {
            let mut room = Room::default();
            let Some(sent) = self.send(cursor.gather(held, &mut room).as_ref())? else {
                return Ok(Sent::Blocked);
            };
            self.sent += sent as u64;
            cursor.moved(sent, held);
        }
        Ok(Sent::Idle)
    }
}

/// Sends what is encrypted; whether all of it.
fn flush(tls: &mut ServerConnection, socket: &Tcp) -> Result<bool, Broken> {
    while tls.wants_write() {
        match tls.write_tls(&mut Wire(socket)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// A connection that is broken. The cause is the peer's or the path's, and is not logged.
#[derive(Debug)]
pub(super) struct Broken;

impl From<HostError> for Broken {
    fn from(_: HostError) -> Self {
        Self
    }
}

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl From<rustls::Error> for Broken {
    fn from(_: rustls::Error) -> Self {
        Self
    }
}

/// A socket as TLS reads and writes it.
struct Wire<'a>(&'a Tcp);

impl Read for Wire<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.receive(into).map_err(|error| error.source)?.ok_or(io::ErrorKind::WouldBlock.into())
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(from)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.send_parts(parts).map_err(|error| error.source)?.ok_or(io::ErrorKind::WouldBlock.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
