//! Requests and their responses: who waited for whom, and for how long.
//!
//! HTTP/1 messages are recognized by their first lines. Everything else is divided by turns: the client's data after which the server answers.
//! Data of the server is an answer if it acknowledges all that was asked; what the client sends while a response is on its way is no turn.

use crate::event::packet::Packet;
use crate::observe::log_histogram::LogHistogram;
use crate::reset::Reset;
use std::collections::VecDeque;
use std::sync::Arc;
use thalweg_units::SeqNum;
use thalweg_wire::{Flags, Message, Request, Response, TlsRecords};

/// Requests kept of a connection, the slowest; at twice as many the others are given up. Bounds memory.
const KEPT_MAX: usize = 1_000;
/// Requests of which each has no answer yet; more extend the latest. Bounds memory.
const OPEN_MAX: usize = 64;
/// A client's Finished in TLS 1.3, with the change of cipher before it: a hash of 48 bytes at most, headers and tags (RFC 8446 §4.4.4).
const FINISHED_MAX: u32 = 80;
/// Session tickets that a server sends before its first response (RFC 8446 §4.6.1): OpenSSL sends two of about 250 bytes.
const TICKETS_MAX: u64 = 1_024;

/// What a packet is for the connection's TLS handshake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TlsState {
    /// The handshake goes on after it.
    pub(crate) is_handshake: bool,
    /// It ends the handshake.
    pub(crate) ends_handshake: bool,
    /// The handshake is over, and was one of TLS 1.3.
    pub(crate) is_1_3: bool,
}

/// A request and what answered it; times are in nanoseconds since the connection's first packet.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    /// From 1, in order of the requests.
    pub(crate) number: u64,
    /// Number of its first packet in the file.
    pub(crate) packet: u64,
    pub(crate) asked_at: u64,
    pub(crate) asked_until: u64,
    asked_end: SeqNum,
    pub(crate) first_byte: Option<u64>,
    pub(crate) last_byte: u64,
    pub(crate) bytes_up: u64,
    pub(crate) bytes_down: u64,
    pub(crate) status: Option<u16>,
    /// The message that has its head, and which of those it is.
    head: Option<(Arc<Message>, usize)>,
    may_begin_with_tickets: bool,
}

impl Exchange {
    /// The head of the request, if that is HTTP/1 and was captured.
    pub(crate) fn request(&self) -> Option<&Request> {
        let (message, place) = self.head.as_ref()?;
        match &**message {
            Message::Requests(all) => all.get(*place),
            _ => None,
        }
    }

    /// From the last byte of the request to the first of the response.
    pub(crate) fn wait(&self) -> Option<u64> {
        self.first_byte.map(|first| first.saturating_sub(self.asked_until))
    }
}

/// The requests of one connection.
#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    /// That whose response comes or came last.
    current: Option<Exchange>,
    asked: VecDeque<Exchange>,
    done: Vec<Exchange>,
    begun: u64,
    pub(crate) count: u64,
    pub(crate) unanswered: u64,
    /// Waits of those that are not kept.
    unkept: LogHistogram<5, 40>,
    /// After the last byte of each side.
    ends: [Option<SeqNum>; 2],
    /// A request of TLS 1.3 was seen, so session tickets come no more.
    had_tickets: bool,
}

impl Reset for RequestLog {
    fn reset(&mut self) {
        let Self { current, asked, done, begun, count, unanswered, unkept, ends, had_tickets } = self;
        (*current, *ends, *had_tickets) = (None, [None; 2], false);
        (*begun, *count, *unanswered) = (0, 0, 0);
        asked.reset();
        done.reset();
        if unkept.total > 0 {
            *unkept = LogHistogram::default();
        }
    }
}

impl RequestLog {
    /// Takes a data packet in.
    pub(crate) fn packet(&mut self, now: u64, packet: &Packet, tls: TlsState) {
        let side = packet.side();
        let end = packet.seq.add(packet.payload_len + u32::from(packet.flags.has(Flags::SYN)));
        if self.ends[side].is_some_and(|last| end.since(last) <= 0) {
            return;
        }
        self.ends[side] = Some(end);
        // What TLS sends by itself asks nothing and answers nothing.
        let is_control = !packet.records.is_empty() && !packet.records.has(TlsRecords::DATA);
        let is_finished = tls.ends_handshake && (side == 1 || packet.payload_len <= FINISHED_MAX);
        if is_control || is_finished || tls.is_handshake {
            return;
        }
        if side == 0 { self.client(now, packet, end, tls.is_1_3) } else { self.server(now, packet) }
    }

    fn client(&mut self, now: u64, packet: &Packet, end: SeqNum, is_tls_1_3: bool) {
        if let Some(current) =
            self.current.as_mut().filter(|current| current.status == Some(Response::SWITCHING_PROTOCOLS))
        {
            current.bytes_up += u64::from(packet.payload_len);
            return;
        }
        if let Some(message) = packet.message()
            && let Message::Requests(all) = &**message
        {
            for place in 0..all.len() {
                self.ask(now, packet, end, is_tls_1_3, Some((message.clone(), place)));
            }
            return;
        }
        if let Some(last) = self.asked.back_mut() {
            last.bytes_up += u64::from(packet.payload_len);
            (last.asked_until, last.asked_end) = (now, end);
        } else if self.ends[1].is_none_or(|sent| packet.ack.since(sent) >= 0) {
            self.ask(now, packet, end, is_tls_1_3, None);
        } else if let Some(current) = &mut self.current {
            current.bytes_up += u64::from(packet.payload_len);
        }
    }

