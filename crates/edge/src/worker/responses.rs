//! Heads of responses: a status alone, a playlist, a segment.

use super::connection::{Body, Waiting};
use super::denied::Denied;
use super::router::{Answer, Router};
use crate::http::{CORS, Head, Method, Range, Request, Selected, Status, matches_any};
use crate::hub::{CONTAINER, Hls, Piece};
use std::sync::Arc;
use thalweg_media::hls::write_multivariant;

impl Router {
    /// A response to a request that is not served.
    pub(super) fn plain(&self, denied: Denied, request: &Request<'_>, head: &mut Vec<u8>) -> Answer {
        self.refuse(denied, !request.keep_alive, request.method == Method::Head, head);
        Answer { body: Body::None, close: !request.keep_alive, session: None }
    }

    /// A response to a request that is not served, all of it in `head`; the sentence is left out for `HEAD`.
    pub(super) fn refuse(&self, denied: Denied, close: bool, head_only: bool, head: &mut Vec<u8>) {
        let Denied(status, text) = denied;
        let mut fields = Head::begin(head, status, &self.date).raw(CORS).field("Cache-Control", "no-store");
        if status == Status::MethodNotAllowed {
            fields = fields.field("Allow", "GET, HEAD, OPTIONS");
        }
        if matches!(status, Status::ServiceUnavailable | Status::TooManyRequests) {
            fields = fields.field("Retry-After", "1");
        }
        if close {
            fields = fields.field("Connection", "close");
        }
        fields.field("Content-Type", "text/plain; charset=utf-8").length(text.len() as u64 + 1).end();
        if !head_only {
            head.extend_from_slice(text.as_bytes());
            head.push(b'\n');
        }
    }

    /// The session's playlist, or the multivariant one.
    pub(super) fn playlist(
        &self,
        hls: &Hls,
        waiting: &Waiting,
        has: Option<&str>,
        session: Option<u64>,
        head: &mut Vec<u8>,
    ) -> Answer {
        let close = !waiting.keep_alive;
        let connection: &[u8] = if close { b"Connection: close\r\n" } else { b"" };
        if let Some(uri) = &waiting.start {
            let mut text = String::new();
            write_multivariant(&hls.attributes, uri, &mut text);
            Head::begin(head, Status::Ok, &self.date)
                .field("Content-Type", "application/vnd.apple.mpegurl")
                .length(text.len() as u64)
                .raw(b"Cache-Control: no-store\r\n")
                .raw(connection)
                .raw(CORS)
                .end();
            if !waiting.head_only {
                head.extend_from_slice(text.as_bytes());
            }
            return Answer { body: Body::None, close, session };
        }
        let Some(playlist) = &hls.playlist else {
            self.refuse(Denied::NO_SEGMENT, close, waiting.head_only, head);
            return Answer { body: Body::None, close, session };
        };
        if has.is_some_and(|field| matches_any(field, &playlist.etag)) {
            Head::begin(head, Status::NotModified, &self.date)
                .field("ETag", &playlist.etag)
                .raw(connection)
                .raw(CORS)
                .end();
            return Answer { body: Body::None, close, session };
        }
        // The rest of the head is the same for all viewers and precedes the text.
        let _ = Head::begin(head, Status::Ok, &self.date).raw(connection);
        let end = if waiting.head_only { playlist.text_at } else { playlist.response.len() };
        Answer { body: Body::Shared(Arc::clone(&playlist.response), 0, end), close, session }
    }

    /// A segment, or the requested range of it.
    pub(super) fn piece(&self, piece: Arc<Piece>, request: &Request<'_>, session: u64, head: &mut Vec<u8>) -> Answer {
        let len = piece.segment.len() as u64;
        let close = !request.keep_alive;
        let connection: &[u8] = if close { b"Connection: close\r\n" } else { b"" };
        let answer = |body| Answer { body, close, session: Some(session) };
        if request.if_none_match.is_some_and(|field| matches_any(field, &piece.etag)) {
            Head::begin(head, Status::NotModified, &self.date)
                .field("ETag", &piece.etag)
                .raw(connection)
                .raw(CORS)
                .end();
            return answer(Body::None);
        }
        // Source: RFC 9110 §13.1.5: a date, or another tag, makes the range void.
        let is_current = request.if_range.is_none_or(|tag| tag.trim() == piece.etag);
        let selected =
            request.range.filter(|_| is_current).and_then(Range::parse).map_or(Selected::Whole, |r| r.of(len));
        let (status, from, to) = match selected {
            Selected::Whole => (Status::Ok, 0, len),
            Selected::Part(from, to) => (Status::PartialContent, from, to),
            Selected::Outside => {
                Head::begin(head, Status::RangeNotSatisfiable, &self.date)
                    .content_range(None, len)
                    .length(0)
                    .raw(connection)
                    .raw(CORS)
                    .end();
                return answer(Body::None);
            }
        };
        let mut fields = Head::begin(head, status, &self.date)
            .field("Content-Type", CONTAINER.media_type)
            .raw(b"Cache-Control: public, max-age=60, immutable\r\nAccept-Ranges: bytes\r\n")
            .field("ETag", &piece.etag)
            .length(to - from)
            .raw(connection)
            .raw(CORS);
        if status == Status::PartialContent {
            fields = fields.content_range(Some((from, to)), len);
        }
        fields.end();
        answer(match request.method {
            Method::Head => Body::None,
            _ => Body::Piece(piece, from as usize, to as usize),
        })
    }
}
