//! One player: its connection, what it asked for, and when it has to do something again.

use crate::connection::{Connection, Got};
use crate::flv::Flv;
use crate::hls::Hls;
use crate::plan::{Kind, Plan, Reading, address};
use crate::request::{Next, What};
use crate::response::Response;
use crate::tally::Tally;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Redirections that are followed in a row.
const MOST_MOVES: u32 = 5;
/// A slow player reads as often.
const SIP: Duration = Duration::from_millis(100);
/// The receive buffer of those that do not read: what they hold is to be the server's.
const SMALL_BUFFER: usize = 4096;
/// A player whose stream broke comes back.
const AGAIN: Duration = Duration::from_secs(1);

/// What all players of a thread share.
pub(crate) struct Shared<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) tls: &'a Arc<ClientConfig>,
    pub(crate) tally: &'a mut Tally,
    pub(crate) buffer: &'a mut [u8],
    /// Registers a new connection of this player.
    pub(crate) watch: &'a mut dyn FnMut(&Connection) -> io::Result<()>,
}

#[derive(Debug)]
enum Playing {
    Hls(Box<Hls>),
    Flv(Box<Flv>),
}

/// A player.
#[derive(Debug)]
pub(crate) struct Player {
    number: u32,
    reading: Reading,
    playing: Playing,
    connection: Option<Connection>,
    /// Where the connection leads.
    address: Option<(String, SocketAddr)>,
    response: Response,
    /// What was asked for, and is being answered or waits to be asked for.
    asked: (Url, What, Duration),
    /// The request was sent, and may be sent again on another connection where this one had been idle.
    is_asked: bool,
    was_used: bool,
    moves: u32,
    is_over: bool,
}

impl Player {
    pub(crate) fn new(plan: &Plan, number: u32) -> Self {
        let playing = match plan.kind {
            Kind::Hls => Playing::Hls(Box::new(Hls::new(plan.url.clone(), plan.buffer))),
            Kind::Flv => Playing::Flv(Box::new(Flv::new(plan.buffer))),
        };
        Self {
            number,
            reading: plan.reading_of(number),
            playing,
            connection: None,
            address: None,
            response: Response::new(),
            asked: (plan.url.clone(), What::Playlist, Duration::ZERO),
            is_asked: false,
            was_used: false,
            moves: 0,
            is_over: false,
        }
    }

    /// When it has to be woken next, after its start; `None` when only its connection wakes it.
    pub(crate) fn due(&self, now: Duration) -> Option<Duration> {
        if self.is_over {
            None
        } else if !self.is_asked {
            Some(self.asked.2)
        } else if self.is_sipping() {
            Some(now + SIP)
        } else {
            None
        }
    }

    /// It is time: asks for what is due, or reads a sip.
    pub(crate) fn wake(&mut self, now: Duration, shared: &mut Shared<'_>) {
        if self.is_over {
        } else if !self.is_asked && self.asked.2 <= now {
            if let Err(error) = self.ask(shared) {
                self.broke(&error, now, shared);
            }
        } else if self.is_asked && self.is_sipping() {
            let sip = (f64::from(shared.plan.slow_bytes) * SIP.as_secs_f64()).ceil().max(1.0) as usize;
            self.read(sip, now, shared);
        }
    }

    /// Its connection may be written or read.
    pub(crate) fn ready(&mut self, now: Duration, shared: &mut Shared<'_>) {
        let Some(connection) = &mut self.connection else { return };
        if let Err(error) = connection.flush() {
            return self.broke(&error.to_string(), now, shared);
        }
        if !self.is_sipping() {
            self.read(usize::MAX, now, shared);
        }
    }

    /// The load is over: what is open is counted.
    pub(crate) fn end(&self, now: Duration, tally: &mut Tally) {
        let (playout, has_picture) = match &self.playing {
            Playing::Hls(hls) => (hls.playout(), hls.has_picture()),
            Playing::Flv(flv) => (flv.playout(), flv.has_picture()),
        };
        if let (Playing::Flv(flv), Reading::Fast) = (&self.playing, self.reading) {
            flv.end(tally);
        }
        // Those that do not read would stall whatever the server does.
        if has_picture && self.reading == Reading::Fast {
            let (stalls, stalled) = playout.stalls(now);
            tally.stalls += u64::from(stalls);
            tally.stalled_s += stalled.as_secs_f64();
            tally.watched_s += now.as_secs_f64();
        }
    }