    fn ask(&mut self, now: u64, packet: &Packet, end: SeqNum, is_tls_1_3: bool, head: Option<(Arc<Message>, usize)>) {
        // Of several in one packet the first has its bytes.
        let bytes_up =
            if head.as_ref().is_some_and(|(_, place)| *place > 0) { 0 } else { u64::from(packet.payload_len) };
        if self.asked.len() >= OPEN_MAX
            && let Some(last) = self.asked.back_mut()
        {
            last.bytes_up += bytes_up;
            return;
        }
        self.begun += 1;
        self.asked.push_back(Exchange {
            number: self.begun,
            packet: packet.number,
            asked_at: now,
            asked_until: now,
            asked_end: end,
            first_byte: None,
            last_byte: now,
            bytes_up,
            bytes_down: 0,
            status: None,
            head,
            may_begin_with_tickets: is_tls_1_3 && !self.had_tickets,
        });
        self.had_tickets |= is_tls_1_3;
    }

    fn server(&mut self, now: u64, packet: &Packet) {
        if let Some(Message::Responses(all)) = packet.message().map(|message| &**message) {
            let mut last = all.iter().filter(|response| response.is_final()).peekable();
            if last.peek().is_none() {
                return;
            }
            for response in last {
                self.answer(now);
                if let Some(current) = self.current.as_mut().filter(|current| current.status.is_none()) {
                    current.status = Some(response.status);
                }
            }
        } else if let Some(next) = self.asked.front() {
            let is_answer = packet.ack.since(next.asked_end) >= 0;
            let has_head = next.head.is_some();
            // The rest of a response of HTTP is no answer to the next request of a pipeline.
            let goes_on = has_head && self.current.as_ref().is_some_and(|current| current.status.is_some());
            if is_answer && !goes_on {
                self.answer(now);
            } else if let Some(current) = self.current.as_mut().filter(|_| !has_head) {
                // The response was on its way when the client sent this.
                current.bytes_up += next.bytes_up;
                self.asked.pop_front();
            }
        }
        let Some(current) = &mut self.current else { return };
        if current.may_begin_with_tickets && current.bytes_down <= TICKETS_MAX {
            current.first_byte = Some(now);
        }
        current.bytes_down += u64::from(packet.payload_len);
        current.last_byte = now;
    }

    /// The first byte of the next response.
    fn answer(&mut self, now: u64) {
        let Some(mut next) = self.asked.pop_front() else { return };
        next.first_byte = Some(now);
        let before = self.current.replace(next);
        self.finish_one(before);
    }

    fn finish_one(&mut self, one: Option<Exchange>) {
        let Some(one) = one else { return };
        self.count += 1;
        self.unanswered += u64::from(one.first_byte.is_none());
        self.done.push(one);
        if self.done.len() >= 2 * KEPT_MAX {
            self.keep_slowest();
        }
    }

    fn keep_slowest(&mut self) {
        self.done.select_nth_unstable_by_key(KEPT_MAX - 1, |one| std::cmp::Reverse(one.wait().unwrap_or(u64::MAX)));
        for wait in self.done.drain(KEPT_MAX..).filter_map(|one| one.wait()) {
            self.unkept.add(wait, 1);
        }
    }

    /// Ends the last response. Requests of HTTP that nothing answered are kept; data that nothing answered is no request.
    pub(crate) fn finish(&mut self) {
        let last = self.current.take();
        self.finish_one(last);
        while let Some(one) = self.asked.pop_front() {
            if one.head.is_some() {
                self.finish_one(Some(one));
            }
        }
        if self.done.len() > KEPT_MAX {
            self.keep_slowest();
        }
        self.done.sort_unstable_by_key(|one| one.number);
    }

    /// Those that are kept, in order, after [`Self::finish`].
    pub(crate) fn kept(&self) -> &[Exchange] {
        &self.done
    }

    /// The waits that are not above these parts of all, ascending, in nanoseconds; exact where all requests are kept.
    pub(crate) fn percentiles(&self, parts: [f64; 3]) -> [u64; 3] {
        let mut waits: Vec<u64> = self.done.iter().filter_map(Exchange::wait).collect();
        waits.sort_unstable();
        let total = waits.len() as u64 + self.unkept.total;
        parts.map(|part| {
            // Those that are kept are the slowest.
            let rank = (part * total as f64).ceil().max(1.0) as u64;
            match rank.checked_sub(self.unkept.total + 1) {
                Some(place) => waits.get(place as usize).copied().unwrap_or_default(),
                None => self.unkept.percentile(rank as f64 / self.unkept.total as f64),
            }
        })
    }
}

#[cfg(test)]
mod tests;
