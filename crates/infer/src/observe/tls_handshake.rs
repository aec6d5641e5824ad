//! The TLS handshake of a connection: who is asked for, and how long it takes.
//!
//! It begins with the ClientHello. It is over when both sides have changed their cipher, or the client sends application data: in TLS 1.3
//! its Finished looks like that, and a client in compatibility mode changes its cipher just before (RFC 8446 appendix D.4).

use crate::event::packet::Packet;
use thalweg_wire::{ClientHello, Message, ServerHello, TlsRecords};

/// Follows the handshake; only the first one of a connection counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct TlsHandshake {
    /// The ClientHello, in nanoseconds since the connection's first packet, and the end.
    pub(crate) began: Option<u64>,
    pub(crate) ended: Option<u64>,
    pub(crate) client: ClientHello,
    pub(crate) server: Option<ServerHello>,
    is_answered: bool,
    changed: [bool; 2],
}

impl TlsHandshake {
    /// Takes in a packet that begins with TLS records, or completes a hello.
    pub(crate) fn packet(&mut self, now: u64, packet: &Packet) {
        let (side, records) = (packet.side(), packet.records);
        match packet.message().map(|message| &**message) {
            Some(Message::ClientHello(hello)) if side == 0 && self.ended.is_none() => {
                // What the first segment lacks, the next one has.
                self.client.server_name = self.client.server_name.take().or_else(|| hello.server_name.clone());
                if self.client.protocols.is_empty() {
                    self.client.protocols.clone_from(&hello.protocols);
                }
            }
            // A request to begin again has the form of a ServerHello (RFC 8446 §4.1.4), and the same version.
            Some(Message::ServerHello(hello)) if side == 1 && self.server.is_none() => {
                self.server = Some(hello.clone())
            }
            _ => {}
        }
        let is_hello = records.has(TlsRecords::CLIENT_HELLO);
        if side == 0 && is_hello && self.began.is_none() {
            self.began = Some(now);
        }
        if !self.is_going_on() {
            return;
        }
        if records.has(TlsRecords::CHANGE_CIPHER_SPEC) && !is_hello {
            self.changed[side] = true;
        }
        self.is_answered |= side == 1 && records.has(TlsRecords::SERVER_HELLO);
        let is_data = side == 0 && self.is_answered && records.has(TlsRecords::DATA);
        if is_data || self.changed == [true; 2] {
            self.ended = Some(now);
        }
    }

    /// Whether it has begun and is not over.
    pub(crate) const fn is_going_on(&self) -> bool {
        self.began.is_some() && self.ended.is_none()
    }

    /// Whether it is over and of TLS 1.3 (0x0304), in which the client's Finished ends it.
    pub(crate) fn is_1_3(&self) -> bool {
        self.ended.is_some() && self.server.as_ref().is_some_and(|server| server.version == 0x0304)
    }
}
