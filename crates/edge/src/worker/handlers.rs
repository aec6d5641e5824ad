//! Handlers of viewers' requests: the live stream as FLV, the multivariant playlist, a session's playlist and segments.

use super::chunked::Coding;
use super::connection::{Body, Waiting};
use super::cursor::Cursor;
use super::denied::Denied;
use super::router::{Admitted, Answer, Asker, Router, who};
use crate::http::{CORS, Head, Method, Request, Status, percent_encode};
use crate::token::{Admission, Session, decode_subject};
use crate::viewer::Protocol;
use std::sync::Arc;

/// How long a first playlist is waited for, in seconds.
const PLAYLIST_WAIT_S: u32 = 15;

impl Router {
    /// A live stream as FLV.
    pub(super) fn flv(
        &mut self,
        key: &str,
        request: &Request<'_>,
        asker: Asker,
        head: &mut Vec<u8>,
    ) -> Result<Answer, Denied> {
        let (admission, number) = match self.admit(key, Protocol::Flv, request, asker)? {
            Admitted::In(admission, number) => (admission, number),
            Admitted::Asked(answer) => return Ok(answer),
        };
        let now_ms = self.now_ms;
        let worker = self.number;
        let local = self.local(key).ok_or(Denied::STREAM)?;
        if local.stream.flv.is_over() {
            return Err(Denied::STREAM);
        }
        let is_head = request.method == Method::Head;
        if !is_head {
            self.enter(number, None, who(key, Protocol::Flv, request, asker, Some(admission.subject), now_ms))?;
            self.stats.count(number, now_ms, |update| update.requests += 1);
            let local = self.local(key).ok_or(Denied::STREAM)?;
            local.stream.attend(worker);
            local.attending.push(asker.token);
            local.stream.flv.copy_into(&mut local.blocks);
        }
        let (coding, field): (_, &[u8]) = match request.is_http_1_1 {
            true => (Coding::Chunked, b"Transfer-Encoding: chunked\r\n"),
            false => (Coding::Identity, b""),
        };
        Head::begin(head, Status::Ok, &self.date)
            .raw(b"Content-Type: video/x-flv\r\nCache-Control: no-store\r\nConnection: close\r\n")
            .raw(field)
            .raw(CORS)
            .end();
        let cursor = Cursor::new(key, self.config.value().flv.catch_up, coding);
        let body = if is_head { Body::None } else { Body::Live(Box::new(cursor)) };
        Ok(Answer { body, close: true, session: (!is_head).then_some(number) })
    }

    /// The multivariant playlist, which gives each viewer a session. A viewer is counted when it uses the session.
    pub(super) fn start(
        &mut self,
        key: &str,
        name: &str,
        request: &Request<'_>,
        asker: Asker,
        head: &mut Vec<u8>,
    ) -> Result<Answer, Denied> {
        let (admission, number) = match self.admit(key, Protocol::Hls, request, asker)? {
            Admitted::In(admission, number) => (admission, number),
            Admitted::Asked(answer) => return Ok(answer),
        };
        let Admission { subject, address } = admission;
        let session = self.keys.session(number, key, address, &subject, self.now_ms / 1_000).id(&subject);
        let until_s = self.now_s + PLAYLIST_WAIT_S;
        let worker = self.number;
        let local = self.local(key).ok_or(Denied::STREAM)?;
        local.hls.refresh(&local.stream.hls);
        let hls = Arc::clone(local.hls.value());
        let uri = format!("{}/{session}/index.m3u8", percent_encode(name));
        let waiting = Waiting {
            stream: key.into(),
            keep_alive: request.keep_alive,
            head_only: request.method == Method::Head,
            until_s,
            start: Some(uri),
        };
        let is_waiting = hls.playlist.is_none();
        if is_waiting {
            local.stream.attend(worker);
            local.attending.push(asker.token);
        }
        if is_waiting {
            let body = Body::Playlist(Box::new(waiting));
            return Ok(Answer { body, close: !request.keep_alive, session: None });
        }
        Ok(self.playlist(&hls, &waiting, None, None, head))
    }

    /// A session's playlist, or one of its segments.
    pub(super) fn hls(
        &mut self,
        key: &str,
        (session, subject): (Session, &str),
        file: &str,
        request: &Request<'_>,
        asker: Asker,
        head: &mut Vec<u8>,
    ) -> Result<Answer, Denied> {
        let (number, now_ms) = (session.number, self.now_ms);
        if self.banned.contains_key(&number) {
            return Err(Denied::KICKED);
        }
        if !self.stats.knows((&session, subject), key, asker.address) {
            let decoded = decode_subject(subject).ok_or(Denied::SESSION)?;
            if !self.keys.is_ours(&session, key, asker.address, &decoded, now_ms / 1_000) {
                return Err(Denied::SESSION);
            }
            self.local(key).ok_or(Denied::STREAM)?;
            let who = who(key, Protocol::Hls, request, asker, Some(decoded), self.began_ms(number));
            self.enter(number, Some((session, subject)), who)?;
        }
        let now_s = self.now_s;
        let worker = self.number;
        let local = self.local(key).ok_or(Denied::STREAM)?;
        local.hls.refresh(&local.stream.hls);
        if file == "index.m3u8" {
            let hls = Arc::clone(local.hls.value());
            let waiting = |start| Waiting {
                stream: if hls.playlist.is_none() { key.into() } else { Box::default() },
                keep_alive: request.keep_alive,
                head_only: request.method == Method::Head,
                until_s: now_s + PLAYLIST_WAIT_S,
                start,
            };
            if hls.playlist.is_none() {
                local.stream.attend(worker);
                local.attending.push(asker.token);
                let body = Body::Playlist(Box::new(waiting(None)));
                return Ok(Answer { body, close: !request.keep_alive, session: Some(number) });
            }
            self.stats.count(number, now_ms, |update| update.requests += 1);
            return Ok(self.playlist(&hls, &waiting(None), request.if_none_match, Some(number), head));
        }
        let piece = local.hls.value().piece(file).cloned().ok_or(Denied::SEGMENT)?;
        self.stats.count(number, now_ms, |update| update.requests += 1);
        Ok(self.piece(piece, request, number, head))
    }
}
