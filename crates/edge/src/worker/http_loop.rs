//! The loop of a connection: reads requests, answers them, sends responses.

use super::chunked::{Coding, LAST_CHUNK};
use super::connection::{Body, Broken, Sent};
use super::cursor::Cursor;
use super::denied::Denied;
use super::router::{Answer, Asker, Local};
use super::{Worker, seconds};
use crate::hooks;
use crate::http::{Method, Refusal, forwarded, parse};
use crate::playout::Fetched;
use crate::viewer::{Left, TcpFacts};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use thalweg_host::poll::Ready;
use thalweg_model::LogLevel;

impl Worker {
    pub(super) fn happened(&mut self, token: u64, event: Ready) {
        let Some(connection) = self.connections.get(token) else { return };
        if event.hung_up && connection.is_busy() {
            return self.close(token);
        }
        connection.unread |= event.readable;
        if event.writable && (connection.is_busy() || connection.flush().is_err()) {
            self.advance(token);
        }
        self.read(token);
    }

    /// Reads and answers requests while there are some; each answer is sent at once.
    pub(super) fn read(&mut self, token: u64) {
        if !self.is_introduced(token) {
            return;
        }
        loop {
            let Some(connection) = self.connections.get(token) else { return };
            match &connection.body {
                // During a live response only the connection's end matters. Requests behind one that waits are answered after it, in their
                // order (RFC 9112 §9.3.2).
                Body::Live(_) | Body::Playlist(_) => {
                    let is_waiting = matches!(connection.body, Body::Playlist(_));
                    if !connection.unread || is_waiting && connection.input.len() >= self.limits.head_bytes {
                        return;
                    }
                    match connection.receive(&mut self.scratch) {
                        Ok(Some(got)) if got > 0 => {
                            if is_waiting {
                                connection.input.extend_from_slice(&self.scratch[..got]);
                            }
                            continue;
                        }
                        Ok(None) => connection.unread = false,
                        _ => self.close(token),
                    }
                    return;
                }
                _ if connection.is_busy() => return,
                _ => {}
            }
            if !connection.input.is_empty() {
                let input = std::mem::take(&mut connection.input);
                match self.answer(token, &input) {
                    Some(0) => {
                        if let Some(connection) = self.connections.get(token) {
                            connection.input = input;
                        }
                    }
                    Some(used) => {
                        if let Some(connection) = self.connections.get(token) {
                            connection.input = input[used..].to_vec();
                        }
                        continue;
                    }
                    None => return,
                }
            }
            let Some(connection) = self.connections.get(token) else { return };
            if !connection.unread {
                return;
            }
            let mut scratch = std::mem::take(&mut self.scratch);
            let got = connection.receive(&mut scratch);
            self.scratch = scratch;
            match got {
                Ok(None) => {
                    connection.unread = false;
                    return;
                }
                Ok(Some(got)) if got > 0 => {
                    if !std::mem::replace(&mut connection.in_head, true) {
                        connection.deadline_s =
                            self.router.now_s + seconds(self.router.config.value().limits.head_time);
                    }
                    if !connection.input.is_empty() {
                        connection.input.extend_from_slice(&self.scratch[..got]);
                        continue;
                    }
                    // The common case: a whole request and nothing else, answered from where it was read to.
                    let scratch = std::mem::take(&mut self.scratch);
                    let used = self.answer(token, &scratch[..got]);
                    if let (Some(used), Some(connection)) = (used, self.connections.get(token))
                        && used < got
                    {
                        connection.input = scratch[used..got].to_vec();
                    }
                    self.scratch = scratch;
                    if used.is_none() {
                        return;
                    }
                }
                _ => return self.close(token),
            }
        }
    }