    /// Media is read in sips, or not at all.
    fn is_sipping(&self) -> bool {
        let is_media = match &self.playing {
            Playing::Hls(hls) => {
                matches!(self.asked.1, What::Segment(..)) && (self.reading == Reading::Slow || hls.has_picture())
            }
            Playing::Flv(flv) => self.reading == Reading::Slow || flv.has_picture(),
        };
        is_media && self.reading != Reading::Fast
    }

    fn ask(&mut self, shared: &mut Shared<'_>) -> Result<(), String> {
        let (url, ..) = &self.asked;
        let origin = url.origin().ascii_serialization();
        if self.address.as_ref().is_none_or(|(known, _)| *known != origin) {
            self.address = Some((origin, address(url).map_err(|error| error.to_string())?));
            self.connection = None;
        }
        let Some((_, to)) = self.address else { return Ok(()) };
        if self.connection.is_none() {
            let tls = if url.scheme() == "https" { Some(tls(url, shared.tls)?) } else { None };
            let rcvbuf = (self.reading != Reading::Fast).then_some(SMALL_BUFFER);
            let connection =
                Connection::open(shared.plan.source_of(self.number), to, tls, rcvbuf, shared.plan.fastopen)
                    .map_err(|error| format!("connect: {error}"))?;
            (shared.watch)(&connection).map_err(|error| error.to_string())?;
            shared.tally.connections += 1;
            self.connection = Some(connection);
            self.was_used = false;
        }
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let host = url.host_str().unwrap_or_default();
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let range = self.asked.1.range().filter(|&(_, len)| len > 0);
        let range = range.map(|(start, len)| format!("Range: bytes={start}-{}\r\n", start.saturating_add(len - 1)));
        let request = format!(
            "GET {}{query} HTTP/1.1\r\nHost: {host}{port}\r\nUser-Agent: thalweg-load/{}\r\nAccept: */*\r\n{}\r\n",
            url.path(),
            env!("CARGO_PKG_VERSION"),
            range.unwrap_or_default(),
        );
        self.response = Response::new();
        self.is_asked = true;
        if let Playing::Flv(flv) = &mut self.playing {
            flv.begin();
        }
        match &mut self.connection {
            Some(connection) => connection.ask(request.as_bytes()).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// Reads up to `most` bytes.
    fn read(&mut self, most: usize, now: Duration, shared: &mut Shared<'_>) {
        let mut left = most;
        while left > 0 && !self.is_over {
            // A stalled player takes no more, and does not notice an end either.
            if self.reading == Reading::Stalled && self.is_sipping() {
                return;
            }
            let Some(connection) = &mut self.connection else { return };
            let wanted = shared.buffer.len().min(left);
            match connection.read(&mut shared.buffer[..wanted]) {
                Ok(Got::Nothing) => return,
                Ok(Got::Bytes(count)) => {
                    left = left.saturating_sub(count);
                    if let Err(why) = self.took(count, now, shared) {
                        return self.broke(&why, now, shared);
                    }
                }
                Ok(Got::End) => return self.ended(now, shared),
                Err(error) => return self.broke(&error.to_string(), now, shared),
            }
        }
    }

    fn took(&mut self, count: usize, now: Duration, shared: &mut Shared<'_>) -> Result<(), String> {
        if !self.is_asked {
            return Err("bytes that nothing was asked for".to_owned());
        }
        let (what, playing, tally) = (self.asked.1, &mut self.playing, &mut *shared.tally);
        let mut refused = None;
        let before = self.response.head().map(|head| head.status);
        let mut status = before;
        let mut bodies: Vec<(usize, usize)> = Vec::new();
        let bytes = &shared.buffer[..count];
        let start = bytes.as_ptr() as usize;
        let taken = self.response.read(bytes, |body| bodies.push((body.as_ptr() as usize - start, body.len())));
        let taken = taken.map_err(|bad| bad.to_string())?;
        status = status.or_else(|| self.response.head().map(|head| head.status));
        for (at, length) in bodies {
            tally.bytes += length as u64;
            if status != Some(what.status()) || refused.is_some() {
                continue;
            }
            let body = &bytes[at..at + length];
            refused = match playing {
                Playing::Hls(hls) => hls.body(what, body, now, tally),
                Playing::Flv(flv) => flv.body(body, now, tally),
            }
            .err();
        }
        if let Some(why) = refused {
            return Err(why);
        }
        if status == Some(200) && what.range().is_some() {
            // The whole resource follows, which may be many times as large.
            return Err("a server that ignores Range".to_owned());
        }
        if self.response.is_over() {
            if taken < count {
                return Err("bytes after an answer's end".to_owned());
            }
            self.answered(now, shared)?;
        }
        Ok(())
    }

    /// The connection ended.
    fn ended(&mut self, now: Duration, shared: &mut Shared<'_>) {
        self.connection = None;
        if !self.is_asked {
            // An idle connection was closed: the next request opens another.
            return;
        }
        if self.was_used && self.response.is_unbegun() {
            // It was closed just as the request went out (RFC 9112 §9.5).
            self.is_asked = false;
            self.wake(now, shared);
            return;
        }
        let over = self.response.ended().map_err(|bad| bad.to_string()).and_then(|()| self.answered(now, shared));
        if let Err(why) = over {
            self.broke(&why, now, shared);
        }
    }

    /// An answer is whole.
    fn answered(&mut self, now: Duration, shared: &mut Shared<'_>) -> Result<(), String> {
        let Some(head) = self.response.head().cloned() else { return Ok(()) };
        shared.tally.answers += 1;
        self.was_used = true;
        self.is_asked = false;
        if head.closes {
            self.connection = None;
        }
        let (url, what, due) = self.asked.clone();
        if let (301 | 302 | 303 | 307 | 308, Some(location)) = (head.status, &head.location) {
            self.moves += 1;
            if self.moves > MOST_MOVES {
                return Err("too many redirections".to_owned());
            }
            let to = url.join(location).map_err(|_| "a redirection that cannot be read".to_owned())?;
            if let Playing::Hls(hls) = &mut self.playing {
                hls.moved(what, &to);
            }
            self.asked = (to, what, due);
            self.wake(now, shared);
            return Ok(());
        }
        self.moves = 0;
        if head.status != what.status() {
            return Err(format!("HTTP {}", head.status));
        }
        match &mut self.playing {
            Playing::Hls(hls) => {
                let next = hls.whole(what, due, now, shared.tally)?;
                self.follow(next, now, shared);
                Ok(())
            }
            Playing::Flv(_) => Err("a stream that ended".to_owned()),
        }
    }

    fn follow(&mut self, next: Next, now: Duration, shared: &mut Shared<'_>) {
        match next {
            Next::Ask { url, what, due } => {
                self.asked = (url, what, due);
                self.wake(now, shared);
            }
            Next::Over => {
                self.is_over = true;
                self.connection = None;
            }
        }
    }

    /// Something failed: it is counted, and tried again later.
    fn broke(&mut self, why: &str, now: Duration, shared: &mut Shared<'_>) {
        shared.tally.failed(why);
        self.connection = None;
        self.is_asked = false;
        self.moves = 0;
        let next = match &mut self.playing {
            Playing::Hls(hls) => hls.failed(self.asked.1, now),
            Playing::Flv(_) => Next::Ask { url: shared.plan.url.clone(), what: What::Playlist, due: now + AGAIN },
        };
        self.follow(next, now, shared);
    }
}

fn tls(url: &Url, config: &Arc<ClientConfig>) -> Result<ClientConnection, String> {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
    ClientConnection::new(Arc::clone(config), name).map_err(|error| error.to_string())
}