    /// Answers the first request in `bytes`. Returns its length, 0 while it is incomplete, `None` when the connection closes.
    fn answer(&mut self, token: u64, bytes: &[u8]) -> Option<usize> {
        let connection = self.connections.get(token)?;
        self.head.clear();
        let (answer, used) = match parse(bytes, &self.limits) {
            Ok(None) => return Some(0),
            Ok(Some((mut request, used))) => {
                // HTTP/1.0 keeps a connection only if the answer says so, too; none does. Source: RFC 9112 §9.3, §C.2.2.
                request.keep_alive &= request.is_http_1_1;
                let config = self.router.config.value();
                let forwarded = request.forwarded_for.filter(|_| connection.is_trusted);
                let client = forwarded.and_then(|field| forwarded::client(field, &config.trusted_proxies));
                let address = client.unwrap_or(connection.peer);
                let asker = Asker { address, is_tls: connection.tls.is_some(), token };
                // A request that an application was asked about was counted before.
                let is_again = self.router.settled.is_some();
                let may_ask = is_again || connection.may_ask(self.router.now_s, config.limits.request_rate);
                let mut answer = match &mut self.api {
                    _ if !may_ask => {
                        let fields = || vec![("address", address.to_string().into())];
                        self.shared.log.event(LogLevel::Warn, "request-rate", fields);
                        let head_only = request.method == Method::Head;
                        self.router.refuse(Denied::RATE, true, head_only, &mut self.head);
                        Answer { body: Body::None, close: true, session: None }
                    }
                    Some(api) => {
                        let close = !request.keep_alive;
                        let body = api.respond(&request, &self.shared, &mut self.head);
                        let end = body.len();
                        Answer { body: Body::Shared(body, 0, end), close, session: None }
                    }
                    None => self.router.respond(&request, asker, &mut self.head),
                };
                if let Body::Asked(_) = answer.body {
                    // The request stays in the input until the application has answered.
                    connection.body = answer.body;
                    connection.deadline_s =
                        self.router.now_s + seconds(self.router.config.value().webhooks.patience()) + 1;
                    return Some(0);
                }
                self.shared.loads[self.number].requests.fetch_add(1, Ordering::Relaxed);
                answer.close |= self.drain_until_s.is_some();
                (answer, used)
            }
            Err(refusal) => (self.refused(refusal), bytes.len()),
        };
        let connection = self.connections.get(token)?;
        connection.body = answer.body;
        connection.asked_ms = self.router.now_ms;
        connection.close = answer.close;
        connection.session = answer.session;
        connection.in_head = false;
        connection.head.clear();
        connection.head.extend_from_slice(&self.head);
        connection.deadline_s = self.router.now_s + seconds(self.router.config.value().limits.write_stall);
        let will_close = answer.close;
        self.advance(token);
        match self.connections.get(token) {
            Some(connection) if !will_close || connection.is_busy() => Some(used),
            _ => None,
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Answer {
        self.router.refuse(Denied(refusal.status(), refusal.text()), true, false, &mut self.head);
        Answer { body: Body::None, close: true, session: None }
    }

    /// Sends as much of the response as the kernel takes.
    pub(super) fn advance(&mut self, token: u64) {
        let Some(connection) = self.connections.get(token) else { return };
        let local = match &connection.body {
            Body::Live(cursor) => self.router.locals.get(&cursor.stream),
            _ => None,
        };
        let piece = match &connection.body {
            Body::Piece(piece, _, end) => Some((piece.duration_ms, piece.published, *end == piece.segment.len())),
            _ => None,
        };
        let is_live = matches!(connection.body, Body::Live(_));
        let was_busy = connection.is_busy();
        let state = connection.advance(local.map(|local| &local.blocks), &mut self.pipe);
        let sent = std::mem::take(&mut connection.sent);
        let limits = &self.router.config.value().limits;
        let (now_s, now_ms) = (self.router.now_s, self.router.now_ms);
        if sent > 0 {
            let patience = if is_live { self.router.config.value().flv.stall } else { limits.write_stall };
            connection.deadline_s = now_s + seconds(patience);
            self.shared.loads[self.number].bytes.fetch_add(sent, Ordering::Relaxed);
            if let Some(session) = connection.session {
                self.router.stats.count(session, now_ms, |update| update.bytes += sent);
                if is_live {
                    self.router.stats.first_media(session, now_ms);
                }
            }
        }
        match state {
            Err(Broken) => self.close(token),
            Ok(Sent::Turn) => self.again.push(token),
            Ok(Sent::Blocked) => {}
            Ok(Sent::Idle) if is_live => {
                connection.deadline_s = u32::MAX;
                let is_over = |local: &Local| local.blocks.is_empty() && local.stream.flv.is_over();
                if local.is_none_or(is_over) {
                    self.end_live(token, Left::Over);
                }
            }
            Ok(Sent::Idle) => {}
            Ok(Sent::All) if !was_busy => {}
            Ok(Sent::All) => {
                if let (Some((duration_ms, published, is_whole)), Some(session)) = (piece, connection.session) {
                    let published_ms = now_ms.saturating_sub(published.elapsed().as_millis() as u64);
                    let asked_ms = connection.asked_ms;
                    let fetched = Fetched { asked_ms, done_ms: now_ms, published_ms, duration_ms };
                    let fetched = is_whole.then_some(fetched);
                    self.router.stats.media(session, now_ms, connection.tcp_facts(), fetched);
                }
                connection.head = Vec::new();
                connection.session = None;
                if connection.close {
                    return self.finish(token);
                }
                connection.deadline_s = now_s + seconds(limits.keep_alive);
            }
        }
    }

    /// Closes a connection whose last response is complete; the kernel still sends what it holds.
    pub(super) fn finish(&mut self, token: u64) {
        self.finish_viewer(token, Left::Closed);
    }

    fn finish_viewer(&mut self, token: u64, left: Left) {
        if let Some(connection) = self.connections.get(token)
            && let Some(tls) = &mut connection.tls
        {
            tls.send_close_notify();
            let _ = connection.flush();
        }
        self.close_viewer(token, left);
    }

    pub(super) fn close(&mut self, token: u64) {
        self.close_viewer(token, Left::Closed);
    }

    /// Closes a connection; if a live response is on its way, its viewer has left for this reason.
    pub(super) fn close_viewer(&mut self, token: u64, left: Left) {
        let Some(connection) = self.connections.remove(token) else { return };
        let load = &self.shared.loads[self.number];
        load.connections.fetch_sub(1, Ordering::Relaxed);
        self.shared.connections.leave(connection.counted);
        match &connection.body {
            Body::Live(cursor) => {
                self.viewer_left(token, cursor, connection.session, connection.tcp_facts(), left);
            }
            Body::Playlist(waiting) => self.router.depart(&waiting.stream, token),
            _ => {}
        }
    }

    /// Ends a live response: with its last chunk where that can follow what was sent, otherwise by closing the connection.
    pub(super) fn end_live(&mut self, token: u64, left: Left) {
        let Some(connection) = self.connections.get(token) else { return };
        let can_end = |cursor: &Cursor| cursor.coding() == Coding::Chunked && cursor.is_between_chunks();
        match std::mem::replace(&mut connection.body, Body::None) {
            Body::Live(cursor) if connection.head.is_empty() && can_end(&cursor) => {
                let (session, facts) = (connection.session.take(), connection.tcp_facts());
                connection.body = Body::Shared(Arc::from(LAST_CHUNK), 0, LAST_CHUNK.len());
                connection.deadline_s = self.router.now_s + seconds(self.router.config.value().limits.write_stall);
                self.viewer_left(token, &cursor, session, facts, left);
                self.advance(token);
            }
            body => {
                connection.body = body;
                self.finish_viewer(token, left);
            }
        }
    }

    /// The viewer of a live response has gone.
    fn viewer_left(&mut self, token: u64, cursor: &Cursor, session: Option<u64>, facts: Option<TcpFacts>, left: Left) {
        self.router.depart(&cursor.stream, token);
        let Some(session) = session else { return };
        self.router.stats.count(session, self.router.now_ms, |update| {
            (update.tcp, update.skips, update.left) = (facts.or(update.tcp), cursor.skips, Some(left));
        });
    }

    /// Answers a request that an application was asked about.
    pub(super) fn settle(&mut self, answer: hooks::Answer) {
        let hooks::Answer { waiter, verdict } = answer;
        self.router.settle(waiter.number, verdict);
        let Some(connection) = self.connections.get(waiter.token) else { return };
        if matches!(connection.body, Body::Asked(number) if number == waiter.number) {
            connection.body = Body::None;
            self.router.settled = Some((waiter.number, verdict));
            self.read(waiter.token);
            self.router.settled = None;
        }
    }

    /// Answers a request for a first playlist once there is one, or once it has waited too long.
    pub(super) fn first_playlist(&mut self, token: u64) {
        let now_s = self.router.now_s;
        let Some(connection) = self.connections.get(token) else { return };
        let Body::Playlist(waiting) = &connection.body else { return };
        let Some(local) = self.router.locals.get(&waiting.stream) else { return self.close(token) };
        let hls = Arc::clone(local.hls.value());
        if hls.playlist.is_none() && now_s < waiting.until_s && !local.stream.flv.is_over() {
            return;
        }
        let Body::Playlist(waiting) = std::mem::replace(&mut connection.body, Body::None) else { return };
        let session = connection.session;
        self.head.clear();
        let answer = match hls.playlist {
            Some(_) => self.router.playlist(&hls, &waiting, None, session, &mut self.head),
            None => {
                let close = !waiting.keep_alive;
                self.router.refuse(Denied::NO_SEGMENT, close, waiting.head_only, &mut self.head);
                Answer { body: Body::None, close: !waiting.keep_alive, session }
            }
        };
        self.router.depart(&waiting.stream, token);
        let Some(connection) = self.connections.get(token) else { return };
        connection.body = answer.body;
        connection.head.extend_from_slice(&self.head);
        connection.deadline_s = now_s + seconds(self.router.config.value().limits.write_stall);
        self.advance(token);
        self.read(token);
    }
}
